//! Reads some rows of a file of rows sorted by ticker, in any order and from several threads.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader as _};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::file::statistics::Statistics;

use super::folder::{Expanded, Folder};
use super::layout::fill;
use super::rows::{check, with_unsigned_zeros};
use super::source::FileBytes;
use crate::disk::expansion;
use crate::disk::file::FileError;
use crate::error::{Error, Reason, Result};
use crate::interface::Ticker;
use crate::process::cancel::{self, CancellationToken};

/// The row groups of a file.
pub(in crate::archive) struct RowGroups {
    path: PathBuf,
    file: FileBytes,
    metadata: ArrowReaderMetadata,
    /// The columns to hand out.
    schema: SchemaRef,
    /// Cancels reading it.
    stop: CancellationToken,
}

impl RowGroups {
    /// Opens a file with the columns of a schema.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef) -> Result<Self> {
        let (path, file, metadata) = folder.open(name, schema)?;
        Ok(Self { path, file, metadata, schema: SchemaRef::clone(schema), stop: folder.stop().clone() })
    }

    /// Number of row groups.
    pub(in crate::archive) fn count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Whether a row group may have one of the tickers from one to another, as far as its statistics show.
    pub(in crate::archive) fn may_have(&self, group: usize, first: &Ticker, last: &Ticker) -> bool {
        match self.metadata.metadata().row_group(group).column(0).statistics() {
            Some(Statistics::ByteArray(tickers)) => {
                let is_after = tickers.min_opt().is_some_and(|least| least.data() > last.as_str().as_bytes());
                let is_before = tickers.max_opt().is_some_and(|most| most.data() < first.as_str().as_bytes());
                !is_after && !is_before
            }
            _ => true,
        }
    }

    /// The first columns of a row group, which are the keys of its rows.
    pub(in crate::archive) fn keys(&self, group: usize, count: usize) -> Result<RecordBatch> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), 0..count);
        self.read_checked(group, &mask, &[Range { start: 0, end: self.rows_in(group) }])
    }

    /// All rows of a row group.
    pub(in crate::archive) fn whole(&self, group: usize) -> Result<RecordBatch> {
        self.rows(group, &[Range { start: 0, end: self.rows_in(group) }])
    }

    /// Some rows of a row group, as ranges in order.
    pub(in crate::archive) fn rows(&self, group: usize, rows: &[Range<usize>]) -> Result<RecordBatch> {
        let rows = self.read_checked(group, &ProjectionMask::all(), rows)?;
        Ok(with_unsigned_zeros(fill(rows, &self.schema).map_err(|error| self.damage(error))?))
    }

    fn read_checked(&self, group: usize, mask: &ProjectionMask, rows: &[Range<usize>]) -> Result<RecordBatch> {
        cancel::check(&self.stop)?;
        let columns = self.file.columns(self.metadata.metadata().row_group(group), mask);
        let columns = columns.map_err(|error| self.damage(error))?;
        let count: usize = rows.iter().map(Range::len).sum();
        let (metadata, one) = (self.metadata.metadata(), [group]);
        let batch_rows = expansion::batch_rows(&Arc::new(columns.clone()), metadata, one, mask, count.max(1))
            .map_err(|error| self.damage(error))?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(columns, self.metadata.clone())
            .with_projection(mask.clone())
            .with_row_groups(vec![group])
            .with_row_selection(RowSelection::from_consecutive_ranges(rows.iter().cloned(), self.rows_in(group)))
            .with_batch_size(batch_rows)
            .build();
        let reader = reader.map_err(|error| self.damage(error))?;
        let schema = reader.schema();
        let (mut batches, mut expanded) = (Vec::new(), Expanded::default());
        for batch in reader {
            let batch = batch.map_err(|error| self.damage(error))?;
            expanded.add(&batch, 1).map_err(|reason| self.damage(reason))?;
            batches.push(batch);
        }
        let rows = concat_batches(&schema, &batches).map_err(|error| self.damage(error))?;
        check(&rows).map_err(|reason| self.damage(reason))?;
        Ok(rows)
    }

    fn rows_in(&self, group: usize) -> usize {
        usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    pub(in crate::archive) fn damage(&self, error: impl Into<Reason>) -> Error {
        FileError::damage(&self.path, error)
    }
}
