//! Masks the key in a body that echoes it, as a page that shows its own URL does.
//!
//! Bytes are masked before anything reads them, so whatever is decoded, kept as evidence or reported comes from masked
//! bytes. The key is masked as it is, and escaped once for a URL, for JSON or for HTML. Masking keeps the length, so offsets
//! in the body stay valid. A key too short to tell from ordinary text is not masked, since that would change
//! data.

use std::io::{self, BufRead};
use std::sync::Arc;

use crate::key::ApiKey;
use crate::key::echo::Echo;

/// Bytes to search at once.
const PORTION: usize = 1 << 17;

/// Bytes with the key masked.
pub(super) struct Masked<R> {
    inner: R,
    /// `None` if nothing is masked.
    echo: Option<Arc<Echo>>,
    buffer: Vec<u8>,
    /// The bytes of the buffer that are searched and not yet handed out.
    clean: std::ops::Range<usize>,
    is_at_end: bool,
}

impl<R: BufRead> Masked<R> {
    pub(super) fn new(inner: R, key: &ApiKey) -> Self {
        Self { inner, echo: key.echo().cloned(), buffer: Vec::new(), clean: 0..0, is_at_end: false }
    }

    /// The bytes available; empty at the end. They stay until consumed.
    pub(super) fn ready(&mut self) -> io::Result<&[u8]> {
        let Some(echo) = self.echo.clone() else { return self.inner.fill_buf() };
        if self.clean.is_empty() {
            self.fill(&echo)?;
        }
        Ok(&self.buffer[self.clean.clone()])
    }

    /// Marks bytes as consumed.
    pub(super) fn consume(&mut self, count: usize) {
        if self.echo.is_none() { self.inner.consume(count) } else { self.clean.start += count }
    }

    /// Reads until something is available. The end of what was read may be the start of a key, so it is held back.
    fn fill(&mut self, echo: &Echo) -> io::Result<()> {
        self.buffer.drain(..self.clean.end);
        self.clean = 0..0;
        while !self.is_at_end && self.buffer.len() < echo.longest() {
            let ready = self.inner.fill_buf()?;
            let count = ready.len().min(PORTION);
            self.buffer.extend_from_slice(&ready[..count]);
            self.inner.consume(count);
            self.is_at_end = count == 0;
        }
        echo.overwrite(&mut self.buffer);
        let waiting = if self.is_at_end { 0 } else { echo.longest() - 1 };
        self.clean = 0..self.buffer.len() - waiting;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::Masked;
    use crate::key::ApiKey;

    /// A text that arrives `step` bytes at a time, masked.
    fn mask_in_steps(text: &str, step: usize, key: &ApiKey) -> String {
        let mut masked = Masked::new(BufReader::with_capacity(step, text.as_bytes()), key);
        let mut read = Vec::new();
        loop {
            let ready = masked.ready().expect("bytes in memory");
            // Not everything handed out is always consumed at once.
            let count = ready.len().div_ceil(2);
            if count == 0 {
                return String::from_utf8(read).expect("text");
            }
            read.extend_from_slice(&ready[..count]);
            masked.consume(count);
        }
    }

    #[test]
    fn the_key_is_masked_across_chunks_and_nothing_else_changes() {
        let key = ApiKey::new("S3CRET/key").expect("a key");
        let text = "S3CRET/key a S3CRET/kez b S3CRET%2fkey, S3CRET\\/keyS3CRET/key \\u0053\\u0033CRET/key S3CRET/ke";
        let expected = "********** a S3CRET/kez b ************, ********************* ******************** S3CRET/ke";
        for step in 1..text.len() {
            assert_eq!(mask_in_steps(text, step, &key), expected, "{step} at a time");
        }
    }

    #[test]
    fn a_key_short_enough_to_be_a_word_is_not_masked() {
        let key = ApiKey::new("demo").expect("a key");
        assert_eq!(mask_in_steps("a demo", 2, &key), "a demo");
    }
}
