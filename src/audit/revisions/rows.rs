//! The changed cells as rows.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, Float64Builder, Int32Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::walk::{Observed, Rewrite, Value};
use crate::error::{Error, Result};
use crate::interface::{Period, Regime, Signal};
use crate::tables::{SeriesKey, date, instant};

/// The columns of the changed cells, a row for each change.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let real = |name: &str| Field::new(name, DataType::Float64, true);
        Arc::new(Schema::new(vec![
            text("source", false),
            text("ticker", false),
            text("sector", true),
            text("period", true),
            text("regime", true),
            Field::new("date", date(), false),
            text("title", true),
            text("link", true),
            text("kind", false),
            Field::new("age_days", DataType::Int32, false),
            text("old_signal", true),
            text("new_signal", true),
            real("old_confidence"),
            real("new_confidence"),
            real("old_score"),
            real("new_score"),
            // When the old value was seen, and when the new one, or that there is none any longer.
            Field::new("seen_before", instant(), true),
            Field::new("observed_at", instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Rows that are gathered.
pub(super) struct Rows {
    names: [StringBuilder; 5],
    date: TimestampMicrosecondBuilder,
    texts: [StringBuilder; 2],
    kind: StringBuilder,
    age: Int32Builder,
    signals: [StringBuilder; 2],
    confidences: [Float64Builder; 2],
    scores: [Float64Builder; 2],
    seen: [TimestampMicrosecondBuilder; 2],
    rows: usize,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            names: Default::default(),
            date: TimestampMicrosecondBuilder::new(),
            texts: Default::default(),
            kind: StringBuilder::new(),
            age: Int32Builder::new(),
            signals: Default::default(),
            confidences: Default::default(),
            scores: Default::default(),
            seen: Default::default(),
            rows: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn push(&mut self, key: &SeriesKey, sector: &str, observed: &Observed<'_>, rewrite: &Rewrite) {
        self.rows += 1;
        let row = rewrite.row;
        let names = [
            Some(key.source.as_str()),
            Some(key.ticker.as_str()),
            Some(sector).filter(|sector| *sector != "-"),
            key.period.map(Period::as_str),
            key.regime.map(Regime::as_str),
        ];
        self.names.iter_mut().zip(names).for_each(|(column, name)| column.append_option(name));
        self.date.append_value(observed.dates.value(row));
        for (place, column) in self.texts.iter_mut().enumerate() {
            column.append_option(observed.texts.map(|texts| texts[place].value(row)));
        }
        self.kind.append_value(rewrite.kind.as_str());
        self.age.append_value(i32::try_from(rewrite.age_days).unwrap_or(i32::MAX));
        let value = |row: Option<usize>| row.map(|row| observed.value(row)).unwrap_or_default();
        let values = [value(rewrite.before), value(Some(row))];
        for (place, Value { signal, number }) in values.into_iter().enumerate() {
            let (confidence, score) = if observed.texts.is_none() { (number, None) } else { (None, number) };
            self.signals[place].append_option(signal.map(Signal::as_str));
            self.confidences[place].append_option(confidence);
            self.scores[place].append_option(score);
        }
        self.seen[0].append_option(rewrite.before.map(|row| observed.seen.value(row)));
        self.seen[1].append_value(observed.seen.value(row));
    }

    /// The rows so far.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let Self { names, date, texts, kind, age, signals, confidences, scores, seen, rows } = self;
        *rows = 0;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema().fields().len());
        columns.extend(names.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(date.finish()));
        columns.extend(texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(kind.finish()));
        columns.push(Arc::new(age.finish()));
        columns.extend(signals.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend(confidences.iter_mut().chain(scores).map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend(seen.iter_mut().map(|column| Arc::new(column.finish().with_timezone("UTC")) as ArrayRef));
        debug_assert!(columns.iter().all(|column| column.len() == columns[0].len()));
        RecordBatch::try_new(schema(), columns).map_err(|error| Error::Settle { source: error.into() })
    }
}
