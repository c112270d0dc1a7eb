//! What a question is about: an archive as it was known at an instant, or what a definition's dataset takes of it.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use crate::archive::{Scope, View};
use crate::error::Result;
use crate::interface::{Endpoint, Sector, Ticker};
use crate::tables::{SeriesKey, Table};

/// An archive, or a part of it.
#[derive(Clone, Debug)]
pub struct Subject {
    view: View,
    part: Option<Part>,
    sectors: HashMap<Ticker, Sector>,
}

/// The series of signals of a dataset, the tickers that they are of, and the dates that it takes.
#[derive(Clone, Debug)]
struct Part {
    scope: Scope,
    series: HashSet<SeriesKey>,
    tickers: HashSet<Ticker>,
}

impl Subject {
    /// All that an archive knows.
    ///
    /// # Errors
    ///
    /// When a run cannot be read.
    pub fn whole(view: View) -> Result<Self> {
        Ok(Self { sectors: view.sectors()?, view, part: None })
    }

    /// What a dataset takes of an archive: the signals of a scope, and the news of their tickers.
    ///
    /// # Errors
    ///
    /// When a run cannot be read.
    pub fn part(view: View, scope: Scope) -> Result<Self> {
        let series = view.members(&scope)?;
        let tickers = series.iter().map(|key| key.ticker.clone()).collect();
        Ok(Self { sectors: view.sectors()?, view, part: Some(Part { scope, series, tickers }) })
    }

    /// The archive as it was known.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Whether a series is of it.
    pub(super) fn has(&self, key: &SeriesKey) -> bool {
        self.part.as_ref().is_none_or(|part| match Table::of(key.source) {
            Some(Table::Signals) => part.series.contains(key),
            _ => part.tickers.contains(&key.ticker),
        })
    }

    /// Whether a series is of it, or speaks of the same as one that is.
    pub(super) fn has_peer(&self, key: &SeriesKey) -> bool {
        let peer = |source: Endpoint| SeriesKey { source, ..key.clone() };
        self.part.as_ref().is_none_or(|part| match Table::of(key.source) {
            Some(Table::Signals) => part.series.contains(&peer(part.scope.source)),
            _ => part.tickers.contains(&key.ticker),
        })
    }

    /// Whether a date is of it, in microseconds.
    pub(super) fn has_date(&self, micros: i64) -> bool {
        let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        self.part.as_ref().is_none_or(|Part { scope, .. }| {
            scope.filter.from.is_none_or(|from| micros >= start(from))
                && scope.filter.to.is_none_or(|to| micros < start(to))
        })
    }

    /// The sector of a ticker; `-` where no history of a sector lists it.
    pub(super) fn sector(&self, ticker: &Ticker) -> &str {
        self.sectors.get(ticker).map_or("-", Sector::as_str)
    }
}

/// The day of a naive timestamp in microseconds.
pub(super) fn day(micros: i64) -> NaiveDate {
    DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default().date_naive()
}
