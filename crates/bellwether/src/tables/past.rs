//! When answers were given, and what sector listed a ticker then: the past of an archive, as far as a dataset depends on it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::SeriesKey;
use crate::interface::{Endpoint, Sector, Ticker};
use crate::text::human::group_digits;
use crate::time::as_record;

/// When the list of a ticker's articles was watched, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The first answer.
    pub from: i64,
    /// The last answer; none if the latest run that asked for news has one.
    pub until: Option<i64>,
}

/// When the vendor told of a series, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesWatch {
    /// The first answer that listed it.
    pub from: i64,
    /// The last answer that listed it, or the one that no longer did.
    pub until: i64,
    /// Whether it is still listed.
    pub is_listed: bool,
}

/// When the vendor told of the series of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The first answer that listed one of them.
    #[serde(with = "as_record")]
    pub from: DateTime<Utc>,
    /// The last answer.
    #[serde(with = "as_record")]
    pub until: DateTime<Utc>,
    /// How many are no longer listed.
    pub ended: u64,
}

impl Watch {
    /// When some series were watched; none if there are none.
    pub(crate) fn from_series(series: impl Iterator<Item = SeriesWatch>) -> Option<Self> {
        let (mut span, mut ended): (Option<(i64, i64)>, u64) = (None, 0);
        for SeriesWatch { from, until, is_listed } in series {
            let (first, last) = span.unwrap_or((from, until));
            span = Some((first.min(from), last.max(until)));
            ended += u64::from(!is_listed);
        }
        let (from, until) = span?;
        let instant = DateTime::from_timestamp_micros;
        Some(Self { from: instant(from)?, until: instant(until)?, ended })
    }
}

/// From when until when, to the second.
impl fmt::Display for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = |instant: DateTime<Utc>| instant.format("%Y-%m-%d %H:%M:%S UTC");
        write!(formatter, "{} to {}", instant(self.from), instant(self.until))?;
        if self.ended > 0 {
            write!(formatter, "; {} no longer listed", group_digits(self.ended))?;
        }
        Ok(())
    }
}

/// Until when something rests on claims, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedUntil {
    /// Values that were observed by then.
    pub observed: i64,
    /// Features of signals that are dated by then, which may use news that was claimed; none if none was.
    pub dated: Option<i64>,
}

impl ClaimedUntil {
    /// Whether a row rests on claims, by when its value was observed and what it is dated.
    pub fn holds(self, observed: i64, date: i64) -> bool {
        observed <= self.observed || self.dated.is_some_and(|until| date <= until)
    }
}

/// The answers of all runs, for a dataset in which a signal knows what its own run knew. Instants are in microseconds
/// since 1970.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// When the run was sealed that an answer belongs to, by the instant of the answer.
    seals: HashMap<i64, i64>,
    /// When the runs were sealed that have lists of articles, in order.
    news_runs: Vec<i64>,
    /// The lists of each ticker, in the order of their runs: when the run was sealed, and the latest answer until then.
    lists: HashMap<Ticker, Vec<(i64, i64)>>,
    /// The answers about each ticker that features come from, by operation: when the run was sealed, and when it was
    /// answered.
    inputs: HashMap<Ticker, BTreeMap<Endpoint, Vec<(i64, i64)>>>,
    /// The sectors of each ticker, each with the instant from which on it counts, in order.
    pub sectors: HashMap<Ticker, Vec<(i64, Sector)>>,
    /// When the vendor told of each series.
    pub series: HashMap<SeriesKey, SeriesWatch>,
    /// Until when something rests on claims; none if there are none.
    pub claimed: Option<ClaimedUntil>,
}

impl Past {
    /// Adds an answer of a run. Runs come in the order in which they were sealed.
    pub fn add(&mut self, observed_at: i64, sealed_at: i64) {
        self.seals.entry(observed_at).or_insert(sealed_at);
    }

    /// Adds an answer with the list of a ticker's articles.
    pub fn add_list(&mut self, ticker: &Ticker, observed_at: i64, sealed_at: i64) {
        if self.news_runs.last() != Some(&sealed_at) {
            self.news_runs.push(sealed_at);
        }
        let lists = self.lists.entry(ticker.clone()).or_default();
        let latest = lists.last().map_or(observed_at, |(_, before)| observed_at.max(*before));
        lists.push((sealed_at, latest));
    }

    /// Adds an operation whose answers about a ticker features come from.
    pub fn expect(&mut self, ticker: &Ticker, input: Endpoint) {
        self.inputs.entry(ticker.clone()).or_default().entry(input).or_default();
    }

    /// Adds an answer of such an operation.
    pub fn add_input(&mut self, ticker: &Ticker, input: Endpoint, observed_at: i64, sealed_at: i64) {
        let inputs = self.inputs.entry(ticker.clone()).or_default();
        inputs.entry(input).or_default().push((sealed_at, observed_at));
    }

    /// When the last of the inputs about a ticker was answered, each for the first time in runs that were sealed at an
    /// instant or later; [`i64::MAX`] if one was not, [`i64::MIN`] if there are none.
    pub fn inputs_known(&self, ticker: &Ticker, sealed: i64) -> i64 {
        let first = |answers: &Vec<(i64, i64)>| {
            let since = answers.iter().filter(|(run, _)| *run >= sealed).map(|(_, observed_at)| *observed_at);
            since.min().unwrap_or(i64::MAX)
        };
        self.inputs.get(ticker).and_then(|inputs| inputs.values().map(first).max()).unwrap_or(i64::MIN)
    }

    /// Whether a row rests on claims, by when its value was observed and what it is dated.
    pub fn is_claimed(&self, observed: i64, date: i64) -> bool {
        self.claimed.is_some_and(|claimed| claimed.holds(observed, date))
    }

    /// Until when the vendor told of a series.
    pub fn watched_until(&self, key: &SeriesKey) -> Option<i64> {
        self.series.get(key).map(|watch| watch.until)
    }

    /// The sector that a ticker had at an instant; none if no sector had listed it by then.
    pub fn sector_at(&self, ticker: &Ticker, instant: i64) -> Option<&Sector> {
        let sectors = self.sectors.get(ticker)?;
        let known = sectors.partition_point(|(from, _)| *from <= instant).checked_sub(1)?;
        Some(&sectors[known].1)
    }

    /// The sector that a ticker has now.
    pub fn latest_sector(&self, ticker: &Ticker) -> Option<&Sector> {
        self.sector_at(ticker, i64::MAX)
    }

    /// When the run was sealed that observed something.
    pub fn seal_time(&self, observed_at: i64) -> i64 {
        self.seals.get(&observed_at).copied().unwrap_or(observed_at)
    }

    /// The lists of a ticker.
    pub fn lists(&self, ticker: &Ticker) -> Option<&[(i64, i64)]> {
        self.lists.get(ticker).map(Vec::as_slice)
    }

    /// When a list was watched, by what was known at an instant; none if there was no answer by then.
    pub fn watched_by(&self, lists: &[(i64, i64)], instant: i64) -> Option<Watched> {
        let known = &lists[..lists.partition_point(|(sealed, _)| *sealed <= instant)];
        let (from, (last, until)) = (known.first()?.1, *known.last()?);
        let latest = self.news_runs[..self.news_runs.partition_point(|sealed| *sealed <= instant)].last();
        Some(Watched { from, until: (latest != Some(&last)).then_some(until) })
    }
}
