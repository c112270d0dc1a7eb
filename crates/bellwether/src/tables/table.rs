//! The tables of observations and their columns.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use super::{choice, date, instant, symbol};
use crate::interface::Endpoint;

/// What a column is to the rows of its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It identifies a cell of its series.
    Identity,
    /// It is a part of a cell's value.
    Value,
    /// The same, of a value that some forms of an answer lack. A null there says nothing: it is no other value.
    Optional,
    /// The same, of one that numbers a cell among the others of its answer. It changes with its neighbours.
    Position,
    /// Unknown fields as a JSON object, if they are kept.
    Extra,
}

/// A column of a table: its name, its type, whether it may be null, and its role.
type Column = (&'static str, fn() -> DataType, bool, Role);

const SIGNALS: &[Column] = &[
    // Null for a latest signal without a date, which is kept but cannot be used by a dataset.
    ("date", date, true, Role::Identity),
    ("utc_offset_minutes", || DataType::Int16, true, Role::Optional),
    ("signal", choice, false, Role::Value),
    ("confidence", || DataType::Float64, false, Role::Value),
    ("extra", || DataType::Utf8, true, Role::Extra),
];

const ARTICLES: &[Column] = &[
    ("date", date, false, Role::Identity),
    ("title", || DataType::Utf8, false, Role::Identity),
    ("link", || DataType::Utf8, false, Role::Identity),
    // Zero, or the number of articles with the same date, title and link known before it.
    ("copy", || DataType::Int32, false, Role::Identity),
    // Number of articles of its date known before it.
    ("place", || DataType::Int32, false, Role::Position),
    ("score", || DataType::Float64, true, Role::Value),
    // The offset that the date was written with; without one its instant is unknown.
    ("utc_offset_minutes", || DataType::Int16, true, Role::Optional),
    // Number of articles with the same date, title, link and score known before it.
    ("repeats", || DataType::Int32, false, Role::Position),
    ("extra", || DataType::Utf8, true, Role::Extra),
];

/// The legacy form has one date for all three references, which is not an article's; the newer one has no summaries.
const SUMMARIES: &[Column] = &[
    ("debtor", || DataType::Utf8, true, Role::Value),
    ("low_date", date, true, Role::Optional),
    ("low_score", || DataType::Float64, true, Role::Value),
    ("low_link", || DataType::Utf8, true, Role::Value),
    ("low_summary", || DataType::Utf8, true, Role::Optional),
    ("high_date", date, true, Role::Optional),
    ("high_score", || DataType::Float64, true, Role::Value),
    ("high_link", || DataType::Utf8, true, Role::Value),
    ("high_summary", || DataType::Utf8, true, Role::Optional),
    ("avg_date", date, true, Role::Optional),
    ("avg_score", || DataType::Float64, true, Role::Value),
    ("avg_link", || DataType::Utf8, true, Role::Value),
    ("avg_summary", || DataType::Utf8, true, Role::Optional),
    ("extra", || DataType::Utf8, true, Role::Extra),
];

const SENTIMENT_HISTORY: &[Column] = &[
    ("record", || DataType::Utf8, false, Role::Identity),
    // Zero, or the number of records with the same text before it.
    ("copy", || DataType::Int32, false, Role::Identity),
    // Number of records of its day listed after it.
    ("place", || DataType::Int32, false, Role::Position),
];

/// What follows from the columns of a table.
struct Layout {
    identity: Vec<&'static str>,
    values: Vec<&'static str>,
    positional: Vec<&'static str>,
    optional: Vec<&'static str>,
    listed: SchemaRef,
    row: SchemaRef,
    open_row: SchemaRef,
    known: SchemaRef,
    observation: SchemaRef,
    file: SchemaRef,
}

impl Layout {
    fn new(table: Table) -> Self {
        let columns = match table {
            Table::Signals => SIGNALS,
            Table::Articles => ARTICLES,
            Table::Summaries => SUMMARIES,
            Table::SentimentHistory => SENTIMENT_HISTORY,
        };
        let of_roles = |roles: &[Role]| -> Vec<&'static str> {
            columns.iter().filter(|(.., role)| roles.contains(role)).map(|(name, ..)| *name).collect()
        };
        let fields = |are_open: bool| -> Vec<Field> {
            // The values of a withdrawn cell are null.
            let is_open = |role: Role| are_open && role != Role::Identity;
            let field = |&(name, data_type, is_nullable, role): &Column| {
                Field::new(name, data_type(), is_nullable || is_open(role))
            };
            columns.iter().map(field).collect()
        };
        let (row, opened) = (fields(false), fields(true));
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, false);
        let schema = |parts: &[&[Field]]| Arc::new(Schema::new(parts.concat()));
        let mut keys = vec![field("ticker", symbol())];
        if table == Table::Signals {
            keys.extend(["period", "regime"].map(|name| field(name, choice())));
        }
        let (source, observed) = (field("source", choice()), field("observed_at", instant()));
        let (first, revisions) = (field("first_observed_at", instant()), field("revisions", DataType::Int32));
        let of_known = [source.clone(), first, observed.clone(), revisions];
        let of_change = [source, field("change", choice()), observed];
        // Position in the answer: among articles of one date, the first listed is the latest.
        let has_position = columns.iter().any(|(.., role)| *role == Role::Position);
        let mut listed = if has_position { vec![field("position", DataType::Int32)] } else { Vec::new() };
        let is_listed = |(name, .., role): &Column| *name != "copy" && *role != Role::Position;
        listed.extend(row.iter().zip(columns).filter(|(_, column)| is_listed(column)).map(|(field, _)| field.clone()));
        if table == Table::Articles {
            // The answers of interrupted runs have the score before the link.
            listed.swap(3, 4);
        }
        Self {
            identity: of_roles(&[Role::Identity]),
            values: of_roles(&[Role::Value, Role::Optional, Role::Position]),
            positional: of_roles(&[Role::Position]),
            optional: of_roles(&[Role::Optional]),
            listed: schema(&[&listed]),
            row: schema(&[&row]),
            open_row: schema(&[&opened]),
            known: schema(&[&keys, &row, &of_known]),
            observation: schema(&[&keys, &opened, &of_change]),
            file: schema(&[&keys, &opened, &of_change, &[field("sealed_at", instant())]]),
        }
    }
}

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
            Endpoint::NewsArticles => Some(Self::Articles),
            Endpoint::SocialSentiment => Some(Self::Summaries),
            Endpoint::HistoricalSentiment => Some(Self::SentimentHistory),
            Endpoint::TickersAvailable => None,
            _ => Some(Self::Signals),
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

    fn layout(self) -> &'static Layout {
        static LAYOUTS: LazyLock<[Layout; 4]> = LazyLock::new(|| Table::ALL.map(Layout::new));
        &LAYOUTS[self as usize]
    }

    /// The columns that identify a cell of a series, in sort order.
    pub fn identity(self) -> &'static [&'static str] {
        &self.layout().identity
    }

    /// The columns of a cell's value, without unknown fields.
    pub fn values(self) -> &'static [&'static str] {
        &self.layout().values
    }

    /// The columns of a value that number a cell among the others of its answer. They change with its neighbours.
    pub fn positional(self) -> &'static [&'static str] {
        &self.layout().positional
    }

    /// The columns of a value that some forms of an answer lack. A null there says nothing: it is no other value.
    pub fn optional(self) -> &'static [&'static str] {
        &self.layout().optional
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
        Arc::clone(&self.layout().listed)
    }

    /// Rows as an answer lists them, by column. A column that is left out is null, so that one may be added where its values are
    /// read, and nowhere else.
    ///
    /// # Errors
    ///
    /// If a column has another type, or a column that is left out may not be null.
    pub fn list(self, columns: &[(&str, ArrayRef)]) -> Result<RecordBatch, ArrowError> {
        let schema = self.listed_schema();
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        let values = schema.fields().iter().map(|field| match columns.iter().find(|(name, _)| name == field.name()) {
            Some((_, values)) => Arc::clone(values),
            None => new_null_array(field.data_type(), rows),
        });
        RecordBatch::try_new(Arc::clone(&schema), values.collect())
    }

    /// The columns of a series as stored: cell identity and value.
    pub fn row_schema(self) -> SchemaRef {
        Arc::clone(&self.layout().row)
    }

    /// The columns of known cells: series, cell, value, operation, and details of its observations.
    pub fn known_schema(self) -> SchemaRef {
        Arc::clone(&self.layout().known)
    }

    /// The columns of a series' rows with nullable values, for withdrawn cells.
    pub fn open_row_schema(self) -> SchemaRef {
        Arc::clone(&self.layout().open_row)
    }

    /// The columns of an observation: series key, row, operation, change and observation time.
    pub fn schema(self) -> SchemaRef {
        Arc::clone(&self.layout().observation)
    }

    /// The columns of the table's file: an observation, and when the run that it counts from was sealed.
    pub fn file_schema(self) -> SchemaRef {
        Arc::clone(&self.layout().file)
    }
}
