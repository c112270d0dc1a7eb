//! Observations by column, as the audits read them.

use std::str::FromStr;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, Int8Type, Int16Type, TimestampMicrosecondType};

use chrono::{DateTime, Utc};

use crate::archive::{Histories, History};
use crate::interface::{Endpoint, Signal};
use crate::plan::NaiveRule;
use crate::tables::Change;

/// The value of a cell: the signal and confidence of a signal, or the score of an article.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// Buy or sell, for a signal.
    pub signal: Option<Signal>,
    /// Confidence or score.
    pub number: Option<f64>,
}

/// Columns of some histories.
pub(super) struct ObservedColumns<'a> {
    pub(super) dates: &'a TimestampMicrosecondArray,
    pub(super) seen: &'a TimestampMicrosecondArray,
    pub(super) texts: Option<[&'a StringArray; 2]>,
    offsets: Option<&'a Int16Array>,
    changes: &'a [Change],
    signals: Option<ChoiceColumn<'a, Signal>>,
    sources: ChoiceColumn<'a, Endpoint>,
    numbers: &'a Float64Array,
}

impl<'a> ObservedColumns<'a> {
    pub(super) fn new(histories: &'a Histories) -> Self {
        let rows = &histories.rows;
        let instants = |name: &str| column(rows, name).as_primitive::<TimestampMicrosecondType>();
        let is_of_signals = rows.column_by_name("signal").is_some();
        let number = if is_of_signals { "confidence" } else { "score" };
        Self {
            dates: instants("date"),
            seen: instants("observed_at"),
            texts: rows
                .column_by_name("title")
                .zip(rows.column_by_name("link"))
                .map(|(title, link)| [title, link].map(|column| column.as_string::<i32>())),
            offsets: is_of_signals.then(|| column(rows, "utc_offset_minutes").as_primitive::<Int16Type>()),
            changes: &histories.changes,
            signals: is_of_signals.then(|| ChoiceColumn::new(column(rows, "signal"))),
            sources: ChoiceColumn::new(column(rows, "source")),
            numbers: column(rows, number).as_primitive::<Float64Type>(),
        }
    }

    pub(super) fn value(&self, row: usize) -> Value {
        let number = self.numbers.is_valid(row).then(|| self.numbers.value(row));
        Value { signal: self.signals.as_ref().and_then(|signals| signals.get(row)), number }
    }

    /// The date of a row as the service wrote it, on the clock of its offset if it has one.
    pub(super) fn written_date(&self, row: usize) -> Option<i64> {
        let offset = self.offsets.filter(|offsets| offsets.is_valid(row)).map_or(0, |offsets| offsets.value(row));
        self.dates.is_valid(row).then(|| self.dates.value(row) + i64::from(offset) * 60_000_000)
    }

    /// The naive date of a row by a rule.
    pub(super) fn naive_date(&self, row: usize, rule: NaiveRule) -> Option<i64> {
        let offset = self.offsets.filter(|offsets| offsets.is_valid(row)).map(|offsets| offsets.value(row));
        self.dates.is_valid(row).then(|| rule.face(self.dates.value(row), offset))
    }

    /// The operation that gave a row.
    pub(super) fn source(&self, row: usize) -> Option<Endpoint> {
        self.sources.get(row)
    }

    /// When a row was observed.
    pub(super) fn instant(&self, row: usize) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.seen.value(row)).unwrap_or_default()
    }

    /// The rows with the latest known value of each cell of a series.
    pub(super) fn known_rows(&self, history: &History) -> impl Iterator<Item = usize> {
        history.groups.cells().map(|cell| cell.end - 1).filter(|&row| !self.is_withdrawn(row))
    }

    pub(super) fn is_withdrawn(&self, row: usize) -> bool {
        self.changes[row] == Change::Withdrawn
    }
}

/// When a row of a table was observed.
pub(super) fn instant_of(rows: &RecordBatch, row: usize) -> DateTime<Utc> {
    let seen = column(rows, "observed_at").as_primitive::<TimestampMicrosecondType>();
    DateTime::from_timestamp_micros(seen.value(row)).unwrap_or_default()
}

pub(super) fn column<'a>(rows: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    rows.column_by_name(name).expect("a table has the columns that it declares")
}

/// A column of a closed set, decoded from its dictionary.
struct ChoiceColumn<'a, T> {
    codes: &'a Int8Array,
    spelled: Vec<Option<T>>,
}

impl<'a, T: FromStr + Copy> ChoiceColumn<'a, T> {
    fn new(column: &'a ArrayRef) -> Self {
        let column = column.as_dictionary::<Int8Type>();
        let spelled = column.values().as_string::<i32>().iter().map(|text| text?.parse().ok()).collect();
        Self { codes: column.keys(), spelled }
    }

    fn get(&self, row: usize) -> Option<T> {
        self.codes.is_valid(row).then(|| self.spelled[self.codes.value(row) as usize])?
    }
}
