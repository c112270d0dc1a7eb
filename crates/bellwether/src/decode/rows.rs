//! The rows of a series, ordered by date.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};

use super::entry::Entry;
use crate::interface::Signal;
use crate::tables::dates::Date;
use crate::tables::{Table, choices};

/// An entry and its location.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryRow {
    pub(super) entry: Entry,
    /// Its position in the history.
    pub(super) position: u32,
    /// Its offset in the text of the history.
    pub(super) start: u32,
}

/// The rows of one history.
#[derive(Debug, Default)]
pub(super) struct HistoryRows {
    list: Vec<HistoryRow>,
    /// Unknown fields by the position of their entry, sorted.
    extras: Vec<(u32, String)>,
}

impl HistoryRows {
    /// No rows yet, with capacity for a history of this text.
    pub(super) fn of_text(text: &str) -> Self {
        /// A little less than an entry as the service writes it, without whitespace.
        const ENTRY: usize = 64;
        Self { list: Vec::with_capacity(text.len() / ENTRY), extras: Vec::new() }
    }

    pub(super) fn push(&mut self, row: HistoryRow) {
        self.list.push(row);
    }

    /// Keeps unknown fields of the last entry.
    pub(super) fn keep(&mut self, extra: String) {
        self.extras.extend(self.list.last().map(|row| (row.position, extra)));
    }

    pub(super) fn list(&self) -> &[HistoryRow] {
        &self.list
    }

    /// Orders the rows by date. Of rows with the same date the first one listed is kept; the others go to `reject`.
    pub(super) fn order(&mut self, mut reject: impl FnMut(HistoryRow, HistoryRow)) {
        let date = |row: &HistoryRow| row.entry.date.micros;
        if self.list.is_sorted_by(|one, next| date(one) < date(next)) {
            return;
        }
        // The documented order is newest first.
        if self.list.is_sorted_by(|one, next| date(one) > date(next)) {
            self.list.reverse();
            return;
        }
        self.list.sort_unstable_by_key(|row| (date(row), row.position));
        self.list.dedup_by(|later, kept| {
            let is_repeated = date(later) == date(kept);
            if is_repeated {
                reject(*later, *kept);
            }
            is_repeated
        });
    }

    /// The rows as columns.
    pub(super) fn batch(&self) -> RecordBatch {
        let entries = || self.list.iter().map(|row| &row.entry);
        let with_offset = entries().filter(|entry| entry.date.offset_minutes.is_some()).count();
        let offsets = if with_offset == 0 {
            Int16Array::new_null(self.list.len())
        } else if with_offset == self.list.len() {
            entries().filter_map(|entry| entry.date.offset_minutes).collect::<Vec<i16>>().into()
        } else {
            entries().map(|entry| entry.date.offset_minutes).collect()
        };
        let extras = if self.extras.is_empty() {
            StringArray::new_null(self.list.len())
        } else {
            self.list.iter().map(|row| self.extra_of(row.position)).collect()
        };
        columns(RowColumns {
            dates: TimestampMicrosecondArray::from_iter_values(entries().map(|entry| entry.date.micros)),
            offsets,
            signals: Int8Array::from_iter_values(entries().map(|entry| entry.signal as i8)),
            confidences: Float64Array::from_iter_values(entries().map(|entry| entry.confidence)),
            extras,
        })
    }

    fn extra_of(&self, position: u32) -> Option<&str> {
        let found = self.extras.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        Some(&self.extras[found].1)
    }
}

/// The row of a latest signal, whose date may be unknown.
pub(super) fn single(date: Option<Date>, signal: Signal, confidence: f64, extra: Option<String>) -> RecordBatch {
    columns(RowColumns {
        dates: TimestampMicrosecondArray::from_iter([date.map(|date| date.micros)]),
        offsets: Int16Array::from_iter([date.and_then(|date| date.offset_minutes)]),
        signals: Int8Array::from_iter_values([signal as i8]),
        confidences: Float64Array::from_iter_values([confidence]),
        extras: StringArray::from_iter([extra]),
    })
}

struct RowColumns {
    dates: TimestampMicrosecondArray,
    offsets: Int16Array,
    signals: Int8Array,
    confidences: Float64Array,
    extras: StringArray,
}

fn columns(columns: RowColumns) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(columns.dates),
        Arc::new(columns.offsets),
        choices(columns.signals, Signal::ALL.map(Signal::as_str)),
        Arc::new(columns.confidences),
        Arc::new(columns.extras),
    ];
    RecordBatch::try_new(Table::Signals.listed_schema(), columns).expect("the columns are made by the schema")
}
