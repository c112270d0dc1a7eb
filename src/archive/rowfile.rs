//! Writes a Parquet file of a run.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::basic::{Compression, ZstdLevel};

use crate::encode::{Layout, Pieces, Writer};
use crate::error::{Error, Reason, Result};
use crate::file::{self, Described, FileRecord};
use crate::tables::Rows;

/// Rows of a row group: few enough to skip the tickers that are not wanted, enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// The bytes of a column that is not worth compressing. A run that says little has few others, and many such runs are read
/// at once.
const PLAIN_BYTES: usize = 1 << 12;

/// A Parquet file that is being written.
pub(super) struct Rowfile {
    path: PathBuf,
    writer: Writer<Described<File>>,
    waiting: Pieces,
    rows: u64,
}

impl Rowfile {
    /// Begins a file whose rows are ordered by its first columns, as many as are said.
    pub(super) fn create(path: &Path, schema: SchemaRef, ordered_by: usize) -> Result<Self> {
        let layout = Layout {
            compression: Compression::ZSTD(ZstdLevel::default()),
            plain_below: PLAIN_BYTES,
            sorted_by: (0..ordered_by).collect(),
            metadata: Vec::new(),
        };
        let writer = Writer::create(Described::new(file::create(path)?), SchemaRef::clone(&schema), layout)
            .map_err(|error| file::encoding_failed(path, error.into()))?;
        Ok(Self { path: path.to_owned(), writer, waiting: Pieces::new(ROW_GROUP_ROWS), rows: 0 })
    }

    pub(super) fn write(&mut self, batch: Result<RecordBatch, ArrowError>) -> Result<()> {
        let batch = batch.map_err(|error| Error::Encode { path: self.path.clone(), source: error.into() })?;
        self.add(&batch.into())
    }

    /// Writes rows whose turns are known.
    pub(super) fn add(&mut self, rows: &Rows) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        let groups = self.waiting.push(rows);
        groups.iter().try_for_each(|group| self.writer.write(group)).map_err(|error| self.failed(error))
    }

    /// Completes the file. It is not durable yet: it is when there is a seal that names it.
    pub(super) fn finish(mut self) -> Result<FileRecord> {
        let rest = self.waiting.rest();
        rest.map_or(Ok(()), |rows| self.writer.write(&rows)).map_err(|error| self.failed(error))?;
        self.writer.finish().map_err(|error| self.failed(error))?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(self.writer.out().record(&name, self.rows))
    }

    fn failed(&self, error: impl Into<Reason>) -> Error {
        file::encoding_failed(&self.path, error.into())
    }
}
