//! Decompresses a body, to its last byte, and masks the key in it.
//!
//! A compressed body is a single stream (several are allowed for gzip and zstd) and nothing else: trailing bytes are an
//! error, as are bytes that do not decompress. Transport errors pass through unchanged.
//!
//! A service may echo the key, as a page that shows its own URL does. Bytes are masked before anything reads them, so whatever
//! is decoded, kept as evidence or reported comes from masked bytes. The key is masked as it is, and escaped once for a URL,
//! for JSON or for HTML. Masking keeps the length, so offsets in the body stay valid. A key too short to tell from ordinary
//! text is not masked, since that would change data.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::sync::Arc;

use super::chunks::read_ready;
use crate::key::ApiKey;
use crate::key::echo::Echo;

/// Bytes to decompress, or to search for the key, at once.
const PORTION: usize = 1 << 17;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
    /// A stream of zlib.
    Deflate,
    Brotli,
    Zstd,
}

impl Packing {
    /// The compression that a `Content-Encoding` names; `None` if it is not one that we accept.
    pub(super) fn from_encoding(encoding: Option<&[u8]>) -> Option<Self> {
        let encoding = encoding.map(<[u8]>::to_ascii_lowercase);
        Some(match encoding.as_deref() {
            None | Some(b"" | b"identity") => Self::None,
            Some(b"gzip" | b"x-gzip") => Self::Gzip,
            Some(b"deflate") => Self::Deflate,
            Some(b"br") => Self::Brotli,
            Some(b"zstd") => Self::Zstd,
            Some(_) => return None,
        })
    }
}

/// A body that does not decompress: the same on every attempt, unlike a broken connection.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Corrupt {
    pub(super) reason: String,
    /// Number of bytes decompressed before the error.
    pub(super) offset: u64,
}

impl Corrupt {
    /// The same error with the number of bytes decompressed before it.
    pub(super) fn locate(mut error: io::Error, offset: u64) -> io::Error {
        if let Some(corrupt) = error.get_mut().and_then(|inner| inner.downcast_mut::<Self>()) {
            corrupt.offset = offset;
        }
        error
    }

    fn explain(packing: &'static str, error: io::Error) -> io::Error {
        match error.kind() {
            // A body that ends too soon may be complete on the next attempt.
            ErrorKind::UnexpectedEof | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => error,
            _ => {
                let reason = format!("the {packing} stream is corrupt or followed by other bytes");
                io::Error::new(ErrorKind::InvalidData, Self { reason, offset: 0 })
            }
        }
    }
}

/// The decompressed bytes of a body.
pub(super) struct Unpacked {
    inner: Box<dyn BufRead + Send>,
    /// The name of the compression, if there is one.
    packing: Option<&'static str>,
}

impl Unpacked {
    pub(super) fn new(body: impl BufRead + Send + 'static, packing: Packing) -> io::Result<Self> {
        fn buffer(decoder: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
            Box::new(BufReader::with_capacity(PORTION, decoder))
        }
        let (inner, packing) = match packing {
            Packing::None => (Box::new(body) as Box<dyn BufRead + Send>, None),
            Packing::Gzip => (buffer(flate2::bufread::MultiGzDecoder::new(body)), Some("gzip")),
            Packing::Deflate => (buffer(Whole(flate2::bufread::ZlibDecoder::new(body))), Some("zlib")),
            Packing::Brotli => (buffer(Brotli(brotli_decompressor::Decompressor::new(body, 1 << 16))), Some("Brotli")),
            Packing::Zstd => (buffer(zstd::Decoder::with_buffer(body)?), Some("zstd")),
        };
        Ok(Self { inner, packing })
    }
}

impl BufRead for Unpacked {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let packing = self.packing;
        self.inner.fill_buf().map_err(|error| match packing {
            Some(packing) => Corrupt::explain(packing, error),
            None => error,
        })
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self, buffer)
    }
}

/// A stream of zlib without trailing bytes. The crate's decoder stops at its end, whatever follows.
struct Whole<D>(D);

impl<R: BufRead> Read for Whole<flate2::bufread::ZlibDecoder<R>> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        let is_followed = count == 0 && !buffer.is_empty() && !self.0.get_mut().fill_buf()?.is_empty();
        if is_followed { Err(ErrorKind::InvalidData.into()) } else { Ok(count) }
    }
}

/// A Brotli stream without trailing bytes. The crate's decoder stops at the end of the stream, whatever follows.
struct Brotli<R: BufRead>(brotli_decompressor::Decompressor<R>);

impl<R: BufRead> Read for Brotli<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        // When read after the end, the decoder rejects bytes it still holds; bytes it did not take are checked here.
        let is_followed = self.0.read(buffer)? > 0 || !self.0.get_mut().fill_buf()?.is_empty();
        if is_followed { Err(ErrorKind::InvalidData.into()) } else { Ok(0) }
    }
}

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
    use std::io::{BufReader, ErrorKind, Read, Write};

    use super::{Corrupt, Masked, Packing, Unpacked};
    use crate::key::ApiKey;

    const TEXT: &[u8] = b"{\"AAPL\": {\"ticker\": \"AAPL\"}}";

    fn pack(packing: Packing) -> Vec<u8> {
        match packing {
            Packing::None => TEXT.to_vec(),
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(TEXT).expect("memory takes any bytes");
                encoder.finish().expect("memory takes any bytes")
            }
            Packing::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(TEXT).expect("memory takes any bytes");
                encoder.finish().expect("memory takes any bytes")
            }
            // A window of 2^16, one stored block and an empty last one.
            Packing::Brotli => {
                let head = ((TEXT.len() as u32 - 1) << 4) | (1 << 20);
                [&head.to_le_bytes()[..3], TEXT, &[3]].concat()
            }
            Packing::Zstd => zstd::encode_all(TEXT, 3).expect("memory takes any bytes"),
        }
    }

    /// A body that arrives `portion` bytes at a time, decompressed.
    fn unpack(packing: Packing, body: &[u8], portion: usize) -> std::io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let body = std::io::Cursor::new(body.to_vec());
        Unpacked::new(BufReader::with_capacity(portion, body), packing)?.read_to_end(&mut read).map(|_| read)
    }

    #[test]
    fn one_compressed_stream_is_unpacked_across_any_chunks_and_nothing_may_follow() {
        for packing in [Packing::Gzip, Packing::Deflate, Packing::Brotli, Packing::Zstd] {
            let body = pack(packing);
            for portion in [1, 2, 7, body.len(), body.len() + 3, 1 << 16] {
                assert_eq!(unpack(packing, &body, portion).expect("a whole stream"), TEXT, "{packing:?}");
                for garbage in [&b"\0"[..], b"}", b"garbage that is longer than any header", TEXT] {
                    let error = unpack(packing, &[&body, garbage].concat(), portion).expect_err("it is followed");
                    let is_corrupt = error.get_ref().is_some_and(|inner| inner.is::<Corrupt>());
                    // One byte may begin another member or frame, the rest of which is missing.
                    let may_begin = error.kind() == ErrorKind::UnexpectedEof && garbage.len() == 1;
                    assert!(is_corrupt || may_begin, "{packing:?}, {portion} at a time: {error:?}");
                }
                let cut = unpack(packing, &body[..body.len() - 1], portion).expect_err("it ends too soon");
                let is_corrupt = cut.get_ref().is_some_and(|inner| inner.is::<Corrupt>());
                assert!(!is_corrupt || packing == Packing::Brotli, "{packing:?}: {cut:?}");
            }
        }
    }

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
