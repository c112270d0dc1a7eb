//! The minimum speed of a body.
//!
//! A body must not take forever, even if it never stops. After waiting as long as the service may be silent (`stall`),
//! it must have brought a kibibyte per further second, and it must be complete after some hours. Only time spent
//! waiting for the service counts: a slow reader is not the service's fault.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;

use super::failure::innermost;

/// The minimum rate, in bytes per second.
const LEAST_RATE: u64 = 1 << 10;

/// The longest wait for a body: 4 GB at 5 MB/s take a quarter of an hour.
const LONGEST: Duration = Duration::from_secs(6 * 60 * 60);

/// The chunks of a body as they arrive, and how long they took.
#[derive(Debug)]
pub(super) struct TimedChunks {
    response: reqwest::Response,
    /// How long the service may be silent.
    stall: Duration,
    waited: Duration,
    received: u64,
}

impl TimedChunks {
    pub(super) fn new(response: reqwest::Response, stall: Duration) -> Self {
        Self { response, stall, waited: Duration::ZERO, received: 0 }
    }

    /// Waits for the next chunk; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let begun = Instant::now();
        let chunk = self.response.chunk().await;
        self.waited += begun.elapsed();
        self.received(chunk)
    }

    /// The next chunk if it is available.
    pub(super) fn ready(&mut self) -> Option<io::Result<Option<Bytes>>> {
        let chunk = self.response.chunk().now_or_never()?;
        Some(self.received(chunk))
    }

    fn received(&mut self, chunk: reqwest::Result<Option<Bytes>>) -> io::Result<Option<Bytes>> {
        let chunk = chunk.map_err(|error| broken(innermost(&error.without_url())))?;
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
            check(self.received, self.waited, self.stall)?;
        }
        Ok(chunk)
    }
}

/// Checks that enough bytes were received for the time waited.
fn check(received: u64, waited: Duration, stall: Duration) -> io::Result<()> {
    let reason = if waited > LONGEST {
        format!("it was incomplete after {} hours", LONGEST.as_secs() / 3600)
    } else if received < LEAST_RATE * waited.saturating_sub(stall).as_secs() {
        format!("received {received} bytes in {} s, less than 1 KiB per second", waited.as_secs())
    } else {
        return Ok(());
    };
    Err(broken(reason))
}

fn broken(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, reason)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::check;

    #[test]
    fn a_body_may_be_slow_and_large_but_not_endless() {
        let is_taken =
            |received, waited, stall| check(received, Duration::from_secs(waited), Duration::from_secs(stall)).is_ok();
        assert!(is_taken(4_000_000_000, 800, 30), "4 GB at 5 MB/s");
        assert!(is_taken(1, 30, 30), "as long as it may be silent");
        assert!(is_taken(10 << 10, 40, 30), "1 KiB/s");
        assert!(!is_taken(90, 90, 30), "a byte a second");
        assert!(!is_taken(3, 4, 2), "a byte a second");
        assert!(!is_taken(u64::MAX / 2, 6 * 3600 + 1, 30), "whatever it brings");
    }
}
