//! When answers were given, and what sector listed a ticker then: the past of an archive, as far as a dataset depends on it.

use std::collections::HashMap;

use crate::interface::{Sector, Ticker};

/// When the list of a ticker's articles was watched, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The first answer.
    pub from: i64,
    /// The last answer; none if the latest run that asked for news has one.
    pub until: Option<i64>,
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
    /// The sectors of each ticker, each with the instant from which on it counts, in order.
    sectors: HashMap<Ticker, Vec<(i64, Sector)>>,
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

    /// Sets the sectors of the tickers.
    #[must_use]
    pub fn with_sectors(self, sectors: HashMap<Ticker, Vec<(i64, Sector)>>) -> Self {
        Self { sectors, ..self }
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
    pub fn sealed(&self, observed_at: i64) -> i64 {
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
