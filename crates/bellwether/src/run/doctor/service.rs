//! The key, the way to the service, its operations, what they answer, and its clock; the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::TimeDelta;
use url::Url;

use super::{CLOCK, Diagnosis, Health};
use crate::archive::{AnswerRecord, Archive, Interrupted, View, of_service};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::{Client, ClockTrust, ResponseHead, is_absence};
use crate::interface::{Base, Endpoint, Sector, Ticker};
use crate::plan::{OnFinding, Plan, Request, RequestList, Source, TickerSource};
use crate::run::builder::scratch;
use crate::run::checks::by_request;
use crate::run::gather::{Gathering, wrong_address};
use crate::run::missing::{check_rejects, missing_answers};
use crate::run::observer::Control;
use crate::run::offers::brief;
use crate::run::start::{EVIDENCE, Options, begin, connect};
use crate::run::store::{RemoteStore, StoreAccess};
use crate::text::human::count_of;

/// The clocks of the service and of this machine may differ by this much: the service's has whole seconds, and its
/// answer takes a while.
const MOST_SKEW: TimeDelta = TimeDelta::seconds(30);

/// The key, the way to the service, its operations, what they answer, and its clock.
pub(super) async fn check_connection(plan: &Plan, options: &Options) -> Vec<Diagnosis> {
    let today = options.clock.now().date_naive();
    let (addresses, key, demo) = match connect(plan, today, &options.control.stop).await {
        Ok(connection) => connection,
        Err(error) => {
            let check = if matches!(plan.source, Source::Demo { .. }) { "service" } else { "key" };
            return vec![Diagnosis::of_error(check, &error)];
        }
    };
    let mut found = vec![match &plan.source {
        Source::Demo { .. } => Diagnosis::none("key", "the demo service needs no key"),
        Source::Remote(remote) => match remote.key.warning() {
            Some(warning) => Diagnosis::warning("key", warning, "restrict who can read it"),
            None => Diagnosis::ok("key", format!("from {}", remote.key.in_use())),
        },
    }];
    let shown = [("signals address", addresses.signals.clone()), ("news address", addresses.sentiment.clone())];
    match Client::new(addresses, key, brief(plan.limits), options.clock, options.data.join(EVIDENCE)) {
        Ok(mut client) => {
            // With a store, its clock counts.
            if options.store.is_none() && plan.store.is_none() {
                client = client.trusting(ClockTrust::Unconfirmed);
            }
            check_operations(plan, options, &client, shown, &mut found).await;
        }
        Err(error) => found.push(Diagnosis::of_error("connection", &error)),
    }
    if let Some(demo) = demo {
        demo.stop().await;
    }
    found
}

/// Whether both addresses answer, what they answer, and their clock.
async fn check_operations(
    plan: &Plan,
    options: &Options,
    client: &Client,
    shown: [(&'static str, Url); 2],
    found: &mut Vec<Diagnosis>,
) {
    let (mut skew, mut is_reached) = (None, true);
    for (base, (name, address)) in [Base::Signals, Base::Sentiment].into_iter().zip(shown) {
        let (mut failure, mut heads) = (None, BTreeMap::new());
        let needed = needed_operations(plan, base);
        // What is not needed is asked for all the same if nothing is: the address may be wrong.
        let any = Endpoint::ALL.into_iter().find(|it| it.base() == base);
        for endpoint in needed.iter().copied().chain(any.filter(|_| needed.is_empty())) {
            let asked_at = options.clock.now();
            match client.probe(&sample(plan, endpoint)).await {
                Ok(head) => {
                    skew = skew.or(head.date.map(|date| date - asked_at));
                    heads.insert(endpoint, head);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        found.push(match failure.or_else(|| not_the_service(client, &needed, &heads)) {
            // Nothing of it is asked for.
            Some(error) if needed.is_empty() => {
                Diagnosis { health: Health::Warning, ..Diagnosis::of_error(name, &error) }
            }
            Some(error) => {
                is_reached = false;
                Diagnosis::of_error(name, &error)
            }
            None => {
                let proxy = client.proxy(base).map_or_else(String::new, |it| format!(" through the proxy `{it}`"));
                let tls = if address.scheme() == "https" { ", certificate ok" } else { "" };
                Diagnosis::ok(name, format!("{address} answers{proxy}{tls}"))
            }
        });
    }
    if is_reached {
        match check_answers(plan, client, options).await {
            Ok(answers) => found.extend(answers),
            Err(error) => {
                let check = if error.kind() == ErrorKind::Clock { CLOCK } else { "answers" };
                found.push(Diagnosis::of_error(check, &error));
            }
        }
        found.extend(check_description(plan, client).await);
    }
    if (skew.is_some() || is_reached) && found.iter().all(|diagnosis| diagnosis.check != CLOCK) {
        found.push(clock(skew));
    }
}

/// Whether the service's own description has the operations that a run uses; nothing if it has none.
async fn check_description(plan: &Plan, client: &Client) -> Option<Diagnosis> {
    let used = plan.alternatives.iter().map(|operation| operation.endpoint).take(1);
    let used: BTreeSet<Endpoint> = used.chain(plan.of_each_ticker.iter().copied()).collect();
    let (mut lacking, mut is_described) = (Vec::new(), false);
    for base in [Base::Signals, Base::Sentiment] {
        let of_base: Vec<Endpoint> = used.iter().copied().filter(|endpoint| endpoint.base() == base).collect();
        if of_base.is_empty() {
            continue;
        }
        let Some(paths) = client.described_paths(base).await else { continue };
        is_described = true;
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| parts_of(path)).filter(|path| !path.is_empty()).collect();
        for endpoint in of_base {
            let address = client.address(endpoint);
            let address = parts_of(&address);
            if !paths.iter().any(|path| address.ends_with(path)) {
                lacking.push(endpoint.as_str());
            }
        }
    }
    is_described.then(|| match lacking.is_empty() {
        true => Diagnosis::ok("description", "`openapi.json` of the service has all operations that are used"),
        false => {
            let found = format!("`openapi.json` of the service does not have {}", lacking.join(", "));
            Diagnosis::warning("description", found, "say where they are with `[source.paths]`, or choose others")
        }
    })
}

/// The parts of a path. The name of a placeholder is the vendor's.
fn parts_of(path: &str) -> Vec<&str> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts.map(|part| if part.starts_with('{') && part.ends_with('}') { "{}" } else { part }).collect()
}

/// The operations of an address that a run uses, with those that may replace them.
fn needed_operations(plan: &Plan, base: Base) -> Vec<Endpoint> {
    let further = plan.further.first().map(|request| request.endpoint);
    let alternatives = plan.alternatives.iter().map(|operation| operation.endpoint);
    let all: BTreeSet<Endpoint> = alternatives.chain(further).chain(plan.of_each_ticker.iter().copied()).collect();
    all.into_iter().filter(|endpoint| endpoint.base() == base).collect()
}

/// That an address is not the service's, as a run says it: it has no operation, or answers with web pages.
fn not_the_service(client: &Client, needed: &[Endpoint], heads: &BTreeMap<Endpoint, ResponseHead>) -> Option<Error> {
    let is_of_service =
        |head: &ResponseHead| !is_absence(head.status) && !(300..400).contains(&head.status) && !head.is_page;
    if heads.values().any(is_of_service) {
        return None;
    }
    let (&endpoint, head) = heads.iter().next()?;
    if head.is_page {
        let (address, setting) = (client.address(endpoint), endpoint.base().setting());
        let what = format!("`GET {address}` answered with a web page: is `{setting}` correct?");
        return Some(Error::new(ErrorKind::Service, what).with_hint("check the address"));
    }
    let lacking: Vec<&str> = needed.iter().map(|it| it.as_str()).collect();
    let lacking = if lacking.is_empty() { "any operation".to_owned() } else { lacking.join(", ") };
    Some(wrong_address(client, endpoint, head.status, &lacking))
}

/// A request of an operation, as small as the definition allows.
fn sample(plan: &Plan, endpoint: Endpoint) -> Request {
    let mut tickers = plan.further.first().and_then(|request| request.ticker.clone());
    for operation in plan.alternatives.iter().rev() {
        match &operation.list {
            RequestList::Listed(requests) | RequestList::EachTicker(TickerSource::NamedBy(requests), _) => {
                if let Some(own) = requests.iter().find(|request| request.endpoint == endpoint) {
                    return own.clone();
                }
            }
            RequestList::EachTicker(TickerSource::Listed(listed), _) => tickers = listed.first().cloned().or(tickers),
            RequestList::EachTicker(..) => {}
        }
    }
    let bare = Request::bare(endpoint);
    if !endpoint.is_of_one_ticker() {
        return bare;
    }
    // Any ticker will do if the definition names none.
    Request { ticker: tickers.or_else(|| "AAPL".parse::<Ticker>().ok()), ..bare }
}

fn clock(skew: Option<TimeDelta>) -> Diagnosis {
    let Some(skew) = skew else { return Diagnosis::none(CLOCK, "the service sends no time") };
    // Whole seconds, rounded down.
    let seconds = skew.num_seconds().unsigned_abs();
    if skew.abs() > MOST_SKEW {
        let which = if skew > TimeDelta::zero() { "behind" } else { "ahead of" };
        let found = format!("this clock is {} {which} the service's", count_of(seconds, "second", "seconds"));
        return Diagnosis::warning(CLOCK, found, "synchronize it: observations are dated by it");
    }
    Diagnosis::ok(CLOCK, format!("within {} of the service's", count_of(seconds.max(1), "second", "seconds")))
}

/// Whether the store of the definition, if there is one, can be used. Returns the record of the latest version in it.
pub(super) async fn check_store(plan: &Plan, options: &Options, found: &mut Vec<Diagnosis>) -> Option<VersionRecord> {
    let Options { archive, data, store, control, .. } = options;
    let tested = async {
        let store = RemoteStore::of(plan, store.as_ref(), StoreAccess::Write, archive, data, control)?;
        let Some(store) = store else { return Ok(None) };
        let in_store = store.test(&plan.name).await?;
        found.push(Diagnosis::ok("store", format!("{} can be read and written", store.url())));
        Ok::<_, Error>(in_store)
    };
    tested.await.unwrap_or_else(|error| {
        found.push(Diagnosis::of_error("store", &error));
        None
    })
}

/// What the operations answer that a run uses, each asked once, or once for each sector: the answers are read and checked as in
/// a run, into an archive that is thrown away.
async fn check_answers(plan: &Plan, client: &Client, options: &Options) -> Result<Vec<Diagnosis>> {
    let folder = Scratch(scratch(options.clock));
    let plan = sampled(plan);
    let control = Control { stop: options.control.stop.clone(), ..Control::default() };
    let unfinished = begin(&plan, &folder.0, options.clock.now(), Interrupted::Leave, &control.stop)?;
    let archive = of_service(&options.archive, &plan.service.name)?;
    let of_run = Options { archive, clock: options.clock, control: control.clone(), ..Options::new(&options.data) };
    let mut gathering = Gathering::new(&plan, client, &of_run, Arc::clone(&unfinished));
    gathering.most_tickers = 1;
    let (_, signals, gathered) = gathering.gather().await?;
    let records = unfinished.records();
    let settled = unfinished.seal(&[], || Ok(options.clock.now()), |_| Ok(true))?;
    check_rejects(plan.max_reject_share, &records, &settled.run, "`[source]` can say how the vendor differs")?;
    let view = View::of(Archive::open(&folder.0)?, options.clock.now());
    let missing = missing_answers(&gathered, &by_request(&records), &view)?;
    let mut found = vec![Diagnosis::ok("answers", in_words(&records))];
    if !signals.instead_of.is_empty() {
        let gone = signals.instead_of.join(", ");
        let what = format!("the service does not offer {gone}; {} is used instead", signals.operation);
        found.push(Diagnosis::warning("operations", what, "choose it with `history` in `[signals]`"));
    }
    found.extend(missing.into_iter().chain(gathered.lacking).map(|message| match plan.checks.missing {
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
        let list = &mut operation.list;
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
    let mut words = Vec::new();
    for (endpoint, (histories, rows)) in of_operations {
        let rows = count_of(rows, "record", "records");
        words.push(match histories {
            0 => format!("{endpoint}: {rows}"),
            histories => format!("{endpoint}: {} with {rows}", count_of(histories, "history", "histories")),
        });
    }
    words.join("; ")
}
