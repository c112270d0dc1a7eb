//! Which series of an archive a plan asks for, without asking the service.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::archive::{Scope, View};
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Asked, Plan, Request, Tickers, Way};

/// The series of the way that was taken last.
pub(super) fn archived(plan: &Plan, view: &View) -> Result<Scope> {
    let (mut latest, mut taken) = (DateTime::<Utc>::MIN_UTC, None);
    for way in &plan.ways {
        let requests: BTreeSet<String> = requests(way, view)?.iter().map(Request::to_string).collect();
        if let Some(answered_at) = view.last_answered(&requests, latest)? {
            latest = answered_at;
            taken = Some(Scope { source: way.endpoint, requests, filter: plan.dataset.filter.clone() });
        }
    }
    taken.ok_or_else(|| Error::NothingArchived { name: plan.name.clone() })
}

/// The requests of a way, for the tickers that the archive knows of.
fn requests(way: &Way, view: &View) -> Result<Vec<Request>> {
    let Asked::EachTicker(list, _) = &way.asked else { return Ok(way.requests(&[])) };
    let listing = match list {
        Tickers::Written(tickers) => return Ok(way.requests(tickers)),
        Tickers::Available => vec![Request::bare(Endpoint::TickersAvailable)],
        Tickers::NamedBy(requests) => requests.clone(),
        Tickers::Signals => unreachable!("signals are asked for before they can name a ticker"),
    };
    let tickers: Vec<Ticker> = view.listed(&listing.iter().map(Request::to_string).collect())?.into_iter().collect();
    Ok(way.requests(&tickers))
}
