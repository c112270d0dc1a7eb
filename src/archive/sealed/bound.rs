//! Where to cut rows that are ordered by ticker.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;

use super::rows::{first_where, ticker};
use crate::tables::Table;

/// Which cuts are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum Cuts {
    /// Between two tickers.
    Tickers,
    /// Also between two dates of a ticker.
    Dates,
}

impl Cuts {
    /// The smallest pieces that the cells of a table can be folded in. A ticker has one series of articles, ordered by
    /// date, so its articles need not be in memory all at once.
    pub(in crate::archive) fn of_cells(table: Table) -> Self {
        if table == Table::Articles { Self::Dates } else { Self::Tickers }
    }
}

/// A cut: the rows of all tickers before one, and those of this one that are older than a date.
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
    pub(in crate::archive) fn at_date(ticker: &str, date: i64) -> Self {
        Self { ticker: ticker.to_owned(), before: date }
    }

    /// The last cut before a row that leaves some rows before it: `is_empty` tells of a cut whether there are none. Where a
    /// ticker begins is the better place.
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

    /// Whether it is between two dates of a ticker.
    pub(in crate::archive) fn is_within_ticker(&self) -> bool {
        !matches!(self.before, i64::MIN | i64::MAX)
    }

    /// The date at which a ticker is cut; none when no row of it is on the other side.
    pub(in crate::archive) fn date_of(&self, ticker: &str) -> Option<i64> {
        (self.ticker == ticker && self.is_within_ticker()).then_some(self.before)
    }

    /// Whether a row comes before the cut.
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

    /// How many rows come before the cut.
    pub(in crate::archive) fn rows_before(&self, rows: &RecordBatch) -> usize {
        first_where(0..rows.num_rows(), |row| !self.is_after(rows, row))
    }
}

fn date(rows: &RecordBatch, row: usize) -> i64 {
    let dates = rows.column_by_name("date").expect("only rows with dates are cut between dates");
    dates.as_primitive::<TimestampMicrosecondType>().value(row)
}
