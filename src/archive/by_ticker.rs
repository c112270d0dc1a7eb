//! Reads a file of rows that are ordered by ticker, in pieces that end where a ticker ends.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int32Type, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::statistics::Statistics;

use super::index::SealedRun;
use super::order::first_where;
use super::source::Source;
use crate::error::{Error, Reason, Result};

/// How many rows are decoded at a time: many, where few files are open at once.
const BATCH_ROWS: usize = 1 << 14;

/// A file of rows ordered by ticker. Pieces are taken from its beginning to its end.
pub(super) struct ByTicker {
    path: PathBuf,
    file: Source,
    metadata: ArrowReaderMetadata,
    /// The columns that are read.
    schema: SchemaRef,
    mask: ProjectionMask,
    /// The row group that is read next.
    group: usize,
    batches: Option<ParquetRecordBatchReader>,
    /// How many rows these still have.
    left_in_batches: usize,
    /// Rows that were read and not yet all handed out.
    pending: VecDeque<RecordBatch>,
    /// How many of the first of these were.
    given: usize,
    /// Rows that were not read yet.
    left: usize,
}

impl ByTicker {
    /// Opens a file of a run that has the columns of a schema.
    pub(super) fn open(run: &SealedRun, name: &str, schema: &SchemaRef) -> Result<Self> {
        let path = run.checked(name)?;
        let file = Source::open(&path)?;
        let damaged = |source: Reason| Error::Damaged { path: path.clone(), source };
        // The types are the layout's, whatever a writer thought of them.
        let options = ArrowReaderOptions::new().with_schema(schema.clone());
        let metadata = file.metadata(options).map_err(|error| damaged(error.into()))?;
        let left = usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
        let schema = schema.clone();
        let mask = ProjectionMask::all();
        Ok(Self {
            path,
            file,
            metadata,
            schema,
            mask,
            group: 0,
            batches: None,
            left_in_batches: 0,
            pending: VecDeque::new(),
            given: 0,
            left,
        })
    }

    /// Reads no more than some of its columns; the first is read anyhow.
    pub(super) fn narrowed(self, is_read: impl Fn(&str) -> bool) -> Self {
        let fields = self.schema.fields().iter().enumerate();
        let places: Vec<usize> =
            fields.filter(|(place, field)| *place == 0 || is_read(field.name())).map(|(place, _)| place).collect();
        let schema = Arc::new(self.schema.project(&places).expect("these are places of its columns"));
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), places);
        Self { schema, mask, ..self }
    }

    /// Whether a column says one thing alone, as far as the end of the file tells.
    pub(super) fn says_only(&self, column: &str, text: &str) -> bool {
        let Ok(place) = self.schema.index_of(column) else { return false };
        self.metadata.metadata().row_groups().iter().all(|group| match group.column(place).statistics() {
            Some(Statistics::ByteArray(told)) => {
                let bounds = [told.min_opt(), told.max_opt()];
                bounds.iter().all(|bound| bound.is_some_and(|bound| bound.data() == text.as_bytes()))
                    && told.null_count_opt() == Some(0)
            }
            _ => false,
        })
    }

    /// How many rows were not handed out yet.
    pub(super) fn rows_left(&self) -> usize {
        self.left + self.rows_pending()
    }

    fn rows_pending(&self) -> usize {
        self.pending.iter().map(RecordBatch::num_rows).sum::<usize>() - self.given
    }

    /// At least so many rows, and on to the end of the ticker; none at the end of the file.
    pub(super) fn take_rows(&mut self, least: usize) -> Result<Option<RecordBatch>> {
        loop {
            let rows = self.rows_pending();
            if rows >= least
                && let Some(cut) = self.start_of_last_ticker()
            {
                return self.hand_out(cut).map(Some);
            }
            match self.read()? {
                Some(batch) => self.pending.push_back(batch),
                None if rows == 0 => return Ok(None),
                None => return self.hand_out(rows).map(Some),
            }
        }
    }

    /// The rows of all tickers up to one, with it; tickers without rows are fine.
    pub(super) fn take_until(&mut self, last: &str) -> Result<RecordBatch> {
        while self.pending.back().is_none_or(|batch| ticker(batch, batch.num_rows() - 1) <= last) {
            match self.read()? {
                Some(batch) => self.pending.push_back(batch),
                None => break,
            }
        }
        self.hand_out(self.rows_before(|symbol| symbol > last))
    }

    /// All that is left.
    pub(super) fn take_rest(&mut self) -> Result<RecordBatch> {
        while let Some(batch) = self.read()? {
            self.pending.push_back(batch);
        }
        self.hand_out(usize::MAX)
    }

    /// The rows of one ticker. Those of the tickers before it are passed over, most of them unread.
    pub(super) fn take_only(&mut self, wanted: &str) -> Result<RecordBatch> {
        while self.pending.back().is_none_or(|batch| ticker(batch, batch.num_rows() - 1) < wanted) {
            (self.pending, self.given) = (VecDeque::new(), 0);
            if self.batches.is_none() {
                self.skip_groups(wanted);
            }
            match self.read()? {
                Some(batch) => self.pending.push_back(batch),
                None => return Ok(RecordBatch::new_empty(self.schema.clone())),
            }
        }
        self.pass_over(self.rows_before(|symbol| symbol >= wanted), |_, _, _| {});
        self.take_until(wanted)
    }

    /// Passes over the row groups that end before a ticker.
    fn skip_groups(&mut self, wanted: &str) {
        let groups = self.metadata.metadata().row_groups();
        while let Some(group) = groups.get(self.group) {
            let ends_before = match group.column(0).statistics() {
                Some(Statistics::ByteArray(statistics)) => {
                    statistics.max_opt().is_some_and(|last| last.data() < wanted.as_bytes())
                }
                _ => false,
            };
            if !ends_before {
                return;
            }
            self.left = self.left.saturating_sub(usize::try_from(group.num_rows()).unwrap_or(0));
            self.group += 1;
        }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match &mut self.batches {
                Some(batches) => match batches.next().transpose() {
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => {
                        if let Some(flaw) = flaw(&batch) {
                            return Err(self.damaged(flaw));
                        }
                        self.left = self.left.saturating_sub(batch.num_rows());
                        self.left_in_batches = self.left_in_batches.saturating_sub(batch.num_rows());
                        if self.left_in_batches == 0 {
                            // Many files may wait for their next tickers, and what unpacks columns is larger than most
                            // of these are.
                            self.batches = None;
                        }
                        return Ok(Some(batch));
                    }
                    Ok(None) => self.batches = None,
                    Err(error) => return Err(self.damaged(error)),
                },
                None if self.group < self.metadata.metadata().num_row_groups() => {
                    let metadata = self.metadata.clone();
                    let group = metadata.metadata().row_group(self.group);
                    let columns = self.file.columns(group, &self.mask).map_err(|error| self.damaged(error))?;
                    self.left_in_batches = usize::try_from(group.num_rows()).unwrap_or(0);
                    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(columns, metadata)
                        .with_projection(self.mask.clone())
                        .with_row_groups(vec![self.group])
                        .with_batch_size(self.left_in_batches.clamp(1, BATCH_ROWS))
                        .build()
                        .map_err(|error| self.damaged(error))?;
                    self.batches = Some(reader);
                    self.group += 1;
                }
                None => return Ok(None),
            }
        }
    }

    pub(super) fn damaged(&self, error: impl Into<Reason>) -> Error {
        Error::Damaged { path: self.path.clone(), source: error.into() }
    }

    /// How many pending rows come before the first whose ticker is as wanted; those that are wanted come last.
    fn rows_before(&self, is_wanted: impl Fn(&str) -> bool) -> usize {
        let before: usize = self.pending.iter().map(|batch| first_row_where(batch, &is_wanted)).sum();
        before.saturating_sub(self.given)
    }

    /// Where the last ticker of the pending rows begins; none when they are all of one ticker.
    fn start_of_last_ticker(&self) -> Option<usize> {
        let batch = self.pending.back()?;
        let last = ticker(batch, batch.num_rows() - 1);
        Some(self.rows_before(|symbol| symbol >= last)).filter(|start| *start > 0)
    }

    /// The first rows of what is pending.
    fn hand_out(&mut self, rows: usize) -> Result<RecordBatch> {
        let mut first = Vec::new();
        self.pass_over(rows, |batch, from, count| first.push(batch.slice(from, count)));
        match &first[..] {
            [] => Ok(RecordBatch::new_empty(self.schema.clone())),
            [only] => Ok(only.clone()),
            first => concat_batches(&self.schema, first).map_err(|error: ArrowError| self.damaged(error)),
        }
    }

    /// Goes on behind the first rows of what is pending, piece by piece. What stays is not touched.
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

/// Why rows cannot be ours: JSON has no number that is not finite, so no confidence and no score is one.
fn flaw(batch: &RecordBatch) -> Option<String> {
    let schema = batch.schema_ref();
    schema.fields().iter().zip(batch.columns()).find_map(|(field, column)| {
        let numbers = column.as_primitive_opt::<Float64Type>()?;
        let is_flaw = |row: &usize| numbers.is_valid(*row) && !numbers.value(*row).is_finite();
        if numbers.values().iter().all(|number| number.is_finite()) {
            return None;
        }
        let row = (0..numbers.len()).find(is_flaw)?;
        let (name, number, ticker) = (field.name(), numbers.value(row), ticker(batch, row));
        Some(format!("`{name}` of `{ticker}` is {number}: JSON has no such number"))
    })
}

/// The ticker of a row; it is the first column of every file.
pub(super) fn ticker(batch: &RecordBatch, row: usize) -> &str {
    let dictionary = batch.column(0).as_dictionary::<Int32Type>();
    let code = dictionary.keys().value(row) as usize;
    dictionary.values().as_string::<i32>().value(code)
}

/// The first row whose ticker is as wanted; rows are ordered, and those that are wanted come last.
pub(super) fn first_row_where(batch: &RecordBatch, is_wanted: impl Fn(&str) -> bool) -> usize {
    first_where(0..batch.num_rows(), |row| is_wanted(ticker(batch, row)))
}
