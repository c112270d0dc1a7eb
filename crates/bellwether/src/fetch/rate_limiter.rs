//! Limits requests per second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Grants slots to requests, evenly spaced; unused slots expire.
#[derive(Debug)]
pub(super) struct RateLimiter {
    between: Option<Duration>,
    next: Mutex<Option<Instant>>,
}

impl RateLimiter {
    pub(super) fn new(per_second: Option<u16>) -> Self {
        let between = per_second.map(|count| Duration::from_secs(1) / u32::from(count.max(1)));
        Self { between, next: Mutex::new(None) }
    }

    /// Waits for a slot.
    pub(super) async fn wait(&self) {
        let Some(between) = self.between else { return };
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            *next = Some(turn + between);
            turn
        };
        sleep_until(turn).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::RateLimiter;

    #[tokio::test]
    async fn requests_are_spaced_and_never_wait_without_a_rate() {
        let pace = RateLimiter::new(Some(100));
        let begun = Instant::now();
        for _ in 0..11 {
            pace.wait().await;
        }
        assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
        let free = RateLimiter::new(None);
        for _ in 0..1000 {
            free.wait().await;
        }
    }
}
