//! One request of the service, without address and key.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::interface::{Endpoint, Period, Regime, Sector, Ticker};

/// The letters of a ticker that are escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'=');

/// An operation and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The operation.
    pub endpoint: Endpoint,
    /// The ticker in its path.
    pub ticker: Option<Ticker>,
    /// The sector.
    pub sector: Option<Sector>,
    /// The period.
    pub period: Option<Period>,
    /// The regime.
    pub regime: Option<Regime>,
}

impl Request {
    /// The histories of a sector.
    pub fn of_sector(sector: Sector, period: Period, regime: Regime) -> Self {
        Self {
            endpoint: Endpoint::SignalsHistoryAll,
            ticker: None,
            sector: Some(sector),
            period: Some(period),
            regime: Some(regime),
        }
    }

    /// An operation without parameters.
    pub fn bare(endpoint: Endpoint) -> Self {
        Self { endpoint, ticker: None, sector: None, period: None, regime: None }
    }

    /// The signals of one ticker.
    pub fn of_series(endpoint: Endpoint, ticker: Ticker, period: Period, regime: Regime) -> Self {
        Self { endpoint, ticker: Some(ticker), sector: None, period: Some(period), regime: Some(regime) }
    }

    /// An operation with only a ticker.
    pub fn of_ticker(endpoint: Endpoint, ticker: Ticker) -> Self {
        Self { endpoint, ticker: Some(ticker), sector: None, period: None, regime: None }
    }

    /// The escaped path below the base address.
    pub fn path(&self) -> String {
        match &self.ticker {
            Some(ticker) => {
                let escaped = utf8_percent_encode(ticker.as_str(), ESCAPED).to_string();
                self.endpoint.path().replace("{ticker}", &escaped)
            }
            None => self.endpoint.path().to_owned(),
        }
    }

    /// Path and query, as they are appended to a base address, without the key.
    pub fn target(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(self.query()).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{query}", self.path())
    }

    /// The ticker of a request in words to an operation on one ticker.
    pub fn ticker_of(endpoint: Endpoint, words: &str) -> Option<Ticker> {
        let (before, after) = endpoint.path().split_once("{ticker}")?;
        let path = words.split_once(' ').map_or(words, |(path, _)| path);
        let ticker = percent_decode_str(path.strip_prefix(before)?.strip_suffix(after)?);
        ticker.decode_utf8().ok()?.parse().ok()
    }

    /// The sector of a request in words, which name it.
    pub fn sector_of(words: &str) -> Option<&str> {
        let (_, after) = words.split_once(" sector=")?;
        // A sector may contain spaces; the period follows it.
        Some(after.rsplit_once(" period=").map_or(after, |(sector, _)| sector))
    }

    /// The query's pairs, in the order of the interface, without the key.
    pub fn query(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("sector", self.sector.as_ref().map(Sector::as_str)),
            ("period", self.period.map(Period::as_str)),
            ("regime", self.regime.map(Regime::as_str)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The request in words: never an address with its query, which would contain the key.
impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path())?;
        self.query().try_for_each(|(name, value)| write!(formatter, " {name}={value}"))
    }
}
