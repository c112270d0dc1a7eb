//! Parquet: compressed, with statistics, the order declared, the provenance in the metadata.
//!
//! A row group is encoded at once, a column on each thread: nothing is held for a file between two of them, so that
//! thousands may be under way. (An encoder with its compressor keeps some megabytes for each column.)

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

use super::Encoding;
use crate::plan::Codec;

/// A Parquet file that is being written.
pub(super) struct Writer<W: Write + Send> {
    schema: SchemaRef,
    inner: SerializedFileWriter<W>,
    columns: ArrowRowGroupWriterFactory,
}

impl<W: Write + Send> Writer<W> {
    pub(super) fn create(out: W, schema: SchemaRef, encoding: &Encoding) -> Result<Self, ParquetError> {
        let places = encoding.sort.iter().filter_map(|name| schema.index_of(name).ok());
        let sorting: Vec<SortingColumn> = places
            .map(|place| SortingColumn { column_idx: place as i32, descending: false, nulls_first: false })
            .collect();
        let pairs = encoding.metadata.iter();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(compression(encoding.codec))
            // A row group is what is written at once.
            .set_max_row_group_row_count(None)
            .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
            .set_key_value_metadata(Some(
                pairs.map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect(),
            ))
            .build();
        let writer = ArrowWriter::try_new(out, SchemaRef::clone(&schema), Some(properties))?;
        let (inner, columns) = writer.into_serialized_writer()?;
        Ok(Self { schema, inner, columns })
    }

    /// Writes a row group.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        let writers = self.columns.create_column_writers(self.inner.flushed_row_groups().len())?;
        let encoded = |(place, mut writer): (usize, ArrowColumnWriter)| {
            for leaf in compute_leaves(self.schema.field(place), rows.column(place))? {
                writer.write(&leaf)?;
            }
            writer.close()
        };
        let columns = writers.into_par_iter().enumerate().map(encoded);
        let columns = columns.collect::<Result<Vec<ArrowColumnChunk>, ParquetError>>()?;
        let mut group = self.inner.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), ParquetError> {
        self.inner.finish()?;
        Ok(self.inner.inner_mut().flush()?)
    }
}

fn compression(codec: Codec) -> Compression {
    match codec {
        Codec::Zstd(level) => {
            Compression::ZSTD(ZstdLevel::try_new(level.into()).expect("a plan has levels that zstd has"))
        }
        Codec::Snappy => Compression::SNAPPY,
        Codec::None => Compression::UNCOMPRESSED,
    }
}
