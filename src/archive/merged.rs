//! The rows of one table out of many runs, some whole tickers at a time.
//!
//! A run that found little has few rows of each ticker, or none. So those of such runs that were sealed one after another
//! are put together first, and go on as if they were one run's: what is done for each run and each stretch of tickers is
//! then done for a few of them, however many runs there are.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::error::ArrowError;

use super::bundle::{self, FEW_ROWS, Part};
use super::by_ticker::{ByTicker, first_row_where, ticker};
use super::cells::are_added;
use super::index::SealedRun;
use super::order::Order;
use crate::error::{Error, Result};
use crate::tables::{Change, Table};

/// How many rows are read of the longest file at a time, at least, but for the last.
const ROWS_AT_ONCE: usize = 1 << 16;

/// One table of many runs.
pub(super) struct Merged {
    sources: Vec<Source>,
}

/// The rows of some whole tickers, a batch for each source, in the order of the runs.
pub(super) struct Tickers {
    /// The last of them.
    pub(super) last: String,
    pub(super) batches: Vec<RecordBatch>,
}

impl Merged {
    /// Opens a table of some runs; runs that have no rows of it are passed over.
    pub(super) fn open(table: Table, runs: &[&SealedRun]) -> Result<Self> {
        let have_few = |part: &Part<'_>, next: &Part<'_>| part.rows.max(next.rows) <= FEW_ROWS;
        let open = |part: &Part<'_>| ByTicker::open(part.run, &part.file, &table.schema());
        let source = |parts: &[Part<'_>]| match parts {
            [part] => Ok(Source::File(Box::new(open(part)?))),
            parts => {
                let batches = parts.iter().map(|part| open(part)?.take_rest()).collect::<Result<Vec<_>>>()?;
                let held = put_together(table, batches).map_err(|error| Error::Settle { source: error.into() })?;
                Ok(Source::Held(held))
            }
        };
        Ok(Self { sources: bundle::parts(runs, table).chunk_by(have_few).map(source).collect::<Result<_>>()? })
    }

    /// Reads no more than some of the columns of what was not read yet.
    pub(super) fn narrowed(self, is_read: impl Fn(&str) -> bool) -> Self {
        Self { sources: self.sources.into_iter().map(|source| source.narrowed(&is_read)).collect() }
    }

    /// Whether every row added its cell, as far as is told before it is read.
    pub(super) fn are_added(&self) -> bool {
        self.sources.iter().all(|source| match source {
            Source::File(file) => file.says_only("change", Change::Added.as_str()),
            Source::Held(rows) => are_added(rows),
        })
    }

    /// The next tickers; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Tickers>> {
        let longest =
            self.sources.iter_mut().enumerate().max_by_key(|(place, it)| (it.rows_left(), usize::MAX - place));
        let Some((longest, source)) = longest else { return Ok(None) };
        let Some(rows) = source.take_rows(ROWS_AT_ONCE)? else { return Ok(None) };
        let last = ticker(&rows, rows.num_rows() - 1).to_owned();
        let mut batches = Vec::with_capacity(self.sources.len());
        for (place, source) in self.sources.iter_mut().enumerate() {
            batches.push(if place == longest { rows.clone() } else { source.take_until(&last)? });
        }
        Ok(Some(Tickers { last, batches }))
    }

    /// The rows of all tickers up to one, with it.
    pub(super) fn until(&mut self, last: &str) -> Result<Vec<RecordBatch>> {
        self.sources.iter_mut().map(|source| source.take_until(last)).collect()
    }
}

/// Where rows come from that are ordered by ticker.
enum Source {
    /// The file of a run.
    File(Box<ByTicker>),
    /// What is left of the rows of some runs.
    Held(RecordBatch),
}

impl Source {
    fn narrowed(self, is_read: impl Fn(&str) -> bool) -> Self {
        match self {
            Self::File(file) => Self::File(Box::new(file.narrowed(is_read))),
            // They were read already.
            Self::Held(rows) => Self::Held(rows),
        }
    }

    fn rows_left(&self) -> usize {
        match self {
            Self::File(file) => file.rows_left(),
            Self::Held(rows) => rows.num_rows(),
        }
    }

    /// At least so many rows, and on to the end of the ticker; none at the end.
    fn take_rows(&mut self, least: usize) -> Result<Option<RecordBatch>> {
        match self {
            Self::File(file) => file.take_rows(least),
            Self::Held(rows) if rows.num_rows() == 0 => Ok(None),
            Self::Held(rows) => {
                let last = ticker(rows, least.min(rows.num_rows()) - 1).to_owned();
                self.take_until(&last).map(Some)
            }
        }
    }

    /// The rows of all tickers up to one, with it; tickers without rows are fine.
    fn take_until(&mut self, last: &str) -> Result<RecordBatch> {
        match self {
            Self::File(file) => file.take_until(last),
            Self::Held(rows) => {
                let cut = first_row_where(rows, |symbol| symbol > last);
                let taken = rows.slice(0, cut);
                *rows = rows.slice(cut, rows.num_rows() - cut);
                Ok(taken)
            }
        }
    }
}

/// The rows of some runs in one order, those of an instant in the order of the runs.
fn put_together(table: Table, batches: Vec<RecordBatch>) -> Result<RecordBatch, ArrowError> {
    let rows = concat_batches(&table.schema(), &batches)?;
    let end_of = |end: &mut u32, batch: RecordBatch| {
        *end += batch.num_rows() as u32;
        Some(*end)
    };
    let ends: Vec<u32> = batches.into_iter().scan(0, end_of).collect();
    let order = Order::of(table, &rows, &ends)?;
    take_record_batch(&rows, &UInt32Array::from(order.rows))
}
