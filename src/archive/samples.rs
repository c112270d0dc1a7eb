//! Runs and observations for the tests of this room.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray, new_null_array,
};
use chrono::DateTime;

use super::seal::{Counts, LAYOUT, Seal};
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::{Change, Changes, SeriesKey, Table, choices};

/// The seal of a run that has nothing but its name.
pub(super) fn seal(name: &str) -> Seal {
    Seal {
        layout: LAYOUT,
        run: name.to_owned(),
        bellwether: String::new(),
        definition: None,
        started_at: DateTime::default(),
        sealed_at: DateTime::default(),
        after: Vec::new(),
        since: None,
        replaces: Vec::new(),
        bundles: Vec::new(),
        changes: Counts::default(),
        drift: Vec::new(),
        files: Vec::new(),
        seal: Seal::undigested(),
    }
}

/// A series of signals.
pub(super) fn key() -> SeriesKey {
    SeriesKey {
        ticker: "A".parse().unwrap(),
        period: Period::all().next(),
        regime: Some(Regime::Neutral),
        source: Endpoint::SignalsHistoryAll,
    }
}

/// What a run observed of a series at a second: days, and how sure it was of them.
pub(super) fn observed(key: &SeriesKey, second: i64, change: Change, said: &[(i64, f64)]) -> RecordBatch {
    let schema = Table::Signals.row_schema();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values(said.iter().map(|(day, _)| day * 86_400_000_000))),
        new_null_array(schema.field(1).data_type(), said.len()),
        choices(Int8Array::from(vec![0; said.len()]), ["buy"]),
        Arc::new(Float64Array::from_iter_values(said.iter().map(|(_, confidence)| *confidence))),
        Arc::new(StringArray::new_null(said.len())),
    ];
    let rows = RecordBatch::try_new(schema, columns).unwrap();
    let observed_at = DateTime::from_timestamp(second, 0).unwrap();
    let changes = Changes { key: key.clone(), observed_at, kinds: vec![change; said.len()], rows };
    Table::Signals.batch(&[changes]).unwrap()
}
