//! Live counters of a client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters that the client updates and anyone may read.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    bytes: AtomicU64,
    retries: AtomicU64,
    waiting: Mutex<(u32, String)>,
}

impl Gauge {
    /// Bytes received over the network.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of retries.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Requests waiting to be retried, if any: how many, and the latest reason.
    pub(crate) fn waiting(&self) -> Option<(u32, String)> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.0 > 0).then(|| waiting.clone())
    }

    pub(super) fn add_received(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn waits(&self, reason: &str) {
        self.retries.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 += 1;
        waiting.1 = reason.to_owned();
    }

    pub(super) fn goes_on(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 = waiting.0.saturating_sub(1);
    }
}
