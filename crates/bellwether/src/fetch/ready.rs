//! Reading from bytes that a source already holds, shared by the readers of a body.

use std::io::{self, BufRead, Read};

/// Reads from the available bytes.
pub(super) fn read_ready(source: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let count = source.fill_buf()?.read(buffer)?;
    source.consume(count);
    Ok(count)
}
