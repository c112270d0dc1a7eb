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
use super::failure::Failure;
use crate::key::ApiKey;
use crate::key::echo::Echo;

/// Bytes to decompress, or to search for the key, at once.
const PORTION: usize = 1 << 17;

/// The decompressed bytes of a body.
pub(super) struct Unpacked {
    inner: Box<dyn BufRead + Send>,
    /// The name of the compression, if there is one.
    packing: Option<&'static str>,
}

impl Unpacked {
    /// A body with a `Content-Encoding`; refused if that is not one that we accept.
    pub(super) fn new(body: impl BufRead + Send + 'static, encoding: &[u8]) -> io::Result<Self> {
        fn buffer(decoder: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
            Box::new(BufReader::with_capacity(PORTION, decoder))
        }
        let (inner, packing) = match &*encoding.to_ascii_lowercase() {
            b"" | b"identity" => (Box::new(body) as Box<dyn BufRead + Send>, None),
            b"gzip" | b"x-gzip" => (buffer(flate2::bufread::MultiGzDecoder::new(body)), Some("gzip")),
            b"deflate" => (buffer(Whole(flate2::bufread::ZlibDecoder::new(body))), Some("zlib")),
            b"br" => (buffer(Brotli(brotli_decompressor::Decompressor::new(body, 1 << 16))), Some("Brotli")),
            b"zstd" => (buffer(zstd::Decoder::with_buffer(body)?), Some("zstd")),
            _ => return Err(io::Error::other(Failure::Refused("its content encoding is not supported".to_owned()))),
        };
        Ok(Self { inner, packing })
    }
}

impl BufRead for Unpacked {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let packing = self.packing;
        self.inner.fill_buf().map_err(|error| match (packing, error.kind()) {
            // A body that ends too soon may be complete on the next attempt; one that does not decompress is the same then.
            (None, _) | (_, ErrorKind::UnexpectedEof | ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => error,
            (Some(packing), _) => {
                let reason = format!("the {packing} stream is corrupt or followed by other bytes");
                io::Error::new(ErrorKind::InvalidData, Failure::Malformed { offset: 0, reason })
            }
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

    use super::{Failure, Masked, Unpacked};
    use crate::key::ApiKey;

    const TEXT: &[u8] = b"{\"AAPL\": {\"ticker\": \"AAPL\"}}";

    /// The text in an encoding.
    fn pack(encoding: &str) -> Vec<u8> {
        match encoding {
            "gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(TEXT).expect("memory takes any bytes");
                encoder.finish().expect("memory takes any bytes")
            }
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(TEXT).expect("memory takes any bytes");
                encoder.finish().expect("memory takes any bytes")
            }
            // A window of 2^16, one stored block and an empty last one.
            "br" => {
                let head = ((TEXT.len() as u32 - 1) << 4) | (1 << 20);
                [&head.to_le_bytes()[..3], TEXT, &[3]].concat()
            }
            _ => zstd::encode_all(TEXT, 3).expect("memory takes any bytes"),
        }
    }

    /// A body that arrives `portion` bytes at a time, decompressed.
    fn unpack(encoding: &str, body: &[u8], portion: usize) -> std::io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let body = std::io::Cursor::new(body.to_vec());
        let body = BufReader::with_capacity(portion, body);
        Unpacked::new(body, encoding.as_bytes())?.read_to_end(&mut read).map(|_| read)
    }

    fn is_corrupt(error: &std::io::Error) -> bool {
        let failure = error.get_ref().and_then(|inner| inner.downcast_ref());
        matches!(failure, Some(Failure::Malformed { .. }))
    }

    #[test]
    fn one_compressed_stream_is_unpacked_across_any_chunks_and_nothing_may_follow() {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            let body = pack(encoding);
            for portion in [1, 2, 7, body.len(), body.len() + 3, 1 << 16] {
                assert_eq!(unpack(encoding, &body, portion).expect("a whole stream"), TEXT, "{encoding}");
                for garbage in [&b"\0"[..], b"}", b"garbage that is longer than any header", TEXT] {
                    let error = unpack(encoding, &[&body, garbage].concat(), portion).expect_err("it is followed");
                    // One byte may begin another member or frame, the rest of which is missing.
                    let may_begin = error.kind() == ErrorKind::UnexpectedEof && garbage.len() == 1;
                    assert!(is_corrupt(&error) || may_begin, "{encoding}, {portion} at a time: {error:?}");
                }
                let cut = unpack(encoding, &body[..body.len() - 1], portion).expect_err("it ends too soon");
                assert!(!is_corrupt(&cut) || encoding == "br", "{encoding}: {cut:?}");
            }
        }
        assert_eq!(unpack("", TEXT, 7).expect("a whole stream"), TEXT);
        let unknown = unpack("compress", TEXT, 7).expect_err("it is not supported");
        assert!(matches!(Failure::from_io(unknown), Failure::Refused(_)));
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
