//! Disagreements as rows.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Disagreement, SharedCell};
use crate::audit::row_builder::{RowBuilder, RowValue};
use crate::interface::{Period, Regime, Signal};
use crate::tables::{date, instant};

/// The columns of disagreements: the cell, and the value in each of two operations.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let mut fields = vec![
            text("ticker", false),
            text("period", true),
            text("regime", true),
            // As written.
            Field::new("date", date(), false),
            text("about", false),
            text("link", true),
        ];
        for side in ["", "other_"] {
            fields.push(text(&format!("{side}source"), false));
            fields.push(text(&format!("{side}signal"), true));
            fields.push(Field::new(format!("{side}confidence"), DataType::Float64, true));
            fields.push(Field::new(format!("{side}score"), DataType::Float64, true));
            fields.push(Field::new(format!("{side}observed_at"), instant(), false));
        }
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

/// Adds a disagreement as a row.
pub(super) fn push(rows: &mut RowBuilder, found: &Disagreement) {
    let link = match &found.about {
        SharedCell::Signal => None,
        SharedCell::Article(_, link) => Some(link.as_str()),
    };
    let mut row = vec![
        RowValue::Text(Some(found.ticker.as_str())),
        RowValue::Text(found.period.map(Period::as_str)),
        RowValue::Text(found.regime.map(Regime::as_str)),
        RowValue::Moment(Some(found.date)),
        RowValue::Text(Some(found.about.as_str())),
        RowValue::Text(link),
    ];
    for statement in &found.statements {
        let value = statement.value;
        row.push(RowValue::Text(Some(statement.source.as_str())));
        row.push(RowValue::Text(value.signal.map(Signal::as_str)));
        row.push(RowValue::Real(value.number.filter(|_| found.about == SharedCell::Signal)));
        row.push(RowValue::Real(value.number.filter(|_| found.about != SharedCell::Signal)));
        row.push(RowValue::Moment(Some(statement.observed_at.timestamp_micros())));
    }
    rows.push(&row);
}
