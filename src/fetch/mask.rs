//! A body that repeats the key, as a page that shows its own address does, with the key made unreadable.
//!
//! What is masked keeps its length, so that places in the body stay what they are. A key too short to be told from
//! ordinary text is not looked for: masking it would change data.

use std::io::{self, Read};

use memchr::memmem::Finder;

use crate::secret::ApiKey;

/// Shorter keys are words that a headline may hold.
const MIN_KEY: usize = 8;
const BUFFER: usize = 1 << 16;

/// Bytes without the key in them.
pub(super) struct Masked<R> {
    inner: R,
    finders: Vec<Finder<'static>>,
    /// The longest spelling of the key.
    longest: usize,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were looked through and not handed out.
    clean: std::ops::Range<usize>,
    is_at_end: bool,
}

impl<R: Read> Masked<R> {
    pub(super) fn new(inner: R, key: &ApiKey) -> Self {
        let spellings = key.spellings().into_iter().filter(|spelling| spelling.len() >= MIN_KEY);
        let finders: Vec<_> = spellings.map(|spelling| Finder::new(spelling.as_bytes()).into_owned()).collect();
        let longest = finders.iter().map(|finder| finder.needle().len()).max().unwrap_or_default();
        Self { inner, finders, longest, buffer: Vec::new(), clean: 0..0, is_at_end: false }
    }

    /// Reads on until something can be handed out. The end of what was read may be the start of a key: it waits.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.clean.end);
        self.clean = 0..0;
        while !self.is_at_end && self.buffer.len() < self.longest {
            let held = self.buffer.len();
            self.buffer.resize(held + BUFFER, 0);
            let count = self.inner.read(&mut self.buffer[held..]);
            self.buffer.truncate(held + *count.as_ref().unwrap_or(&0));
            self.is_at_end = count? == 0;
        }
        for finder in &self.finders {
            let found: Vec<usize> = finder.find_iter(&self.buffer).collect();
            for start in found {
                self.buffer[start..start + finder.needle().len()].fill(b'*');
            }
        }
        let waiting = if self.is_at_end { 0 } else { self.longest - 1 };
        self.clean = 0..self.buffer.len() - waiting;
        Ok(())
    }
}

impl<R: Read> Read for Masked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.finders.is_empty() {
            return self.inner.read(buffer);
        }
        if self.clean.is_empty() {
            self.fill()?;
        }
        let count = buffer.len().min(self.clean.len());
        buffer[..count].copy_from_slice(&self.buffer[self.clean.start..self.clean.start + count]);
        self.clean.start += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::Masked;
    use crate::secret::ApiKey;

    /// Gives one byte at a time, or as many as it is told.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn the_key_is_masked_wherever_the_chunks_are_cut_and_nothing_else_changes() {
        let key = ApiKey::new("S3CRET/key").expect("a key");
        let text = "S3CRET/key a S3CRET/kez b S3CRET%2Fkey, S3CRET/keyS3CRET/key S3CRET/ke";
        let expected = "********** a S3CRET/kez b ************, ******************** S3CRET/ke";
        for step in 1..text.len() {
            let mut read = String::new();
            Masked::new(Dripping(text.as_bytes(), step), &key).read_to_string(&mut read).expect("text");
            assert_eq!(read, expected, "{step} at a time");
        }
    }

    #[test]
    fn a_short_key_is_left_alone_for_it_may_be_a_word() {
        let key = ApiKey::new("demo").expect("a key");
        let mut read = String::new();
        Masked::new("a demo".as_bytes(), &key).read_to_string(&mut read).expect("text");
        assert_eq!(read, "a demo");
    }
}
