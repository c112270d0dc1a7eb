//! Whether it is of use to ask again.

use std::time::Duration;

use crate::fetch::failure::Failure;

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fetch) enum Verdict {
    /// The answer would be the same.
    GiveUp,
    /// It may pass; the service may have said when.
    AskAgain {
        /// How long the service asks to wait.
        hint: Option<Duration>,
    },
}

/// Judges a failure.
pub(in crate::fetch) fn verdict(failure: &Failure) -> Verdict {
    match failure {
        // Nothing that is wrong with the request itself reaches the transport.
        Failure::Transport(error) if error.is_builder() => Verdict::GiveUp,
        Failure::Transport(_) => Verdict::AskAgain { hint: None },
        Failure::Status { status: 408 | 429 | 500..=599, retry_after, .. } => {
            // A wait of zero says nothing that the schedule does not know better.
            let hint = retry_after.filter(|&seconds| seconds > 0).map(Duration::from_secs);
            Verdict::AskAgain { hint }
        }
        Failure::Status { .. } => Verdict::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Verdict, verdict};
    use crate::fetch::failure::Failure;

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let judged = |status, retry_after| verdict(&Failure::Status { status, retry_after, fault: None });
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(judged(status, None), Verdict::AskAgain { hint: None }, "{status}");
        }
        for status in [301, 302, 400, 401, 403, 404, 405, 410, 422] {
            assert_eq!(judged(status, Some(1)), Verdict::GiveUp, "{status}");
        }
        assert_eq!(judged(429, Some(7)), Verdict::AskAgain { hint: Some(Duration::from_secs(7)) });
        assert_eq!(judged(429, Some(0)), Verdict::AskAgain { hint: None });
    }
}
