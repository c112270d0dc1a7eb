//! How many answers are decoded at once, which says how the work is shared.
//!
//! Where there are as many answers as processors, each is decoded by the thread that reads it: a few pieces at a time,
//! which are still in its caches, and no thread is waked for them. Where there are fewer, an answer is decoded by all.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::batch::Bounds;
use super::stream::GROUP_BYTES;

static ANSWERS: AtomicUsize = AtomicUsize::new(0);

/// An answer that is being decoded, as long as the value lives.
#[derive(Debug)]
pub(super) struct UnderWay(());

impl UnderWay {
    pub(super) fn begin() -> Self {
        ANSWERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// How many bytes of pieces are decoded together now. It makes no difference to what is decoded.
    pub(super) fn batch_bytes(&self) -> usize {
        let is_each_busy = ANSWERS.load(Ordering::Relaxed) >= rayon::current_num_threads();
        if is_each_busy { GROUP_BYTES } else { Bounds::ANSWER.batch_bytes }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        ANSWERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP_BYTES, UnderWay};

    #[test]
    fn many_answers_are_decoded_by_a_thread_each() {
        let others: Vec<UnderWay> = (0..rayon::current_num_threads()).map(|_| UnderWay::begin()).collect();
        assert_eq!(others[0].batch_bytes(), GROUP_BYTES);
    }
}
