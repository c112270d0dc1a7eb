//! The tables of observations and their columns.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::{choice, date, instant, symbol};
use crate::interface::Endpoint;

/// A table of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Signals.
    Signals,
    /// Scored articles.
    Articles,
    /// The summary of each ticker.
    Summaries,
    /// Historical sentiment, whose fields the interface does not define: each record as JSON text.
    SentimentHistory,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Signals, Self::Articles, Self::Summaries, Self::SentimentHistory];

    /// The table for an operation's answers; `None` for the list of tickers, which has no values.
    pub fn of(source: Endpoint) -> Option<Self> {
        match source {
            Endpoint::SignalsHistoryAll
            | Endpoint::Signals
            | Endpoint::SignalsHistoryBatchedAll
            | Endpoint::SignalsHistoryBatched
            | Endpoint::SignalsHistory
            | Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched
            | Endpoint::LegacyHistory
            | Endpoint::LegacySignals => Some(Self::Signals),
            Endpoint::NewsArticles => Some(Self::Articles),
            Endpoint::SocialSentiment => Some(Self::Summaries),
            Endpoint::HistoricalSentiment => Some(Self::SentimentHistory),
            Endpoint::TickersAvailable => None,
        }
    }

    /// Its name, and that of its file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signals => "signals",
            Self::Articles => "articles",
            Self::Summaries => "summaries",
            Self::SentimentHistory => "sentiment_history",
        }
    }

    /// The name of its file in a run.
    pub fn file(self) -> String {
        format!("{}.parquet", self.as_str())
    }

    /// The columns that identify a cell of a series, in sort order.
    pub fn identity(self) -> &'static [&'static str] {
        match self {
            Self::Signals => &["date"],
            Self::Articles => &["date", "title", "link", "copy"],
            Self::Summaries => &[],
            Self::SentimentHistory => &["record", "copy"],
        }
    }

    /// The columns of a cell's value, without unknown fields.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Self::Signals => &["utc_offset_minutes", "signal", "confidence"],
            Self::Articles => &["place", "score", "utc_offset_minutes", "repeats"],
            Self::Summaries => &[
                "debtor",
                "low_date",
                "low_score",
                "low_link",
                "low_summary",
                "high_date",
                "high_score",
                "high_link",
                "high_summary",
                "avg_date",
                "avg_score",
                "avg_link",
                "avg_summary",
            ],
            Self::SentimentHistory => &["place"],
        }
    }

    /// The columns of a value that number a cell among the others of its answer. They change with its neighbours.
    pub fn positional(self) -> &'static [&'static str] {
        match self {
            Self::Articles => &["place", "repeats"],
            Self::SentimentHistory => &["place"],
            Self::Signals | Self::Summaries => &[],
        }
    }

    /// The columns of a value that some forms of an answer lack. A null there says nothing: it is no other value.
    pub fn optional(self) -> &'static [&'static str] {
        match self {
            Self::Signals | Self::Articles => &["utc_offset_minutes"],
            Self::Summaries => &["low_date", "low_summary", "high_date", "high_summary", "avg_date", "avg_summary"],
            Self::SentimentHistory => &[],
        }
    }

    /// Number of key columns, which come first in the table's file.
    pub fn key_columns(self) -> usize {
        if self == Self::Signals { 3 } else { 1 }
    }

    /// Whether its cells have dates.
    pub fn is_dated(self) -> bool {
        self.identity().first() == Some(&"date")
    }

    /// Whether it keeps unknown fields.
    pub fn has_extra(self) -> bool {
        self != Self::SentimentHistory
    }

    /// The columns of a series as an answer lists it.
    pub fn listed_schema(self) -> SchemaRef {
        match self {
            Self::Signals | Self::Summaries => self.row_schema(),
            Self::Articles => {
                static ARTICLES: LazyLock<SchemaRef> = LazyLock::new(|| {
                    Arc::new(Schema::new(vec![
                        // Position in the answer: among articles of one date, the first listed is the latest.
                        Field::new("position", DataType::Int32, false),
                        Field::new("date", date(), false),
                        Field::new("title", DataType::Utf8, false),
                        Field::new("score", DataType::Float64, true),
                        Field::new("link", DataType::Utf8, false),
                        Field::new("utc_offset_minutes", DataType::Int16, true),
                        extra(),
                    ]))
                });
                Arc::clone(&ARTICLES)
            }
            Self::SentimentHistory => {
                static HISTORY: LazyLock<SchemaRef> = LazyLock::new(|| {
                    Arc::new(Schema::new(vec![
                        Field::new("position", DataType::Int32, false),
                        Field::new("record", DataType::Utf8, false),
                    ]))
                });
                Arc::clone(&HISTORY)
            }
        }
    }

    /// The columns of a series as stored: cell identity and value.
    pub fn row_schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> =
            LazyLock::new(|| Table::ALL.map(|table| Arc::new(Schema::new(table.row_fields()))));
        Arc::clone(&SCHEMAS[self as usize])
    }

    /// The columns of known cells: series, cell, value, operation, and details of its observations.
    pub fn known_schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> = LazyLock::new(|| {
            Table::ALL.map(|table| {
                let all = table.schema();
                let mut fields: Vec<Field> =
                    all.fields()[..table.key_columns()].iter().map(|field| field.as_ref().clone()).collect();
                fields.extend(table.row_fields());
                fields.push(Field::new("source", choice(), false));
                fields.extend(["first_observed_at", "observed_at"].map(|name| Field::new(name, instant(), false)));
                fields.push(Field::new("revisions", DataType::Int32, false));
                Arc::new(Schema::new(fields))
            })
        });
        Arc::clone(&SCHEMAS[self as usize])
    }

    fn row_fields(self) -> Vec<Field> {
        match self {
            Self::Signals => vec![
                // Null for a latest signal without a date, which is kept but cannot be used by a dataset.
                Field::new("date", date(), true),
                Field::new("utc_offset_minutes", DataType::Int16, true),
                Field::new("signal", choice(), false),
                Field::new("confidence", DataType::Float64, false),
                extra(),
            ],
            Self::Articles => vec![
                Field::new("date", date(), false),
                Field::new("title", DataType::Utf8, false),
                Field::new("link", DataType::Utf8, false),
                // Zero, or the number of articles with the same date, title and link known before it.
                Field::new("copy", DataType::Int32, false),
                // Number of articles of its date known before it.
                Field::new("place", DataType::Int32, false),
                Field::new("score", DataType::Float64, true),
                // The offset that the date was written with; without one its instant is unknown.
                Field::new("utc_offset_minutes", DataType::Int16, true),
                // Number of articles with the same date, title, link and score known before it.
                Field::new("repeats", DataType::Int32, false),
                extra(),
            ],
            Self::Summaries => {
                let reference = |name: &str| {
                    [
                        // The legacy form has one date for all three references, which is not an article's.
                        Field::new(format!("{name}_date"), date(), true),
                        Field::new(format!("{name}_score"), DataType::Float64, true),
                        Field::new(format!("{name}_link"), DataType::Utf8, true),
                        Field::new(format!("{name}_summary"), DataType::Utf8, true),
                    ]
                };
                let mut fields = vec![Field::new("debtor", DataType::Utf8, true)];
                fields.extend(["low", "high", "avg"].into_iter().flat_map(reference));
                fields.push(extra());
                fields
            }
            Self::SentimentHistory => vec![
                Field::new("record", DataType::Utf8, false),
                // Zero, or the number of records with the same text before it.
                Field::new("copy", DataType::Int32, false),
                // Number of records of its day listed after it.
                Field::new("place", DataType::Int32, false),
            ],
        }
    }

    /// The columns of a series' rows with nullable values, for withdrawn cells.
    pub fn open_row_schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> =
            LazyLock::new(|| Table::ALL.map(|table| Arc::new(Schema::new(table.open_row_fields()))));
        Arc::clone(&SCHEMAS[self as usize])
    }

    fn open_row_fields(self) -> Vec<Field> {
        let is_identity = |field: &Field| self.identity().contains(&field.name().as_str());
        let opened = |field: Field| if is_identity(&field) { field } else { field.with_nullable(true) };
        self.row_fields().into_iter().map(opened).collect()
    }

    /// The columns of an observation: series key, row, operation, change and observation time.
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> =
            LazyLock::new(|| Table::ALL.map(|table| Arc::new(Schema::new(table.fields()))));
        Arc::clone(&SCHEMAS[self as usize])
    }

    fn fields(self) -> Vec<Field> {
        let mut fields = vec![Field::new("ticker", symbol(), false)];
        if self == Self::Signals {
            fields.extend(["period", "regime"].map(|name| Field::new(name, choice(), false)));
        }
        fields.extend(self.open_row_fields());
        fields.push(Field::new("source", choice(), false));
        fields.push(Field::new("change", choice(), false));
        fields.push(Field::new("observed_at", instant(), false));
        fields
    }

    /// The columns of the table's file: an observation, and when the run that it counts from was sealed.
    pub fn file_schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 4]> = LazyLock::new(|| {
            Table::ALL.map(|table| {
                let mut fields = table.fields();
                fields.push(Field::new("sealed_at", instant(), false));
                Arc::new(Schema::new(fields))
            })
        });
        Arc::clone(&SCHEMAS[self as usize])
    }
}

/// Unknown fields as a JSON object, if they are kept.
fn extra() -> Field {
    Field::new("extra", DataType::Utf8, true)
}
