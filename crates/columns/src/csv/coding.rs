//! CSV as it is or compressed, in a stream: what is compressed takes no more memory than the rows that are being written.
//!
//! The same bytes give the same compressed bytes: neither a name nor a time is in them.

use std::fs::File;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

/// The level of zstd, as of Parquet.
const LEVEL: i32 = 3;

/// How the bytes of a CSV file are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// They are text.
    Plain,
    /// By gzip.
    Gzip,
    /// By Zstandard, with a checksum.
    Zstd,
}

/// An output that codes what is written to it.
pub(super) enum Coded<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstd(Box<Encoder<'static, W>>),
}

impl Coding {
    pub(super) fn to<W: Write>(self, out: W) -> io::Result<Coded<W>> {
        Ok(match self {
            Self::Plain => Coded::Plain(out),
            Self::Gzip => Coded::Gzip(Box::new(GzEncoder::new(out, Compression::default()))),
            Self::Zstd => {
                let mut encoder = Encoder::new(out, LEVEL)?;
                encoder.include_checksum(true)?;
                Coded::Zstd(Box::new(encoder))
            }
        })
    }

    /// The text of a file.
    pub fn text_of(self, file: File) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Plain => Box::new(file),
            Self::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::new(file))),
            Self::Zstd => Box::new(Decoder::new(file)?),
        })
    }
}

impl<W: Write> Coded<W> {
    /// Completes what is coded.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(encoder) => encoder.try_finish().and_then(|()| encoder.get_mut().flush()),
            Self::Zstd(encoder) => encoder.do_finish().and_then(|()| encoder.get_mut().flush()),
        }
    }

    /// The output behind it.
    pub(super) fn inner(&self) -> &W {
        match self {
            Self::Plain(out) => out,
            Self::Gzip(encoder) => encoder.get_ref(),
            Self::Zstd(encoder) => encoder.get_ref(),
        }
    }
}

impl<W: Write> Write for Coded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
