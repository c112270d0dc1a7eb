//! Arrow columns to Parquet files: a row group at once, a column on each thread.
//!
//! Most columns of this house stand in runs: a ticker for thousands of rows, a date and the features of its news for
//! every period and regime. Such a column is taken apart into `runs` of equal values and a dictionary of the distinct
//! ones, so a value is looked up once a run, and written in the `hybrid` of runs and packed bits that Parquet has for
//! places in a dictionary, as the pages of a column `chunk`. Where most rows differ from the one before, as confidences
//! do, nothing is gained by looking for runs: each row has its place. A column with too many distinct values, or of a type
//! that is rare here, is left to the writer of the `parquet` crate.
//!
//! A file is the same bytes for the same row groups, whatever the number of threads. Between two row groups nothing is
//! held for a file, so thousands may be under way.

mod chunk;
mod distinct;
mod rle;
mod runs;
#[cfg(test)]
mod tests;
mod write_buffer;

use std::io::Write;

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
use super::concat::joined_column;
use crate::trace::work;
use chunk::Chunk;
use runs::Runs;
use write_buffer::Gathering;

/// How a file is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// How pages are compressed.
    pub(crate) compression: Compression,
    /// Columns of fewer bytes in a row group are left as they are: a reader sooner reads them than it is ready to unpack.
    pub(crate) plain_below: usize,
    /// The places of the columns that order the rows, first the first.
    pub(crate) sorted_by: Vec<usize>,
    /// What the file says of itself.
    pub(crate) metadata: Vec<KeyValue>,
}

/// A Parquet file that is being written.
pub(crate) struct Writer<W: Write + Send> {
    schema: SchemaRef,
    compression: Compression,
    plain_below: usize,
    inner: SerializedFileWriter<Gathering<W>>,
    /// What writes the columns that do not stand in runs.
    others: ArrowRowGroupWriterFactory,
}

/// A column of a row group, as bytes.
enum Column {
    Ours(Chunk),
    Other(ArrowColumnChunk),
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file.
    pub(crate) fn create(out: W, schema: SchemaRef, layout: Layout) -> Result<Self, ParquetError> {
        let Layout { compression, plain_below, sorted_by, metadata } = layout;
        let sorting: Vec<SortingColumn> = sorted_by
            .into_iter()
            .map(|place| SortingColumn { column_idx: place as i32, descending: false, nulls_first: false })
            .collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(compression)
            // A row group is what is written at once.
            .set_max_row_group_row_count(None)
            .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
            .set_key_value_metadata((!metadata.is_empty()).then_some(metadata))
            .build();
        let writer = ArrowWriter::try_new(Gathering::new(out), SchemaRef::clone(&schema), Some(properties))?;
        let (inner, others) = writer.into_serialized_writer()?;
        Ok(Self { schema, compression, plain_below, inner, others })
    }

    /// Writes a row group that came in pieces, one at least.
    pub(crate) fn write(&mut self, pieces: &[Rows]) -> Result<(), ParquetError> {
        let runs = |place: usize| {
            let _work = work!("find runs");
            Runs::of(&pieces.iter().map(|piece| &piece.columns()[place]).collect::<Vec<_>>())
        };
        let runs: Vec<Option<Runs>> = (0..self.schema.fields().len()).into_par_iter().map(runs).collect();
        // These keep a compressor each: they are made for the row groups that have use for them.
        let mut others: Vec<Option<ArrowColumnWriter>> = if runs.iter().all(Option::is_some) {
            runs.iter().map(|_| None).collect()
        } else {
            let group = self.inner.flushed_row_groups().len();
            self.others.create_column_writers(group)?.into_iter().map(Some).collect()
        };
        let leaves = self.inner.schema_descr().columns();
        let (schema, compression, plain_below) = (&self.schema, self.compression, self.plain_below);
        let encoded = |(place, (runs, other)): (usize, (Option<Runs>, &mut Option<ArrowColumnWriter>))| {
            let _work = work!("encode column");
            match runs {
                // Each column has one leaf: none is nested.
                Some(runs) if runs.bytes() < plain_below => {
                    Chunk::of(&runs, &leaves[place], Compression::UNCOMPRESSED).map(Column::Ours)
                }
                Some(runs) => Chunk::of(&runs, &leaves[place], compression).map(Column::Ours),
                None => {
                    let mut writer = other.take().expect("a column without runs has a writer");
                    // Where this writer ends a page depends on where the arrays end that it is given.
                    for leaf in compute_leaves(schema.field(place), &joined_column(pieces, place)?)? {
                        writer.write(&leaf)?;
                    }
                    writer.close().map(Column::Other)
                }
            }
        };
        let columns = runs.into_par_iter().zip(&mut others).enumerate().map(encoded);
        let columns = columns.collect::<Result<Vec<Column>, ParquetError>>()?;
        let mut group = self.inner.next_row_group()?;
        for column in columns {
            match column {
                Column::Ours(chunk) => group.append_column(&chunk.bytes, chunk.closed)?,
                Column::Other(chunk) => chunk.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        Ok(self.inner.flush()?)
    }

    /// Completes the file.
    pub(crate) fn finish(&mut self) -> Result<(), ParquetError> {
        self.inner.finish()?;
        Ok(self.inner.inner_mut().out_mut().flush()?)
    }

    /// What it is written to.
    pub(crate) fn out(&self) -> &W {
        self.inner.inner().out()
    }
}
