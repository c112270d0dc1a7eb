//! Which series a dataset is of: those that its requests listed last.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Utc};

use super::REQUESTS;
use super::index::{Archive, SealedRun};
use super::listings::{self, Listing};
use super::remembered::Name;
use super::view::Scope;
use crate::error::{Error, Result};
use crate::interface::{Sector, Ticker};
use crate::plan::{Filter, Request};
use crate::tables::{Change, SeriesKey};

/// What became of a series in the answers to each request, last.
type Events = BTreeMap<Name, (DateTime<Utc>, Change)>;

/// The series of a scope as they were known at an instant: those that its requests listed last, also when they list
/// them no longer, as far as they are not filtered out.
pub(super) fn members(archive: &Archive, as_of: DateTime<Utc>, scope: &Scope) -> Result<HashSet<SeriesKey>> {
    let events = events(archive, as_of)?;
    let tickers = scope.filter.sectors.as_ref().map(|sectors| {
        let is_of_sector = |request: &str| {
            let sector = Request::sector_of(request);
            sector.is_some_and(|sector| sectors.iter().any(|wanted| wanted.as_str() == sector))
        };
        let of_sectors = events.iter().filter(|(_, events)| listed_last_by(events, is_of_sector));
        of_sectors.map(|(key, _)| key.ticker.clone()).collect::<BTreeSet<Ticker>>()
    });
    let is_member = |key: &SeriesKey, events: &Events| {
        key.source == scope.source
            && takes(&scope.filter, key)
            && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
            && listed_last_by(events, |request| scope.requests.contains(request))
    };
    Ok(events.into_iter().filter(|(key, events)| is_member(key, events)).map(|(key, _)| key).collect())
}

/// The tickers that some requests, in words, listed last.
pub(super) fn listed(archive: &Archive, as_of: DateTime<Utc>, requests: &BTreeSet<String>) -> Result<BTreeSet<Ticker>> {
    let is_listed = |events: &Events| listed_last_by(events, |request| requests.contains(request));
    let events = events(archive, as_of)?;
    Ok(events.into_iter().filter(|(_, events)| is_listed(events)).map(|(key, _)| key.ticker).collect())
}

/// The sector of each ticker that the histories of a sector list, or listed last; the first by name where several do.
pub(super) fn sectors(archive: &Archive, as_of: DateTime<Utc>) -> Result<HashMap<Ticker, Sector>> {
    let mut found: HashMap<Ticker, (bool, DateTime<Utc>, Sector)> = HashMap::new();
    for (key, events) in events(archive, as_of)? {
        for (request, (seen, change)) in events {
            let Some(sector) = Request::sector_of(&request).and_then(|name| name.parse::<Sector>().ok()) else {
                continue;
            };
            let is_listed = change == Change::Added;
            let is_better = |(listed, last, known): &(bool, DateTime<Utc>, Sector)| match (is_listed, *listed) {
                (true, true) => sector < *known,
                (false, false) => (seen, known) > (*last, &sector),
                (is_listed, _) => is_listed,
            };
            if found.get(&key.ticker).is_none_or(is_better) {
                found.insert(key.ticker.clone(), (is_listed, seen, sector));
            }
        }
    }
    Ok(found.into_iter().map(|(ticker, (_, _, sector))| (ticker, sector)).collect())
}

/// The requests of a run, in words, and when they were answered.
pub(super) fn requests_of(run: &SealedRun) -> Result<Vec<(String, DateTime<Utc>)>> {
    let mut requests = Vec::new();
    for rows in run.rows(REQUESTS)? {
        let rows = rows?;
        let missing = |name: &str| Error::Damaged {
            path: run.path().join(REQUESTS),
            source: format!("no column `{name}`").into(),
        };
        let column = |name: &str| rows.column_by_name(name).ok_or_else(|| missing(name));
        let words = column("request")?.as_string::<i32>().iter().flatten();
        let seen = column("observed_at")?.as_primitive::<TimestampMicrosecondType>().values();
        let seen = seen.iter().map(|&micros| DateTime::from_timestamp_micros(micros).unwrap_or_default());
        requests.extend(words.map(str::to_owned).zip(seen));
    }
    Ok(requests)
}

/// What became of every series, up to an instant.
fn events(archive: &Archive, as_of: DateTime<Utc>) -> Result<HashMap<SeriesKey, Events>> {
    let mut events: HashMap<SeriesKey, Events> = HashMap::new();
    for run in archive.runs() {
        for Listing { key, request, change, observed_at } in listings::read(run)? {
            if observed_at > as_of {
                continue;
            }
            let events = events.entry(key).or_default();
            if events.get(&request).is_none_or(|known| known.0 <= observed_at) {
                events.insert(request, (observed_at, change));
            }
        }
    }
    Ok(events)
}

/// Whether a request of some kind lists the series; or listed it last, when none does any longer.
fn listed_last_by(events: &Events, is_wanted: impl Fn(&str) -> bool) -> bool {
    let is_listed = events.values().any(|(_, change)| *change == Change::Added);
    let latest = events.values().map(|(seen, _)| *seen).max();
    let is_last = |(seen, change): &(DateTime<Utc>, Change)| {
        if is_listed { *change == Change::Added } else { Some(*seen) == latest }
    };
    events.iter().any(|(request, event)| is_last(event) && is_wanted(request))
}

/// Whether a filter takes a series, its sector aside.
fn takes(filter: &Filter, key: &SeriesKey) -> bool {
    let Filter { tickers, periods, regimes, .. } = filter;
    tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
        && periods.as_ref().is_none_or(|periods| key.period.is_some_and(|period| periods.contains(&period)))
        && regimes.as_ref().is_none_or(|regimes| key.regime.is_some_and(|regime| regimes.contains(&regime)))
}
