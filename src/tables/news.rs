//! News and sentiment: what one response says of one ticker, and many as a table.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use super::{Observed, date, instant, seen, stretches, symbol};
use crate::interface::Ticker;

/// What a response says of a ticker.
#[derive(Clone, Debug)]
pub struct News {
    /// The symbol.
    pub ticker: Ticker,
    /// Its rows, as the service listed them, in the columns of the table's [`NewsTable::row_schema`].
    pub rows: RecordBatch,
}

/// The tables of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewsTable {
    /// Scored articles.
    Articles,
    /// The summary of each ticker.
    Summaries,
    /// Historical sentiment, whose fields the interface does not show: each record as JSON text.
    SentimentHistory,
}

impl NewsTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Articles, Self::Summaries, Self::SentimentHistory];

    /// Its name, which is its file's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Articles => "articles",
            Self::Summaries => "summaries",
            Self::SentimentHistory => "sentiment_history",
        }
    }

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
                Field::new("extra", DataType::Utf8, true),
            ]))
        });
        static SUMMARIES: LazyLock<SchemaRef> = LazyLock::new(|| {
            let reference = |name: &str| {
                [
                    // The older form has one date for all three, and it is not an article's.
                    Field::new(format!("{name}_date"), date(), true),
                    Field::new(format!("{name}_score"), DataType::Float64, true),
                    Field::new(format!("{name}_link"), DataType::Utf8, true),
                    Field::new(format!("{name}_summary"), DataType::Utf8, true),
                ]
            };
            let mut fields = vec![Field::new("debtor", DataType::Utf8, true)];
            fields.extend(["low", "high", "avg"].into_iter().flat_map(reference));
            fields.push(Field::new("extra", DataType::Utf8, true));
            Arc::new(Schema::new(fields))
        });
        static HISTORY: LazyLock<SchemaRef> = LazyLock::new(|| {
            Arc::new(Schema::new(vec![
                Field::new("position", DataType::Int32, false),
                Field::new("record", DataType::Utf8, false),
            ]))
        });
        Arc::clone(match self {
            Self::Articles => &ARTICLES,
            Self::Summaries => &SUMMARIES,
            Self::SentimentHistory => &HISTORY,
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
    pub fn batch(self, news: &[Observed<News>]) -> Result<RecordBatch, ArrowError> {
        let rows = concat_batches(&self.row_schema(), news.iter().map(|one| &one.value.rows))?;
        let mut columns =
            vec![stretches(news.iter().map(|one| (one.value.ticker.as_str(), one.value.rows.num_rows())))];
        columns.extend(rows.columns().iter().map(Arc::clone));
        columns.push(seen(news.iter().map(|one| (one.observed_at, one.value.rows.num_rows()))));
        RecordBatch::try_new(self.schema(), columns)
    }
}
