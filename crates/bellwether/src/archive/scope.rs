//! The series of a dataset: those that its requests have listed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::sealed::listings::{Listing, Listings};
use crate::interface::{Endpoint, Sector, Ticker};
use crate::plan::{Filter, Plan, Request, TickerSource};
use crate::tables::{Change, SeriesKey, Table};

/// A selection of signal series.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The operation that returned them.
    pub source: Endpoint,
    /// The requests, as text, that have listed them.
    pub requests: BTreeSet<String>,
    /// The tickers that do not count, whatever lists them.
    pub excluded: BTreeSet<Ticker>,
    /// A filter on these.
    pub filter: Filter,
    /// The tickers whose news is asked for.
    pub news: TickerSource,
}

impl Scope {
    /// The series of a plan, by the operation and the requests that list them.
    pub fn of(plan: &Plan, source: Endpoint, mut requests: BTreeSet<String>) -> Self {
        requests.extend(plan.further.iter().map(Request::to_string));
        let (excluded, filter, news) = (plan.excluded.clone(), plan.dataset.filter.clone(), plan.news_tickers.clone());
        Self { source, requests, excluded, filter, news }
    }

    /// The series of all its requests, without the filter.
    #[must_use]
    pub fn without_filter(&self) -> Self {
        Self { filter: Filter::default(), ..self.clone() }
    }

    /// The series of the scope: those that its requests have listed and that pass the filter, including those delisted since,
    /// whatever other requests list them now: what other definitions ask for must not take a ticker's past away.
    pub(super) fn members(&self, listings: &Listings) -> HashSet<SeriesKey> {
        let tickers = self.filter.sectors.as_ref().map(|sectors| {
            let is_of_sector = |request: &str| {
                let sector = Request::sector_of(request);
                sector.is_some_and(|sector| sectors.iter().any(|wanted| wanted.as_str() == sector))
            };
            let by_sector = |events: &[Listing]| {
                let of_any = events.iter().filter(|event| Request::sector_of(&event.request).is_some());
                listed_last_by(of_any, is_of_sector)
            };
            let of_sectors = listings.series().filter(|(_, events)| by_sector(events));
            of_sectors.map(|(key, _)| &key.ticker).collect::<BTreeSet<&Ticker>>()
        });
        let is_own = |event: &Listing| self.requests.contains(&*event.request);
        let is_member = |(key, events): &(&SeriesKey, &[Listing])| {
            key.table == Table::of(self.source)
                && !self.excluded.contains(&key.ticker)
                && self.filter.takes(&key.ticker, key.period, key.regime)
                && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
                && events.iter().any(is_own)
        };
        listings.series().filter(is_member).map(|(key, _)| key.clone()).collect()
    }
}

/// Whether an answer of another operation shows that the series of an operation were still watched.
pub(crate) fn watches(source: Endpoint, other: Endpoint) -> bool {
    other == source || (Table::of(other) == Table::of(source) && !other.is_latest())
}

/// The tickers that some requests have listed.
pub(super) fn listed_tickers(listings: &Listings, requests: &BTreeSet<String>) -> BTreeSet<Ticker> {
    let is_listed = |events: &[Listing]| events.iter().any(|event| requests.contains(&*event.request));
    listings.series().filter(|(_, events)| is_listed(events)).map(|(key, _)| key.ticker.clone()).collect()
}

/// The series that the latest answer to each request listed; a request that listed none has no entry.
pub(super) fn listing(listings: &Listings, requests: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<SeriesKey>> {
    let mut found: BTreeMap<String, BTreeSet<SeriesKey>> = BTreeMap::new();
    for (key, events) in listings.series() {
        let is_listed = |event: &&Listing| event.change == Change::Added && requests.contains(&*event.request);
        for event in events.iter().filter(is_listed) {
            found.entry(event.request.to_string()).or_default().insert(key.clone());
        }
    }
    found
}

/// The sectors that list each ticker in answer to some requests; if none does any more, the one that did so last.
pub(super) fn sectors(listings: &Listings, is_asked: impl Fn(&str) -> bool) -> HashMap<Ticker, BTreeSet<Sector>> {
    let mut listing: HashMap<&Ticker, BTreeSet<Sector>> = HashMap::new();
    let mut last: HashMap<&Ticker, (DateTime<Utc>, Reverse<Sector>)> = HashMap::new();
    let all = listings.series().flat_map(|(_, events)| events).filter(|listing| is_asked(&listing.request));
    for Listing { key, request, change, observed_at, .. } in all {
        let Some(sector) = Request::sector_of(request).and_then(|name| name.parse::<Sector>().ok()) else {
            continue;
        };
        if *change == Change::Added {
            listing.entry(&key.ticker).or_default().insert(sector);
        } else {
            let delisted = (*observed_at, Reverse(sector));
            let known = last.entry(&key.ticker).or_insert_with(|| delisted.clone());
            *known = delisted.max(known.clone());
        }
    }
    for (ticker, (_, Reverse(sector))) in last {
        listing.entry(ticker).or_insert_with(|| [sector].into());
    }
    listing.into_iter().map(|(ticker, sectors)| (ticker.clone(), sectors)).collect()
}

/// Whether a request of some kind lists the series, or listed it last if none does any more.
fn listed_last_by<'e>(events: impl Iterator<Item = &'e Listing> + Clone, is_wanted: impl Fn(&str) -> bool) -> bool {
    let is_listed = events.clone().any(|event| event.change == Change::Added);
    let latest = events.clone().map(|event| event.observed_at).max();
    let is_last = |event: &&Listing| {
        if is_listed { event.change == Change::Added } else { Some(event.observed_at) == latest }
    };
    let mut last = events.filter(is_last);
    last.any(|event| is_wanted(&event.request))
}
