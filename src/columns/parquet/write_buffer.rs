//! Bytes on their way to a file, handed on many at once.

use std::io::{self, Write};

/// The bytes that are worth writing.
const ENOUGH: usize = 1 << 18;

/// Gathers what is written in small pieces. Flushed, it holds nothing and takes no room; what it writes to is not flushed
/// with it.
pub(super) struct Gathering<W> {
    out: W,
    held: Vec<u8>,
}

impl<W> Gathering<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, held: Vec::new() }
    }

    /// What it writes to.
    pub(super) fn out(&self) -> &W {
        &self.out
    }

    /// What it writes to, when it holds nothing.
    pub(super) fn out_mut(&mut self) -> &mut W {
        debug_assert!(self.held.is_empty(), "what is held is written first");
        &mut self.out
    }
}

impl<W: Write> Write for Gathering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.len() + bytes.len() > ENOUGH {
            self.flush()?;
        }
        if bytes.len() > ENOUGH {
            self.out.write_all(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { self.out.write_all(&held) }
    }
}
