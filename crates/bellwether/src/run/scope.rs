//! Which series of an archive belong to a plan, without requests to the service.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::archive::{self, Scope, View};
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::{OperationRequests, Plan, Request, RequestList, TickerSource};

/// The series of the way that the definition used last.
pub(crate) fn archived_scope(plan: &Plan, view: &View) -> Result<Scope> {
    if let Some(scope) = used_last(plan, view)? {
        return Ok(scope);
    }
    let later = View::of(view.archive().clone(), DateTime::<Utc>::MAX_UTC);
    Err(match first_with_data(plan, &later)? {
        Some(first) => archive::unwatched(&plan.name, view.as_of(), first),
        None => archive::no_data(&plan.name),
    })
}

/// When the run was sealed from which on there is data of a definition.
fn first_with_data(plan: &Plan, latest: &View) -> Result<Option<DateTime<Utc>>> {
    let seals: Vec<DateTime<Utc>> = latest.runs().map(|run| run.seal().sealed_at).collect();
    // Once there is some, there is in each later state.
    let (mut without, mut with) = (0, seals.len());
    while without < with {
        let middle = without.midpoint(with);
        let view = View::of(latest.archive().clone(), seals[middle]);
        match used_last(plan, &view)? {
            Some(_) => with = middle,
            None => without = middle + 1,
        }
    }
    Ok(seals.get(with).copied())
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
pub(super) fn with_delisted(scope: Scope, plan: &Plan, view: &View) -> Result<Scope> {
    let mut scope = scope;
    let taken = plan.alternatives.iter().position(|operation| operation.endpoint == scope.source);
    if let Some(index) = taken {
        let requests = requests(&plan.alternatives[index], &plan.alternatives[..index], plan, view)?;
        scope.requests.extend(requests.iter().map(Request::to_string));
    }
    Ok(scope)
}

/// Every request of a plan, in words, if its signals come from a scope: the requests of the scope, the lists of tickers
/// behind them, and the requests for each ticker.
pub(super) fn requests_in_words(plan: &Plan, view: &View, scope: &Scope) -> Result<BTreeSet<String>> {
    let mut requests = scope.requests.clone();
    let operations = plan.alternatives.iter().filter(|operation| operation.endpoint == scope.source);
    let lists = operations.filter_map(|operation| match &operation.list {
        RequestList::EachTicker(list, _) => Some(list),
        RequestList::Listed(_) => None,
    });
    let add = |requests: &mut BTreeSet<String>, more: &[Request]| {
        requests.extend(more.iter().map(Request::to_string));
    };
    lists.for_each(|list| add(&mut requests, &list.listing()));
    if !plan.of_each_ticker.is_empty() {
        add(&mut requests, &plan.news_tickers.listing());
        let tickers = view.news_tickers(scope)?;
        for &endpoint in &plan.of_each_ticker {
            requests.extend(tickers.iter().map(|ticker| Request::of_ticker(endpoint, ticker.clone()).to_string()));
        }
    }
    Ok(requests)
}

/// The tickers whose news a scope asks for, if they are not those of its signals.
pub(super) fn asked_news(view: &View, scope: &Scope) -> Result<Option<BTreeSet<Ticker>>> {
    (scope.news != TickerSource::Signals).then(|| view.news_tickers(scope)).transpose()
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
        if let RequestList::Listed(requests) = &other.list {
            if other.is_batch() {
                let listing = view.listing(&requests.iter().map(Request::to_string).collect())?;
                let of_known = operation.requests_of(listing.values().flatten(), &plan.dataset.filter);
                if !of_known.is_empty() {
                    return Ok(of_known);
                }
            }
            let listed = view.tickers_listed_by(&requests.iter().map(Request::to_string).collect())?;
            if !listed.is_empty() {
                return Ok(operation.requests(&Vec::from_iter(listed)));
            }
        }
    }
    Ok(operation.requests(&tickers(list, view)?))
}

/// The tickers of a list, as far as they are in the archive.
fn tickers(list: &TickerSource, view: &View) -> Result<Vec<Ticker>> {
    match list {
        TickerSource::Listed(tickers) => Ok(tickers.clone()),
        list => {
            Ok(view.tickers_listed_by(&list.listing().iter().map(Request::to_string).collect())?.into_iter().collect())
        }
    }
}
