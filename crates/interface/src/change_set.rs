//! The service at each point of its change record.
//!
//! The record lists its sets newest first: set B adds what set A removes, set C adds what B removes, and G mentions
//! fields that no later set has. So time runs from G to A. [`ChangeSet::G`] is the service just after set G, and
//! [`ChangeSet::Origin`] the one before it, where the summary still had its trailing fields. [`ChangeSet::All`] is not
//! a point in time: it has every operation there ever was, in its newest shape.

use std::fmt;
use std::str::FromStr;

use super::endpoint::Endpoint;
use super::parameter::Unknown;

/// A point of the change record, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeSet {
    /// Before the first set of the record.
    Origin,
    /// After set G: the three sentiment operations.
    G,
    /// After set F: no historical sentiment.
    F,
    /// After set E: signals appear, one ticker at a time.
    E,
    /// After set D: signal and confidence, the batched history; news and sentiment are gone.
    D,
    /// After set C: the batch of all tickers, and their list.
    C,
    /// After set B: sector and legacy histories, no batch of all tickers.
    B,
    /// After set A: the legacy operations are gone.
    A,
    /// Every operation, in its newest shape.
    #[default]
    All,
}

/// The key of the entries in the history of one ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKey {
    /// `items`, until set D.
    Items,
    /// `predictions`, since.
    Predictions,
}

/// The shape of the latest signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatestForm {
    /// `ei` and `ci`, until set D.
    Indexed,
    /// `signal` and `confidence`, always with a date.
    Dated,
    /// `signal` and `confidence`, with a date that may be null, since set B.
    Nullable,
}

/// The shape of the sentiment summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryForm {
    /// The `*_latest30` fields, until set G.
    Trailing,
    /// The three article references, since.
    Articles,
}

impl ChangeSet {
    /// Every point, oldest first, then [`ChangeSet::All`].
    pub const EVERY: [Self; 9] =
        [Self::Origin, Self::G, Self::F, Self::E, Self::D, Self::C, Self::B, Self::A, Self::All];

    /// Its spelling on the command line.
    pub fn as_str(self) -> &'static str {
        ["origin", "G", "F", "E", "D", "C", "B", "A", "all"][self as usize]
    }

    /// Whether the service offers an operation at this point.
    pub fn has(self, endpoint: Endpoint) -> bool {
        if self == Self::All {
            return true;
        }
        match endpoint {
            Endpoint::SocialSentiment => self < Self::D,
            Endpoint::NewsArticles => (Self::G..Self::D).contains(&self),
            Endpoint::HistoricalSentiment => self == Self::G,
            Endpoint::Signals | Endpoint::SignalsHistory => self >= Self::E,
            Endpoint::SignalsHistoryBatched => self >= Self::D,
            Endpoint::SignalsHistoryBatchedAll | Endpoint::TickersAvailable => self == Self::C,
            Endpoint::SignalsHistoryAll => self >= Self::B,
            Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched
            | Endpoint::LegacyHistory
            | Endpoint::LegacySignals => self == Self::B,
        }
    }

    /// Whether an operation still takes the query parameter `limit`.
    pub fn takes_limit(self, endpoint: Endpoint) -> bool {
        self < Self::B && matches!(endpoint, Endpoint::SignalsHistoryBatched | Endpoint::SignalsHistory)
    }

    /// The key of the entries in the history of one ticker.
    pub fn history_key(self) -> HistoryKey {
        if self < Self::D { HistoryKey::Items } else { HistoryKey::Predictions }
    }

    /// The shape of the latest signal.
    pub fn latest_form(self) -> LatestForm {
        match self {
            _ if self < Self::D => LatestForm::Indexed,
            _ if self < Self::B => LatestForm::Dated,
            _ => LatestForm::Nullable,
        }
    }

    /// The shape of the sentiment summary.
    pub fn summary_form(self) -> SummaryForm {
        if self == Self::Origin { SummaryForm::Trailing } else { SummaryForm::Articles }
    }
}

impl fmt::Display for ChangeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for ChangeSet {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::EVERY.into_iter().find(|set| set.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| Unknown {
            kind: "change set",
            given: text.to_owned(),
            hint: "change sets are A to G, `origin` (before G) and `all`",
        })
    }
}
