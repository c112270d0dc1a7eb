//! Articles and summaries: what one response says of one ticker, and many as a table.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::{date, instant, stretches, symbol};
use crate::interface::Ticker;

/// What a response says of a ticker.
#[derive(Clone, Debug)]
pub struct News {
    /// The symbol.
    pub ticker: Ticker,
    /// When the response arrived.
    pub observed_at: DateTime<Utc>,
    /// Its rows, as the service listed them, in the columns of the table's [`NewsTable::row_schema`].
    pub rows: RecordBatch,
}

/// The tables of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsTable {
    /// Scored articles.
    Articles,
    /// The summary of each ticker.
    Summaries,
}

impl NewsTable {
    /// The columns of one ticker's rows.
    pub fn row_schema(self) -> SchemaRef {
        static ARTICLES: LazyLock<SchemaRef> = LazyLock::new(|| {
            Arc::new(Schema::new(vec![
                // Its place in the response: among articles of one date the first listed is the last one known.
                Field::new("position", DataType::Int32, false),
                Field::new("date", date(), false),
                Field::new("title", DataType::Utf8, false),
                Field::new("score", DataType::Float64, true),
                Field::new("link", DataType::Utf8, false),
            ]))
        });
        static SUMMARIES: LazyLock<SchemaRef> = LazyLock::new(|| {
            let reference = |name: &str| {
                [
                    Field::new(format!("{name}_date"), date(), false),
                    Field::new(format!("{name}_score"), DataType::Float64, false),
                    Field::new(format!("{name}_link"), DataType::Utf8, false),
                ]
            };
            let fields = [Field::new("debtor", DataType::Utf8, false)];
            Arc::new(Schema::new(
                fields.into_iter().chain(["low", "high", "avg"].into_iter().flat_map(reference)).collect::<Vec<_>>(),
            ))
        });
        Arc::clone(match self {
            Self::Articles => &ARTICLES,
            Self::Summaries => &SUMMARIES,
        })
    }

    /// The columns of the table.
    pub fn schema(self) -> SchemaRef {
        let mut fields = vec![Field::new("ticker", symbol(), false)];
        fields.extend(self.row_schema().fields().iter().map(|field| field.as_ref().clone()));
        fields.push(Field::new("observed_at", instant(), false));
        Arc::new(Schema::new(fields))
    }

    /// The rows of some responses, in the order that they are given.
    ///
    /// # Errors
    ///
    /// When the rows of a response are not in the columns of [`NewsTable::row_schema`].
    pub fn batch<'a>(self, news: impl IntoIterator<Item = &'a News> + Clone) -> Result<RecordBatch, ArrowError> {
        let rows = concat_batches(&self.row_schema(), news.clone().into_iter().map(|one| &one.rows))?;
        let tickers = stretches(news.clone().into_iter().map(|one| (one.ticker.as_str(), one.rows.num_rows())));
        let seen = news
            .into_iter()
            .flat_map(|one| std::iter::repeat_n(one.observed_at.timestamp_micros(), one.rows.num_rows()));
        let seen: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC"));
        let columns = std::iter::once(tickers).chain(rows.columns().iter().map(Arc::clone)).chain([seen]);
        RecordBatch::try_new(self.schema(), columns.collect())
    }
}
