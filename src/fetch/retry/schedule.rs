//! When to ask again, and how often.

use std::time::Duration;

use crate::time::random;

/// How often a request is asked, at most.
const MAX_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait, whatever the service asks for.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The waits of one request: twice as long each time, with full jitter, and an end.
#[derive(Debug)]
pub(in crate::fetch) struct Schedule {
    attempts: u32,
}

impl Schedule {
    /// A schedule that nothing was asked on yet.
    pub(in crate::fetch) fn new() -> Self {
        Self { attempts: 0 }
    }

    /// How many attempts have failed.
    pub(in crate::fetch) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait before the next attempt; none when there is to be no other.
    pub(in crate::fetch) fn next(&mut self, hint: Option<Duration>) -> Option<Duration> {
        self.attempts += 1;
        if self.attempts >= MAX_ATTEMPTS {
            return None;
        }
        let ceiling = FIRST_WAIT.saturating_mul(1 << (self.attempts - 1)).min(MAX_WAIT);
        let jittered = ceiling.mul_f64((random() >> 11) as f64 / (1_u64 << 53) as f64);
        Some(hint.map_or(jittered, |asked| asked.min(MAX_WAIT)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MAX_ATTEMPTS, MAX_WAIT, Schedule};

    #[test]
    fn waits_are_bounded_in_length_and_number() {
        let mut schedule = Schedule::new();
        let waits: Vec<Duration> = std::iter::from_fn(|| schedule.next(None)).take(100).collect();
        assert_eq!(waits.len() as u32, MAX_ATTEMPTS - 1);
        assert!(waits.iter().all(|wait| *wait <= MAX_WAIT));
    }

    #[test]
    fn a_wait_that_the_service_asks_for_is_honoured_and_capped() {
        let mut schedule = Schedule::new();
        assert_eq!(schedule.next(Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
        assert_eq!(schedule.next(Some(Duration::from_secs(86_400))), Some(MAX_WAIT));
    }
}
