//! What readers share that hold bytes of a body ready: reading is copying from those.

use std::io::{self, BufRead, Read};

/// Reads from what a source holds ready.
pub(super) fn read_ready(source: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let count = source.fill_buf()?.read(buffer)?;
    source.consume(count);
    Ok(count)
}
