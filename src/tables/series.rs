//! Signals: one series as it is decoded, and many as a table.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Int8Array, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::{choice, choices, date, instant, stretches, symbol};
use crate::interface::{Endpoint, Period, Regime, Ticker};

/// What names a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey {
    /// The symbol.
    pub ticker: Ticker,
    /// The horizon.
    pub period: Period,
    /// The market regime.
    pub regime: Regime,
    /// The operation that gave it.
    pub source: Endpoint,
}

/// The history of one key: what is the same in every row is said once.
#[derive(Clone, Debug)]
pub struct Series {
    /// What names it.
    pub key: SeriesKey,
    /// When the response that held it arrived.
    pub observed_at: DateTime<Utc>,
    /// Its rows, oldest first, in the columns of [`Series::row_schema`].
    pub rows: RecordBatch,
}

impl Series {
    /// The columns that differ from row to row.
    pub fn row_schema() -> SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
            Arc::new(Schema::new(vec![
                Field::new("date", date(), false),
                Field::new("utc_offset_minutes", DataType::Int16, true),
                Field::new("signal", choice(), false),
                Field::new("confidence", DataType::Float64, false),
            ]))
        });
        Arc::clone(&SCHEMA)
    }
}

/// Many series as one table.
#[derive(Clone, Copy, Debug)]
pub struct SeriesTable;

impl SeriesTable {
    /// Its columns.
    pub fn schema() -> SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
            let row = Series::row_schema();
            let mut fields = vec![
                Field::new("ticker", symbol(), false),
                Field::new("period", choice(), false),
                Field::new("regime", choice(), false),
                Field::new("source", choice(), false),
            ];
            fields.extend(row.fields().iter().map(|field| field.as_ref().clone()));
            fields.push(Field::new("observed_at", instant(), false));
            Arc::new(Schema::new(fields))
        });
        Arc::clone(&SCHEMA)
    }

    /// The rows of some series, in the order that they are given.
    ///
    /// # Errors
    ///
    /// When the rows of a series are not in the columns of [`Series::row_schema`].
    pub fn batch<'a>(series: impl IntoIterator<Item = &'a Series> + Clone) -> Result<RecordBatch, ArrowError> {
        let rows = concat_batches(&Series::row_schema(), series.clone().into_iter().map(|one| &one.rows))?;
        let tickers = stretches(series.clone().into_iter().map(|one| (one.key.ticker.as_str(), one.rows.num_rows())));
        let codes = |code: fn(&SeriesKey) -> usize| {
            let stretch = |one: &'a Series| std::iter::repeat_n(code(&one.key) as i8, one.rows.num_rows());
            series.clone().into_iter().flat_map(stretch).collect::<Int8Array>()
        };
        let seen = series
            .clone()
            .into_iter()
            .flat_map(|one| std::iter::repeat_n(one.observed_at.timestamp_micros(), one.rows.num_rows()));
        let mut columns: Vec<ArrayRef> = vec![
            tickers,
            choices(codes(|key| key.period.index()), Period::all().map(Period::as_str)),
            choices(codes(|key| key.regime as usize), Regime::ALL.map(Regime::as_str)),
            choices(codes(|key| key.source as usize), Endpoint::ALL.map(Endpoint::name)),
        ];
        columns.extend(rows.columns().iter().map(Arc::clone));
        columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")));
        debug_assert!(columns.iter().all(|column| column.len() == rows.num_rows()), "a column of another length");
        RecordBatch::try_new(Self::schema(), columns)
    }
}
