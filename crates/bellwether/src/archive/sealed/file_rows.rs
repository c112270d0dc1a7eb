//! Reads a file of rows sorted by ticker from start to end.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::statistics::Statistics;

use super::folder::{Expanded, Folder};
use super::horizon::{CountedShare, Horizon, SEALED_AT};
use super::layout::fill;
use super::rows::{check, ticker, with_unsigned_zeros};
use super::source::FileBytes;
use crate::disk::expansion;
use crate::disk::file::FileError;
use crate::error::{Error, Reason, Result};
use crate::process::cancel::{self, CancellationToken};
use crate::tables::Change;

/// Rows per batch: a few tickers of daily history. Larger batches take more memory and no less time.
pub(super) const BATCH_ROWS: usize = 1 << 12;

/// The rows of a file, in batches.
pub(in crate::archive) struct FileRows {
    path: PathBuf,
    file: FileBytes,
    metadata: ArrowReaderMetadata,
    /// Cancels reading it.
    stop: CancellationToken,
    /// The columns to hand out.
    schema: SchemaRef,
    mask: ProjectionMask,
    /// Which rows count, unless all do.
    horizon: Option<Horizon>,
    /// The row groups to read.
    groups: Range<usize>,
    batches: Option<ParquetRecordBatchReader>,
    /// What was decoded of the row group being read.
    expanded: Expanded,
    /// Rows left in the open batches.
    left_in_batches: usize,
    /// The last ticker that was read.
    last: String,
}

impl FileRows {
    /// Opens a file with the columns of a schema.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef) -> Result<Self> {
        let (path, file, metadata) = folder.open(name, schema)?;
        let schema = schema.clone();
        let (mask, groups) = (ProjectionMask::all(), 0..metadata.metadata().num_row_groups());
        Ok(Self {
            path,
            file,
            metadata,
            stop: folder.stop().clone(),
            schema,
            mask,
            horizon: None,
            groups,
            batches: None,
            expanded: Expanded::default(),
            left_in_batches: 0,
            last: String::new(),
        })
    }

    /// The columns of its rows.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Opens a file for the rows that count, without the column that says so; none if none do.
    pub(in crate::archive) fn open_known(
        folder: &Folder,
        name: &str,
        schema: &SchemaRef,
        horizon: &Horizon,
    ) -> Result<Option<Self>> {
        let share = horizon.share(folder.seal());
        if share == CountedShare::None {
            return Ok(None);
        }
        let whole = Self::open(folder, name, schema)?;
        let horizon = (share == CountedShare::Some).then(|| horizon.clone());
        Ok(Some(Self { horizon, ..whole }.narrow_to(|_| true)))
    }

    /// Reads only some of the columns; the first one always.
    pub(super) fn narrow_to(self, is_read: impl Fn(&str) -> bool) -> Self {
        let fields = self.schema.fields().iter().enumerate();
        let is_handed_out = |name: &str| name != SEALED_AT && is_read(name);
        let indices: Vec<usize> = fields
            .filter(|(index, field)| *index == 0 || is_handed_out(field.name()))
            .map(|(index, _)| index)
            .collect();
        let schema = Arc::new(self.schema.project(&indices).expect("these are indices of its columns"));
        let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if self.horizon.is_some() {
            names.push(SEALED_AT);
        }
        let mask = ProjectionMask::columns(self.metadata.parquet_schema(), names);
        Self { schema, mask, ..self }
    }

    /// Whether every row adds its cell, according to the file's statistics.
    pub(super) fn are_added(&self) -> bool {
        let Ok(index) = self.metadata.schema().index_of("change") else { return false };
        let added = Change::Added.as_str().as_bytes();
        self.metadata.metadata().row_groups().iter().all(|group| match group.column(index).statistics() {
            Some(Statistics::ByteArray(statistics)) => {
                let bounds = [statistics.min_opt(), statistics.max_opt()];
                bounds.iter().all(|bound| bound.is_some_and(|bound| bound.data() == added))
                    && statistics.null_count_opt() == Some(0)
            }
            _ => false,
        })
    }

    /// Skips row groups that end before a ticker, unless one is being read.
    pub(super) fn skip_groups(&mut self, wanted: &str) {
        if self.batches.is_some() {
            return;
        }
        let groups = self.metadata.metadata().row_groups();
        while !self.groups.is_empty() {
            let ends_before = match groups[self.groups.start].column(0).statistics() {
                Some(Statistics::ByteArray(statistics)) => {
                    statistics.max_opt().is_some_and(|last| last.data() < wanted.as_bytes())
                }
                _ => false,
            };
            if !ends_before {
                return;
            }
            self.groups.start += 1;
        }
    }

    /// The next rows; none at the end.
    pub(super) fn read(&mut self) -> Result<Option<RecordBatch>> {
        cancel::check(&self.stop)?;
        loop {
            match &mut self.batches {
                Some(batches) => match batches.next().transpose() {
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => {
                        self.expanded.add(&batch, 1).map_err(|reason| self.damage(reason))?;
                        self.left_in_batches = self.left_in_batches.saturating_sub(batch.num_rows());
                        if self.left_in_batches == 0 {
                            // Many files may wait for their next ticker, and the decoders of a file take more memory
                            // than most of them hold.
                            self.batches = None;
                        }
                        let batch = match &self.horizon {
                            Some(horizon) => horizon.rows(&batch).map_err(|error| self.damage(error))?,
                            None => batch,
                        };
                        if batch.num_rows() > 0 {
                            let batch = fill(batch, &self.schema).map_err(|error| self.damage(error))?;
                            self.check(&batch)?;
                            return Ok(Some(with_unsigned_zeros(batch)));
                        }
                    }
                    Ok(None) => self.batches = None,
                    Err(error) => return Err(self.damage(error)),
                },
                None if !self.groups.is_empty() => {
                    let metadata = self.metadata.clone();
                    let group = metadata.metadata().row_group(self.groups.start);
                    let columns = self.file.columns(group, &self.mask).map_err(|error| self.damage(error))?;
                    self.left_in_batches = usize::try_from(group.num_rows()).unwrap_or(0);
                    self.expanded = Expanded::default();
                    let rows = self.left_in_batches.clamp(1, BATCH_ROWS);
                    let one = [self.groups.start];
                    let rows =
                        expansion::batch_rows(&Arc::new(columns.clone()), metadata.metadata(), one, &self.mask, rows)
                            .map_err(|error| self.damage(error))?;
                    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(columns, metadata)
                        .with_projection(self.mask.clone())
                        .with_row_groups(vec![self.groups.start])
                        .with_batch_size(rows)
                        .build()
                        .map_err(|error| self.damage(error))?;
                    self.batches = Some(reader);
                    self.groups.start += 1;
                }
                None => return Ok(None),
            }
        }
    }

    /// All remaining rows.
    pub(in crate::archive) fn take_rest(&mut self) -> Result<RecordBatch> {
        let mut rest = Vec::new();
        while let Some(batch) = self.read()? {
            rest.push(batch);
        }
        concat_batches(&self.schema, &rest).map_err(|error| self.damage(error))
    }

    /// Validates rows that were just read.
    fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        check(batch).map_err(|reason| self.damage(reason))?;
        if ticker(batch, 0) < self.last.as_str() {
            return Err(self.damage("its rows are not sorted by ticker"));
        }
        ticker(batch, batch.num_rows() - 1).clone_into(&mut self.last);
        Ok(())
    }

    pub(in crate::archive) fn damage(&self, error: impl Into<Reason>) -> Error {
        FileError::damage(&self.path, error)
    }
}
