//! The operations of the service: thirteen, at two base addresses, all GET.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parameter::{Unknown, spelled};

/// The base address of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// `{base_url}`: signals.
    Signals,
    /// `{sentiment_base_url}`: news and sentiment.
    Sentiment,
}

impl Base {
    /// Its placeholder in the interface description.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Signals => "{base_url}",
            Self::Sentiment => "{sentiment_base_url}",
        }
    }

    /// Its key in a definition.
    pub fn setting(self) -> &'static str {
        self.placeholder().trim_matches(['{', '}'])
    }
}

/// One operation of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// Histories of all tickers of a sector.
    SignalsHistoryAll,
    /// The latest signal of one ticker.
    Signals,
    /// Histories of all tickers, each with its own period and regime.
    SignalsHistoryBatchedAll,
    /// Histories of many tickers in batched form.
    SignalsHistoryBatched,
    /// The history of one ticker.
    SignalsHistory,
    /// The tickers that the service offers.
    TickersAvailable,
    /// As [`Endpoint::SignalsHistoryAll`], from the older model.
    LegacyHistoryAll,
    /// As [`Endpoint::SignalsHistoryBatched`], from the older model.
    LegacyHistoryBatched,
    /// As [`Endpoint::SignalsHistory`], from the older model.
    LegacyHistory,
    /// As [`Endpoint::Signals`], from the older model.
    LegacySignals,
    /// The lowest, highest and average scoring article of a ticker.
    SocialSentiment,
    /// The scored news articles of a ticker.
    NewsArticles,
    /// The historical sentiment of a ticker.
    HistoricalSentiment,
}

/// The placeholder for a ticker in a path.
const TICKER: &str = "/{ticker}";

impl Endpoint {
    /// Every operation, signals first, in the order of the interface.
    pub const ALL: [Self; 13] = [
        Self::SignalsHistoryAll,
        Self::Signals,
        Self::SignalsHistoryBatchedAll,
        Self::SignalsHistoryBatched,
        Self::SignalsHistory,
        Self::TickersAvailable,
        Self::LegacyHistoryAll,
        Self::LegacyHistoryBatched,
        Self::LegacyHistory,
        Self::LegacySignals,
        Self::SocialSentiment,
        Self::NewsArticles,
        Self::HistoricalSentiment,
    ];

    /// Its path below the base address, with `{ticker}` where one ticker's symbol goes.
    pub fn path(self) -> &'static str {
        match self {
            Self::SignalsHistoryAll => "signals-history-all",
            Self::Signals => "signals/{ticker}",
            Self::SignalsHistoryBatchedAll => "signals-history-batched-all",
            Self::SignalsHistoryBatched => "signals-history-batched",
            Self::SignalsHistory => "signals-history/{ticker}",
            Self::TickersAvailable => "tickers/available",
            Self::LegacyHistoryAll => "signals-legacy-history-all",
            Self::LegacyHistoryBatched => "signals-legacy-history-batched",
            Self::LegacyHistory => "signals-legacy-history/{ticker}",
            Self::LegacySignals => "signals-legacy/{ticker}",
            Self::SocialSentiment => "social_sentiment/{ticker}",
            Self::NewsArticles => "news_articles/{ticker}",
            Self::HistoricalSentiment => "historical_ss_data/{ticker}",
        }
    }

    /// Its name in data and messages: the path without its placeholder.
    pub fn as_str(self) -> &'static str {
        self.path().strip_suffix(TICKER).unwrap_or(self.path())
    }

    /// Whether it returns the latest signal alone, and nothing of the dates before it.
    pub fn is_latest(self) -> bool {
        matches!(self, Self::Signals | Self::LegacySignals)
    }

    /// Whether the path names one ticker.
    pub fn is_of_one_ticker(self) -> bool {
        self.path().ends_with(TICKER)
    }

    /// The base address it lives at.
    pub fn base(self) -> Base {
        match self {
            Self::SocialSentiment | Self::NewsArticles | Self::HistoricalSentiment => Base::Sentiment,
            _ => Base::Signals,
        }
    }
}

spelled!(Endpoint, Endpoint::ALL, "operation", "operations are named by their path");
