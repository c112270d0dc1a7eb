//! Rows sorted by ticker, read once in pieces that end at a ticker or a date.

use std::collections::VecDeque;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{SchemaRef, TimestampMicrosecondType};

use super::folder::{BATCH_ROWS, FileRows};
use super::rows::{are_added, first_where, ticker};
use crate::archive::merge_failed;
use crate::error::Result;
use crate::tables::Table;

/// Rows sorted by ticker, read once from start to end.
pub(in crate::archive) struct ByTicker {
    /// The columns to hand out.
    schema: SchemaRef,
    rest: Rest,
    /// Rows read but not yet handed out.
    pending: VecDeque<RecordBatch>,
    /// Number of leading rows of these that were handed out.
    given: usize,
}

/// Rows that were not read yet.
enum Rest {
    /// Of a file.
    File(Box<FileRows>),
    /// In memory.
    Held(RecordBatch),
}

impl ByTicker {
    /// The rows of a file.
    pub(in crate::archive) fn of_file(file: FileRows) -> Self {
        Self::of(file.schema().clone(), Rest::File(Box::new(file)))
    }

    /// Rows in memory.
    pub(in crate::archive) fn of_rows(rows: RecordBatch) -> Self {
        Self::of(rows.schema(), Rest::Held(rows))
    }

    fn of(schema: SchemaRef, rest: Rest) -> Self {
        Self { schema, rest, pending: VecDeque::new(), given: 0 }
    }

    /// Reads only some of the columns of a file; the first one always.
    pub(in crate::archive) fn narrow_to(self, is_read: impl Fn(&str) -> bool) -> Self {
        match self.rest {
            Rest::File(file) => {
                let file = file.narrow_to(is_read);
                Self { schema: file.schema().clone(), rest: Rest::File(Box::new(file)), ..self }
            }
            // Already in memory.
            Rest::Held(_) => self,
        }
    }

    /// Whether every row adds its cell, as far as the statistics show.
    pub(in crate::archive) fn are_added(&self) -> bool {
        match &self.rest {
            Rest::File(file) => file.are_added(),
            Rest::Held(rows) => are_added(rows),
        }
    }

    /// Skips rows of tickers before one, as far as that takes no reading.
    pub(in crate::archive) fn skip_groups(&mut self, wanted: &str) {
        if let Rest::File(file) = &mut self.rest {
            file.skip_groups(wanted);
        }
    }

    /// The next rows; none at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.rest {
            Rest::File(file) => file.read(),
            Rest::Held(rows) => {
                let count = rows.num_rows().min(BATCH_ROWS);
                let next = rows.slice(0, count);
                *rows = rows.slice(count, rows.num_rows() - count);
                Ok((count > 0).then_some(next))
            }
        }
    }

    fn rows_pending(&self) -> usize {
        self.pending.iter().map(RecordBatch::num_rows).sum::<usize>() - self.given
    }

    /// A cut after at least `least` rows; `None` if they end before, or reach a limit.
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
            first => concat_batches(&self.schema, first).map_err(merge_failed),
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

/// The allowed cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum Cuts {
    /// Between two tickers.
    Tickers,
    /// Also between two dates of a ticker.
    Dates,
}

impl Cuts {
    /// The finest cuts at which the cells of a table can be folded. A ticker has one series of articles, sorted by
    /// date, so its articles need not all be in memory at once.
    pub(in crate::archive) fn of_cells(table: Table) -> Self {
        if table == Table::Articles { Self::Dates } else { Self::Tickers }
    }
}

/// A cut: all tickers before one, and the rows of this one before a date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::archive) struct Bound {
    ticker: String,
    before: i64,
}

impl Bound {
    /// Before the first row of a ticker.
    pub(in crate::archive) fn before(ticker: &str) -> Self {
        Self { ticker: ticker.to_owned(), before: i64::MIN }
    }

    /// After the last row of a ticker.
    pub(in crate::archive) fn after(ticker: &str) -> Self {
        Self { ticker: ticker.to_owned(), before: i64::MAX }
    }

    /// Before the rows of a ticker from a date on.
    fn at_date(ticker: &str, date: i64) -> Self {
        Self { ticker: ticker.to_owned(), before: date }
    }

    /// The last cut at or before a row that leaves rows before it; `is_empty` decides whether a cut leaves none. A cut
    /// between tickers is preferred.
    pub(in crate::archive) fn last_before(
        rows: &RecordBatch,
        row: usize,
        cuts: Cuts,
        is_empty: impl Fn(&Self) -> bool,
    ) -> Option<Self> {
        let symbol = ticker(rows, row);
        let of_ticker = Some(Self::before(symbol)).filter(|cut| !is_empty(cut));
        of_ticker.or_else(|| {
            let by_date = (cuts == Cuts::Dates).then(|| Self::at_date(symbol, date(rows, row)));
            by_date.filter(|cut| !is_empty(cut))
        })
    }

    /// The ticker at which it cuts.
    pub(in crate::archive) fn ticker(&self) -> &str {
        &self.ticker
    }

    /// Whether a row is before the cut.
    pub(in crate::archive) fn is_after(&self, rows: &RecordBatch, row: usize) -> bool {
        let symbol = ticker(rows, row);
        match symbol.cmp(&self.ticker) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => match self.before {
                i64::MIN => false,
                i64::MAX => true,
                before => date(rows, row) < before,
            },
        }
    }

    /// Number of rows before the cut.
    pub(in crate::archive) fn rows_before(&self, rows: &RecordBatch) -> usize {
        first_where(0..rows.num_rows(), |row| !self.is_after(rows, row))
    }
}

fn date(rows: &RecordBatch, row: usize) -> i64 {
    let dates = rows.column_by_name("date").expect("only rows with dates are cut between dates");
    dates.as_primitive::<TimestampMicrosecondType>().value(row)
}
