//! The sectors of tickers over time.
//!
//! A ticker is in the sectors whose requests list it; the first by name counts, and once none lists it any more, the one
//! that did so last. Only the requests of the scope count, so that a listing that nobody asks for any more does not keep a
//! ticker in its old sector; a scope without requests for sectors takes those of all definitions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::sealed::listings::{Listing, Name, read};
use super::{Scope, View};
use crate::error::Result;
use crate::interface::{Sector, Ticker};
use crate::plan::Request;
use crate::tables::{Change, SeriesKey};

impl View {
    /// The sectors of each ticker, each with the instant from which on it counts.
    pub(super) fn sectors_over_time(&self, scope: &Scope) -> Result<HashMap<Ticker, Vec<(i64, Sector)>>> {
        let mut of_tickers: HashMap<Ticker, Vec<(Sector, Listing)>> = HashMap::new();
        for listing in
            read(self.archive().read())?.into_iter().filter(|listing| scope.counts_for_sectors(&listing.request))
        {
            let sector = Request::sector_of(&listing.request).and_then(|name| name.parse::<Sector>().ok());
            if let Some(sector) = sector.filter(|_| self.counts(listing.sealed_at)) {
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

impl Scope {
    /// Whether the listings of a request tell sectors.
    pub(super) fn counts_for_sectors(&self, request: &str) -> bool {
        let asks_for_sectors = || self.requests.iter().any(|request| Request::sector_of(request).is_some());
        self.requests.contains(request) || !asks_for_sectors()
    }
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
