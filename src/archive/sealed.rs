//! Reads a sealed run, ticker by ticker.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Int8Type, Int32Type, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::seal::Seal;
use super::{ARTICLES, SIGNALS};
use crate::error::{Error, Result};
use crate::file;
use crate::interface::Endpoint;
use crate::tables::Slab;

/// How many rows of signals a slab has at least, but for the last.
const SLAB_ROWS: usize = 1 << 18;
const SOURCE: &str = "source";
const BATCH_ROWS: usize = 1 << 16;

/// A run that is complete and will never change.
#[derive(Clone, Debug)]
pub struct SealedRun {
    path: PathBuf,
    seal: Seal,
}

impl SealedRun {
    pub(super) fn new(path: PathBuf, seal: Seal) -> Self {
        Self { path, seal }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The signals of one operation, and the articles, slab by slab, in the order of the tickers.
    ///
    /// # Errors
    ///
    /// When a file cannot be opened or its columns are not those of the layout.
    pub fn slabs(&self, source: Endpoint) -> Result<Slabs> {
        let mut columns = Slab::SIGNALS.to_vec();
        columns.push(SOURCE);
        Ok(Slabs {
            source,
            signals: ByTicker::open(self.path.join(SIGNALS), &columns)?,
            articles: ByTicker::open(self.path.join(ARTICLES), &Slab::ARTICLES)?,
        })
    }
}

/// The slabs of a run.
#[derive(Debug)]
pub struct Slabs {
    source: Endpoint,
    signals: ByTicker,
    articles: ByTicker,
}

impl Iterator for Slabs {
    type Item = Result<Slab>;

    fn next(&mut self) -> Option<Self::Item> {
        let signals = match self.signals.take_rows(SLAB_ROWS) {
            Ok(signals) => signals?,
            Err(error) => return Some(Err(error)),
        };
        let last = ticker(&signals, signals.num_rows() - 1).to_owned();
        let slab = self.articles.take_until(&last).and_then(|articles| {
            let signals = usable(&signals, self.source).map_err(|error| self.signals.damaged(error))?;
            Ok(Slab { signals, articles })
        });
        Some(slab)
    }
}

/// The signals that one operation gave, and that have a date.
fn usable(signals: &RecordBatch, source: Endpoint) -> Result<RecordBatch, ArrowError> {
    let column = |name| signals.column_by_name(name).expect("the column was looked for when the file was opened");
    let sources = column(SOURCE).as_dictionary::<Int8Type>();
    let spellings = sources.values().as_string::<i32>();
    let is_wanted = |(code, date): (i8, bool)| date && spellings.value(code as usize) == source.as_str();
    let dates = column("date");
    let rows = (0..signals.num_rows()).map(|row| (sources.keys().value(row), dates.is_valid(row)));
    let wanted: BooleanArray = rows.map(|row| Some(is_wanted(row))).collect();
    if wanted.true_count() == signals.num_rows() { Ok(signals.clone()) } else { filter_record_batch(signals, &wanted) }
}

/// A file of rows ordered by ticker, read in pieces that end where a ticker ends.
#[derive(Debug)]
struct ByTicker {
    path: PathBuf,
    schema: SchemaRef,
    batches: ParquetRecordBatchReader,
    /// Rows that were read and not yet handed out.
    pending: Vec<RecordBatch>,
}

impl ByTicker {
    fn open(path: PathBuf, columns: &[&str]) -> Result<Self> {
        let source: File = file::open(&path)?;
        let damaged = |source: crate::error::Reason| Error::Damaged { path: path.clone(), source };
        let builder = ParquetRecordBatchReaderBuilder::try_new(source).map_err(|error| damaged(error.into()))?;
        let names = columns.iter().copied();
        let projection = ProjectionMask::columns(builder.parquet_schema(), names);
        let batches = builder
            .with_projection(projection)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| damaged(error.into()))?;
        let schema = arrow::array::RecordBatchReader::schema(&batches);
        if let Some(missing) = columns.iter().find(|name| schema.index_of(name).is_err()) {
            return Err(damaged(format!("it has no column `{missing}`").into()));
        }
        Ok(Self { path, schema, batches, pending: Vec::new() })
    }

    /// At least so many rows, and on to the end of the ticker; none at the end of the file.
    fn take_rows(&mut self, least: usize) -> Result<Option<RecordBatch>> {
        loop {
            let rows: usize = self.pending.iter().map(RecordBatch::num_rows).sum();
            if rows >= least
                && let Some(cut) = self.start_of_last_ticker()
            {
                return self.hand_out(cut).map(Some);
            }
            match self.read()? {
                Some(batch) => self.pending.push(batch),
                None if rows == 0 => return Ok(None),
                None => return self.hand_out(rows).map(Some),
            }
        }
    }

    /// The rows of all tickers up to one, with it; tickers without rows are fine.
    fn take_until(&mut self, last: &str) -> Result<RecordBatch> {
        loop {
            let rows: usize = self.pending.iter().map(RecordBatch::num_rows).sum();
            let is_beyond = self.pending.last().is_some_and(|batch| ticker(batch, batch.num_rows() - 1) > last);
            if !is_beyond && let Some(batch) = self.read()? {
                self.pending.push(batch);
                continue;
            }
            let of_these =
                |batch: &RecordBatch| (0..batch.num_rows()).take_while(|&row| ticker(batch, row) <= last).count();
            let cut = if is_beyond { self.pending.iter().map(of_these).sum() } else { rows };
            return self.hand_out(cut);
        }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.batches.next().transpose() {
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(batch) => return Ok(batch),
                Err(error) => return Err(self.damaged(error)),
            }
        }
    }

    fn damaged(&self, error: ArrowError) -> Error {
        Error::Damaged { path: self.path.clone(), source: error.into() }
    }

    /// Where the last ticker of the pending rows begins; none when they are all of one ticker.
    fn start_of_last_ticker(&self) -> Option<usize> {
        let batch = self.pending.last()?;
        let last = ticker(batch, batch.num_rows() - 1);
        let mut start: usize = self.pending.iter().map(RecordBatch::num_rows).sum();
        for batch in self.pending.iter().rev() {
            let same = (0..batch.num_rows()).rev().take_while(|&row| ticker(batch, row) == last).count();
            start -= same;
            if same < batch.num_rows() {
                return Some(start);
            }
        }
        None
    }

    /// The first rows of what is pending.
    fn hand_out(&mut self, rows: usize) -> Result<RecordBatch> {
        let all = concat_batches(&self.schema, &self.pending).map_err(|error| self.damaged(error))?;
        self.pending.clear();
        if rows < all.num_rows() {
            self.pending.push(all.slice(rows, all.num_rows() - rows));
        }
        Ok(all.slice(0, rows))
    }
}

/// The ticker of a row.
fn ticker(batch: &RecordBatch, row: usize) -> &str {
    let column = batch.column_by_name("ticker").expect("the column was looked for when the file was opened");
    let dictionary = column.as_dictionary::<Int32Type>();
    let code = dictionary.keys().value(row) as usize;
    dictionary.values().as_string::<i32>().value(code)
}
