//! Checks of everything that a run needs: the key, the service, the clock, the disk and the archive.
//!
//! Each check is bounded in time and independent of the others, as far as it can be. Nothing is written.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::fs::{Access, access, statvfs};

use super::as_of::newest;
use super::blocking::blocking;
use super::continuity::{self, Continuity, Expected};
use super::demo::Demo;
use super::observer::Control;
use super::options::WhenLost;
use super::{addresses, key};
use crate::archive::{self, Archive, services, unfinished_runs};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{Addresses, Client, ResponseHead};
use crate::human::{bytes, counted};
use crate::interface::{Base, Endpoint, Ticker};
use crate::plan::{Plan, Request, RequestList, Source, TickerSource};
use crate::secret::ApiKey;
use crate::time::Clock;

/// The clocks of the service and of this machine may differ by this much: the service's has whole seconds, and its
/// answer takes a while.
const MOST_SKEW: TimeDelta = TimeDelta::seconds(30);

/// With less space than this there is a warning; a run of all sectors takes about as much.
const LITTLE_SPACE: u64 = 1_000_000_000;

/// With less space than this a run would fail.
const NO_SPACE: u64 = 50_000_000;

/// The ticker that operations are tried with if the definition names none.
const SAMPLE: &str = "AAPL";

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// What was checked.
    pub check: &'static str,
    /// Its status.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// How to fix it.
    pub remedy: Option<String>,
}

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// No problem.
    Ok,
    /// A run would succeed, but there is something to fix.
    Warning,
    /// A run would fail.
    Failed,
    /// There is nothing to check.
    NotApplicable,
}

impl Health {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::NotApplicable => "not applicable",
        }
    }
}

impl Diagnosis {
    /// A check without a problem.
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, health: Health::Ok, found: found.into(), remedy: None }
    }

    fn none(check: &'static str, found: impl Into<String>) -> Self {
        Self { health: Health::NotApplicable, ..Self::ok(check, found) }
    }

    fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Warning, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    fn failed(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Failed, ..Self::warning(check, found, remedy) }
    }

    fn of_error(check: &'static str, error: &Error) -> Self {
        let mut found = error.to_string();
        let mut reason = error.source();
        while let Some(source) = reason {
            found.push_str(&format!(": {source}"));
            reason = source.source();
        }
        Self { check, health: Health::Failed, found, remedy: error.hint() }
    }
}

/// The options of the checks.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// The folder of datasets and evidence.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Runs of the definition that are known to have been sealed in the archive of its service.
    pub known_runs: Vec<String>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the checks.
    pub control: Control,
}

/// Checks everything that a run of a plan needs, or without a plan what every run needs.
///
/// # Errors
///
/// [`ErrorKind::Interrupted`] when it was cancelled. What is wrong with the project is in the diagnoses.
///
/// # Cancel safety
///
/// Dropping it ends the checks.
pub async fn doctor(plan: Option<Plan>, options: DoctorOptions) -> Result<Vec<Diagnosis>> {
    let mut found = match &plan {
        Some(plan) => {
            tokio::select! {
                found = of_service(plan, &options) => found,
                () = options.control.stop.cancelled() => return Err(Error::interrupted()),
            }
        }
        None => vec![Diagnosis::none("service", "no definition was named")],
    };
    found.push(of_disk(&options.data));
    found.extend(blocking(move || Ok(of_archives(plan.as_ref(), &options))).await?);
    Ok(found)
}

/// The key, the way to the service, its operations and its clock.
async fn of_service(plan: &Plan, options: &DoctorOptions) -> Vec<Diagnosis> {
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
        (Source::Remote(remote), _) => {
            found.push(match remote.key.warning() {
                Some(warning) => Diagnosis::warning("key source", warning, "restrict who can read it"),
                None => Diagnosis::ok("key source", format!("from {}", remote.key)),
            });
            match key(plan, &options.control.stop).await {
                Ok(Some(key)) => (addresses(remote), key),
                Ok(None) => unreachable!("a remote service needs a key"),
                Err(error) => {
                    found.push(Diagnosis::of_error("key", &error));
                    return found;
                }
            }
        }
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
    let client = match Client::new(addresses, key, plan.limits, options.clock, options.data.join("evidence")) {
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
        let tls = if address.scheme() == "https" { ", certificate ok" } else { "" };
        found.push(match failure {
            Some(error) => Diagnosis::of_error(name, &error),
            None => Diagnosis::ok(name, format!("{address} answers{tls}")),
        });
    }
    if !heads.is_empty() {
        found.push(operations(plan, &heads));
        found.push(clock(skew));
    }
    found
}

/// A request of an operation, as small as the definition allows.
fn sample(plan: &Plan, endpoint: Endpoint) -> Request {
    let own = plan.ways.iter().flat_map(|way| match &way.list {
        RequestList::Listed(requests) => requests.clone(),
        RequestList::EachTicker(TickerSource::NamedBy(requests), _) => requests.clone(),
        RequestList::EachTicker(..) => Vec::new(),
    });
    let written = plan.ways.iter().find_map(|way| match &way.list {
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

/// Whether the service offers the operations that the definition needs.
fn operations(plan: &Plan, heads: &BTreeMap<Endpoint, ResponseHead>) -> Diagnosis {
    const CHECK: &str = "operations";
    let is_offered = |endpoint: Endpoint| heads.get(&endpoint).is_some_and(|head| !matches!(head.status, 404 | 405));
    let list = |endpoints: Vec<Endpoint>| endpoints.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    let broken: Vec<Endpoint> =
        heads.iter().filter(|(_, head)| head.status >= 500).map(|(endpoint, _)| *endpoint).collect();
    let missing: Vec<Endpoint> =
        plan.of_each_ticker.iter().copied().filter(|endpoint| !is_offered(*endpoint)).collect();
    let usual = plan.ways.first().map(|way| way.endpoint);
    let used = plan.ways.iter().map(|way| way.endpoint).find(|endpoint| is_offered(*endpoint));
    let remedy = "ask the vendor what replaced it, or change `history` or `[sentiment]` in the definition";
    match (usual, used) {
        (Some(usual), None) => {
            Diagnosis::failed(CHECK, format!("the service does not offer {}", usual.as_str()), remedy)
        }
        _ if !missing.is_empty() => {
            Diagnosis::failed(CHECK, format!("the service does not offer {}", list(missing)), remedy)
        }
        _ if !broken.is_empty() => {
            Diagnosis::warning(CHECK, format!("errors of the service: {}", list(broken)), "try again later")
        }
        (Some(usual), Some(used)) if usual != used => {
            let found = format!("the service does not offer {}; {} is used instead", usual.as_str(), used.as_str());
            Diagnosis::warning(CHECK, found, "choose it with `history` in `[signals]`")
        }
        _ => {
            let (here, gone): (Vec<_>, Vec<_>) = Endpoint::ALL.into_iter().partition(|endpoint| is_offered(*endpoint));
            let all = here.len() + gone.len();
            Diagnosis::ok(
                CHECK,
                match gone.is_empty() {
                    true => format!("the service offers all {all} of the interface"),
                    false => format!("{} of {all}; the service does not offer {}", here.len(), list(gone)),
                },
            )
        }
    }
}

fn clock(skew: Option<TimeDelta>) -> Diagnosis {
    const CHECK: &str = "clock";
    let Some(skew) = skew else { return Diagnosis::none(CHECK, "the service sends no time") };
    let seconds = skew.num_seconds().unsigned_abs();
    // Whole seconds, rounded down.
    match skew.abs() > MOST_SKEW {
        true => {
            let which = if skew > TimeDelta::zero() { "behind" } else { "ahead of" };
            let found = format!("this clock is {} {which} the service's", counted(seconds, "second", "seconds"));
            Diagnosis::warning(CHECK, found, "synchronize it: observations are dated by it")
        }
        false => {
            Diagnosis::ok(CHECK, format!("within {} of the service's", counted(seconds.max(1), "second", "seconds")))
        }
    }
}

fn of_disk(data: &Path) -> Diagnosis {
    const CHECK: &str = "disk";
    let whole = if data.as_os_str().is_empty() { Path::new(".") } else { data };
    let there = whole.ancestors().find(|folder| folder.exists()).filter(|folder| !folder.as_os_str().is_empty());
    let there = there.unwrap_or(Path::new("."));
    if access(there, Access::WRITE_OK).is_err() {
        let found = format!("`{}` cannot be written", there.display());
        return Diagnosis::failed(CHECK, found, "choose a folder that you can write to with `--data`");
    }
    let free = match statvfs(there) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(_) => return Diagnosis::none(CHECK, "the system does not report free space"),
    };
    let found = format!("{} free for `{}`", bytes(free), data.display());
    match free {
        ..NO_SPACE => Diagnosis::failed(CHECK, found, "free some space, or choose another disk with `--data`"),
        NO_SPACE..LITTLE_SPACE => {
            Diagnosis::warning(CHECK, found, "free some space, or choose another disk with `--data`")
        }
        _ => Diagnosis::ok(CHECK, found),
    }
}

/// The archive of the definition's service and its history, or the archives of all services.
fn of_archives(plan: Option<&Plan>, options: &DoctorOptions) -> Vec<Diagnosis> {
    const HISTORY: &str = "history";
    let (root, now) = (&options.archive, options.clock.now());
    let Some(plan) = plan else {
        return match services(root) {
            Err(error) if error.kind() != ErrorKind::NotFound => vec![Diagnosis::of_error("archive", &error)],
            Err(_) => vec![Diagnosis::none("archive", format!("none in `{}` yet", root.display()))],
            Ok(names) => names.iter().map(|name| of_archive(&root.join(name), now)).collect(),
        };
    };
    let archive = match archive::of_service(root, &plan.service.name) {
        Ok(archive) => archive,
        Err(error) => return vec![Diagnosis::of_error("archive", &error)],
    };
    let expected = Expected {
        plan,
        data: &options.data,
        archive: &archive,
        known_runs: &options.known_runs,
        in_store: None,
        when_lost: WhenLost::Fail,
    };
    let history = match continuity::check(expected) {
        Ok(Continuity { notes, .. }) => {
            let note = notes.into_iter().next();
            Diagnosis::ok(HISTORY, note.unwrap_or_else(|| format!("of service {}", plan.service)))
        }
        Err(error) => Diagnosis::of_error(HISTORY, &error),
    };
    vec![of_archive(&archive, now), history]
}

fn of_archive(path: &Path, now: DateTime<Utc>) -> Diagnosis {
    const CHECK: &str = "archive";
    let archive = match Archive::open(path) {
        Ok(archive) => archive,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Diagnosis::none(CHECK, format!("none in `{}` yet", path.display()));
        }
        Err(error) => return Diagnosis::of_error(CHECK, &error),
    };
    if newest(&archive).is_some_and(|newest| newest > now) {
        let found = "the clock is behind the archive's newest run";
        return Diagnosis::failed(CHECK, found, "set the clock; a run refuses to start until it is later");
    }
    if let Some(file) = archive.first_misfit() {
        let found = format!("`{}` is missing or has another size", file.display());
        return Diagnosis::failed(
            CHECK,
            found,
            "restore it from a backup; `bellwether verify` lists all damaged files",
        );
    }
    let missing: Vec<&str> = archive.missing().collect();
    if let Some(first) = missing.first() {
        let runs = counted(missing.len() as u64, "run", "runs");
        let found = format!("`{}` lacks {runs} that others are based on, such as `{first}`", path.display());
        return Diagnosis::failed(
            CHECK,
            found,
            "restore them from a backup, or fetch them with `bellwether store pull`",
        );
    }
    let interrupted = unfinished_runs(path).map_or(0, |runs| runs.len() as u64);
    let interrupted = match interrupted {
        0 => String::new(),
        count => format!(", {} to resume", counted(count, "interrupted run", "interrupted runs")),
    };
    let runs = counted(archive.runs().len() as u64, "run", "runs");
    Diagnosis::ok(CHECK, format!("{runs}, every file in place{interrupted}"))
}
