//! What an answer says.

use crate::interface::Ticker;
use crate::tables::{Drift, Leniencies, Oversized, Reject, Series};

/// Something that an answer says.
#[derive(Clone, Debug)]
pub enum AnswerPart {
    /// Some rows of one key, which may be none: a history, a latest signal, a summary; articles and records as far as
    /// they have come.
    Series(Series),
    /// Some of the tickers that the service knows.
    Tickers(Vec<Ticker>),
}

/// What some of an answer says.
#[derive(Debug, Default)]
pub struct Decoded {
    /// What could be typed, in the order of the body.
    pub parts: Vec<AnswerPart>,
    /// What could not, piece by piece in the order of the body. A piece with very many faults has its last ones counted
    /// in one reject.
    pub rejects: Vec<Reject>,
    /// The fields that the interface does not know, each once.
    pub drift: Vec<Drift>,
    /// How many confidences are not between 0 and 1.
    pub unusual: u64,
    /// How many values were accepted that are not spelled as the interface spells them.
    pub lenient: Leniencies,
    /// What was rejected for its size alone; the first of it.
    pub oversized: Vec<Oversized>,
    /// How many records there were: entries, articles, tickers.
    pub records: u64,
    /// How many of them were rejected. A history that is rejected whole weighs as many as it had, and at least one.
    pub rejected: u64,
    /// How many histories of signals there were.
    pub histories: u64,
    /// How many of them had records and kept none.
    pub lost: u64,
}

impl Decoded {
    pub(super) fn followed_by(mut self, next: Self) -> Self {
        self.parts.extend(next.parts);
        self.rejects.extend(next.rejects);
        next.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += next.unusual;
        self.lenient += next.lenient;
        self.oversized.extend(next.oversized);
        self.records += next.records;
        self.rejected += next.rejected;
        self.histories += next.histories;
        self.lost += next.lost;
        self
    }
}
