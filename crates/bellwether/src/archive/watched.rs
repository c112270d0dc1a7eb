//! Between which answers the news of each ticker was watched; outside, nothing is known of it.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::sealed::answers::{Listing, Listings, read_listings};
use super::sealed::sealed_run::{AnsweredRequest, RowsByRun, SealedRun, answered_requests};
use super::{Scope, View, watches};
use crate::archive::sealed::layout::REQUESTS;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Column, DatasetPlan, Request, TickerSource};
use crate::tables::{Change, ClaimedUntil, Past, RequestRecord, SeriesKey, SeriesWatch, Table, Watch, Watched};

impl View {
    /// The tickers whose news a scope asks for.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn news_tickers(&self, scope: &Scope) -> Result<BTreeSet<Ticker>> {
        match &scope.news {
            TickerSource::Signals => {
                let mut listed = self.tickers_listed_by(&scope.requests)?;
                listed.retain(|ticker| !scope.excluded.contains(ticker));
                Ok(listed)
            }
            TickerSource::Listed(tickers) => Ok(tickers.iter().cloned().collect()),
            list => self.tickers_listed_by(&list.listing().iter().map(Request::to_string).collect()),
        }
    }

    /// The tickers whose list of articles a scope asks for and the service gave, and when it did.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn watched_tickers(&self, scope: &Scope) -> Result<HashMap<Ticker, Watched>> {
        let first = first_listed(self.listings()?, &self.news_tickers(scope)?);
        let mut missing: HashMap<String, Ticker> =
            first.keys().map(|ticker| (request(ticker), ticker.clone())).collect();
        let mut watched: HashMap<Ticker, Watched> =
            first.into_iter().map(|(ticker, from)| (ticker, Watched { from, until: None })).collect();
        let mut is_latest = true;
        for run in self.runs().rev() {
            if missing.is_empty() {
                break;
            }
            let mut is_asked = false;
            for record in run.requests()? {
                if let Some(ticker) = missing.remove(&record.request) {
                    is_asked = true;
                    let until = (!is_latest).then(|| record.observed_at.timestamp_micros());
                    watched.entry(ticker).and_modify(|watched| watched.until = until);
                }
            }
            is_latest &= !is_asked;
        }
        Ok(watched)
    }

    /// What a dataset depends on: the answers of all runs, those among them that a scope asks for with lists of articles or by
    /// other operations that features come from, the sectors of tickers, and when its series were told of.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn past(&self, scope: &Scope, dataset: &DatasetPlan) -> Result<Past> {
        let inputs = dataset.inputs();
        let asked = self.news_tickers(scope)?;
        let requests: HashMap<String, &Ticker> = asked.iter().map(|ticker| (request(ticker), ticker)).collect();
        let (mut past, mut of_inputs) = (Past::default(), HashMap::new());
        for (ticker, &input) in asked.iter().flat_map(|ticker| inputs.iter().map(move |input| (ticker, input))) {
            past.expect(ticker, input);
            of_inputs.insert(Request::of_ticker(input, ticker.clone()).to_string(), (ticker, input));
        }
        self.each_answered(
            |_| true,
            |run, record| {
                let observed_at = record.observed_at.timestamp_micros();
                // A claim of an instant is sealed within the millisecond before it.
                let sealed_at = run.seal().sealed_at.timestamp_micros().max(observed_at);
                past.add(observed_at, sealed_at);
                if let Some(ticker) = requests.get(record.request) {
                    past.add_list(ticker, observed_at, sealed_at);
                }
                if let Some((ticker, input)) = of_inputs.get(record.request) {
                    past.add_input(ticker, *input, observed_at, sealed_at);
                }
            },
        )?;
        past.sectors = self.sectors_over_time(scope)?;
        past.claimed = self.claimed_until(dataset);
        if dataset.columns.contains(&Column::WatchedUntil) {
            past.series = self.watched_series(scope)?;
        }
        Ok(past)
    }

    /// Until when rows of a dataset rest on claims; none if no claim counts.
    pub(crate) fn claimed_until(&self, dataset: &DatasetPlan) -> Option<ClaimedUntil> {
        /// How far naive dates may be from UTC, twice: as they were written, and as the dataset has them.
        const APART: TimeDelta = TimeDelta::hours(28);
        let claims = || self.runs().map(SealedRun::seal).filter(|seal| seal.claimed.is_some());
        let observed = claims().map(|seal| seal.started_at).max()?;
        let inputs = dataset.inputs();
        let of_news = claims().filter(|seal| seal.operations.iter().any(|operation| inputs.contains(operation)));
        let dated = of_news.map(|seal| seal.started_at).max().map(|last| match dataset.reach() {
            Some(reach) => (last + APART + reach).timestamp_micros(),
            None => i64::MAX,
        });
        Some(ClaimedUntil { observed: observed.timestamp_micros(), dated })
    }

    /// Passes on each answered request that is wanted, run by run in the order in which these were sealed. Packs are read
    /// once, for all of their runs.
    pub(crate) fn each_answered(
        &self,
        mut is_wanted: impl FnMut(&str) -> bool,
        mut pass: impl FnMut(&SealedRun, AnsweredRequest<'_>),
    ) -> Result<()> {
        let schema = RequestRecord::schema();
        let mut rows = RowsByRun::new(self.archive().read_runs(), REQUESTS, schema, &AnsweredRequest::COLUMNS);
        for run in self.runs() {
            for rows in rows.of_run(run)? {
                let failed = |reason| FileError::damage(&run.path().join(REQUESTS), reason);
                answered_requests(&rows, &mut is_wanted)
                    .map_err(failed)?
                    .into_iter()
                    .for_each(|record| pass(run, record));
            }
        }
        Ok(())
    }

    /// When the vendor told of the series of a scope.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn watched_series(&self, scope: &Scope) -> Result<HashMap<SeriesKey, SeriesWatch>> {
        let members = self.members(scope)?;
        let watched = self.series_watches(scope)?.into_iter();
        Ok(watched.filter(|(key, _)| members.contains(key)).collect())
    }

    /// When the vendor told of each series that a scope asks for, whichever definition asked.
    fn series_watches(&self, scope: &Scope) -> Result<Vec<(SeriesKey, SeriesWatch)>> {
        let mut listings = read_listings(self.archive().read())?;
        listings.retain(|listing| self.counts(listing.sealed_at) && watches(scope.source, listing.source));
        let is_own = |listing: &Listing| scope.requests.contains(&*listing.request);
        let series = listings.chunk_by(|one, next| one.key == next.key);
        let series: Vec<&[Listing]> = series.filter(|of_series| of_series.iter().any(is_own)).collect();
        let answered =
            self.last_answers_to_any(series.iter().map(|of_series| listing_requests(of_series)).collect())?;
        let watch = |of_series: &[Listing]| {
            let added = of_series.iter().filter(|listing| listing.change == Change::Added);
            let from = added.map(|listing| listing.observed_at).min()?;
            let gone = last_of_each(of_series).filter(|listing| listing.change == Change::Withdrawn);
            let gone = gone.map(|listing| listing.observed_at).max();
            let still = answered.get(&listing_requests(of_series)).copied();
            let is_listed_by_own = last_of_each(of_series).any(|it| it.change == Change::Added && is_own(it));
            let (from, until) = (from.timestamp_micros(), still.max(gone)?.timestamp_micros());
            Some((of_series[0].key.clone(), SeriesWatch { from, until, is_listed: is_listed_by_own || still > gone }))
        };
        Ok(series.into_iter().filter_map(watch).collect())
    }

    /// When any of some requests was last answered, for each set of them; those of which none was have no entry.
    fn last_answers_to_any<'l>(
        &self,
        sets: HashSet<BTreeSet<&'l str>>,
    ) -> Result<HashMap<BTreeSet<&'l str>, DateTime<Utc>>> {
        let mut last: HashMap<BTreeSet<&str>, DateTime<Utc>> = HashMap::new();
        let count = sets.iter().filter(|set| !set.is_empty()).count();
        for run in self.runs().rev() {
            // What a run was answered is not later than its seal.
            let is_later = |known: &DateTime<Utc>| *known >= run.seal().sealed_at;
            if last.len() == count && last.values().all(is_later) {
                break;
            }
            let records = run.requests()?;
            let answered: HashMap<&str, DateTime<Utc>> =
                records.iter().map(|record| (record.request.as_str(), record.observed_at)).collect();
            for set in &sets {
                if let Some(latest) = set.iter().filter_map(|request| answered.get(request)).max() {
                    let known = last.entry(set.clone()).or_insert(*latest);
                    *known = (*known).max(*latest);
                }
            }
        }
        Ok(last)
    }

    /// When the vendor told of the series that a scope asks for, all together.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn watch(&self, scope: &Scope) -> Result<Option<Watch>> {
        Ok(Watch::from_series(self.series_watches(scope)?.into_iter().map(|(_, watch)| watch)))
    }

    /// When each of some requests was last answered; those that never were have no entry.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn last_answers(&self, requests: &BTreeSet<String>) -> Result<HashMap<String, DateTime<Utc>>> {
        let mut last: HashMap<String, DateTime<Utc>> = HashMap::new();
        for run in self.runs().rev() {
            if last.len() == requests.len() {
                break;
            }
            for record in run.requests()?.into_iter().filter(|record| requests.contains(&record.request)) {
                last.entry(record.request).or_insert(record.observed_at);
            }
        }
        Ok(last)
    }
}

/// The last listing of a series by each request that told of it.
fn last_of_each(of_series: &[Listing]) -> impl Iterator<Item = &Listing> {
    of_series.chunk_by(|one, next| one.request == next.request).filter_map(<[_]>::last)
}

/// The requests that list a series, or did so when they were last answered.
fn listing_requests(of_series: &[Listing]) -> BTreeSet<&str> {
    let listed = last_of_each(of_series).filter(|listing| listing.change == Change::Added);
    listed.map(|listing| &*listing.request).collect()
}

/// The request for the list of a ticker's articles, in words.
fn request(ticker: &Ticker) -> String {
    Request::of_ticker(Endpoint::NewsArticles, ticker.clone()).to_string()
}

/// When each of some tickers first had a list of articles.
fn first_listed(listings: &Listings, tickers: &BTreeSet<Ticker>) -> HashMap<Ticker, i64> {
    let is_wanted = |key: &SeriesKey| key.table == Some(Table::Articles) && tickers.contains(&key.ticker);
    let of_news = listings.series().filter(|(key, _)| is_wanted(key));
    let first = of_news.filter_map(|(key, events)| {
        let added = events.iter().filter(|event| event.change == Change::Added);
        Some((key.ticker.clone(), added.map(|event| event.observed_at.timestamp_micros()).min()?))
    });
    first.collect()
}
