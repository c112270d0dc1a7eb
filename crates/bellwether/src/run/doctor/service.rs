//! The key, the way to the service, its operations and its clock; the store.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::{Diagnosis, DoctorOptions, Health, sectors};
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::{Addresses, Client, ResponseHead, is_absence};
use crate::interface::{Base, Endpoint, Ticker};
use crate::key::ApiKey;
use crate::plan::{Plan, Request, RequestList, Source, TickerSource};
use crate::run::demo::Demo;
use crate::run::error;
use crate::run::offers::brief;
use crate::run::store::{RemoteStore, StoreAccess};
use crate::run::{addresses, key};
use crate::text::human::count_of;

/// The clocks of the service and of this machine may differ by this much: the service's has whole seconds, and its
/// answer takes a while.
const MOST_SKEW: TimeDelta = TimeDelta::seconds(30);

/// The ticker that operations are tried with if the definition names none.
const SAMPLE: &str = "AAPL";

/// The key, the way to the service, its operations and its clock.
pub(super) async fn of_service(plan: &Plan, options: &DoctorOptions) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let demo = match &plan.source {
        Source::Demo => Demo::start(options.clock.now().date_naive()).await.map(Some),
        Source::Remote(_) => Ok(None),
    };
    let demo = match demo {
        Ok(demo) => demo,
        Err(error) => return vec![Diagnosis::of_error("service", &error)],
    };
    let (addresses, key) = match (&plan.source, &demo) {
        (Source::Remote(remote), _) => match key(plan, &options.control.stop).await {
            Ok(Some(key)) => {
                found.push(match remote.key.warning() {
                    Some(warning) => Diagnosis::warning("key", warning, "restrict who can read it"),
                    None => Diagnosis::ok("key", format!("from {}", remote.key.in_use())),
                });
                (addresses(remote), key)
            }
            Ok(None) => unreachable!("a remote service needs a key"),
            Err(error) => {
                found.push(Diagnosis::of_error("key", &error));
                return found;
            }
        },
        (Source::Demo, Some(demo)) => {
            found.push(Diagnosis::none("key", "the demo service needs no key"));
            (demo.addresses(), demo.key())
        }
        (Source::Demo, None) => unreachable!("it was started"),
    };
    found.extend(of_operations(plan, addresses, key, options).await);
    if let Some(demo) = demo {
        demo.stop().await;
    }
    found
}

/// Whether both addresses answer, which operations the service offers, and its clock.
async fn of_operations(plan: &Plan, addresses: Addresses, key: ApiKey, options: &DoctorOptions) -> Vec<Diagnosis> {
    let shown = [addresses.signals.clone(), addresses.sentiment.clone()];
    let client = match Client::new(addresses, key, brief(plan.limits), options.clock, options.data.join("evidence")) {
        Ok(client) => client,
        Err(error) => return vec![Diagnosis::of_error("connection", &error)],
    };
    let mut found = Vec::new();
    let mut heads: BTreeMap<Endpoint, ResponseHead> = BTreeMap::new();
    let mut skew = None;
    for (base, name, address) in
        [(Base::Signals, "signals address", &shown[0]), (Base::Sentiment, "news address", &shown[1])]
    {
        let mut failure = None;
        for request in Endpoint::ALL.into_iter().filter(|it| it.base() == base).map(|it| sample(plan, it)) {
            let asked_at = options.clock.now();
            match client.probe(&request).await {
                Ok(head) => {
                    skew = skew.or(head.date.map(|date| date - asked_at));
                    heads.insert(request.endpoint, head);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let failure = failure.or_else(|| wrong_address(plan, &client, base, &heads));
        let proxy = client.proxy(base).map_or_else(String::new, |proxy| format!(" through the proxy `{proxy}`"));
        let tls = if address.scheme() == "https" { ", certificate ok" } else { "" };
        found.push(match failure {
            // Nothing of it is asked for.
            Some(error) if needed_operations(plan, base).is_empty() => {
                let Diagnosis { found, remedy, .. } = Diagnosis::of_error(name, &error);
                Diagnosis { health: Health::Warning, found, remedy, check: name }
            }
            Some(error) => {
                heads.retain(|endpoint, _| endpoint.base() != base);
                Diagnosis::of_error(name, &error)
            }
            None => Diagnosis::ok(name, format!("{address} answers{proxy}{tls}")),
        });
    }
    if !heads.is_empty() {
        found.extend(operations(plan, &heads));
        let is_offered =
            |endpoint: &Endpoint| heads.get(endpoint).is_some_and(|head| (200..300).contains(&head.status));
        if plan.alternatives.iter().map(|operation| operation.endpoint).find(is_offered)
            == Some(Endpoint::SignalsHistoryAll)
        {
            found.extend(sectors::diagnosis(plan, &client).await);
        }
        found.push(clock(skew));
    }
    found
}

/// The operations of an address that a run could not do without.
fn needed_operations(plan: &Plan, base: Base) -> Vec<Endpoint> {
    let all = plan.alternatives.iter().map(|operation| operation.endpoint).chain(plan.of_each_ticker.iter().copied());
    all.filter(|endpoint| endpoint.base() == base).collect()
}

/// That an address is not the service's, as a run says it: it has no operation, or answers with web pages.
fn wrong_address(plan: &Plan, client: &Client, base: Base, heads: &BTreeMap<Endpoint, ResponseHead>) -> Option<Error> {
    let of_base = || heads.iter().filter(|(endpoint, _)| endpoint.base() == base);
    let is_of_service = |head: &ResponseHead| !is_missing(head) && !is_redirect(head) && !head.is_page;
    if of_base().any(|(_, head)| is_of_service(head)) {
        return None;
    }
    let needed = needed_operations(plan, base);
    let (&endpoint, head) = of_base().find(|(endpoint, _)| needed.contains(endpoint)).or_else(|| of_base().next())?;
    let lacking: Vec<&str> = needed.iter().map(|it| it.as_str()).collect();
    let lacking = if lacking.is_empty() { "any operation".to_owned() } else { lacking.join(", ") };
    let (address, setting) = (client.address(endpoint), base.setting());
    Some(match head.is_page {
        true => {
            Error::new(ErrorKind::Service, format!("`GET {address}` answered with a web page: is `{setting}` correct?"))
                .with_hint("check the address")
        }
        false => error::wrong_address(&address, head.status, setting, &lacking),
    })
}

fn is_missing(head: &ResponseHead) -> bool {
    is_absence(head.status)
}

fn is_redirect(head: &ResponseHead) -> bool {
    (300..400).contains(&head.status)
}

/// A request of an operation, as small as the definition allows.
fn sample(plan: &Plan, endpoint: Endpoint) -> Request {
    let own = plan.alternatives.iter().flat_map(|operation| match &operation.list {
        RequestList::Listed(requests) => requests.clone(),
        RequestList::EachTicker(TickerSource::NamedBy(requests), _) => requests.clone(),
        RequestList::EachTicker(..) => Vec::new(),
    });
    let written = plan.alternatives.iter().find_map(|operation| match &operation.list {
        RequestList::EachTicker(TickerSource::Listed(tickers), _) => tickers.first().cloned(),
        _ => None,
    });
    let ticker = || written.or_else(|| SAMPLE.parse::<Ticker>().ok());
    match own.into_iter().find(|request| request.endpoint == endpoint) {
        Some(request) => request,
        None if endpoint.is_of_one_ticker() => Request { ticker: ticker(), ..Request::bare(endpoint) },
        None => Request::bare(endpoint),
    }
}

/// Whether the service offers the operations that the definition needs; nothing for an address that does not answer.
fn operations(plan: &Plan, heads: &BTreeMap<Endpoint, ResponseHead>) -> Option<Diagnosis> {
    const CHECK: &str = "operations";
    let is_offered = |endpoint: &Endpoint| heads.get(endpoint).is_some_and(|head| !is_missing(head));
    let list = |endpoints: &[Endpoint]| endpoints.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    let broken: Vec<Endpoint> =
        heads.iter().filter(|(_, head)| head.status >= 500).map(|(endpoint, _)| *endpoint).collect();
    // Each base address that answers has all of its operations here.
    let is_asked = |endpoint: &Endpoint| heads.contains_key(endpoint);
    let missing: Vec<Endpoint> =
        plan.of_each_ticker.iter().copied().filter(|it| is_asked(it) && !is_offered(it)).collect();
    let operations = || plan.alternatives.iter().map(|operation| operation.endpoint).filter(is_asked);
    let (usual, used) = (operations().next(), operations().find(is_offered));
    let refused = used.iter().chain(&plan.of_each_ticker).find_map(|endpoint| {
        let head = heads.get(endpoint).filter(|head| !is_missing(head))?;
        (300..500).contains(&head.status).then_some((*endpoint, head.status))
    });
    let remedy = "ask the vendor what replaced it, or change `history` or `[sentiment]` in the definition";
    Some(match (usual, used) {
        (Some(usual), None) => {
            Diagnosis::failure(CHECK, format!("the service does not offer {}", usual.as_str()), remedy)
        }
        _ if !missing.is_empty() => {
            Diagnosis::failure(CHECK, format!("the service does not offer {}", list(&missing)), remedy)
        }
        _ if let Some((endpoint, status)) = refused => {
            let found = format!("the service refuses {} with status {status}", endpoint.as_str());
            Diagnosis::failure(CHECK, found, "check the addresses, the sectors and the tickers of the definition")
        }
        _ if !broken.is_empty() => {
            Diagnosis::warning(CHECK, format!("errors of the service: {}", list(&broken)), "try again later")
        }
        (Some(usual), Some(used)) if usual != used => {
            let found = format!("the service does not offer {}; {} is used instead", usual.as_str(), used.as_str());
            Diagnosis::warning(CHECK, found, "choose it with `history` in `[signals]`")
        }
        _ => {
            let asked: Vec<Endpoint> = Endpoint::ALL.into_iter().filter(is_asked).collect();
            let (here, gone): (Vec<_>, Vec<_>) = asked.iter().copied().partition(is_offered);
            let all = if asked.len() == Endpoint::ALL.len() { "all " } else { "" };
            Diagnosis::ok(
                CHECK,
                match gone.is_empty() {
                    true => format!("the service offers {all}{} of the interface", asked.len()),
                    false => {
                        format!("{} of {}; the service does not offer {}", here.len(), asked.len(), list(&gone))
                    }
                },
            )
        }
    })
}

fn clock(skew: Option<TimeDelta>) -> Diagnosis {
    const CHECK: &str = "clock";
    let Some(skew) = skew else { return Diagnosis::none(CHECK, "the service sends no time") };
    let seconds = skew.num_seconds().unsigned_abs();
    // Whole seconds, rounded down.
    match skew.abs() > MOST_SKEW {
        true => {
            let which = if skew > TimeDelta::zero() { "behind" } else { "ahead of" };
            let found = format!("this clock is {} {which} the service's", count_of(seconds, "second", "seconds"));
            Diagnosis::warning(CHECK, found, "synchronize it: observations are dated by it")
        }
        false => {
            Diagnosis::ok(CHECK, format!("within {} of the service's", count_of(seconds.max(1), "second", "seconds")))
        }
    }
}

/// Whether the store of the definition can be used, and the record of the latest version in it; `None` without a store.
pub(super) async fn of_store(
    plan: &Plan,
    options: &DoctorOptions,
) -> Option<Result<(Diagnosis, Option<VersionRecord>)>> {
    let opened = RemoteStore::of(
        plan,
        options.store.as_ref(),
        StoreAccess::Write,
        &options.archive,
        &options.data,
        &options.control,
    );
    let store = match opened.transpose()? {
        Ok(store) => store,
        Err(error) => return Some(Err(error)),
    };
    let tested = store.test(&plan.name).await;
    Some(tested.map(|in_store| (Diagnosis::ok("store", format!("{} can be read and written", store.url())), in_store)))
}
