//! Signals: one series as it is decoded, and many as a table.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int8Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use super::{Observed, choice, choices, date, instant, seen, stretches, symbol};
use crate::interface::{Endpoint, Period, Regime, Ticker};

/// What names a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Its rows, oldest first, in the columns of [`Series::row_schema`].
    pub rows: RecordBatch,
}

impl Series {
    /// The columns that differ from row to row.
    pub fn row_schema() -> SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
            Arc::new(Schema::new(vec![
                // Null in a latest signal that has no date: it is kept, and no dataset can use it.
                Field::new("date", date(), true),
                Field::new("utc_offset_minutes", DataType::Int16, true),
                Field::new("signal", choice(), false),
                Field::new("confidence", DataType::Float64, false),
                // Fields that the interface does not know, as a JSON object, where they are to be kept.
                Field::new("extra", DataType::Utf8, true),
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
    pub fn batch(series: &[Observed<Series>]) -> Result<RecordBatch, ArrowError> {
        let rows = concat_batches(&Series::row_schema(), series.iter().map(|one| &one.value.rows))?;
        let tickers = series.iter().map(|one| (one.value.key.ticker.as_str(), one.value.rows.num_rows()));
        let codes = |code: fn(&SeriesKey) -> usize| -> Int8Array {
            let stretch =
                |one: &Observed<Series>| std::iter::repeat_n(code(&one.value.key) as i8, one.value.rows.num_rows());
            series.iter().flat_map(stretch).collect()
        };
        let mut columns: Vec<ArrayRef> = vec![
            stretches(tickers),
            choices(codes(|key| key.period.index()), Period::all().map(Period::as_str)),
            choices(codes(|key| key.regime as usize), Regime::ALL.map(Regime::as_str)),
            choices(codes(|key| key.source as usize), Endpoint::ALL.map(Endpoint::as_str)),
        ];
        columns.extend(rows.columns().iter().map(Arc::clone));
        columns.push(seen(series.iter().map(|one| (one.observed_at, one.value.rows.num_rows()))));
        RecordBatch::try_new(Self::schema(), columns)
    }
}
