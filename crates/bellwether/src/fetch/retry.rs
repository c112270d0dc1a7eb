//! When to ask: retries, as a pure verdict and a pure schedule whose loop is in the client, and the limit of requests per
//! second, for all connections to a host.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::failure::Failure;
use crate::time::random;

/// The most attempts of a request.
const MAX_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The first wait for a service that cannot answer now.
const FIRST_WAIT_IF_BUSY: Duration = Duration::from_secs(1);
/// The longest wait, whatever the service asks for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The waits of one request: exponential backoff with full jitter, and an end.
#[derive(Debug, Default)]
pub(super) struct RetrySchedule {
    /// Number of failed attempts.
    pub(super) attempts: u32,
}

impl RetrySchedule {
    /// How long to wait before the next attempt after a failure that may pass by itself; `None` if there is none.
    pub(super) fn next(&mut self, patience: Instant) -> Option<Duration> {
        let wait = self.wait(FIRST_WAIT).mul_f64(share());
        (self.attempts < MAX_ATTEMPTS && Instant::now() + wait < patience).then_some(wait)
    }

    /// The same for a service that says that it cannot answer now, and perhaps for how long. It answers again some time, so
    /// patience alone ends this.
    pub(super) fn next_while_patient(&mut self, hint: Option<Duration>, patience: Instant) -> Option<Duration> {
        let wait = self.wait(FIRST_WAIT_IF_BUSY).mul_f64(0.5 + share() / 2.0);
        let wait = hint.map_or(wait, |hint| hint.min(MAX_WAIT));
        (Instant::now() + wait < patience).then_some(wait)
    }

    /// Counts an attempt. The longest wait after it, twice that of the attempt before.
    fn wait(&mut self, first: Duration) -> Duration {
        self.attempts += 1;
        first.saturating_mul(1 << (self.attempts - 1).min(16)).min(MAX_WAIT)
    }
}

/// A random share, below one.
fn share() -> f64 {
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryVerdict {
    /// A retry would get the same answer.
    GiveUp,
    /// The failure may be temporary.
    AskAgain,
    /// The service says that it cannot answer now, or is asked too often.
    WaitOut {
        /// How long the service asks to wait.
        hint: Option<Duration>,
    },
}

/// Judges a failure. A body that is malformed twice is not retried.
pub(super) fn verdict(failure: &Failure, malformed_before: bool) -> RetryVerdict {
    match failure {
        // An invalid request never reaches the transport.
        Failure::Transport(error) if error.is_builder() => RetryVerdict::GiveUp,
        Failure::Transport(_) if failure.is_certificate() => RetryVerdict::GiveUp,
        Failure::Transport(_) | Failure::Broken(_) => RetryVerdict::AskAgain,
        Failure::Malformed { .. } if malformed_before => RetryVerdict::GiveUp,
        Failure::Malformed { .. } => RetryVerdict::AskAgain,
        Failure::Status { status: 408 | 429 | 500..=599, retry_after, .. } => {
            RetryVerdict::WaitOut { hint: *retry_after }
        }
        Failure::Status { .. } | Failure::Refused(_) | Failure::Skewed(_) | Failure::Stop(_) => RetryVerdict::GiveUp,
    }
}

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
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{MAX_ATTEMPTS, MAX_WAIT, RateLimiter, RetrySchedule, RetryVerdict, verdict};
    use crate::fetch::failure::Failure;

    #[test]
    fn waits_are_bounded_in_length_and_number() {
        let patience = Instant::now() + Duration::from_secs(3600);
        let mut schedule = RetrySchedule::default();
        let waits: Vec<Duration> = std::iter::from_fn(|| schedule.next(patience)).take(100).collect();
        assert_eq!(waits.len() as u32, MAX_ATTEMPTS - 1);
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
    }

    #[test]
    fn a_busy_service_is_asked_again_for_as_long_as_patience_lasts() {
        let patience = Instant::now() + Duration::from_secs(3600);
        let mut schedule = RetrySchedule::default();
        let waits: Vec<Duration> = (0..20).map_while(|_| schedule.next_while_patient(None, patience)).collect();
        assert_eq!(waits.len(), 20);
        assert!(waits[0] >= Duration::from_millis(500) && waits[19] >= MAX_WAIT / 2, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
        assert_eq!(schedule.next_while_patient(None, Instant::now() + Duration::ZERO), None);
    }

    #[test]
    fn a_requested_wait_is_honoured_and_capped() {
        let patience = Instant::now() + Duration::from_secs(3600);
        let mut schedule = RetrySchedule::default();
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(3)), patience), Some(Duration::from_secs(3)));
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(86_400)), patience), Some(MAX_WAIT));
    }

    #[test]
    fn a_wait_beyond_the_patience_of_the_run_does_not_start() {
        let patience = Instant::now() + Duration::from_secs(2);
        let mut schedule = RetrySchedule::default();
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(3)), patience), None);
    }

    #[test]
    fn only_transient_failures_are_retried() {
        let judged = |status, retry_after| {
            verdict(&Failure::Status { status, retry_after, fault: None, words: None, location: None }, false)
        };
        for status in [408, 500, 502, 503, 504] {
            assert_eq!(judged(status, None), RetryVerdict::WaitOut { hint: None }, "{status}");
        }
        let second = Some(Duration::from_secs(1));
        for status in [301, 302, 400, 401, 403, 404, 405, 410, 422] {
            assert_eq!(judged(status, second), RetryVerdict::GiveUp, "{status}");
        }
        assert_eq!(judged(503, second), RetryVerdict::WaitOut { hint: second });
        assert_eq!(judged(429, second), RetryVerdict::WaitOut { hint: second });
    }

    #[test]
    fn a_malformed_body_is_retried_once() {
        let malformed = Failure::Malformed { offset: 0, reason: String::new() };
        assert_eq!(verdict(&malformed, false), RetryVerdict::AskAgain);
        assert_eq!(verdict(&malformed, true), RetryVerdict::GiveUp);
    }

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
