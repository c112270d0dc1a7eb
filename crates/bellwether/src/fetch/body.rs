//! A response body as it arrives: from the network to a reader on another thread, decompressed, bounded, masked and
//! digested.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::CONTENT_ENCODING;
use tokio::task::spawn_blocking;

use super::chunks::{self, Chunks};
use super::failure::{BodyRefusal, Failure, ReadFault};
use super::gauge::Gauge;
use super::mask::Masked;
use super::ready::read_ready;
use super::timed_chunks::TimedChunks;
use super::unpack::{Corrupt, Packing, Unpacked};
use crate::disk::digest::{Digest, hex};
use crate::disk::file;
use crate::error::Error;
use crate::key::ApiKey;
use crate::time::Clock;

/// The largest decompressed body.
const MAX_BYTES: u64 = 32 << 30;
/// The largest compression ratio. Histories compress to a thirtieth, a bomb to a thousandth.
const MAX_GROWTH: u64 = 200;
/// Bodies smaller than this may have any ratio.
const GROWTH_FREE: u64 = 8 << 20;
/// How much of a malformed body is kept.
const MAX_EVIDENCE: u64 = 64 << 20;

/// Details of a body that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct BodySummary {
    /// The HTTP status.
    pub status: u16,
    /// Number of attempts.
    pub attempts: u32,
    /// Size of the body.
    pub bytes: u64,
    /// The BLAKE3 of the body.
    pub digest: String,
    /// When the body was complete.
    pub observed_at: DateTime<Utc>,
}

/// A response whose body has not been read yet.
pub(super) struct Stream {
    response: reqwest::Response,
    exchange: Exchange,
    packing: Packing,
}

/// How to read a body.
pub(super) struct BodyOptions<'a> {
    /// The key to mask in it.
    pub(super) key: ApiKey,
    /// Where to keep a copy.
    pub(super) evidence: Option<PathBuf>,
    /// How long the service may be silent.
    pub(super) stall: Duration,
    pub(super) gauge: &'a Gauge,
}

/// What is known of a response from its headers and the attempts before it.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    status: u16,
    attempts: u32,
    clock: Clock,
}

impl Stream {
    pub(super) fn of(response: reqwest::Response, attempts: u32, clock: Clock) -> Result<Self, Failure> {
        let encoding = response.headers().get(CONTENT_ENCODING).map(|value| value.as_bytes());
        let Some(packing) = Packing::of(encoding) else {
            return Err(Failure::Refused("its content encoding is not supported".to_owned()));
        };
        let exchange = Exchange { status: response.status().as_u16(), attempts, clock };
        Ok(Self { response, exchange, packing })
    }

    /// Passes the body to a reader as it arrives.
    pub(super) async fn read<T, F>(self, read: F, taking: BodyOptions<'_>) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&mut Body) -> Result<T, ReadFault> + Send + 'static,
    {
        let (sender, chunks) = chunks::channel();
        let (exchange, packing) = (self.exchange, self.packing);
        let BodyOptions { key, evidence, stall, gauge } = taking;
        let reader = spawn_blocking(move || {
            let mut body = Body::new(chunks, exchange, packing, &key, evidence.as_deref())?;
            read(&mut body).map_err(|fault| {
                body.keep_the_rest();
                Failure::from(fault)
            })
        });
        let ((), read) = tokio::join!(chunks::pump(TimedChunks::new(self.response, stall), sender, gauge), reader);
        read.unwrap_or_else(|panic| Err(Failure::Stop(Error::worker(panic))))
    }
}

/// A body, for reading on a blocking thread.
pub(crate) struct Body {
    exchange: Exchange,
    inner: Masked<Unpacked<Chunks>>,
    packed: Arc<AtomicU64>,
    digest: Digest,
    /// How much of the available bytes is counted and digested.
    counted: usize,
    evidence: Option<File>,
}

impl Body {
    fn new(
        chunks: Chunks,
        exchange: Exchange,
        packing: Packing,
        key: &ApiKey,
        evidence: Option<&Path>,
    ) -> Result<Self, Failure> {
        let packed = chunks.bytes_taken();
        let unpacked = Unpacked::of(chunks, packing).map_err(Failure::Broken)?;
        Ok(Self {
            exchange,
            inner: Masked::new(unpacked, key),
            packed,
            digest: Digest::default(),
            counted: 0,
            evidence: evidence.map(file::create).transpose().map_err(Failure::Stop)?,
        })
    }

    /// Details of the body, once it has been read to its end.
    pub(crate) fn summary(&self) -> BodySummary {
        let Exchange { status, attempts, clock } = self.exchange;
        let (bytes, digest) = (self.digest.count(), hex(&self.digest.hash()));
        BodySummary { status, attempts, bytes, digest, observed_at: clock.now() }
    }

    /// Reads on if the body is kept as evidence, up to the limit.
    fn keep_the_rest(&mut self) {
        while self.evidence.is_some() && self.digest.count() < MAX_EVIDENCE {
            match self.fill_buf().map(<[u8]>::len) {
                Ok(0) | Err(_) => return,
                Ok(length) => self.consume(length),
            }
        }
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let before = self.digest.count();
        let ready = self.inner.ready().map_err(|error| Corrupt::locate(error, before))?;
        if self.counted == 0 {
            self.digest.update(ready);
            if let Some(file) = &mut self.evidence {
                let room = usize::try_from(MAX_EVIDENCE.saturating_sub(before)).unwrap_or(usize::MAX);
                file.write_all(&ready[..ready.len().min(room)])?;
            }
            self.counted = ready.len();
            check_bounds(self.digest.count(), self.packed.load(Ordering::Relaxed))?;
        }
        Ok(ready)
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.counted -= count;
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self, buffer)
    }
}

/// Checks size and compression ratio.
fn check_bounds(bytes: u64, packed: u64) -> io::Result<()> {
    let reason = if bytes > MAX_BYTES {
        "its body exceeds the size limit"
    } else if bytes > GROWTH_FREE && bytes / MAX_GROWTH > packed {
        "its body expands too much when decompressed"
    } else {
        return Ok(());
    };
    Err(io::Error::other(BodyRefusal(reason)))
}
