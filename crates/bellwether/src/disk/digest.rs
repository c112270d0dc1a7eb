//! Streaming BLAKE3.
//!
//! BLAKE3 is fast on whole kilobytes, hashing sixteen at once, and several times slower on the ends of its
//! input. So input of odd lengths is collected into blocks.

use std::io::{self, Read};

use blake3::{Hash, Hasher};

/// Bytes are hashed in multiples of this.
const BLOCK: usize = 64 << 10;

/// Bytes of a reader that are hashed at once: few enough to stay in the processor's cache.
const PORTION: usize = 256 << 10;

/// The digest of a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    hasher: Hasher,
    /// An incomplete block.
    waiting: Vec<u8>,
}

impl Digest {
    /// Adds bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        if !self.waiting.is_empty() {
            let (first, rest) = bytes.split_at(bytes.len().min(BLOCK - self.waiting.len()));
            self.waiting.extend_from_slice(first);
            self.settle();
            bytes = rest;
        }
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
        self.hasher.update(blocks);
        self.waiting.extend_from_slice(rest);
    }

    /// Adds the bytes that `write` appends.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.waiting);
        if self.waiting.len() >= BLOCK {
            self.settle();
        }
    }

    /// Number of bytes so far.
    pub(crate) fn count(&self) -> u64 {
        self.hasher.count() + self.waiting.len() as u64
    }

    /// The digest so far.
    pub(crate) fn hash(&self) -> Hash {
        self.hasher.clone().update(&self.waiting).finalize()
    }

    /// Hashes complete blocks.
    fn settle(&mut self) {
        let whole = self.waiting.len() - self.waiting.len() % BLOCK;
        self.hasher.update(&self.waiting[..whole]);
        self.waiting.drain(..whole);
    }
}

/// Digest and length of everything in a reader; `None` once it is stopped.
pub(crate) fn of_reader(mut reader: impl Read, is_stopped: impl Fn() -> bool) -> io::Result<Option<(Hash, u64)>> {
    let mut hasher = Hasher::new();
    let mut portion = vec![0; PORTION];
    loop {
        if is_stopped() {
            return Ok(None);
        }
        match reader.read(&mut portion) {
            Ok(0) => return Ok(Some((hasher.finalize(), hasher.count()))),
            Ok(read) => _ = hasher.update(&portion[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The digest of bytes, in hexadecimal.
pub(crate) fn of(bytes: &[u8]) -> String {
    hex(&blake3::hash(bytes))
}

/// A digest in hexadecimal.
pub(crate) fn hex(digest: &Hash) -> String {
    digest.to_hex().as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_how_the_bytes_are_split() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number.wrapping_mul(number) >> 7) as u8).collect();
        for length in [1, 777, BLOCK - 1, BLOCK, BLOCK + 1, 200_000] {
            let (mut digest, mut appended) = (Digest::default(), Digest::default());
            let mut taken = 0;
            for piece in bytes.chunks(length) {
                digest.update(piece);
                appended.append(|out| out.extend_from_slice(piece));
                taken += piece.len();
                assert_eq!((digest.count(), appended.count()), (taken as u64, taken as u64));
            }
            assert_eq!(digest.hash(), blake3::hash(&bytes), "pieces of {length}");
            assert_eq!(appended.hash(), blake3::hash(&bytes), "pieces of {length}");
        }
        for length in [0, 1, 5 << 20, 2 * PORTION] {
            let bytes: Vec<u8> = bytes.iter().copied().cycle().take(length).collect();
            assert_eq!(of_reader(&bytes[..], || false).unwrap(), Some((blake3::hash(&bytes), length as u64)));
            assert_eq!(of_reader(&bytes[..], || true).unwrap(), None);
        }
        assert_eq!(Digest::default().hash(), blake3::hash(b""));
    }
}
