//! The contents of an answer.

use crate::interface::Ticker;
use crate::tables::{Drift, Leniencies, Oversized, Reject, Series};

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
