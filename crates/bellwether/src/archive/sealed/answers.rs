//! Answers: what each request said of each series, changed or not.
//!
//! Only changes are stored as observations. An unchanged answer is told by its row here: which series it was about,
//! which dates it covered, and when. Together with the runs that were known when it was settled (the seal's basis), its
//! values can always be told. Reading the known values does not need this file; merging histories does, and so does
//! what asks how long a series was watched.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::horizon::SEALED_AT;
use super::keys::{self, ParsedDictionary};
use super::listings::Name;
use super::rows::observation_times;
use crate::archive::coverage::Coverage;
use crate::archive::edge::Edge;
use crate::error::Reason;
use crate::interface::Endpoint;
use crate::tables::{SeriesKey, Table, choice, date, instant, key_columns, sources, symbol, symbol_runs};

/// Name of the file.
pub(crate) const ANSWERS: &str = "answers.parquet";

/// What a request said of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeriesAnswer {
    pub(crate) key: SeriesKey,
    pub(crate) source: Endpoint,
    pub(in crate::archive) request: Name,
    /// Number of cells.
    pub(in crate::archive) rows: u64,
    pub(crate) covers: Coverage,
    /// The articles of its oldest date, which it may not cover.
    pub(in crate::archive) edge: Edge,
    pub(crate) observed_at: DateTime<Utc>,
    /// When its run was sealed.
    pub(in crate::archive) sealed_at: DateTime<Utc>,
}

/// The columns of the file.
pub(in crate::archive) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("ticker", symbol(), false),
            Field::new("period", choice(), true),
            Field::new("regime", choice(), true),
            Field::new("source", choice(), false),
            Field::new("request", symbol(), false),
            Field::new("rows", DataType::Int64, false),
            // Null if it covers nothing, or a series whose cells have no dates.
            Field::new("covered_from", date(), true),
            // Null if it covers everything after that.
            Field::new("covered_until", date(), true),
            Field::new("edge", DataType::Utf8, true),
            Field::new("observed_at", instant(), false),
            Field::new(SEALED_AT, instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Answers as rows of the file.
pub(in crate::archive) fn batch(answers: &[SeriesAnswer]) -> Result<RecordBatch, ArrowError> {
    let instants = |instant: fn(&SeriesAnswer) -> DateTime<Utc>| -> ArrayRef {
        let micros = answers.iter().map(|answer| instant(answer).timestamp_micros());
        Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
    };
    let dates = |end: fn(Coverage) -> Option<i64>| -> ArrayRef {
        Arc::new(answers.iter().map(|answer| end(answer.covers)).collect::<TimestampMicrosecondArray>())
    };
    let [ticker, period, regime] = key_columns(answers.iter().map(|answer| (&answer.key, 1)));
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        sources(answers.iter().map(|answer| (answer.source, 1))),
        symbol_runs(answers.iter().map(|answer| (&*answer.request, 1))),
        Arc::new(Int64Array::from_iter_values(answers.iter().map(|answer| answer.rows as i64))),
        dates(Coverage::oldest),
        dates(|covers| match covers {
            Coverage::Dates { until, .. } if until != i64::MAX => Some(until),
            _ => None,
        }),
        Arc::new(answers.iter().map(|answer| answer.edge.text()).collect::<StringArray>()),
        instants(|answer| answer.observed_at),
        instants(|answer| answer.sealed_at),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// Reads answers from rows of the file.
pub(in crate::archive) fn records(rows: &RecordBatch) -> Result<Vec<SeriesAnswer>, Reason> {
    let requests = rows.column(4).as_dictionary::<Int32Type>();
    let names: Vec<Name> = requests.values().as_string::<i32>().iter().flatten().map(Name::from).collect();
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let counts = rows.column(5).as_primitive::<Int64Type>();
    let micros = |column: usize| rows.column(column).as_primitive::<TimestampMicrosecondType>();
    let (from, until, seen, sealed) = (micros(6), micros(7), observation_times(rows), micros(10));
    let edges = rows.column(8).as_string::<i32>();
    let instant = |micros: i64| DateTime::from_timestamp_micros(micros).ok_or("an instant is out of range");
    let mut answers = Vec::with_capacity(rows.num_rows());
    for (key, range) in keys::ranges_of_any(rows)? {
        let table = key.table.ok_or("an answer is about no series")?;
        for row in range {
            let covers = match (from.is_valid(row), counts.value(row)) {
                (true, _) => {
                    let until = if until.is_valid(row) { until.value(row) } else { i64::MAX };
                    Coverage::Dates { from: from.value(row), until }
                }
                (false, count) if count > 0 && !table.is_dated() => Coverage::Everything,
                (false, _) => Coverage::Nothing,
            };
            answers.push(SeriesAnswer {
                key: key.clone(),
                source: sources.get(row)?.ok_or("an answer has no operation")?,
                request: Arc::clone(&names[requests.keys().value(row) as usize]),
                rows: counts.value(row).max(0) as u64,
                covers,
                edge: Edge::of_text(if edges.is_valid(row) { edges.value(row) } else { "" }),
                observed_at: instant(seen.value(row))?,
                sealed_at: instant(sealed.value(row))?,
            });
        }
    }
    Ok(answers)
}

impl SeriesAnswer {
    /// The table of its series.
    pub(in crate::archive) fn table(&self) -> Table {
        self.key.table.expect("an answer is about a series with values")
    }
}
