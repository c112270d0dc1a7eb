//! The dates that an answer covers: what it does not list there, the service no longer says.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;

use crate::interface::Endpoint;
use crate::tables::Table;

/// The dates that an answer about a series covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// An empty history, or a latest signal without a date.
    Nothing,
    /// The whole series, whose cells have no dates.
    Everything,
    /// From the oldest date of the answer up to another date, which is not covered. Lists may be cut off within their
    /// oldest date, so of articles that date is not covered either.
    Dates {
        /// The oldest date.
        from: i64,
        /// The end; `i64::MAX` if there is none.
        until: i64,
    },
}

impl Coverage {
    /// What the answer of an operation covers, by its rows: from the oldest date on. A latest signal covers its own date
    /// alone.
    pub(super) fn of(source: Endpoint, table: Table, rows: &RecordBatch) -> Self {
        match oldest(table, rows) {
            None if table.is_dated() || rows.num_rows() == 0 => Self::Nothing,
            None => Self::Everything,
            Some(from) => Self::from(source, from),
        }
    }

    /// What the answer of an operation with an oldest date covers.
    pub(super) fn from(source: Endpoint, from: i64) -> Self {
        let is_latest = matches!(source, Endpoint::Signals | Endpoint::LegacySignals);
        Self::Dates { from, until: if is_latest { from.saturating_add(1) } else { i64::MAX } }
    }

    /// The oldest date of the answer.
    pub(super) fn oldest(self) -> Option<i64> {
        match self {
            Self::Dates { from, .. } => Some(from),
            Self::Nothing | Self::Everything => None,
        }
    }

    /// Whether the answer covers a cell of a table by its date.
    pub(crate) fn holds(self, table: Table, date: Option<i64>) -> bool {
        match (self, date) {
            (Self::Everything, _) => true,
            (Self::Dates { from, until }, Some(date)) => {
                let begins = if table == Table::Articles { date > from } else { date >= from };
                begins && date < until
            }
            // Rows without a date are covered only by answers that have such rows.
            (Self::Nothing, _) | (Self::Dates { .. }, None) => false,
        }
    }
}

/// The oldest date of some rows of a table, which are sorted.
fn oldest(table: Table, rows: &RecordBatch) -> Option<i64> {
    let dates = table.is_dated().then(|| rows.column_by_name("date"))??;
    dates.as_primitive::<TimestampMicrosecondType>().iter().flatten().next()
}

/// The date of each row of a table; none where it has none.
pub(super) fn dates(table: Table, rows: &RecordBatch) -> impl Fn(usize) -> Option<i64> {
    let dates = rows.column_by_name("date").filter(|_| table.is_dated()).cloned();
    move |row| {
        let dates = dates.as_ref()?.as_primitive::<TimestampMicrosecondType>();
        dates.is_valid(row).then(|| dates.value(row))
    }
}
