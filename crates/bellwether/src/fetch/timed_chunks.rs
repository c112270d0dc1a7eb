//! The minimum speed of a body. Only time spent waiting for the service counts: a slow reader is not the service's
//! fault.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;

use crate::net::connection::{check_pace, innermost};

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
        self.take_chunk(chunk)
    }

    /// The next chunk if it is available.
    pub(super) fn ready(&mut self) -> Option<io::Result<Option<Bytes>>> {
        let chunk = self.response.chunk().now_or_never()?;
        Some(self.take_chunk(chunk))
    }

    fn take_chunk(&mut self, chunk: reqwest::Result<Option<Bytes>>) -> io::Result<Option<Bytes>> {
        let chunk = chunk.map_err(|error| breakage(innermost(&error.without_url())))?;
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
            check_pace(self.received, self.waited, self.stall)?;
        }
        Ok(chunk)
    }
}

fn breakage(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, reason)
}
