//! Records of a run's work: its requests and its rejected records.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::instant;
use crate::interface::Endpoint;

/// A rejected record, kept as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The request that returned it, without the key.
    pub request: String,
    /// Its ticker, if known.
    pub ticker: Option<String>,
    /// Its position in the body: a JSON pointer.
    pub pointer: String,
    /// Why it was rejected.
    pub reason: String,
    /// Its raw text.
    pub raw: String,
}

impl Reject {
    /// The rejected records of a run as a table.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns have one length.
    pub fn batch(rejects: &[Self]) -> Result<RecordBatch, ArrowError> {
        let text = |field: fn(&Self) -> &str| texts(rejects, field);
        let tickers: StringArray = rejects.iter().map(|reject| reject.ticker.as_deref()).collect();
        let columns: [(&str, ArrayRef, bool); 5] = [
            ("request", text(|reject| &reject.request), false),
            ("ticker", Arc::new(tickers), true),
            ("pointer", text(|reject| &reject.pointer), false),
            ("reason", text(|reject| &reject.reason), false),
            ("raw", text(|reject| &reject.raw), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
    }

    /// The columns of [`Reject::batch`].
    pub fn batch_schema() -> SchemaRef {
        Self::batch(&[]).expect("no rows have one length").schema()
    }

    /// The columns of a run's rejected records: those of [`Reject::batch`], and when the answer was complete.
    pub fn schema() -> SchemaRef {
        let own = Self::batch_schema();
        let observed = Arc::new(Field::new("observed_at", instant(), false));
        Arc::new(Schema::new(own.fields().iter().cloned().chain([observed]).collect::<Vec<_>>()))
    }
}

/// An unknown field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The operation that returned it.
    #[schemars(with = "String")]
    pub endpoint: Endpoint,
    /// Its path, with `*` for a ticker or a position: `/*/predictions/*/model`.
    pub field: String,
    /// Number of occurrences.
    pub count: u64,
    /// The first value seen, as JSON, truncated if it is long.
    pub example: String,
}

impl Drift {
    /// The most fields listed separately; field names are the vendor's, so their number is not bounded.
    const MAX_FIELDS: usize = 64;

    /// The field that all further ones are counted under.
    const THE_REST: &str = "/…";

    /// Adds it to a list in which each field occurs once.
    pub fn add_to(mut self, list: &mut Vec<Self>) {
        let index_of = |list: &[Self], drift: &Self| {
            list.iter().position(|known| known.endpoint == drift.endpoint && known.field == drift.field)
        };
        if list.len() >= Self::MAX_FIELDS && index_of(list, &self).is_none() {
            Self::THE_REST.clone_into(&mut self.field);
        }
        match index_of(list, &self) {
            Some(known) => list[known].count += self.count,
            None => list.push(self),
        }
    }
}

/// Values accepted though they deviate from the interface's notation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leniencies {
    /// Signals in another letter case, such as `BUY`.
    pub signals: u64,
    /// Dates in another notation than those of the interface, such as `2026-11-20T16:00Z`, or seconds since 1970.
    pub dates: u64,
    /// Signals that a history lists again, byte for byte; the first one counts.
    #[serde(default)]
    pub repeated: u64,
    /// Confidences that are text.
    #[serde(default)]
    pub confidences: u64,
    /// Tickers, periods and regimes that are left out or spelled in another way, of an answer to a request that names them.
    #[serde(default)]
    pub echoes: u64,
    /// Articles without a title or a link.
    #[serde(default)]
    pub untitled: u64,
    /// Scores that are text with spaces, or text that stands for none, such as `N/A`.
    #[serde(default)]
    pub scores: u64,
}

impl Leniencies {
    /// What was accepted, singular and plural, and in which notation.
    pub fn in_words(&self) -> [(u64, [&'static str; 2], &'static str); 6] {
        let Self { signals, dates, confidences, echoes, untitled, scores, repeated: _ } = *self;
        [
            (signals, ["signal", "signals"], "with different letter case, such as `BUY`"),
            (dates, ["date", "dates"], "in another notation, such as `2026-11-20T16:00Z`"),
            (confidences, ["confidence", "confidences"], "written as text"),
            (echoes, ["history", "histories"], "whose ticker, period or regime is left out or spelled in another way"),
            (untitled, ["article", "articles"], "without a title or a link"),
            (scores, ["score", "scores"], "written as text with spaces, or that say there is none, such as `N/A`"),
        ]
    }
}

impl AddAssign for Leniencies {
    fn add_assign(&mut self, other: Self) {
        self.signals += other.signals;
        self.dates += other.dates;
        self.repeated += other.repeated;
        self.confidences += other.confidences;
        self.echoes += other.echoes;
        self.untitled += other.untitled;
        self.scores += other.scores;
    }
}

/// Counts of articles, by their latest values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArticleCounts {
    /// Number of articles.
    pub all: u64,
    /// Those without a score, except exact duplicates.
    pub unscored: u64,
    /// Exact duplicates, which count in no window.
    pub repeated: u64,
}

impl ArticleCounts {
    /// Counts an article by its score; `None` for an exact duplicate that does not count.
    pub(crate) fn count(&mut self, score: Option<Option<f64>>) {
        self.all += 1;
        self.unscored += u64::from(score == Some(None));
        self.repeated += u64::from(score.is_none());
    }
}

impl AddAssign for ArticleCounts {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.unscored += other.unscored;
        self.repeated += other.repeated;
    }
}

/// A record rejected for its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Oversized {
    /// Its ticker, if known.
    pub ticker: Option<String>,
    /// Its size, and the limit.
    pub reason: String,
}

impl Oversized {
    /// The most that are listed. Each takes at least the limit in bytes, so more would be a flood.
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

/// An answered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The operation.
    pub endpoint: Endpoint,
    /// The request as text, without the key.
    pub request: String,
    /// The HTTP status of the accepted answer.
    pub status: u16,
    /// Number of attempts.
    pub attempts: u32,
    /// Size of the body.
    pub bytes: u64,
    /// The BLAKE3 of the body.
    pub digest: String,
    /// Number of rows in the answer.
    pub rows: u64,
    /// Number of rejected records.
    pub rejects: u64,
    /// With what to ask whether the answer is still the same. A sealed run has it if the archive holds the whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<Validator>,
    /// Unknown fields of the answer, filled in when the run is sealed; until then they are stored with the answer's
    /// other findings.
    #[serde(skip)]
    pub unknown_fields: Vec<Drift>,
    /// When the body was complete.
    #[serde(with = "crate::time::as_record")]
    pub observed_at: DateTime<Utc>,
}

/// A column of texts.
fn texts<T>(records: &[T], field: fn(&T) -> &str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(records.iter().map(field)))
}

/// What a service gave to ask whether an answer is still the same, and what the archive does not have of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validator {
    /// The name of the header to ask with.
    pub header: String,
    /// The value of the header.
    pub value: String,
    /// The digest of where the answer was asked for, and how it was read.
    pub reading: String,
    /// Number of signal histories.
    pub histories: u64,
    /// Number of confidences outside 0 to 1.
    pub unusual: u64,
    /// Values accepted though they deviate from the interface's notation.
    pub lenient: Leniencies,
}

impl RequestRecord {
    /// The requests of a run as a table.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns have one length.
    pub fn batch(records: &[Self]) -> Result<RecordBatch, ArrowError> {
        let text = |field: fn(&Self) -> &str| texts(records, field);
        let count = |field: fn(&Self) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(records.iter().map(|record| field(record) as i64)))
        };
        let json = |field: fn(&Self) -> Option<serde_json::Result<String>>| -> ArrayRef {
            let texts = records.iter().map(|record| Some(field(record)?.expect("fields are texts and numbers")));
            Arc::new(texts.collect::<StringArray>())
        };
        let number =
            |field: fn(&Self) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(records.iter().map(field))) };
        let seen = records.iter().map(|record| record.observed_at.timestamp_micros());
        let columns: [(&str, ArrayRef, bool); 11] = [
            ("endpoint", text(|record| record.endpoint.as_str()), false),
            ("request", text(|record| &record.request), false),
            ("status", number(|record| record.status.into()), false),
            ("attempts", number(|record| record.attempts as i32), false),
            ("bytes", count(|record| record.bytes), false),
            ("digest", text(|record| &record.digest), false),
            ("rows", count(|record| record.rows), false),
            ("rejects", count(|record| record.rejects), false),
            // A JSON list of [`Drift`]; null without unknown fields.
            ("unknown_fields", json(RequestRecord::unknown_fields_as_json), true),
            // A [`Validator`] as JSON; null where the next run asks for the whole answer.
            ("validator", json(|record| record.validator.as_ref().map(serde_json::to_string)), true),
            ("observed_at", Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
    }

    fn unknown_fields_as_json(&self) -> Option<serde_json::Result<String>> {
        (!self.unknown_fields.is_empty()).then(|| serde_json::to_string(&self.unknown_fields))
    }

    /// The columns of a run's requests.
    pub fn schema() -> SchemaRef {
        Self::batch(&[]).expect("no rows have one length").schema()
    }
}

#[cfg(test)]
mod tests {
    use super::Drift;
    use crate::interface::Endpoint;

    #[test]
    fn the_list_of_unknown_fields_is_bounded() {
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
