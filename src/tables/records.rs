//! What a run remembers of its work: the requests it made and the records it set aside.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::instant;
use crate::interface::Endpoint;

/// A record that could not be typed, kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The request whose answer held it, without the key.
    pub request: String,
    /// The ticker that it belongs to, where that is known.
    pub ticker: Option<String>,
    /// Where it stands in the body: a JSON pointer.
    pub pointer: String,
    /// Why it was set aside.
    pub reason: String,
    /// Its text.
    pub raw: String,
}

impl Reject {
    /// The rejects of a run as a table.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns are made to fit.
    pub fn batch(rejects: &[Self]) -> Result<RecordBatch, ArrowError> {
        let text = |field: fn(&Self) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rejects.iter().map(field)))
        };
        let tickers: StringArray = rejects.iter().map(|reject| reject.ticker.as_deref()).collect();
        let columns = vec![
            text(|reject| &reject.request),
            Arc::new(tickers),
            text(|reject| &reject.pointer),
            text(|reject| &reject.reason),
            text(|reject| &reject.raw),
        ];
        RecordBatch::try_new(Self::batch_schema(), columns)
    }

    /// The columns of [`Reject::batch`].
    pub fn batch_schema() -> SchemaRef {
        Arc::new(Schema::new(Self::fields()))
    }

    /// The columns of a run's rejects: those of [`Reject::batch`], and when the answer was complete.
    pub fn schema() -> SchemaRef {
        let mut fields = Self::fields();
        fields.push(Field::new("observed_at", instant(), false));
        Arc::new(Schema::new(fields))
    }

    fn fields() -> Vec<Field> {
        vec![
            Field::new("request", DataType::Utf8, false),
            Field::new("ticker", DataType::Utf8, true),
            Field::new("pointer", DataType::Utf8, false),
            Field::new("reason", DataType::Utf8, false),
            Field::new("raw", DataType::Utf8, false),
        ]
    }
}

/// A field that the interface does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The operation whose answers hold it.
    pub endpoint: Endpoint,
    /// Where it stands, with `*` for a ticker or a position: `/*/predictions/*/model`.
    pub field: String,
    /// How often it was seen.
    pub count: u64,
    /// The first value seen, as JSON, clipped when it is long.
    pub example: String,
}

impl Drift {
    /// How many fields are told apart; the names of fields are the vendor's, and may be without end.
    const MAX_FIELDS: usize = 64;

    /// What the others are counted under.
    const THE_REST: &str = "/…";

    /// Adds it to a list in which no field stands twice.
    pub fn add_to(mut self, list: &mut Vec<Self>) {
        let place = |list: &[Self], drift: &Self| {
            list.iter().position(|known| known.endpoint == drift.endpoint && known.field == drift.field)
        };
        if list.len() >= Self::MAX_FIELDS && place(list, &self).is_none() {
            Self::THE_REST.clone_into(&mut self.field);
        }
        match place(list, &self) {
            Some(known) => list[known].count += self.count,
            None => list.push(self),
        }
    }
}

/// How many values were accepted that are not spelled as the interface spells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leniencies {
    /// Signals in other letter case, such as `BUY`.
    pub signals: u64,
    /// Dates with a lower-case `t` or `z`.
    pub dates: u64,
}

impl AddAssign for Leniencies {
    fn add_assign(&mut self, other: Self) {
        self.signals += other.signals;
        self.dates += other.dates;
    }
}

/// A record that was rejected because it is larger than any that is decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oversized {
    /// The ticker that it belongs to, where that is known.
    pub ticker: Option<String>,
    /// Its size, and the limit.
    pub reason: String,
}

impl Oversized {
    /// How many are listed. Each takes at least the limit of the service's bytes, so more are a flood.
    pub const MAX_LISTED: usize = 8;
}

impl fmt::Display for Oversized {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ticker {
            Some(ticker) => write!(formatter, "all of `{ticker}` was rejected: {}", self.reason),
            None => write!(formatter, "a record was rejected: {}", self.reason),
        }
    }
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The operation.
    pub endpoint: Endpoint,
    /// The request in words, without the key.
    pub request: String,
    /// The HTTP status of the answer that was taken.
    pub status: u16,
    /// How often it was asked.
    pub attempts: u32,
    /// The size of the body.
    pub bytes: u64,
    /// The BLAKE3 of the body.
    pub digest: String,
    /// The rows that it gave.
    pub rows: u64,
    /// The records that were rejected.
    pub rejects: u64,
    /// Fields of the answer that the interface does not know. They come in when the run is sealed: until then an answer
    /// keeps them with what else was noticed in it.
    #[serde(skip)]
    pub unknown_fields: Vec<Drift>,
    /// When the body was complete.
    #[serde(with = "crate::time::as_record")]
    pub observed_at: DateTime<Utc>,
}

impl RequestRecord {
    /// The requests of a run as a table.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns are made to fit.
    pub fn batch(records: &[Self]) -> Result<RecordBatch, ArrowError> {
        let count = |field: fn(&Self) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(records.iter().map(|record| field(record) as i64)))
        };
        let seen = records.iter().map(|record| record.observed_at.timestamp_micros());
        let unknown_fields = records.iter().map(|record| {
            let fields = Some(&record.unknown_fields).filter(|fields| !fields.is_empty());
            fields.map(|fields| serde_json::to_string(fields).expect("fields are texts and numbers"))
        });
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(records.iter().map(|record| record.endpoint.as_str()))),
            Arc::new(StringArray::from_iter_values(records.iter().map(|record| record.request.as_str()))),
            Arc::new(Int32Array::from_iter_values(records.iter().map(|record| i32::from(record.status)))),
            Arc::new(Int32Array::from_iter_values(records.iter().map(|record| record.attempts as i32))),
            count(|record| record.bytes),
            Arc::new(StringArray::from_iter_values(records.iter().map(|record| record.digest.as_str()))),
            count(|record| record.rows),
            count(|record| record.rejects),
            Arc::new(unknown_fields.collect::<StringArray>()),
            Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")),
        ];
        RecordBatch::try_new(Self::schema(), columns)
    }

    /// The columns of a run's requests.
    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("endpoint", DataType::Utf8, false),
            Field::new("request", DataType::Utf8, false),
            Field::new("status", DataType::Int32, false),
            Field::new("attempts", DataType::Int32, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("digest", DataType::Utf8, false),
            Field::new("rows", DataType::Int64, false),
            Field::new("rejects", DataType::Int64, false),
            // A JSON list of [`Drift`]; null where every field is known.
            Field::new("unknown_fields", DataType::Utf8, true),
            Field::new("observed_at", instant(), false),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::Drift;
    use crate::interface::Endpoint;

    #[test]
    fn fields_without_end_are_counted_in_a_list_that_has_one() {
        let mut list = Vec::new();
        for number in 0..10_000 {
            let (field, example) = (format!("/*/{}", number % 5_000), "1".to_owned());
            Drift { endpoint: Endpoint::Signals, field, count: 1, example }.add_to(&mut list);
        }
        assert_eq!(list.len(), 65);
        assert_eq!(list.iter().map(|field| field.count).sum::<u64>(), 10_000);
        assert_eq!((list[0].field.as_str(), list[0].count), ("/*/0", 2));
        assert_eq!(list[64].field, "/…");
    }
}
