//! Writes Parquet files a row group at a time, with a column on each thread.
//!
//! A column becomes a `dictionary` of its `distinct` values and an index per run, looked up once per run, and then the
//! pages of a column `chunk`, encoded by `rle`. If most rows differ from the one before, as confidences do, looking for
//! runs gains nothing, and each row gets an index.
//!
//! The bytes of a file depend on its row groups alone, not on the number of threads or on the pieces in which the rows
//! arrived. An open file holds no memory between two row groups, so thousands may be open.

mod chunk;
mod dictionary;
mod distinct;
mod rle;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

use super::Rows;
use super::rows::concat_column;
use chunk::Chunk;
use dictionary::DictionaryColumn;

/// How a Parquet file is written.
#[derive(Clone, Debug)]
pub struct ParquetOptions {
    /// The codec of the pages.
    pub compression: Compression,
    /// Columns of fewer bytes in a row group are not compressed: reading them is faster than preparing a decompressor.
    pub uncompressed_below: usize,
    /// The columns by which the rows are sorted.
    pub sorted_by: Vec<usize>,
    /// Metadata of the file.
    pub metadata: Vec<KeyValue>,
}

/// Writes a Parquet file.
pub struct ParquetWriter<W: Write + Send> {
    schema: SchemaRef,
    compression: Compression,
    uncompressed_below: usize,
    inner: SerializedFileWriter<WriteBuffer<W>>,
    /// Encodes the columns that get no dictionary here.
    fallback: ArrowRowGroupWriterFactory,
}

/// A column of a row group, and how it is encoded.
enum Encoder {
    Dictionary(Box<DictionaryColumn>),
    Fallback(Box<ArrowColumnWriter>),
}

/// An encoded column of a row group.
enum Encoded {
    Dictionary(Chunk),
    Fallback(ArrowColumnChunk),
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file.
    pub fn create(out: W, schema: SchemaRef, options: ParquetOptions) -> Result<Self, ParquetError> {
        let ParquetOptions { compression, uncompressed_below, sorted_by, metadata } = options;
        let column = |index: usize| SortingColumn { column_idx: index as i32, descending: false, nulls_first: false };
        let sorting: Vec<SortingColumn> = sorted_by.into_iter().map(column).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(compression)
            // Each write is a row group.
            .set_max_row_group_row_count(None)
            .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
            .set_key_value_metadata((!metadata.is_empty()).then_some(metadata))
            .build();
        let writer = ArrowWriter::try_new(
            WriteBuffer { out, buffered: Vec::new() },
            SchemaRef::clone(&schema),
            Some(properties),
        )?;
        let (inner, fallback) = writer.into_serialized_writer()?;
        Ok(Self { schema, compression, uncompressed_below, inner, fallback })
    }

    /// Writes a row group, given in one or more pieces.
    pub fn write(&mut self, pieces: &[Rows]) -> Result<(), ParquetError> {
        let encoders = self.encoders(pieces)?;
        let (schema, leaves) = (&self.schema, self.inner.schema_descr().columns());
        let (compression, uncompressed_below) = (self.compression, self.uncompressed_below);
        let encode = |(index, encoder): (usize, Encoder)| {
            let _work = work!("encode column");
            match encoder {
                Encoder::Dictionary(column) => {
                    let is_small = column.bytes() < uncompressed_below;
                    let compression = if is_small { Compression::UNCOMPRESSED } else { compression };
                    // Each column has one leaf, as none is nested.
                    Chunk::new(&column, &leaves[index], compression).map(Encoded::Dictionary)
                }
                Encoder::Fallback(mut writer) => {
                    // This writer ends pages depending on where its input arrays end.
                    for leaf in compute_leaves(schema.field(index), &concat_column(pieces, index)?)? {
                        writer.write(&leaf)?;
                    }
                    writer.close().map(Encoded::Fallback)
                }
            }
        };
        let columns = encoders.into_par_iter().enumerate().map(encode).collect::<Result<Vec<_>, ParquetError>>()?;
        let mut group = self.inner.next_row_group()?;
        for column in columns {
            match column {
                Encoded::Dictionary(chunk) => group.append_column(&chunk.bytes, chunk.closed)?,
                Encoded::Fallback(chunk) => chunk.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        Ok(self.inner.flush()?)
    }

    /// The columns of a row group: with a dictionary where there are few distinct values, or else to be written by another writer.
    fn encoders(&self, pieces: &[Rows]) -> Result<Vec<Encoder>, ParquetError> {
        let dictionary = |index: usize| {
            let _work = work!("find runs");
            DictionaryColumn::new(&pieces.iter().map(|piece| &piece.columns()[index]).collect::<Vec<_>>())
        };
        let columns: Vec<_> = (0..self.schema.fields().len()).into_par_iter().map(dictionary).collect();
        // Each of these writers has a compressor, so they are created only if the row group needs one.
        let fallbacks = if columns.iter().all(Option::is_some) {
            Vec::new()
        } else {
            self.fallback.create_column_writers(self.inner.flushed_row_groups().len())?
        };
        let mut fallbacks = fallbacks.into_iter();
        let encoder = |column| match (column, fallbacks.next()) {
            (Some(column), _) => Encoder::Dictionary(Box::new(column)),
            (None, fallback) => Encoder::Fallback(Box::new(fallback.expect("there is a fallback for each column"))),
        };
        Ok(columns.into_iter().map(encoder).collect())
    }

    /// Completes the file.
    pub fn finish(&mut self) -> Result<(), ParquetError> {
        self.inner.finish()?;
        Ok(self.inner.inner_mut().out.flush()?)
    }

    /// The output.
    pub fn out(&self) -> &W {
        &self.inner.inner().out
    }
}

/// Bytes per write.
const BUFFER_BYTES: usize = 1 << 18;

/// Like [`BufWriter`](io::BufWriter), but a flush frees the buffer, so that an idle file takes no memory, and does not
/// flush the output, which is flushed once at the end.
struct WriteBuffer<W> {
    out: W,
    buffered: Vec<u8>,
}

impl<W: Write> Write for WriteBuffer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffered.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() > BUFFER_BYTES {
            self.out.write_all(bytes)?;
        } else {
            self.buffered.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffered = std::mem::take(&mut self.buffered);
        if buffered.is_empty() { Ok(()) } else { self.out.write_all(&buffered) }
    }
}
