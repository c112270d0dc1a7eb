//! When to retry, and how often.

use std::time::Duration;

use tokio::time::Instant;

use crate::time::random;

/// The most attempts of a request.
const MAX_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The first wait for a service that cannot answer now.
const FIRST_WAIT_IF_BUSY: Duration = Duration::from_secs(1);
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

    /// Whether it outlasts a wait.
    fn lasts(&self, wait: Duration) -> bool {
        Instant::now() + wait < self.end
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

    /// How long to wait before the next attempt after a failure that may pass by itself; `None` if there is none.
    pub(in crate::fetch) fn next(&mut self, patience: &Patience) -> Option<Duration> {
        let wait = self.wait(FIRST_WAIT).mul_f64(share());
        (self.attempts < MAX_ATTEMPTS && patience.lasts(wait)).then_some(wait)
    }

    /// The same for a service that says that it cannot answer now, and perhaps for how long. It answers again some time, so
    /// patience alone ends this.
    pub(in crate::fetch) fn next_while_patient(
        &mut self,
        hint: Option<Duration>,
        patience: &Patience,
    ) -> Option<Duration> {
        let wait = self.wait(FIRST_WAIT_IF_BUSY).mul_f64(0.5 + share() / 2.0);
        let wait = hint.map_or(wait, |hint| hint.min(MAX_WAIT));
        patience.lasts(wait).then_some(wait)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MAX_ATTEMPTS, MAX_WAIT, Patience, RetrySchedule};

    #[test]
    fn waits_are_bounded_in_length_and_number() {
        let patience = Patience::new(Duration::from_secs(3600));
        let mut schedule = RetrySchedule::new();
        let waits: Vec<Duration> = std::iter::from_fn(|| schedule.next(&patience)).take(100).collect();
        assert_eq!(waits.len() as u32, MAX_ATTEMPTS - 1);
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
    }

    #[test]
    fn a_busy_service_is_asked_again_for_as_long_as_patience_lasts() {
        let patience = Patience::new(Duration::from_secs(3600));
        let mut schedule = RetrySchedule::new();
        let waits: Vec<Duration> = (0..20).map_while(|_| schedule.next_while_patient(None, &patience)).collect();
        assert_eq!(waits.len(), 20);
        assert!(waits[0] >= Duration::from_millis(500) && waits[19] >= MAX_WAIT / 2, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
        assert_eq!(schedule.next_while_patient(None, &Patience::new(Duration::ZERO)), None);
    }

    #[test]
    fn a_requested_wait_is_honoured_and_capped() {
        let patience = Patience::new(Duration::from_secs(3600));
        let mut schedule = RetrySchedule::new();
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(3)), &patience), Some(Duration::from_secs(3)));
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(86_400)), &patience), Some(MAX_WAIT));
    }

    #[test]
    fn a_wait_beyond_the_patience_of_the_run_does_not_start() {
        let patience = Patience::new(Duration::from_secs(2));
        let mut schedule = RetrySchedule::new();
        assert_eq!(schedule.next_while_patient(Some(Duration::from_secs(3)), &patience), None);
    }
}
