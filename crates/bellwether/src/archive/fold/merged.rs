//! Merges one table of many folders, piece by piece: a few whole tickers at a time, or a few whole dates of a ticker
//! that may have more rows than fit into memory.
//!
//! A run with few changes has few rows per ticker. The rows of such runs are read at once and merged first, and then
//! treated as one file, so that the cost per file and piece does not grow with the number of runs.
//!
//! Nearly all cells have one row, and are kept as ranges of such rows: what
//! is done to a range costs little a row.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;

use super::order::Order;
use crate::archive::merge_failed;
use crate::archive::sealed::by_ticker::{Bound, ByTicker, Cuts};
use crate::archive::sealed::folder::{FileRows, Folder};
use crate::archive::sealed::seal::{CountedShare, Horizon};
use crate::error::Result;
use crate::tables::Table;

/// Approximate rows to read of a file at a time; a ticker that cannot be cut is read whole.
const ROWS_AT_ONCE: usize = 1 << 16;

/// The most rows to read at once from the smallest files.
const MAX_HELD_ROWS: u64 = 1 << 17;

/// One table of many folders.
pub(in crate::archive) struct Merged {
    /// Longest first.
    sources: Vec<ByTicker>,
}

/// The rows up to a cut, a batch per source.
pub(in crate::archive) struct Portion {
    pub(in crate::archive) end: Bound,
    pub(in crate::archive) batches: Vec<RecordBatch>,
}

impl Merged {
    /// Opens the observations of a table in some folders that count, skipping folders without any.
    pub(in crate::archive) fn open(table: Table, folders: &[&Arc<Folder>], horizon: &Horizon) -> Result<Self> {
        let is_known = |folder: &&&Arc<Folder>| horizon.share(folder.seal()) != CountedShare::None;
        let folders: Vec<&Arc<Folder>> = folders.iter().filter(is_known).copied().collect();
        Self::of(table, &folders, |folder| {
            let known = FileRows::open_known(folder, &table.file(), &table.file_schema(), horizon)?;
            Ok(known.expect("some of its rows count"))
        })
    }

    /// Opens the whole rows of a table in some folders, in the columns of [`Table::file_schema`].
    pub(in crate::archive) fn whole(table: Table, folders: &[&Arc<Folder>]) -> Result<Self> {
        Self::of(table, folders, |folder| FileRows::open(folder, &table.file(), &table.file_schema()))
    }

    /// Merges the rows of a table in some folders, each opened by a function.
    pub(in crate::archive) fn of(
        table: Table,
        folders: &[&Arc<Folder>],
        open: impl Fn(&Arc<Folder>) -> Result<FileRows>,
    ) -> Result<Self> {
        let rows = |folder: &Folder| folder.seal().rows(&table.file());
        let mut with_rows: Vec<&Arc<Folder>> = folders.iter().copied().filter(|folder| rows(folder) > 0).collect();
        with_rows.sort_by_key(|folder| rows(folder));
        let mut held = 0;
        let is_small = |folder: &&Arc<Folder>| {
            held += rows(folder);
            held <= MAX_HELD_ROWS
        };
        let (small, large): (Vec<_>, Vec<_>) = with_rows.into_iter().partition(is_small);
        let mut sources = Vec::with_capacity(large.len() + 1);
        for folder in large.into_iter().rev() {
            sources.push(ByTicker::of_file(open(folder)?));
        }
        match &small[..] {
            [] => {}
            [only] => sources.push(ByTicker::of_file(open(only)?)),
            small => {
                let batches = small.iter().map(|folder| open(folder)?.take_rest()).collect::<Result<Vec<_>>>()?;
                let held = put_together(table, &batches).map_err(merge_failed)?;
                sources.push(ByTicker::of_rows(held));
            }
        }
        Ok(Self { sources })
    }

    /// Reads only some of the columns from here on.
    pub(in crate::archive) fn narrow_to(self, is_read: impl Fn(&str) -> bool) -> Self {
        Self { sources: self.sources.into_iter().map(|source| source.narrow_to(&is_read)).collect() }
    }

    /// Whether every row adds its cell, as far as the statistics show.
    pub(in crate::archive) fn are_added(&self) -> bool {
        self.sources.iter().all(ByTicker::are_added)
    }

    /// Passes over the rows before a cut of articles, mostly without reading them.
    pub(in crate::archive) fn pass_over(&mut self, begin: &Bound) -> Result<()> {
        self.sources.iter_mut().for_each(|source| source.skip_groups(begin.ticker()));
        while self.next_until(begin, Cuts::Dates)?.is_some() {}
        Ok(())
    }

    /// The next piece; `None` at the end.
    pub(in crate::archive) fn next(&mut self, cuts: Cuts) -> Result<Option<Portion>> {
        let end = self.cut(cuts, None)?;
        let Some(end) = end.or_else(|| self.sources.iter().filter_map(ByTicker::end).max()) else { return Ok(None) };
        self.take_until(end).map(Some)
    }

    /// The next piece before a limit; `None` once all of it was read.
    pub(in crate::archive) fn next_until(&mut self, limit: &Bound, cuts: Cuts) -> Result<Option<Portion>> {
        let end = self.cut(cuts, Some(limit))?;
        let piece = self.take_until(end.unwrap_or_else(|| limit.clone()))?;
        Ok(piece.batches.iter().any(|batch| batch.num_rows() > 0).then_some(piece))
    }

    /// The earliest of the cuts that each source proposes after enough rows, before a limit; `None` if no rows are
    /// left.
    fn cut(&mut self, cuts: Cuts, limit: Option<&Bound>) -> Result<Option<Bound>> {
        let mut first: Option<Bound> = None;
        for source in &mut self.sources {
            if let Some(cut) = source.cut(ROWS_AT_ONCE, cuts, first.as_ref().or(limit))? {
                first = Some(cut);
            }
        }
        Ok(first)
    }

    fn take_until(&mut self, end: Bound) -> Result<Portion> {
        let batches = self.sources.iter_mut().map(|source| source.take_until(&end)).collect::<Result<_>>()?;
        Ok(Portion { end, batches })
    }

    /// The rows of some tickers, which are in order. Row groups of other tickers are skipped.
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

/// Merges the rows of some files.
fn put_together(table: Table, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let schema = batches.first().map_or_else(|| table.schema(), RecordBatch::schema);
    let rows = concat_batches(&schema, batches)?;
    let ends = batches.iter().scan(0, |end, batch| {
        *end += batch.num_rows() as u32;
        Some(*end)
    });
    let order = Order::of(table, &rows, &ends.collect::<Vec<_>>())?;
    order.rows.of(&rows)
}
