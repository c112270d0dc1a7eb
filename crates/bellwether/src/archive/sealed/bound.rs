//! Positions at which rows sorted by ticker may be cut.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;

use super::rows::{first_where, ticker};
use crate::tables::Table;

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
