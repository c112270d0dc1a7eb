//! The chunks of a body on their way from the network to a reader on another thread.
//!
//! Available chunks are sent together: a body may come in chunks of a few kilobytes, and waking the reader for each
//! costs more than reading it. Only a few batches are queued, so a slow reader slows the network down.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use super::gauge::Gauge;
use super::ready::read_ready;
use super::timed_chunks::TimedChunks;

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

/// Moves chunks from the network to the reader until the body ends or the reader stops.
pub(super) async fn pump(mut body: TimedChunks, sender: mpsc::Sender<ChunkGroup>, gauge: &Gauge) {
    let mut is_over = false;
    while !is_over {
        let (mut handful, mut bytes) = (ChunkGroup::new(), 0);
        let mut next = Some(body.next().await);
        while let Some(chunk) = next {
            match chunk {
                Ok(Some(chunk)) => {
                    gauge.add_received(chunk.len());
                    bytes += chunk.len();
                    handful.push(Ok(chunk));
                }
                Ok(None) => is_over = true,
                Err(error) => {
                    handful.push(Err(error));
                    is_over = true;
                }
            }
            let is_enough = is_over || bytes >= HANDFUL;
            next = if is_enough { None } else { body.ready() };
        }
        if sender.send(handful).await.is_err() {
            return;
        }
    }
}

/// The chunks as bytes.
pub(super) struct Chunks {
    handfuls: mpsc::Receiver<ChunkGroup>,
    handful: vec::IntoIter<io::Result<Bytes>>,
    current: Bytes,
    taken: Arc<AtomicU64>,
}

impl Chunks {
    /// Number of bytes taken so far.
    pub(super) fn bytes_taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }
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
