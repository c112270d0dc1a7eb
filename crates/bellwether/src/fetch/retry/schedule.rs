//! When to retry, and how often.

use std::time::Duration;

use tokio::time::Instant;

use crate::time::random;

/// The most attempts of a request.
const MAX_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait, whatever the service asks for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The time that a whole run may spend on retries. Success never refills it.
#[derive(Clone, Copy, Debug)]
pub(in crate::fetch) struct Patience {
    end: Instant,
}

impl Patience {
    pub(in crate::fetch) fn new(length: Duration) -> Self {
        Self { end: Instant::now() + length }
    }
}

/// The waits of one request: exponential backoff with full jitter, and an end.
#[derive(Debug)]
pub(in crate::fetch) struct RetrySchedule {
    attempts: u32,
}

impl RetrySchedule {
    /// A new schedule.
    pub(in crate::fetch) fn new() -> Self {
        Self { attempts: 0 }
    }

    /// Number of failed attempts.
    pub(in crate::fetch) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait before the next attempt; `None` if there is none.
    pub(in crate::fetch) fn next(&mut self, hint: Option<Duration>, patience: &Patience) -> Option<Duration> {
        self.attempts += 1;
        let ceiling = FIRST_WAIT.saturating_mul(1 << (self.attempts - 1).min(16)).min(MAX_WAIT);
        let jittered = ceiling.mul_f64((random() >> 11) as f64 / (1_u64 << 53) as f64);
        let wait = hint.map_or(jittered, |hint| hint.min(MAX_WAIT));
        (self.attempts < MAX_ATTEMPTS && Instant::now() + wait < patience.end).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MAX_ATTEMPTS, MAX_WAIT, Patience, RetrySchedule};

    #[test]
    fn waits_are_bounded_in_length_and_number() {
        let patience = Patience::new(Duration::from_secs(3600));
        let mut schedule = RetrySchedule::new();
        let waits: Vec<Duration> = std::iter::from_fn(|| schedule.next(None, &patience)).take(100).collect();
        assert_eq!(waits.len() as u32, MAX_ATTEMPTS - 1);
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
    }

    #[test]
    fn a_requested_wait_is_honoured_and_capped() {
        let patience = Patience::new(Duration::from_secs(3600));
        let mut schedule = RetrySchedule::new();
        assert_eq!(schedule.next(Some(Duration::from_secs(3)), &patience), Some(Duration::from_secs(3)));
        assert_eq!(schedule.next(Some(Duration::from_secs(86_400)), &patience), Some(MAX_WAIT));
    }

    #[test]
    fn a_wait_beyond_the_patience_of_the_run_does_not_start() {
        let patience = Patience::new(Duration::from_secs(2));
        let mut schedule = RetrySchedule::new();
        assert_eq!(schedule.next(Some(Duration::from_secs(3)), &patience), None);
    }
}
