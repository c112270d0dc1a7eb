//! The key, the way to the service, its operations, what they answer, and its clock; the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::TimeDelta;

use super::{CLOCK, Diagnosis, DoctorOptions, Health};
use crate::archive::{AnswerRecord, Archive, Interrupted, NewRun, Unfinished, View, of_service};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::{Addresses, Client, ClockTrust, ResponseHead, is_absence};
use crate::interface::{Base, Endpoint, Sector, Ticker};
use crate::key::ApiKey;
use crate::plan::{OnFinding, OperationRequests, Plan, Request, RequestList, Source, TickerSource};
use crate::run::builder::scratch;
use crate::run::gather::{Gathered, Gathering};
use crate::run::missing::{Missing, check_rejects};
use crate::run::observer::Control;
use crate::run::offers::brief;
use crate::run::start::{Options, connect};
use crate::run::store::{RemoteStore, StoreAccess};
use crate::run::wrong_address as no_service;
use crate::text::human::count_of;

/// The clocks of the service and of this machine may differ by this much: the service's has whole seconds, and its
/// answer takes a while.
const MOST_SKEW: TimeDelta = TimeDelta::seconds(30);

/// The ticker that operations are tried with if the definition names none.
const SAMPLE: &str = "AAPL";

/// The key, the way to the service, its operations and its clock.
pub(super) async fn of_connection(plan: &Plan, options: &DoctorOptions) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let today = options.clock.now().date_naive();
    let (addresses, key, demo) = match connect(plan, today, &options.control.stop).await {
        Ok(connection) => connection,
        Err(error) => {
            let check = if matches!(plan.source, Source::Demo { .. }) { "service" } else { "key" };
            return vec![Diagnosis::of_error(check, &error)];
        }
    };
    found.push(match &plan.source {
        Source::Demo { .. } => Diagnosis::none("key", "the demo service needs no key"),
        Source::Remote(remote) => match remote.key.warning() {
            Some(warning) => Diagnosis::warning("key", warning, "restrict who can read it"),
            None => Diagnosis::ok("key", format!("from {}", remote.key.in_use())),
        },
    });
    found.extend(of_operations(plan, addresses, key, options).await);
    if let Some(demo) = demo {
        demo.stop().await;
    }
    found
}

/// Whether both addresses answer, what they answer, and their clock.
async fn of_operations(plan: &Plan, addresses: Addresses, key: ApiKey, options: &DoctorOptions) -> Vec<Diagnosis> {
    let shown = [addresses.signals.clone(), addresses.sentiment.clone()];
    let client = match Client::new(addresses, key, brief(plan.limits), options.clock, options.data.join("evidence")) {
        // With a store, its clock counts.
        Ok(client) if options.store.is_some() || plan.store.is_some() => client,
        Ok(client) => client.trusting(ClockTrust::Unconfirmed),
        Err(error) => return vec![Diagnosis::of_error("connection", &error)],
    };
    let (mut found, mut skew, mut is_reached) = (Vec::new(), None, true);
    for (base, name, address) in
        [(Base::Signals, "signals address", &shown[0]), (Base::Sentiment, "news address", &shown[1])]
    {
        let (mut failure, mut heads) = (None, BTreeMap::new());
        let needed = needed_operations(plan, base);
        // What is not needed is asked for all the same if nothing is: the address may be wrong.
        let mut asked = needed.clone();
        if asked.is_empty() {
            asked.extend(Endpoint::ALL.into_iter().find(|it| it.base() == base));
        }
        for request in asked.into_iter().map(|endpoint| sample(plan, endpoint)) {
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
            Some(error) if needed.is_empty() => {
                let Diagnosis { found, remedy, .. } = Diagnosis::of_error(name, &error);
                Diagnosis { health: Health::Warning, found, remedy, check: name }
            }
            Some(error) => {
                is_reached = false;
                Diagnosis::of_error(name, &error)
            }
            None => Diagnosis::ok(name, format!("{address} answers{proxy}{tls}")),
        });
    }
    if is_reached {
        found.extend(of_answers(plan, &client, options).await);
        found.extend(described(plan, &client).await);
    }
    if (skew.is_some() || is_reached) && found.iter().all(|diagnosis| diagnosis.check != CLOCK) {
        found.push(clock(skew));
    }
    found
}

/// Whether the service's own description has the operations that a run uses; nothing if it has none.
async fn described(plan: &Plan, client: &Client) -> Option<Diagnosis> {
    const CHECK: &str = "description";
    let used =
        plan.alternatives.iter().map(|operation| operation.endpoint).take(1).chain(plan.of_each_ticker.iter().copied());
    let used: BTreeSet<Endpoint> = used.collect();
    let (mut lacking, mut is_described) = (Vec::new(), false);
    for base in [Base::Signals, Base::Sentiment] {
        let of_base: Vec<Endpoint> = used.iter().copied().filter(|endpoint| endpoint.base() == base).collect();
        if of_base.is_empty() {
            continue;
        }
        let Some(paths) = client.described_paths(base).await else { continue };
        is_described = true;
        let has = |endpoint: &Endpoint| {
            let address = client.address(*endpoint);
            // The name of the placeholder is the vendor's.
            let parts = |path: &str| -> Vec<String> {
                let is_placeholder = |part: &str| part.starts_with('{') && part.ends_with('}');
                let parts = path.split('/').filter(|part| !part.is_empty());
                parts.map(|part| if is_placeholder(part) { "{}".to_owned() } else { part.to_owned() }).collect()
            };
            let wanted = parts(&address);
            paths.iter().map(|path| parts(path)).any(|path| !path.is_empty() && wanted.ends_with(&path))
        };
        lacking.extend(of_base.into_iter().filter(|endpoint| !has(endpoint)).map(Endpoint::as_str));
    }
    if !is_described {
        return None;
    }
    Some(match lacking.is_empty() {
        true => Diagnosis::ok(CHECK, "`openapi.json` of the service has all operations that are used"),
        false => {
            let found = format!("`openapi.json` of the service does not have {}", lacking.join(", "));
            Diagnosis::warning(CHECK, found, "say where they are with `[source.paths]`, or choose others")
        }
    })
}

/// The operations of an address that a run uses, with those that may replace them.
fn needed_operations(plan: &Plan, base: Base) -> Vec<Endpoint> {
    let further = plan.further.first().map(|request| request.endpoint);
    let alternatives = plan.alternatives.iter().map(|operation| operation.endpoint);
    let all: BTreeSet<Endpoint> = alternatives.chain(further).chain(plan.of_each_ticker.iter().copied()).collect();
    all.into_iter().filter(|endpoint| endpoint.base() == base).collect()
}

/// That an address is not the service's, as a run says it: it has no operation, or answers with web pages.
fn wrong_address(plan: &Plan, client: &Client, base: Base, heads: &BTreeMap<Endpoint, ResponseHead>) -> Option<Error> {
    let is_redirect = |head: &ResponseHead| (300..400).contains(&head.status);
    let is_of_service = |head: &ResponseHead| !is_absence(head.status) && !is_redirect(head) && !head.is_page;
    if heads.values().any(is_of_service) {
        return None;
    }
    let (&endpoint, head) = heads.iter().next()?;
    let lacking: Vec<&str> = needed_operations(plan, base).iter().map(|it| it.as_str()).collect();
    let lacking = if lacking.is_empty() { "any operation".to_owned() } else { lacking.join(", ") };
    let (address, setting) = (client.address(endpoint), base.setting());
    Some(match head.is_page {
        true => {
            Error::new(ErrorKind::Service, format!("`GET {address}` answered with a web page: is `{setting}` correct?"))
                .with_hint("check the address")
        }
        false => no_service(&address, head.status, setting, &lacking),
    })
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
    let further = plan.further.first().and_then(|request| request.ticker.clone());
    let ticker = || written.or(further).or_else(|| SAMPLE.parse::<Ticker>().ok());
    match own.into_iter().find(|request| request.endpoint == endpoint) {
        Some(request) => request,
        None if endpoint.is_of_one_ticker() => Request { ticker: ticker(), ..Request::bare(endpoint) },
        None => Request::bare(endpoint),
    }
}

fn clock(skew: Option<TimeDelta>) -> Diagnosis {
    let Some(skew) = skew else { return Diagnosis::none(CLOCK, "the service sends no time") };
    let seconds = skew.num_seconds().unsigned_abs();
    // Whole seconds, rounded down.
    match skew.abs() > MOST_SKEW {
        true => {
            let which = if skew > TimeDelta::zero() { "behind" } else { "ahead of" };
            let found = format!("this clock is {} {which} the service's", count_of(seconds, "second", "seconds"));
            Diagnosis::warning(CLOCK, found, "synchronize it: observations are dated by it")
        }
        false => {
            Diagnosis::ok(CLOCK, format!("within {} of the service's", count_of(seconds.max(1), "second", "seconds")))
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

/// What the operations answer that a run uses, each asked once, or once for each sector: the answers are read and checked as in
/// a run, into an archive that is thrown away.
async fn of_answers(plan: &Plan, client: &Client, options: &DoctorOptions) -> Vec<Diagnosis> {
    match answered(plan, client, options).await {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Clock => vec![Diagnosis::of_error(CLOCK, &error)],
        Err(error) => vec![Diagnosis::of_error("answers", &error)],
    }
}

async fn answered(plan: &Plan, client: &Client, options: &DoctorOptions) -> Result<Vec<Diagnosis>> {
    let folder = Scratch(scratch(options.clock));
    let plan = sampled(plan);
    let (definition, text, service, conventions) = (&plan.name, &plan.text, &plan.service, &plan.conventions);
    let (now, stop) = (options.clock.now(), &options.control.stop);
    let interrupted = Interrupted::Leave;
    let beginning = NewRun { definition, text, service, conventions, now, interrupted, stop };
    let unfinished = Arc::new(Unfinished::begin(&folder.0, beginning)?);
    let quiet = Control { stop: stop.clone(), ..Control::default() };
    let archive = of_service(&options.archive, &plan.service.name)?;
    let of_run = Options { archive, clock: options.clock, control: quiet, ..Options::new(&options.data) };
    let gathering = Gathering::new(&plan, client, &of_run, Arc::clone(&unfinished)).asking_for(1);
    let gathered = gathering.gather().await?;
    let records = unfinished.records();
    let settled = unfinished.seal(&[], || Ok(options.clock.now()), |_| Ok(true))?;
    check_rejects(plan.max_reject_share, &records, &settled.run, "`[source]` can say how the vendor differs")?;
    let Gathered { signals, demanded, refusals, lacking, .. } = gathered;
    let answers: BTreeMap<&str, &AnswerRecord> =
        records.iter().map(|record| (record.request.request.as_str(), &**record)).collect();
    let view = View::of(Archive::open(&folder.0)?, options.clock.now());
    let missing = Missing::of_answers(&demanded, &refusals, &answers).messages(&view)?;
    let mut found = vec![Diagnosis::ok("answers", in_words(&records))];
    if !signals.instead_of.is_empty() {
        let gone = signals.instead_of.join(", ");
        let what = format!("the service does not offer {gone}; {} is used instead", signals.operation);
        found.push(Diagnosis::warning("operations", what, "choose it with `history` in `[signals]`"));
    }
    found.extend(missing.into_iter().chain(lacking).map(|message| match plan.checks.missing {
        OnFinding::Fail => {
            let remedy = "correct `[signals]`, or set `missing = \"warn\"` in `[checks]` to publish without it";
            Diagnosis::failure("missing", message, remedy)
        }
        OnFinding::Warn => Diagnosis::warning("missing", message, "a run publishes without it"),
    }));
    Ok(found)
}

/// A folder that is removed with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is hidden, and the system clears its folder.
        let _ = remove::folder(&self.0);
    }
}

/// The plan with one request for each operation, or one for each sector.
fn sampled(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for operation in &mut plan.alternatives {
        let OperationRequests { list, .. } = operation;
        match list {
            RequestList::Listed(requests) | RequestList::EachTicker(TickerSource::NamedBy(requests), _) => {
                let mut seen: BTreeSet<Option<Sector>> = BTreeSet::new();
                requests.retain(|request: &Request| seen.insert(request.sector.clone()));
            }
            RequestList::EachTicker(TickerSource::Listed(tickers), _) => tickers.truncate(1),
            RequestList::EachTicker(TickerSource::Available | TickerSource::Signals, _) => {}
        }
        if let RequestList::EachTicker(_, pairs) = list {
            pairs.truncate(1);
        }
    }
    plan.further.truncate(1);
    plan
}

/// What the answers had: `signals-history-all: 22 histories with 27,610 records; news_articles: 120 records`.
fn in_words(records: &[Arc<AnswerRecord>]) -> String {
    let mut of_operations: BTreeMap<Endpoint, (u64, u64)> = BTreeMap::new();
    for record in records {
        let (histories, rows) = of_operations.entry(record.request.endpoint).or_default();
        *histories += record.histories;
        *rows += record.request.rows;
    }
    let of_operation = |(endpoint, (histories, rows)): (Endpoint, (u64, u64))| {
        let rows = count_of(rows, "record", "records");
        match histories {
            0 => format!("{endpoint}: {rows}"),
            histories => format!("{endpoint}: {} with {rows}", count_of(histories, "history", "histories")),
        }
    };
    of_operations.into_iter().map(of_operation).collect::<Vec<_>>().join("; ")
}
