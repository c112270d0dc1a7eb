//! Counts the answers being decoded, which decides how threads share the work.
//!
//! With as many answers as processors, each is decoded by the thread that reads it, a few pieces at a time, while they
//! are still in its caches and without waking other threads. With fewer, all threads decode each answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::batch::Bounds;
use super::stream::GROUP_BYTES;

static ANSWERS: AtomicUsize = AtomicUsize::new(0);

/// An answer being decoded, until the value is dropped.
#[derive(Debug)]
pub(super) struct InProgress(());

impl InProgress {
    pub(super) fn begin() -> Self {
        ANSWERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Bytes of pieces to decode together now. The result does not depend on it.
    pub(super) fn batch_bytes(&self) -> usize {
        let is_each_busy = ANSWERS.load(Ordering::Relaxed) >= rayon::current_num_threads();
        if is_each_busy { GROUP_BYTES } else { Bounds::ANSWER.batch_bytes }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        ANSWERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP_BYTES, InProgress};

    #[test]
    fn many_answers_are_decoded_on_one_thread_each() {
        let others: Vec<InProgress> = (0..rayon::current_num_threads()).map(|_| InProgress::begin()).collect();
        assert_eq!(others[0].batch_bytes(), GROUP_BYTES);
    }
}
