//! Findings as rows.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::calendar::DayRange;
use crate::audit::row_builder::{RowBuilder, RowValue};
use crate::interface::{Period, Regime};
use crate::tables::{SeriesKey, date};
use crate::time::MICROS_PER_DAY;

/// The columns of findings: kind, series, span, count, value and detail.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        Arc::new(Schema::new(vec![
            text("finding", false),
            text("source", true),
            text("ticker", true),
            text("period", true),
            text("regime", true),
            Field::new("date", date(), true),
            Field::new("until", date(), true),
            Field::new("count", DataType::Int64, true),
            Field::new("value", DataType::Float64, true),
            text("what", true),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug)]
pub(super) enum FindingKind {
    /// Trading days without a signal: the first, the last, and how many.
    Gap,
    /// Trading days after the end of a series.
    Stale,
    /// An article listed more than once, and how often.
    Duplicate,
    /// A confidence or score outside its usual bounds.
    Unusual,
    /// A reason for rejected records, and how many.
    Reject,
    /// An unknown field, and how often it occurred.
    Drift,
    /// Signals with news in a window, and their share of those for which it is known.
    Window,
    /// A length at which lists of articles seem to be cut off, and how many tickers have such a list.
    CutOff,
    /// Tickers whose signals are dated at other times of day than those of most others, and how many.
    SplitDays,
    /// A ticker that ends where another goes on with the same history: the first date of the other, the last of the one, the
    /// dates that both have, and the share of them with the same signal.
    Rename,
}

impl FindingKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Stale => "stale",
            Self::Duplicate => "duplicate",
            Self::Unusual => "unusual",
            Self::Reject => "reject",
            Self::Drift => "drift",
            Self::Window => "window",
            Self::CutOff => "cut_off",
            Self::SplitDays => "split_days",
            Self::Rename => "rename",
        }
    }
}

/// A finding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding<'a> {
    pub(super) kind: FindingKind,
    pub(super) key: Option<&'a SeriesKey>,
    pub(super) source: Option<&'a str>,
    pub(super) date: Option<i64>,
    pub(super) until: Option<i64>,
    pub(super) count: Option<u64>,
    pub(super) value: Option<f64>,
    pub(super) what: Option<&'a str>,
}

impl<'a> Finding<'a> {
    pub(super) fn of(kind: FindingKind) -> Self {
        Self { kind, key: None, source: None, date: None, until: None, count: None, value: None, what: None }
    }

    pub(super) fn of_series(kind: FindingKind, key: &'a SeriesKey) -> Self {
        Self { key: Some(key), ..Self::of(kind) }
    }

    pub(super) fn over(self, range: DayRange) -> Self {
        let micros = |day: i64| Some(day * MICROS_PER_DAY);
        Self { date: micros(range.first), until: micros(range.last), count: Some(range.days), ..self }
    }
}

/// Adds a finding as a row.
pub(super) fn push(rows: &mut RowBuilder, finding: &Finding<'_>) {
    let key = finding.key;
    rows.push(&[
        RowValue::Text(Some(finding.kind.as_str())),
        RowValue::Text(finding.source),
        RowValue::Text(key.map(|key| key.ticker.as_str())),
        RowValue::Text(key.and_then(|key| key.period).map(Period::as_str)),
        RowValue::Text(key.and_then(|key| key.regime).map(Regime::as_str)),
        RowValue::Moment(finding.date),
        RowValue::Moment(finding.until),
        RowValue::Count(finding.count.map(|count| count as i64)),
        RowValue::Real(finding.value),
        RowValue::Text(finding.what),
    ]);
}
