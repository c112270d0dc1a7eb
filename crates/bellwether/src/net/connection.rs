//! Why a connection failed, and how slow an answer may be, for every client of this program.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::error::causes;

/// The minimum rate of an answer, in bytes per second.
const MIN_RATE: u64 = 1 << 10;

/// The longest wait for an answer: 4 GB at 5 MB/s take a quarter of an hour.
const MAX_TIME: Duration = Duration::from_secs(6 * 60 * 60);

type Layer<'a> = &'a (dyn Error + 'static);

/// An error and its sources.
pub(crate) fn reasons(error: Layer<'_>) -> impl Iterator<Item = Layer<'_>> {
    std::iter::once(error).chain(causes(error))
}

/// The innermost reason, as the operating system or the protocol reports it.
pub(crate) fn innermost(error: Layer<'_>) -> String {
    reasons(error).last().map_or_else(String::new, ToString::to_string)
}

/// Whether a certificate could not be verified. Retrying does not help.
pub(crate) fn is_certificate(error: Layer<'_>) -> bool {
    reasons(error).any(|reason| match reason.downcast_ref::<io::Error>() {
        // The inner error of an I/O error is not among its sources.
        Some(error) => error.get_ref().is_some_and(|inner| is_certificate(inner)),
        None => matches!(reason.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))),
    })
}

/// Checks that enough of an answer was received for the time waited. An answer must not take forever, even if it never
/// stops: after waiting as long as the other side may be silent (`stall`), it must have brought a kibibyte per further
/// second, and it must be complete after some hours.
pub(crate) fn check_pace(received: u64, waited: Duration, stall: Duration) -> io::Result<()> {
    let reason = if waited > MAX_TIME {
        format!("it was incomplete after {} hours", MAX_TIME.as_secs() / 3600)
    } else if received < MIN_RATE * waited.saturating_sub(stall).as_secs() {
        format!("received {received} bytes in {} s, less than 1 KiB per second", waited.as_secs())
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::check_pace;

    #[test]
    fn an_answer_may_be_slow_and_large_but_not_endless() {
        let is_taken = |received, waited, stall| {
            check_pace(received, Duration::from_secs(waited), Duration::from_secs(stall)).is_ok()
        };
        assert!(is_taken(4_000_000_000, 800, 30), "4 GB at 5 MB/s");
        assert!(is_taken(1, 30, 30), "as long as it may be silent");
        assert!(is_taken(10 << 10, 40, 30), "1 KiB/s");
        assert!(!is_taken(90, 90, 30), "a byte a second");
        assert!(!is_taken(3, 4, 2), "a byte a second");
        assert!(!is_taken(u64::MAX / 2, 6 * 3600 + 1, 30), "whatever it brings");
    }
}
