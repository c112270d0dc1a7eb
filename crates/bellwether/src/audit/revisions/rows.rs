//! Changed cells as rows.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::CellChange;
use crate::audit::observed::Value;
use crate::audit::row_builder::{RowBuilder, RowValue};
use crate::interface::{Endpoint, Period, Regime, Signal};
use crate::tables::{date, instant};

/// The columns of changes, one row each.
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
            // When the old value was first seen, and when the new one (or its withdrawal) was.
            Field::new("seen_before", instant(), true),
            Field::new("observed_at", instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Adds a change as a row.
pub(super) fn push(rows: &mut RowBuilder, CellChange { key, sector, observed, rewrite }: CellChange<'_>) {
    let row = rewrite.row;
    let value = |row: Option<usize>| row.map(|row| observed.value(row)).unwrap_or_default();
    let (old, new) = (value(rewrite.before), value(Some(row)));
    let text = |index: usize| RowValue::Text(observed.texts.map(|texts| texts[index].value(row)));
    let signal = |value: Value| RowValue::Text(value.signal.map(Signal::as_str));
    let confidence = |value: Value| RowValue::Real(value.number.filter(|_| observed.texts.is_none()));
    let score = |value: Value| RowValue::Real(value.number.filter(|_| observed.texts.is_some()));
    rows.push(&[
        RowValue::Text(observed.source(row).map(Endpoint::as_str)),
        RowValue::Text(Some(key.ticker.as_str())),
        RowValue::Text(Some(sector).filter(|sector| *sector != "-")),
        RowValue::Text(key.period.map(Period::as_str)),
        RowValue::Text(key.regime.map(Regime::as_str)),
        RowValue::Moment(Some(observed.dates.value(row))),
        text(0),
        text(1),
        RowValue::Text(Some(rewrite.kind.as_str())),
        RowValue::Whole(Some(i32::try_from(rewrite.age_days).unwrap_or(i32::MAX))),
        signal(old),
        signal(new),
        confidence(old),
        confidence(new),
        score(old),
        score(new),
        RowValue::Moment(rewrite.before.map(|row| observed.seen.value(row))),
        RowValue::Moment(Some(observed.seen.value(row))),
    ]);
}
