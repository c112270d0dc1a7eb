//! Collects small writes to a file.

use std::io::{self, Write};

/// Bytes per write.
const CAPACITY: usize = 1 << 18;

/// Like [`BufWriter`](io::BufWriter), but a flush frees the buffer, so that an idle file takes no memory, and does not
/// flush the output, which is flushed once at the end.
pub(super) struct WriteBuffer<W> {
    out: W,
    buffered: Vec<u8>,
}

impl<W> WriteBuffer<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, buffered: Vec::new() }
    }

    /// The output.
    pub(super) fn out(&self) -> &W {
        &self.out
    }

    /// The output, once everything is flushed.
    pub(super) fn out_mut(&mut self) -> &mut W {
        debug_assert!(self.buffered.is_empty(), "flush before writing to the output");
        &mut self.out
    }
}

impl<W: Write> Write for WriteBuffer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffered.len() + bytes.len() > CAPACITY {
            self.flush()?;
        }
        if bytes.len() > CAPACITY {
            self.out.write_all(bytes)?;
        } else {
            self.buffered.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffered = std::mem::take(&mut self.buffered);
        if buffered.is_empty() { Ok(()) } else { self.out.write_all(&buffered) }
    }
}
