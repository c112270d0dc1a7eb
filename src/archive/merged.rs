//! The rows of one table out of many runs, some whole tickers at a time.

use arrow::array::RecordBatch;

use super::by_ticker::{ByTicker, ticker};
use super::index::SealedRun;
use crate::error::Result;
use crate::tables::{Change, Table};

/// How many rows are read of the longest file at a time, at least, but for the last.
const ROWS_AT_ONCE: usize = 1 << 16;

/// One table of many runs.
pub(super) struct Merged {
    files: Vec<ByTicker>,
}

/// The rows of some whole tickers, a batch for each run, in the order of the runs.
pub(super) struct Tickers {
    /// The last of them.
    pub(super) last: String,
    pub(super) batches: Vec<RecordBatch>,
}

impl Merged {
    /// Opens a table of some runs; runs that have no rows of it are passed over.
    pub(super) fn open<'a>(table: Table, runs: impl Iterator<Item = &'a SealedRun>) -> Result<Self> {
        let has_rows = |run: &&SealedRun| run.seal().rows(&table.file()) > 0;
        let open = |run: &SealedRun| ByTicker::open(run, &table.file(), &table.schema());
        Ok(Self { files: runs.filter(has_rows).map(open).collect::<Result<_>>()? })
    }

    /// Reads no more than some of the columns.
    pub(super) fn narrowed(self, is_read: impl Fn(&str) -> bool) -> Self {
        Self { files: self.files.into_iter().map(|file| file.narrowed(&is_read)).collect() }
    }

    /// Whether every row added its cell, as far as the ends of the files tell.
    pub(super) fn are_added(&self) -> bool {
        self.files.iter().all(|file| file.says_only("change", Change::Added.as_str()))
    }

    /// The next tickers; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Tickers>> {
        let longest =
            self.files.iter_mut().enumerate().max_by_key(|(place, file)| (file.rows_left(), usize::MAX - place));
        let Some((longest, file)) = longest else { return Ok(None) };
        let Some(rows) = file.take_rows(ROWS_AT_ONCE)? else { return Ok(None) };
        let last = ticker(&rows, rows.num_rows() - 1).to_owned();
        let mut batches = Vec::with_capacity(self.files.len());
        for (place, file) in self.files.iter_mut().enumerate() {
            batches.push(if place == longest { rows.clone() } else { file.take_until(&last)? });
        }
        Ok(Some(Tickers { last, batches }))
    }

    /// The rows of all tickers up to one, with it.
    pub(super) fn until(&mut self, last: &str) -> Result<Vec<RecordBatch>> {
        self.files.iter_mut().map(|file| file.take_until(last)).collect()
    }
}
