//! Writes a Parquet file of a run.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::file::{self, FileRecord};

/// Rows of a row group: few enough to skip the tickers that are not wanted, enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// Rows of a page: a series of some years or two, so that one period and regime can be read by itself.
const PAGE_ROWS: usize = 1 << 11;

/// A Parquet file that is being written.
pub(super) struct Rowfile {
    path: PathBuf,
    writer: ArrowWriter<fs::File>,
    rows: u64,
}

impl Rowfile {
    /// Begins a file whose rows are ordered by its first columns, as many as are said.
    pub(super) fn create(path: &Path, schema: SchemaRef, ordered_by: usize) -> Result<Self> {
        let sorting = (0..ordered_by).map(|column| SortingColumn {
            column_idx: column as i32,
            descending: false,
            nulls_first: false,
        });
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(PAGE_ROWS)
            .set_sorting_columns((ordered_by > 0).then(|| sorting.collect()))
            .build();
        let writer =
            ArrowWriter::try_new(file::create(path)?, schema, Some(properties)).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), writer, rows: 0 })
    }

    pub(super) fn write(&mut self, batch: Result<RecordBatch, ArrowError>) -> Result<()> {
        let batch = batch.map_err(|error| Error::Encode { path: self.path.clone(), source: error.into() })?;
        self.rows += batch.num_rows() as u64;
        self.writer.write(&batch).map_err(|error| failed(&self.path, error))
    }

    pub(super) fn finish(mut self) -> Result<FileRecord> {
        self.writer.finish().map_err(|error| failed(&self.path, error))?;
        file::sync(self.writer.inner(), &self.path)?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        FileRecord::of(&self.path, &name, self.rows)
    }
}

fn failed(path: &Path, error: ParquetError) -> Error {
    file::encoding_failed(path, error.into())
}
