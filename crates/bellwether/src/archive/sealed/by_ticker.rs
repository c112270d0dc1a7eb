//! Reads a file of rows sorted by ticker, in pieces that end at a ticker or a date.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::statistics::Statistics;

use super::bound::{Bound, Cuts};
use super::folder::Folder;
use super::horizon::{CountedShare, Horizon, SEALED_AT};
use super::rows::{check, ticker, with_unsigned_zeros};
use super::source::FileBytes;
use crate::disk::file::FileError;
use crate::error::{Error, Reason, Result};
use crate::process::cancel::{self, CancellationToken};

/// Rows per decoded batch: a few tickers of daily history. Larger batches take more memory and no less time.
const BATCH_ROWS: usize = 1 << 12;

/// A ticker with this many rows is read by itself.
const GIANT_ROWS: i64 = 1 << 13;

/// Converts rows of another layout.
pub(in crate::archive) type Convert = Arc<dyn Fn(RecordBatch) -> Result<RecordBatch, Reason> + Send + Sync>;

/// A file of rows sorted by ticker, read once from start to end.
pub(in crate::archive) struct ByTicker {
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
    /// What the rows are converted by, if they are of another layout.
    convert: Option<Convert>,
    /// The row groups to read.
    groups: Range<usize>,
    batches: Option<ParquetRecordBatchReader>,
    /// Rows left in the open batches.
    left_in_batches: usize,
    /// Rows read but not yet handed out.
    pending: VecDeque<RecordBatch>,
    /// Number of leading rows of these that were handed out.
    given: usize,
}

impl ByTicker {
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
            convert: None,
            groups,
            batches: None,
            left_in_batches: 0,
            pending: VecDeque::new(),
            given: 0,
        })
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

    /// Number of row groups.
    pub(in crate::archive) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Reads one row group only.
    pub(in crate::archive) fn in_group(self, group: usize) -> Self {
        Self { groups: group..group + 1, ..self }
    }

    /// Converts all rows to the columns of another schema; some may be left out.
    pub(in crate::archive) fn with_conversion(self, schema: SchemaRef, convert: Convert) -> Self {
        Self { schema, convert: Some(convert), ..self }
    }

    /// Reads only some of the columns; the first one always.
    pub(in crate::archive) fn narrow_to(self, is_read: impl Fn(&str) -> bool) -> Self {
        let fields = self.schema.fields().iter().enumerate();
        let is_handed_out = |name: &str| name != SEALED_AT && is_read(name);
        let mut indices: Vec<usize> = fields
            .filter(|(index, field)| *index == 0 || is_handed_out(field.name()))
            .map(|(index, _)| index)
            .collect();
        let schema = Arc::new(self.schema.project(&indices).expect("these are places of its columns"));
        if self.horizon.is_some() {
            indices.push(self.metadata.parquet_schema().root_schema().get_fields().len() - 1);
        }
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), indices);
        Self { schema, mask, ..self }
    }

    /// Whether a column has a single value, according to the file's statistics.
    pub(in crate::archive) fn says_only(&self, column: &str, text: &str) -> bool {
        let Ok(index) = self.schema.index_of(column) else { return false };
        self.metadata.metadata().row_groups().iter().all(|group| match group.column(index).statistics() {
            Some(Statistics::ByteArray(statistics)) => {
                let bounds = [statistics.min_opt(), statistics.max_opt()];
                bounds.iter().all(|bound| bound.is_some_and(|bound| bound.data() == text.as_bytes()))
                    && statistics.null_count_opt() == Some(0)
            }
            _ => false,
        })
    }

    /// Tickers that fill a row group alone, according to the file's statistics.
    pub(in crate::archive) fn giants(&self) -> impl Iterator<Item = String> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.filter_map(|group| match group.column(0).statistics() {
            Some(Statistics::ByteArray(tickers)) => {
                let (first, last) = tickers.min_opt().zip(tickers.max_opt())?;
                let name = std::str::from_utf8(first.data()).ok().filter(|_| first == last)?;
                (group.num_rows() >= GIANT_ROWS).then(|| name.to_owned())
            }
            _ => None,
        })
    }

    fn rows_pending(&self) -> usize {
        self.pending.iter().map(RecordBatch::num_rows).sum::<usize>() - self.given
    }

    /// A cut after at least `least` rows; `None` if the file ends before, or reaches a limit.
    pub(in crate::archive) fn cut(&mut self, least: usize, cuts: Cuts, limit: Option<&Bound>) -> Result<Option<Bound>> {
        loop {
            if let Some(batch) = self.pending.back() {
                let last = batch.num_rows() - 1;
                if limit.is_some_and(|limit| !limit.is_after(batch, last)) {
                    return Ok(None);
                }
                if self.rows_pending() >= least
                    && let Some(cut) = Bound::last_before(batch, last, cuts, |cut| self.rows_before(cut) == 0)
                {
                    return Ok(Some(cut));
                }
            }
            match self.read()? {
                Some(batch) => self.pending.push_back(batch),
                None => return Ok(None),
            }
        }
    }

    /// A cut after all pending rows; `None` if there are none.
    pub(in crate::archive) fn end(&self) -> Option<Bound> {
        self.pending.back().map(|batch| Bound::after(ticker(batch, batch.num_rows() - 1)))
    }

    /// The rows before a cut, possibly none.
    pub(in crate::archive) fn take_until(&mut self, bound: &Bound) -> Result<RecordBatch> {
        self.read_until(bound)?;
        self.hand_out(self.rows_before(bound))
    }

    /// Reads until a row after the cut is pending, or the file ends.
    fn read_until(&mut self, bound: &Bound) -> Result<()> {
        while self.pending.back().is_none_or(|batch| bound.is_after(batch, batch.num_rows() - 1)) {
            match self.read()? {
                Some(batch) => self.pending.push_back(batch),
                None => break,
            }
        }
        Ok(())
    }

    /// All remaining rows.
    pub(in crate::archive) fn take_rest(&mut self) -> Result<RecordBatch> {
        while let Some(batch) = self.read()? {
            self.pending.push_back(batch);
        }
        self.hand_out(usize::MAX)
    }

    /// The rows of some tickers, which are in order. Other tickers are skipped, mostly without reading them.
    pub(in crate::archive) fn take_tickers<'t>(
        &mut self,
        wanted: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<RecordBatch>> {
        let mut taken = Vec::new();
        // Consecutive wanted tickers are handed out together.
        let mut ready = 0;
        for wanted in wanted {
            let is_behind = |batch: &RecordBatch| ticker(batch, batch.num_rows() - 1) < wanted;
            if self.pending.back().is_none_or(is_behind) {
                taken.extend(self.hand_out_some(ready)?);
                ready = 0;
                while self.pending.back().is_none_or(is_behind) {
                    (self.pending, self.given) = (VecDeque::new(), 0);
                    self.skip_groups(wanted);
                    match self.read()? {
                        Some(batch) => self.pending.push_back(batch),
                        None => return Ok(taken),
                    }
                }
            }
            let (before, after) = (Bound::before(wanted), Bound::after(wanted));
            self.read_until(&after)?;
            let (start, end) = (self.rows_before(&before), self.rows_before(&after));
            if start > ready {
                taken.extend(self.hand_out_some(ready)?);
                self.pass_over(start - ready, |_, _, _| {});
                ready = end - start;
            } else {
                ready = end;
            }
        }
        taken.extend(self.hand_out_some(ready)?);
        Ok(taken)
    }

    fn hand_out_some(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        if rows > 0 { self.hand_out(rows).map(Some) } else { Ok(None) }
    }

    /// Skips row groups that end before a ticker, unless one is being read.
    pub(in crate::archive) fn skip_groups(&mut self, wanted: &str) {
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

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        cancel::check(&self.stop)?;
        loop {
            match &mut self.batches {
                Some(batches) => match batches.next().transpose() {
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => {
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
                        let batch = match &self.convert {
                            Some(convert) => convert(batch).map_err(|error| self.damage(error))?,
                            None => batch,
                        };
                        if batch.num_rows() > 0 {
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
                    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(columns, metadata)
                        .with_projection(self.mask.clone())
                        .with_row_groups(vec![self.groups.start])
                        .with_batch_size(self.left_in_batches.clamp(1, BATCH_ROWS))
                        .build()
                        .map_err(|error| self.damage(error))?;
                    self.batches = Some(reader);
                    self.groups.start += 1;
                }
                None => return Ok(None),
            }
        }
    }

    /// Validates rows that were just read, which follow those pending.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        check(batch).map_err(|reason| self.damage(reason))?;
        match self.pending.back() {
            Some(last) if ticker(last, last.num_rows() - 1) > ticker(batch, 0) => {
                Err(self.damage("its rows are not sorted by ticker"))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::archive) fn damage(&self, error: impl Into<Reason>) -> Error {
        FileError::damage(&self.path, error)
    }

    /// Number of pending rows before a cut.
    fn rows_before(&self, bound: &Bound) -> usize {
        let before: usize = self.pending.iter().map(|batch| bound.rows_before(batch)).sum();
        before.saturating_sub(self.given)
    }

    /// The first pending rows.
    fn hand_out(&mut self, rows: usize) -> Result<RecordBatch> {
        let mut first = Vec::new();
        self.pass_over(rows, |batch, from, count| first.push(batch.slice(from, count)));
        match &first[..] {
            [] => Ok(RecordBatch::new_empty(self.schema.clone())),
            [only] => Ok(only.clone()),
            first => concat_batches(&self.schema, first).map_err(|error: ArrowError| self.damage(error)),
        }
    }

    /// Skips the first pending rows, batch by batch, without copying the rest.
    fn pass_over(&mut self, rows: usize, mut each: impl FnMut(&RecordBatch, usize, usize)) {
        let mut left = rows;
        while left > 0
            && let Some(batch) = self.pending.front()
        {
            let taken = left.min(batch.num_rows() - self.given);
            each(batch, self.given, taken);
            left -= taken;
            self.given += taken;
            if self.given == batch.num_rows() {
                self.pending.pop_front();
                self.given = 0;
            }
        }
    }
}
