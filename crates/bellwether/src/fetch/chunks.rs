//! The chunks of a body on their way from the network to a reader on another thread.
//!
//! Available chunks are sent together: a body may come in chunks of a few kilobytes, and waking the reader for each
//! costs more than reading it. Only a few batches are queued, so a slow reader slows the network down.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::vec;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::gauge::Gauge;
use crate::net::connection::{check_pace, innermost};

/// The most batches queued between network and reader.
const AHEAD: usize = 8;

/// A batch is sent at this many bytes, even if more are available.
const HANDFUL: usize = 256 << 10;

type ChunkGroup = Vec<io::Result<Bytes>>;

/// A channel between network and reader.
pub(super) fn channel() -> (mpsc::Sender<ChunkGroup>, Chunks) {
    let (sender, handfuls) = mpsc::channel(AHEAD);
    let chunks = Chunks { handfuls, handful: Vec::new().into_iter(), current: Bytes::new(), taken: Arc::default() };
    (sender, chunks)
}

/// Moves chunks from the network to the reader until the body ends or the reader stops. The service may be silent for `stall`.
/// Only time spent waiting for the service counts: a slow reader is not its fault.
pub(super) async fn pump(
    mut response: reqwest::Response,
    stall: Duration,
    sender: mpsc::Sender<ChunkGroup>,
    gauge: &Gauge,
) {
    let (mut waited, mut received) = (Duration::ZERO, 0);
    loop {
        let (mut handful, mut bytes, mut is_over) = (ChunkGroup::new(), 0, false);
        let begun = Instant::now();
        let mut next = Some(response.chunk().await);
        waited += begun.elapsed();
        while let Some(chunk) = next {
            match chunk {
                Ok(Some(chunk)) => {
                    gauge.add_received(chunk.len());
                    bytes += chunk.len();
                    received += chunk.len() as u64;
                    let pace = check_pace(received, waited, stall);
                    is_over = pace.is_err();
                    handful.push(pace.map(|()| chunk));
                }
                Ok(None) => is_over = true,
                Err(error) => {
                    let reason = innermost(&error.without_url());
                    handful.push(Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason)));
                    is_over = true;
                }
            }
            next = if is_over || bytes >= HANDFUL { None } else { response.chunk().now_or_never() };
        }
        if sender.send(handful).await.is_err() || is_over {
            return;
        }
    }
}

/// Reads from the bytes that a source already holds.
pub(super) fn read_ready(source: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let count = source.fill_buf()?.read(buffer)?;
    source.consume(count);
    Ok(count)
}

/// The chunks as bytes.
pub(super) struct Chunks {
    handfuls: mpsc::Receiver<ChunkGroup>,
    handful: vec::IntoIter<io::Result<Bytes>>,
    current: Bytes,
    /// Number of bytes taken so far.
    pub(super) taken: Arc<AtomicU64>,
}

impl BufRead for Chunks {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.current.is_empty() {
            match self.handful.next() {
                Some(chunk) => self.current = chunk?,
                None => match self.handfuls.blocking_recv() {
                    Some(handful) => self.handful = handful.into_iter(),
                    None => break,
                },
            }
        }
        Ok(&self.current)
    }

    fn consume(&mut self, count: usize) {
        self.current.advance(count);
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self, buffer)
    }
}
