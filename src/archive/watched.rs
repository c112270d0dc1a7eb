//! Between which answers the news of each ticker was watched; outside, nothing is known of it.

use std::collections::{BTreeSet, HashMap};

use super::sealed::listings::Listings;
use super::{Scope, View};
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Request, TickerSource};
use crate::tables::{Change, Past, SeriesKey, Table, Watched};

impl View {
    /// The tickers whose news a scope asks for.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn news_tickers(&self, scope: &Scope) -> Result<BTreeSet<Ticker>> {
        match &scope.news {
            TickerSource::Signals => self.listed(&scope.requests),
            TickerSource::Listed(tickers) => Ok(tickers.iter().cloned().collect()),
            list => self.listed(&list.listing().iter().map(Request::to_string).collect()),
        }
    }

    /// The tickers whose list of articles a scope asks for and the service gave, and when it did.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn watched(&self, scope: &Scope) -> Result<HashMap<Ticker, Watched>> {
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

    /// The answers of all runs, those among them that a scope asks for with lists of articles, and the sectors of tickers.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn past(&self, scope: &Scope) -> Result<Past> {
        let asked = self.news_tickers(scope)?;
        let requests: HashMap<String, &Ticker> = asked.iter().map(|ticker| (request(ticker), ticker)).collect();
        let mut past = Past::default();
        for run in self.runs() {
            let sealed_at = run.seal().sealed_at.timestamp_micros();
            for record in run.requests()? {
                let observed_at = record.observed_at.timestamp_micros();
                past.add(observed_at, sealed_at);
                if let Some(ticker) = requests.get(&record.request) {
                    past.add_list(ticker, observed_at, sealed_at);
                }
            }
        }
        Ok(past.with_sectors(self.sectors_over_time(scope)?))
    }
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
