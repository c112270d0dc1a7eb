//! The dates that an answer covers: what it does not list there, the service no longer says.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;

use crate::interface::Endpoint;
use crate::tables::{Table, written_date};

/// The first date that there is, 0001-01-01, in microseconds since 1970.
const FIRST_DATE: i64 = -62_135_596_800_000_000;

/// How far back the answers about a table go, by what the definition of a run says of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// They may begin at some date, and say nothing of what was before.
    FromOldest,
    /// They have all that there ever was.
    Whole,
}

impl Extent {
    /// The extent of a table's answers, given the tables whose answers are whole.
    pub(super) fn of(table: Table, whole: &[Table]) -> Self {
        if whole.contains(&table) { Self::Whole } else { Self::FromOldest }
    }
}

/// The dates that an answer about a series covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// An empty history, or a latest signal without a date.
    Nothing,
    /// All cells that have no dates.
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
    /// What the answer of an operation covers, by its rows: from the oldest date on or, if it is said to have all that there
    /// ever was, every date. A latest signal covers its own date alone.
    pub(super) fn of(source: Endpoint, table: Table, rows: &RecordBatch, extent: Extent) -> Self {
        match oldest(table, rows) {
            None if table.is_dated() || rows.num_rows() == 0 => Self::Nothing,
            None => Self::Everything,
            Some(from) => Self::from(source, from, extent),
        }
    }

    /// What the answer of an operation with an oldest date covers.
    pub(super) fn from(source: Endpoint, from: i64, extent: Extent) -> Self {
        match extent {
            _ if source.is_latest() => Self::Dates { from, until: from.saturating_add(1) },
            Extent::FromOldest => Self::Dates { from, until: i64::MAX },
            Extent::Whole => Self::Dates { from: FIRST_DATE, until: i64::MAX },
        }
    }

    /// Nothing, of an answer with rows: it could not be read whole, so what it lacks may be in what was rejected.
    pub(super) fn unread(self) -> Self {
        match self.oldest() {
            Some(from) => Self::Dates { from, until: from },
            None if self == Self::Nothing => Self::Nothing,
            None => Self::Dates { from: FIRST_DATE, until: FIRST_DATE },
        }
    }

    /// Whether no cell is covered.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Nothing) || matches!(self, Self::Dates { from, until } if until <= from)
    }

    /// The oldest date of the answer.
    pub(crate) fn oldest(self) -> Option<i64> {
        match self {
            Self::Dates { from, .. } => Some(from),
            Self::Nothing | Self::Everything => None,
        }
    }

    /// Whether the answer covers a cell of a table by its date.
    pub(crate) fn holds(self, table: Table, date: Option<i64>) -> bool {
        match (self, date) {
            (Self::Everything, date) => date.is_none(),
            (Self::Dates { from, until }, Some(date)) => {
                let begins = if table == Table::Articles { date > from } else { date >= from };
                begins && date < until
            }
            // A record without a date is in every answer that has any. Signals without one are covered by answers with such.
            (Self::Dates { .. }, None) => table == Table::SentimentHistory && !self.is_empty(),
            (Self::Nothing, _) => false,
        }
    }
}

/// The oldest date of some rows of a table, which are sorted.
fn oldest(table: Table, rows: &RecordBatch) -> Option<i64> {
    let date = dates(table, rows);
    let mut dates = (0..rows.num_rows()).filter_map(date);
    if table.is_dated() { dates.next() } else { dates.min() }
}

/// The date of each row of a table; none where it has none. Records say theirs in their text.
pub(super) fn dates(table: Table, rows: &RecordBatch) -> impl Fn(usize) -> Option<i64> {
    let dates = rows.column_by_name("date").filter(|_| table.is_dated()).cloned();
    let records = rows.column_by_name("record").filter(|_| table == Table::SentimentHistory).cloned();
    move |row| {
        if let Some(records) = &records {
            return written_date(records.as_string::<i32>().value(row)).map(|date| date.micros);
        }
        let dates = dates.as_ref()?.as_primitive::<TimestampMicrosecondType>();
        dates.is_valid(row).then(|| dates.value(row))
    }
}
