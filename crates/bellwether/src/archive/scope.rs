//! The series of a dataset: those that its requests have listed. And the sectors of their tickers, over time.
//!
//! A ticker is in the sectors whose requests list it; the first by name counts, and once none lists it any more, the one
//! that did so last. Only the requests of the scope count, so that a listing that nobody asks for any more does not keep a
//! ticker in its old sector; a scope without requests for sectors takes those of all definitions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::View;
use super::sealed::listings::{Listing, Name, read};
use crate::error::Result;
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

    /// Whether the listings of a request tell sectors.
    fn counts_for_sectors(&self, request: &str) -> bool {
        self.requests.contains(request) || self.requests.iter().all(|own| Request::sector_of(own).is_none())
    }
}

impl View {
    /// The signal series in a scope: those that its requests have listed and that pass the filter, including those delisted
    /// since, whatever other requests list them now: what other definitions ask for must not take a ticker's past away.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn members(&self, scope: &Scope) -> Result<HashSet<SeriesKey>> {
        let listings = self.listings()?;
        let tickers = scope.filter.sectors.as_ref().map(|sectors| {
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
        let is_own = |event: &Listing| scope.requests.contains(&*event.request);
        let is_member = |(key, events): &(&SeriesKey, &[Listing])| {
            key.table == Table::of(scope.source)
                && !scope.excluded.contains(&key.ticker)
                && scope.filter.takes(&key.ticker, key.period, key.regime)
                && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
                && events.iter().any(is_own)
        };
        Ok(listings.series().filter(is_member).map(|(key, _)| key.clone()).collect())
    }

    /// The tickers that some requests have listed.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn tickers_listed_by(&self, requests: &BTreeSet<String>) -> Result<BTreeSet<Ticker>> {
        let is_listed = |events: &[Listing]| events.iter().any(|event| requests.contains(&*event.request));
        let listed = self.listings()?.series().filter(|(_, events)| is_listed(events));
        Ok(listed.map(|(key, _)| key.ticker.clone()).collect())
    }

    /// The series that the latest answer to each of some requests listed; a request that listed none has no entry.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn listing(&self, requests: &BTreeSet<String>) -> Result<BTreeMap<String, BTreeSet<SeriesKey>>> {
        let mut found: BTreeMap<String, BTreeSet<SeriesKey>> = BTreeMap::new();
        for (key, events) in self.listings()?.series() {
            let is_listed = |event: &&Listing| event.change == Change::Added && requests.contains(&*event.request);
            for event in events.iter().filter(is_listed) {
                found.entry(event.request.to_string()).or_default().insert(key.clone());
            }
        }
        Ok(found)
    }

    /// The sector of each ticker that a sector request lists, or listed last; the first by name if there are several. A
    /// scope that asks for sectors counts its own requests only.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn sectors(&self, scope: Option<&Scope>) -> Result<HashMap<Ticker, Sector>> {
        let first = |(ticker, sectors): (Ticker, BTreeSet<Sector>)| Some((ticker, sectors.into_iter().next()?));
        Ok(self.all_sectors(scope)?.into_iter().filter_map(first).collect())
    }

    /// All sectors of each ticker, likewise; the last one if none lists it any more.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn all_sectors(&self, scope: Option<&Scope>) -> Result<HashMap<Ticker, BTreeSet<Sector>>> {
        let mut sectors: HashMap<Ticker, BTreeSet<Sector>> = HashMap::new();
        let mut last: HashMap<&Ticker, (DateTime<Utc>, Reverse<Sector>)> = HashMap::new();
        let all = self.listings()?.series().flat_map(|(_, events)| events);
        for Listing { key, request, change, observed_at, .. } in
            all.filter(|listing| scope.is_none_or(|scope| scope.counts_for_sectors(&listing.request)))
        {
            let Some(sector) = Request::sector_of(request).and_then(|name| name.parse::<Sector>().ok()) else {
                continue;
            };
            if *change == Change::Added {
                sectors.entry(key.ticker.clone()).or_default().insert(sector);
            } else {
                let delisted = (*observed_at, Reverse(sector));
                let known = last.entry(&key.ticker).or_insert_with(|| delisted.clone());
                *known = delisted.max(known.clone());
            }
        }
        for (ticker, (_, Reverse(sector))) in last {
            sectors.entry(ticker.clone()).or_insert_with(|| [sector].into());
        }
        Ok(sectors)
    }

    /// The sectors of each ticker, each with the instant from which on it counts.
    pub(super) fn sectors_over_time(&self, scope: &Scope) -> Result<HashMap<Ticker, Vec<(i64, Sector)>>> {
        let mut of_tickers: HashMap<Ticker, Vec<(Sector, Listing)>> = HashMap::new();
        for listing in read(self.archive().read())? {
            if !scope.counts_for_sectors(&listing.request) || !self.counts(listing.sealed_at) {
                continue;
            }
            if let Some(sector) = Request::sector_of(&listing.request).and_then(|name| name.parse::<Sector>().ok()) {
                of_tickers.entry(listing.key.ticker.clone()).or_default().push((sector, listing));
            }
        }
        Ok(of_tickers.into_iter().map(|(ticker, listings)| (ticker, steps(listings))).collect())
    }

    /// The sectors that some tickers are in, or were in.
    pub(crate) fn sectors_ever(&self, scope: &Scope, tickers: &HashSet<Ticker>) -> Result<BTreeSet<Sector>> {
        let over_time = self.sectors_over_time(scope)?.into_iter().filter(|(ticker, _)| tickers.contains(ticker));
        Ok(over_time.flat_map(|(_, steps)| steps).map(|(_, sector)| sector).collect())
    }
}

/// Whether an answer of another operation shows that the series of an operation were still watched.
pub(crate) fn watches(source: Endpoint, other: Endpoint) -> bool {
    other == source || (Table::of(other) == Table::of(source) && !other.is_latest())
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

/// The sectors that some listings of a ticker stand for.
fn steps(mut listings: Vec<(Sector, Listing)>) -> Vec<(i64, Sector)> {
    /// The latest listing by a request.
    type State = BTreeMap<(SeriesKey, Name), (DateTime<Utc>, Change, Sector)>;
    let current = |state: &State| -> Option<Sector> {
        let listing = state.values().filter(|(_, change, _)| *change == Change::Added).map(|(.., sector)| sector);
        let last = || state.values().max_by_key(|(at, _, sector)| (*at, Reverse(sector))).map(|(.., sector)| sector);
        listing.min().or_else(last).cloned()
    };
    listings.sort_by_key(|(_, listing)| listing.sealed_at);
    let (mut state, mut steps): (State, Vec<(i64, Sector)>) = (BTreeMap::new(), Vec::new());
    for of_run in listings.chunk_by(|one, next| one.1.sealed_at == next.1.sealed_at) {
        for (sector, listing) in of_run {
            let key = (listing.key.clone(), Name::clone(&listing.request));
            let said = (listing.observed_at, listing.change, sector.clone());
            let known = state.entry(key).or_insert_with(|| said.clone());
            if (known.0, known.1 as i8) <= (said.0, said.1 as i8) {
                *known = said;
            }
        }
        let sector = current(&state).expect("something was listed");
        if steps.last().is_none_or(|(_, before)| *before != sector) {
            steps.push((of_run[0].1.sealed_at.timestamp_micros(), sector));
        }
    }
    steps
}
