//! Whether to retry.

use std::time::Duration;

use crate::fetch::failure::Failure;

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fetch) enum RetryVerdict {
    /// A retry would get the same answer.
    GiveUp,
    /// The failure may be temporary.
    AskAgain,
    /// The service says that it cannot answer now.
    WaitOut {
        /// How long the service asks to wait.
        hint: Option<Duration>,
    },
    /// The service is asked too often.
    SlowDown {
        /// How long the service asks to wait.
        hint: Option<Duration>,
    },
}

/// Judges a failure. A body that is malformed twice is not retried.
pub(in crate::fetch) fn verdict(failure: &Failure, malformed_before: bool) -> RetryVerdict {
    match failure {
        // An invalid request never reaches the transport.
        Failure::Transport(error) if error.is_builder() => RetryVerdict::GiveUp,
        Failure::Transport(_) if failure.is_certificate() => RetryVerdict::GiveUp,
        Failure::Transport(_) | Failure::Broken(_) => RetryVerdict::AskAgain,
        Failure::Malformed { .. } if malformed_before => RetryVerdict::GiveUp,
        Failure::Malformed { .. } => RetryVerdict::AskAgain,
        Failure::Status { status: 429, retry_after, .. } => RetryVerdict::SlowDown { hint: *retry_after },
        Failure::Status { status: 408 | 500..=599, retry_after, .. } => RetryVerdict::WaitOut { hint: *retry_after },
        Failure::Status { .. } | Failure::Refused(_) | Failure::Skewed(_) | Failure::Stop(_) => RetryVerdict::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RetryVerdict, verdict};
    use crate::fetch::failure::Failure;

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
        assert_eq!(judged(429, second), RetryVerdict::SlowDown { hint: second });
    }

    #[test]
    fn a_malformed_body_is_retried_once() {
        let malformed = Failure::Malformed { offset: 0, reason: String::new() };
        assert_eq!(verdict(&malformed, false), RetryVerdict::AskAgain);
        assert_eq!(verdict(&malformed, true), RetryVerdict::GiveUp);
    }
}
