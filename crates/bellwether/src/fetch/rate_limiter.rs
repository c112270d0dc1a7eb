//! Limits requests per second, for all connections to a host.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The least time between requests to a host that is asked too often, and the most.
const SLOWED: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];
/// Refusals that arrive together slow down once.
const SLOWED_ONCE_IN: Duration = Duration::from_secs(1);

/// Grants slots to requests, evenly spaced; unused slots expire.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// The time between requests that was asked for; zero for no limit.
    least: Duration,
    pace: Mutex<Pace>,
}

#[derive(Debug)]
struct Pace {
    between: Duration,
    next: Option<Instant>,
    slowed: Option<Instant>,
}

impl RateLimiter {
    pub(super) fn new(per_second: Option<u16>) -> Self {
        let least = per_second.map_or(Duration::ZERO, |count| Duration::from_secs(1) / u32::from(count.max(1)));
        Self { least, pace: Mutex::new(Pace { between: least, next: None, slowed: None }) }
    }

    /// Waits for a slot.
    pub(super) async fn wait(&self) {
        let turn = {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            if pace.between.is_zero() {
                return;
            }
            let turn = pace.next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            pace.next = Some(turn + pace.between);
            turn
        };
        sleep_until(turn).await;
    }

    /// Halves the requests per second.
    pub(super) fn slow_down(&self) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        if pace.slowed.is_none_or(|slowed| slowed.elapsed() >= SLOWED_ONCE_IN) {
            let [least, most] = SLOWED;
            pace.between = (pace.between * 2).clamp(least, most.max(self.least));
            pace.slowed = Some(Instant::now());
        }
    }

    /// Goes back to the requests per second that were asked for, a little with each answer.
    pub(super) fn recover(&self) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        if pace.between > self.least {
            let faster = pace.between.mul_f64(0.98).max(self.least);
            pace.between = if faster < Duration::from_millis(5) { self.least } else { faster };
        }
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

    #[test]
    fn a_host_that_is_asked_too_often_is_asked_half_as_often_and_recovers_slowly() {
        let pace = RateLimiter::new(Some(10));
        let between = || pace.pace.lock().unwrap().between;
        // Eight connections are refused at once.
        (0..8).for_each(|_| pace.slow_down());
        assert_eq!(between(), Duration::from_millis(200));
        pace.recover();
        assert!(between() > Duration::from_millis(190));
        (0..100).for_each(|_| pace.recover());
        assert_eq!(between(), Duration::from_millis(100));
        let free = RateLimiter::new(None);
        free.slow_down();
        assert_eq!(free.pace.lock().unwrap().between, Duration::from_millis(50));
        (0..200).for_each(|_| free.recover());
        assert!(free.pace.lock().unwrap().between.is_zero());
    }
}
