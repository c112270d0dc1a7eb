//! Which series of an archive belong to a plan, without requests to the service.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::archive::{self, Scope, View};
use crate::error::Result;
use crate::plan::{OperationRequests, Plan, Request, RequestList, TickerSource};

/// The series of the way that the definition used last.
pub(crate) fn archived_scope(plan: &Plan, view: &View) -> Result<Scope> {
    if let Some(scope) = used_last(plan, view)? {
        return Ok(scope);
    }
    // When the run was sealed from which on there is data of the definition: once there is some, there is in each later state.
    let later = View::of(view.archive().clone(), DateTime::<Utc>::MAX_UTC);
    let seals: Vec<DateTime<Utc>> = later.runs().map(|run| run.seal().sealed_at).collect();
    let (mut without, mut with) = (0, seals.len());
    while without < with {
        let middle = without.midpoint(with);
        match used_last(plan, &View::of(view.archive().clone(), seals[middle]))? {
            Some(_) => with = middle,
            None => without = middle + 1,
        }
    }
    Err(match seals.get(with) {
        Some(first) => archive::unwatched(&plan.name, view.as_of(), *first),
        None => archive::no_data(&plan.name),
    })
}

/// A way replaces those before it if a run of the definition used it later, or if all of its requests were answered later:
/// another definition may ask for a few of its tickers in that way.
fn used_last(plan: &Plan, view: &View) -> Result<Option<Scope>> {
    let (mut latest, mut taken): (_, Option<Scope>) = (DateTime::<Utc>::MIN_UTC, None);
    for (index, operation) in plan.alternatives.iter().enumerate() {
        let requests = requests(operation, &plan.alternatives[..index], plan, view)?;
        let is_of_way = |request: &&Request| !plan.further.contains(request);
        let requests: BTreeSet<String> = requests.iter().filter(is_of_way).map(Request::to_string).collect();
        if let Some(answered_at) = view.last_answered(&requests, latest)?
            && (taken.is_none() || view.are_all_answered(&requests, latest, &plan.name)?)
        {
            latest = answered_at;
            taken = Some(Scope::of(plan, operation.endpoint, requests));
        }
    }
    Ok(taken)
}

/// A scope of a run, with the requests for the tickers that the service no longer lists: what it said of them stays.
pub(super) fn with_delisted(mut scope: Scope, plan: &Plan, view: &View) -> Result<Scope> {
    if let Some(index) = plan.alternatives.iter().position(|operation| operation.endpoint == scope.source) {
        let requests = requests(&plan.alternatives[index], &plan.alternatives[..index], plan, view)?;
        scope.requests.extend(words(&requests));
    }
    Ok(scope)
}

/// Every request of a plan, in words, if its signals come from a scope: the requests of the scope, the lists of tickers
/// behind them, and the requests for each ticker.
pub(super) fn requests_in_words(plan: &Plan, view: &View, scope: &Scope) -> Result<BTreeSet<String>> {
    let mut requests = scope.requests.clone();
    for operation in plan.alternatives.iter().filter(|operation| operation.endpoint == scope.source) {
        if let RequestList::EachTicker(list, _) = &operation.list {
            requests.extend(words(&list.listing()));
        }
    }
    if !plan.of_each_ticker.is_empty() {
        requests.extend(words(&plan.news_tickers.listing()));
        let tickers = view.news_tickers(scope)?;
        for &endpoint in &plan.of_each_ticker {
            requests.extend(tickers.iter().map(|ticker| Request::of_ticker(endpoint, ticker.clone()).to_string()));
        }
    }
    Ok(requests)
}

/// The requests of a way for the tickers in the archive. If the way replaces another one, these are the tickers that
/// the other one listed.
fn requests(
    operation: &OperationRequests,
    before: &[OperationRequests],
    plan: &Plan,
    view: &View,
) -> Result<Vec<Request>> {
    let RequestList::EachTicker(list, _) = &operation.list else { return Ok(operation.requests(&[])) };
    for other in before {
        let RequestList::Listed(requests) = &other.list else { continue };
        if other.is_batch() {
            let listing = view.listing(&words(requests))?;
            let of_known = operation.requests_of(listing.values().flatten(), &plan.dataset.filter);
            if !of_known.is_empty() {
                return Ok(of_known);
            }
        }
        let listed = view.tickers_listed_by(&words(requests))?;
        if !listed.is_empty() {
            return Ok(operation.requests(&Vec::from_iter(listed)));
        }
    }
    // The tickers of the list, as far as they are in the archive.
    Ok(match list {
        TickerSource::Listed(tickers) => operation.requests(tickers),
        list => operation.requests(&Vec::from_iter(view.tickers_listed_by(&words(&list.listing()))?)),
    })
}

fn words(requests: &[Request]) -> BTreeSet<String> {
    requests.iter().map(Request::to_string).collect()
}
