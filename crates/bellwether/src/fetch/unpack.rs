//! Decompresses a body, to its last byte.
//!
//! A compressed body is a single stream (several are allowed for gzip and zstd) and nothing else: trailing bytes are an
//! error, as are bytes that do not decompress. Transport errors pass through unchanged.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::ready::read_ready;

/// Bytes to decompress at once.
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
    pub(super) fn of(encoding: Option<&[u8]>) -> Option<Self> {
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

    fn of(packing: &'static str, error: io::Error) -> io::Error {
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
pub(super) enum Unpacked<R: BufRead> {
    Plain(R),
    Gzip(Buffered<flate2::bufread::MultiGzDecoder<R>>),
    Deflate(Buffered<Whole<flate2::bufread::ZlibDecoder<R>>>),
    Brotli(Buffered<Brotli<R>>),
    Zstd(Buffered<zstd::Decoder<'static, R>>),
}

type Buffered<D> = Box<BufReader<D>>;

fn buffer<D: Read>(decoder: D) -> Buffered<D> {
    Box::new(BufReader::with_capacity(PORTION, decoder))
}

impl<R: BufRead> Unpacked<R> {
    pub(super) fn of(body: R, packing: Packing) -> io::Result<Self> {
        Ok(match packing {
            Packing::None => Self::Plain(body),
            Packing::Gzip => Self::Gzip(buffer(flate2::bufread::MultiGzDecoder::new(body))),
            Packing::Deflate => Self::Deflate(buffer(Whole(flate2::bufread::ZlibDecoder::new(body)))),
            Packing::Brotli => Self::Brotli(buffer(Brotli::new(body))),
            Packing::Zstd => Self::Zstd(buffer(zstd::Decoder::with_buffer(body)?)),
        })
    }
}

impl<R: BufRead> BufRead for Unpacked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(body) => body.fill_buf(),
            Self::Gzip(decoder) => decoder.fill_buf().map_err(|error| Corrupt::of("gzip", error)),
            Self::Deflate(decoder) => decoder.fill_buf().map_err(|error| Corrupt::of("zlib", error)),
            Self::Brotli(decoder) => decoder.fill_buf().map_err(|error| Corrupt::of("Brotli", error)),
            Self::Zstd(decoder) => decoder.fill_buf().map_err(|error| Corrupt::of("zstd", error)),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Plain(body) => body.consume(count),
            Self::Gzip(decoder) => decoder.consume(count),
            Self::Deflate(decoder) => decoder.consume(count),
            Self::Brotli(decoder) => decoder.consume(count),
            Self::Zstd(decoder) => decoder.consume(count),
        }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self, buffer)
    }
}

/// A stream of zlib without trailing bytes. The crate's decoder stops at its end, whatever follows.
pub(super) struct Whole<D>(D);

impl<R: BufRead> Read for Whole<flate2::bufread::ZlibDecoder<R>> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        let is_followed = count == 0 && !buffer.is_empty() && !self.0.get_mut().fill_buf()?.is_empty();
        if is_followed { Err(ErrorKind::InvalidData.into()) } else { Ok(count) }
    }
}

/// A Brotli stream without trailing bytes. The crate's decoder stops at the end of the stream, whatever follows.
pub(super) struct Brotli<R: BufRead>(brotli_decompressor::Decompressor<R>);

impl<R: BufRead> Brotli<R> {
    /// Bytes buffered for the decoder.
    const HELD: usize = 1 << 16;

    fn new(body: R) -> Self {
        Self(brotli_decompressor::Decompressor::new(body, Self::HELD))
    }
}

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

#[cfg(test)]
mod tests {
    use std::io::{BufReader, ErrorKind, Read, Write};

    use super::{Corrupt, Packing, Unpacked};

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
        Unpacked::of(BufReader::with_capacity(portion, body), packing)?.read_to_end(&mut read).map(|_| read)
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
}
