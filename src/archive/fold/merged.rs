//! The rows of one table out of many folders, some whole tickers at a time.
//!
//! A run that changed little has few rows of each ticker, or none. The rows of such runs are read at once and put together
//! first, and then read on as if they were one file's: what is done for each file and each slab of tickers is then done
//! for a few files, however many runs there are.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::error::ArrowError;

use super::order::Order;
use crate::archive::sealed::by_ticker::ByTicker;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::rows::{are_added, first_row_where, ticker};
use crate::error::{Error, Result};
use crate::tables::{Change, Table};

/// How many rows are read of the longest file at a time, at least, but for the last.
const ROWS_AT_ONCE: usize = 1 << 16;

/// The most rows that are read at once, out of the smallest files.
const MAX_HELD_ROWS: u64 = 1 << 17;

/// One table of many folders.
pub(in crate::archive) struct Merged {
    sources: Vec<Source>,
}

/// The rows of some whole tickers, a batch for each source.
pub(in crate::archive) struct Tickers {
    /// The last of them.
    pub(in crate::archive) last: String,
    pub(in crate::archive) batches: Vec<RecordBatch>,
}

impl Merged {
    /// Opens a table of some folders; those that have no rows of it are passed over.
    pub(in crate::archive) fn open(table: Table, folders: &[&Arc<Folder>]) -> Result<Self> {
        let rows = |folder: &Folder| folder.seal().rows(&table.file());
        let open = |folder: &&Arc<Folder>| ByTicker::open(folder, &table.file(), &table.schema());
        let mut with_rows: Vec<&&Arc<Folder>> = folders.iter().filter(|folder| rows(folder) > 0).collect();
        with_rows.sort_by_key(|folder| rows(folder));
        let mut held = 0;
        let is_small = |folder: &&&Arc<Folder>| {
            held += rows(folder);
            held <= MAX_HELD_ROWS
        };
        let (small, large): (Vec<_>, Vec<_>) = with_rows.into_iter().partition(is_small);
        let mut sources = Vec::with_capacity(large.len() + 1);
        for folder in large {
            sources.push(Source::File(Box::new(open(folder)?)));
        }
        match &small[..] {
            [] => {}
            [only] => sources.push(Source::File(Box::new(open(only)?))),
            small => {
                let batches = small.iter().map(|folder| open(folder)?.take_rest()).collect::<Result<Vec<_>>>()?;
                let held = put_together(table, &batches).map_err(|error| Error::Settle { source: error.into() })?;
                sources.push(Source::Held(held));
            }
        }
        Ok(Self { sources })
    }

    /// Reads no more than some of the columns of what was not read yet.
    pub(in crate::archive) fn narrowed(self, is_read: impl Fn(&str) -> bool) -> Self {
        Self { sources: self.sources.into_iter().map(|source| source.narrowed(&is_read)).collect() }
    }

    /// Whether every row added its cell, as far as is told before it is read.
    pub(in crate::archive) fn are_added(&self) -> bool {
        self.sources.iter().all(|source| match source {
            Source::File(file) => file.says_only("change", Change::Added.as_str()),
            Source::Held(rows) => are_added(rows),
        })
    }

    /// The next tickers; none at the end.
    pub(in crate::archive) fn next(&mut self) -> Result<Option<Tickers>> {
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
    pub(in crate::archive) fn until(&mut self, last: &str) -> Result<Vec<RecordBatch>> {
        self.sources.iter_mut().map(|source| source.take_until(last)).collect()
    }

    /// The rows of some tickers, which are in order; those of others are not read where they fill a row group.
    pub(in crate::archive) fn of_tickers<'t>(
        &mut self,
        tickers: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for source in &mut self.sources {
            batches.extend(source.take_tickers(tickers.clone())?);
        }
        Ok(batches)
    }
}

/// Where rows come from that are ordered by ticker.
enum Source {
    /// The file of one folder.
    File(Box<ByTicker>),
    /// What is left of the rows of several small files.
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

    fn take_tickers<'t>(&mut self, tickers: impl Iterator<Item = &'t str>) -> Result<Vec<RecordBatch>> {
        match self {
            Self::File(file) => file.take_tickers(tickers),
            Self::Held(rows) => {
                let mut taken = Vec::new();
                for wanted in tickers {
                    let start = first_row_where(rows, |symbol| symbol >= wanted);
                    let end = first_row_where(rows, |symbol| symbol > wanted);
                    taken.extend((end > start).then(|| rows.slice(start, end - start)));
                    *rows = rows.slice(end, rows.num_rows() - end);
                }
                Ok(taken)
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

/// The rows of some files in one order.
fn put_together(table: Table, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let rows = concat_batches(&table.schema(), batches)?;
    let ends = batches.iter().scan(0, |end, batch| {
        *end += batch.num_rows() as u32;
        Some(*end)
    });
    let order = Order::of(table, &rows, &ends.collect::<Vec<_>>())?;
    take_record_batch(&rows, &UInt32Array::from(order.rows))
}
