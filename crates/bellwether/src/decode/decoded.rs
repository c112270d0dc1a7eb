//! The contents of an answer.

use std::sync::Arc;

use arrow::array::{AsArray as _, Int32Array, RecordBatch};
use arrow::datatypes::Int32Type;

use crate::interface::Ticker;
use crate::tables::{Drift, Leniencies, Oversized, Reject, Series, Table};

/// A part of an answer.
#[derive(Clone, Debug)]
pub enum AnswerPart {
    /// Rows of one key, possibly none: a history, a latest signal, a summary, or some of the articles or records.
    Series(Series),
    /// Some of the listed tickers.
    Tickers(Vec<Ticker>),
}

/// The decoded contents of some pieces.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The valid rows, in the order of the body.
    pub parts: Vec<AnswerPart>,
    /// Rejected records, piece by piece in the order of the body. The last reject of a piece with very many of them
    /// counts the rest.
    pub rejects: Vec<Reject>,
    /// Unknown fields, each once.
    pub drift: Vec<Drift>,
    /// Number of confidences outside 0 to 1.
    pub unusual: u64,
    /// Number of latest signals without a date.
    pub undated: u64,
    /// Values accepted though they deviate from the interface's notation.
    pub lenient: Leniencies,
    /// The first records rejected for their size.
    pub oversized: Vec<Oversized>,
    /// Number of records: entries, articles, tickers.
    pub records: u64,
    /// Number of rejected records. A history rejected whole counts all of its records, and at least one.
    pub rejected: u64,
    /// Number of signal histories.
    pub histories: u64,
    /// Number of histories with records of which all were rejected.
    pub lost: u64,
}

impl Decoded {
    /// The same contents of a further page, after entries on the pages before.
    #[must_use]
    pub(crate) fn after(mut self, entries: u64) -> Self {
        if entries == 0 {
            return self;
        }
        for part in &mut self.parts {
            if let AnswerPart::Series(Series { key, rows }) = part
                && matches!(key.table, Some(Table::Articles | Table::SentimentHistory))
            {
                let positions = rows.column(0).as_primitive::<Int32Type>();
                let moved: Int32Array = positions.unary(|position| position.saturating_add(entries as i32));
                let mut columns = rows.columns().to_vec();
                columns[0] = Arc::new(moved);
                *rows = RecordBatch::try_new(rows.schema(), columns).expect("the columns have their types");
            }
        }
        self
    }

    pub(super) fn followed_by(mut self, next: Self) -> Self {
        self.parts.extend(next.parts);
        self.rejects.extend(next.rejects);
        next.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += next.unusual;
        self.undated += next.undated;
        self.lenient += next.lenient;
        self.oversized.extend(next.oversized);
        self.records += next.records;
        self.rejected += next.rejected;
        self.histories += next.histories;
        self.lost += next.lost;
        self
    }
}
