//! How each definition is doing: fresh, stale, failing, unknown, or not run yet.
//!
//! Everything comes from files: the published versions, the seals of the archive, the journal of runs and what schedulers
//! remember and saw. What they do not say is not assumed: without them a definition is unknown. Asking changes nothing.

use bellwether::archive::Seal;
use bellwether::definition::{ChangedKey, changed_keys};
use bellwether::disk::footprint::{free_space, size};
use bellwether::error::{ErrorKind, Result};
use bellwether::export::VersionKind;
use bellwether::facts::Facts;
use bellwether::freshness::{Age, days_ahead, today};
use bellwether::plan::{DayCount, Days, Plan, Schedule};
use bellwether::run::{Prunable, PruneOptions, kept_versions};
use bellwether::text::human::{count_of, group_digits};
use bellwether::time::{Clock, as_record};
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::Folders;
use super::basis::{Archives, Basis, OpenArchive, open_archives};
use super::journal::{Counts, Journal};
use super::look::{LookRecord, last_look};
use super::memory::{WRONG_CLOCK, deadline, upcoming};
use super::record::{Fault, Outcome, RunRecord, to_minute};
use super::scheduler::files;

/// How a definition is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its newest date is recent, and its last run succeeded.
    Fresh,
    /// Its newest date is too old, or a run is overdue.
    Stale,
    /// Its last run failed.
    Failing,
    /// There is nothing to judge it by although it was run, or what there is cannot be read.
    Unknown,
    /// It was never run, and no run is overdue, such as an example.
    NotRun,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] = [Self::Fresh, Self::Stale, Self::Failing, Self::Unknown, Self::NotRun];

    /// Every verdict in the order of a list: data that is known to be bad is worse than what is not known, and what was never
    /// run comes last.
    const WORST_FIRST: [Self; 5] = [Self::Failing, Self::Stale, Self::Unknown, Self::Fresh, Self::NotRun];

    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Failing => "failing",
            Self::Unknown => "unknown",
            Self::NotRun => "not_run",
        }
    }

    /// Its name for people.
    pub fn in_words(self) -> &'static str {
        if self == Self::NotRun { "not run yet" } else { self.as_str() }
    }
}

/// Bytes by what they are for. A file with several names counts once.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Disk {
    /// The archive, with unfinished runs.
    archive: u64,
    /// The datasets: versions and ad hoc builds.
    datasets: u64,
    /// Bodies and rejected records that were kept for the vendor.
    evidence: u64,
    /// Reports that were asked for.
    reports: u64,
    /// Journals, and what schedulers remember.
    records: u64,
}

/// How some definitions are doing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusDocument {
    /// The version of the shape.
    // New members and new values of enumerations do not change it.
    version: u32,
    /// When the status was taken.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub now: DateTime<Utc>,
    /// The worst verdict: `failing`, then `stale`, then `unknown`; also `unknown` without definitions. `not_run` counts only if
    /// the definition was asked for by name, or if none was ever run.
    pub verdict: Verdict,
    /// Why it is unknown how the project is doing, a sentence each: no definitions, or a scheduler that does not work.
    pub reasons: Vec<String>,
    /// The definitions, by name.
    pub definitions: Vec<Status>,
    /// The scheduler that is running, if one is.
    pub scheduler: Option<LookRecord>,
    /// The bytes of the project's folders, by what they are for.
    pub disk: Disk,
    /// The bytes that are free on the disk with the data.
    pub disk_free_bytes: Option<u64>,
    /// The bytes that `prune` would free.
    pub prunable_bytes: Option<u64>,
}

/// How a definition is doing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Definition")]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// How it is doing.
    pub verdict: Verdict,
    /// Why, a sentence each; empty if it is fresh.
    pub reasons: Vec<String>,
    /// What changed in the definition since the latest version, key by key.
    pub changed: Vec<ChangedKey>,
    /// The newest date of the dataset.
    #[schemars(with = "Option<String>")]
    pub newest_date: Option<NaiveDate>,
    /// The age of that date in trading days.
    pub age_trading_days: Option<u32>,
    /// The age of that date in calendar days.
    pub age_days: Option<u32>,
    /// How old it may be: `2 trading days`, `3d`.
    #[schemars(with = "Option<String>")]
    pub max_age: Option<DayCount>,
    /// When the archive was last fetched for it.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub fetched_at: Option<DateTime<Utc>>,
    /// Whether that run was sealed in part.
    pub in_part: bool,
    /// The last run that published a version.
    pub last_success: Option<RunRecord>,
    /// The last run that failed.
    pub last_failure: Option<RunRecord>,
    /// The last run that ended with a temporary failure.
    pub last_later: Option<RunRecord>,
    /// How many runs in a row have not succeeded, up to the last one.
    pub consecutive_failures: usize,
    /// Whether a run is in progress.
    pub is_running: bool,
    /// Since when it is.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub running_since: Option<DateTime<Utc>>,
    /// The process of that run, for people.
    #[serde(skip)]
    pub running_by: Option<String>,
    /// When it is due next, or tried again.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub next: Option<DateTime<Utc>>,
    /// The due time whose run has not begun by its deadline.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub overdue: Option<DateTime<Utc>>,
    /// The rows of the latest version.
    pub rows: Option<u64>,
    /// The rows of the version before.
    pub rows_before: Option<u64>,
    /// The tickers of the latest version.
    pub tickers: Option<u64>,
    /// The tickers of the run before.
    pub tickers_before: Option<u64>,
    /// The number of versions.
    pub versions: usize,
    /// The bytes of the dataset's folder.
    pub bytes: u64,
    /// Its runs, oldest first.
    #[serde(skip)]
    pub runs: Vec<RunRecord>,
    /// How many runs ended in which way; none if the journal cannot be read.
    #[serde(skip)]
    pub(super) counts: Option<Counts>,
}

impl Disk {
    fn measure(folders: &Folders) -> Self {
        let bytes = |name: &str| size(&folders.data.join(name));
        Self {
            archive: size(&folders.archive),
            datasets: bytes("datasets"),
            evidence: bytes("evidence"),
            reports: bytes("reports"),
            records: bytes("journal") + bytes("schedule"),
        }
    }

    /// Each part with its name.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        let names = ["archive", "datasets", "evidence", "reports", "records"];
        let sizes = [self.archive, self.datasets, self.evidence, self.reports, self.records];
        std::array::from_fn(|index| (names[index], sizes[index]))
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// What all definitions share.
struct Shared<'a> {
    folders: &'a Folders,
    archives: Archives,
    scheduler: Option<&'a LookRecord>,
    now: DateTime<Utc>,
}

impl StatusDocument {
    /// The status of some definitions, or of all. `scheduler` is what the scheduler of this process saw; without it, what
    /// another one wrote.
    ///
    /// # Errors
    ///
    /// If a definition does not exist.
    pub fn read(
        folders: &Folders,
        names: &[String],
        scheduler: Option<LookRecord>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let mut reasons = Vec::new();
        let scheduler = match scheduler {
            None => last_look(&folders.data).inspect_err(|error| reasons.push(Fault::new(error).reason())),
            seen => Ok(seen),
        };
        let scheduler = scheduler.unwrap_or_default();
        reasons.extend(scheduler.iter().flat_map(|look| look.reasons(now)));
        let all = if names.is_empty() { files(&folders.definitions) } else { Ok(Default::default()) };
        let all = all.inspect_err(|error| reasons.push(Fault::new(error).reason())).unwrap_or_default();
        let shared = Shared { folders, archives: open_archives(&folders.archive), scheduler: scheduler.as_ref(), now };
        let mut definitions = Vec::new();
        for name in names.iter().chain(all.keys()) {
            let plan = bellwether::definition::find(name, &folders.definitions).and_then(Plan::of);
            match plan {
                Err(error) if error.kind() == ErrorKind::NoDefinition && !names.is_empty() => return Err(error),
                plan => definitions.push(shared.status(name, plan)),
            }
        }
        if definitions.is_empty() && reasons.is_empty() {
            let folder = folders.definitions.display();
            reasons.push(match folders.definitions.exists() {
                true => format!("there are no definitions in `{folder}`"),
                false => format!("there is no folder `{folder}`"),
            });
        }
        let has = |verdict: Verdict| definitions.iter().any(|status| status.verdict == verdict);
        let verdict = match [Verdict::Failing, Verdict::Stale, Verdict::Unknown].into_iter().find(|it| has(*it)) {
            Some(bad) => bad,
            None if !reasons.is_empty() => Verdict::Unknown,
            None if has(Verdict::NotRun) && (!names.is_empty() || !has(Verdict::Fresh)) => Verdict::NotRun,
            None => Verdict::Fresh,
        };
        let (disk, disk_free_bytes) = (Disk::measure(folders), free_space(&folders.data));
        let prunable_bytes = prunable(folders, shared.archives);
        Ok(Self { version: 1, now, verdict, reasons, definitions, scheduler, disk, disk_free_bytes, prunable_bytes })
    }

    /// One line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a status is text, numbers and lists") + "\n"
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.definitions.iter().filter(|status| status.verdict == verdict).count()
    }

    /// How those that were run are doing together: `2 of 3 fresh`.
    pub fn heading(&self) -> String {
        let fresh = self.count(Verdict::Fresh);
        match self.definitions.len() - self.count(Verdict::NotRun) {
            0 if self.definitions.is_empty() => "No definitions".to_owned(),
            0 => "Nothing has run yet".to_owned(),
            all if fresh == all && !self.reasons.is_empty() => "All fresh, but the scheduler does not work".to_owned(),
            all if fresh == all => "All fresh".to_owned(),
            all => format!("{} of {} fresh", group_digits(fresh as u64), group_digits(all as u64)),
        }
    }

    /// The definitions, the worst first and those of one verdict by name.
    pub fn worst_first(&self) -> Vec<&Status> {
        let rank = |status: &&Status| Verdict::WORST_FIRST.iter().position(|verdict| *verdict == status.verdict);
        let mut definitions: Vec<&Status> = self.definitions.iter().collect();
        definitions.sort_by_key(rank);
        definitions
    }
}

impl Status {
    /// The last run that ended in some way.
    pub fn last(&self, outcome: Outcome) -> Option<&RunRecord> {
        self.runs.iter().rfind(|run| run.outcome == outcome)
    }

    /// How old the newest date is.
    pub fn age(&self) -> Option<Age> {
        Some(Age { trading_days: self.age_trading_days?, days: self.age_days? })
    }

    /// Since when a run is in progress, and in which process; `None` if none is.
    pub fn running(&self) -> Option<String> {
        let since = self.running_since.map_or_else(|| "now".to_owned(), |since| format!("since {}", to_minute(since)));
        let by = self.running_by.as_ref().map_or_else(String::new, |by| format!(" ({by})"));
        self.is_running.then(|| since + &by)
    }
}

impl Shared<'_> {
    fn status(&self, name: &str, plan: Result<Plan>) -> Status {
        let Self { folders, archives, now, .. } = self;
        let basis = Basis::read(folders, archives, name, plan.as_ref().ok(), *now);
        let latest = basis.latest();
        let own = basis.versions.iter().filter(|one| one.kind != VersionKind::AdHoc);
        let before = latest.and_then(|latest| own.take_while(|one| one.path != latest.path).last());
        let facts = basis.facts.as_ref();
        let fetched = self.fetched(name);
        let runs = basis.journal.as_ref().map_or_else(Vec::new, |journal| journal.runs.clone());
        let last = |outcome: Outcome| runs.iter().rfind(|run| run.outcome == outcome).cloned();
        let decided = runs.iter().rev().filter(|run| run.outcome != Outcome::Interrupted);
        let holder = basis.running.as_ref().and_then(Option::as_ref);
        let mut status = Status {
            name: name.to_owned(),
            description: plan.as_ref().ok().and_then(|plan| plan.description.clone()),
            verdict: Verdict::Unknown,
            reasons: Vec::new(),
            changed: Vec::new(),
            newest_date: facts.and_then(Facts::bounds).map(|(_, last)| last),
            age_trading_days: None,
            age_days: None,
            max_age: None,
            fetched_at: fetched.map(|seal| seal.sealed_at),
            in_part: fetched.is_some_and(|seal| seal.in_part.is_some()),
            last_success: last(Outcome::Success),
            last_failure: last(Outcome::Failure),
            last_later: last(Outcome::Later),
            consecutive_failures: decided.take_while(|run| run.outcome != Outcome::Success).count(),
            is_running: basis.running.is_some(),
            running_since: holder.map(|holder| holder.since),
            running_by: holder.map(|holder| format!("process {} on `{}`", holder.process, holder.host)),
            next: None,
            overdue: None,
            rows: latest.map(|version| version.rows),
            rows_before: before.map(|version| version.rows),
            tickers: facts.map(|facts| facts.tickers.len() as u64),
            tickers_before: runs.iter().rev().filter_map(|run| Some(run.published.as_ref()?.tickers as u64)).nth(1),
            versions: basis.versions.len(),
            bytes: size(&folders.data.join("datasets").join(name)),
            counts: basis.journal.as_ref().map(Journal::counts),
            runs,
        };
        match plan {
            Ok(plan) => self.judge(&mut status, &plan, &basis),
            Err(error) => status.reasons.push(Fault::new(&error).reason()),
        }
        status
    }

    /// Judges a definition by its last run, its schedule and its newest date, if all that is known.
    fn judge(&self, status: &mut Status, plan: &Plan, basis: &Basis) {
        status.changed = basis.latest().map_or_else(Vec::new, |latest| changed_keys(&latest.definition, &plan.text));
        let today = today(plan, self.now);
        // What is dated in the future keeps nothing fresh.
        let newest = basis.facts.as_ref().and_then(|facts| facts.newest_by(today));
        let age = newest.map(|newest| Age::of(newest, today, &plan.dataset.sessions));
        (status.age_trading_days, status.age_days) = age.map(|age| (age.trading_days, age.days)).unzip();
        // A dataset that ends on a day is meant to grow old, and one of certain values may have none for weeks.
        let may_grow_old = plan.dataset.filter.to.is_some() || plan.dataset.filter.is_by_value();
        let default = (!may_grow_old).then_some(DayCount::Trading(Days::new(2)));
        status.max_age = plan.checks.max_age.or(default);
        if let Some(schedule) = &plan.schedule {
            self.judge_schedule(status, schedule, basis);
        }
        status.reasons.splice(0..0, basis.faults.iter().cloned());
        status.reasons.extend(basis.taken_back.iter().map(|run| {
            format!("the latest version was built from run `{run}`, which was forgotten since; build it again")
        }));
        // What may still come right says nothing yet.
        let is_decided = |run: &&RunRecord| matches!(run.outcome, Outcome::Success | Outcome::Failure);
        let last = status.runs.iter().rfind(is_decided);
        if let Some(failed) = last.filter(|run| run.outcome == Outcome::Failure) {
            status.verdict = Verdict::Failing;
            let reason = failed.reason().unwrap_or_default();
            status.reasons.insert(0, format!("the run of {} failed: {reason}", to_minute(failed.started_at)));
            return;
        }
        if !basis.faults.is_empty() {
            return;
        }
        let Some(age) = age else {
            if status.rows.is_some() {
                status.reasons.push("the newest date of the dataset cannot be read".to_owned());
                return;
            }
            let was_run = !status.runs.is_empty() || status.is_running || status.fetched_at.is_some();
            if !was_run && status.reasons.is_empty() {
                status.verdict = Verdict::NotRun;
            }
            status.reasons.push("no version has been published".to_owned());
            return;
        };
        if let (Some(newest), Some(limit)) = (newest, status.max_age.filter(|limit| age.is_above(*limit))) {
            status.reasons.push(format!("the newest date is {newest}, {age} ago, above the limit of {limit}"));
        }
        if let Some((newest, days)) = status.newest_date.and_then(|newest| Some((newest, days_ahead(newest, today)?))) {
            let days = count_of(days.into(), "day", "days");
            status.reasons.push(format!("the newest date is {newest}, {days} in the future"));
        }
        status.verdict = if status.reasons.is_empty() { Verdict::Fresh } else { Verdict::Stale };
    }

    /// The next time, and whether a run is overdue.
    fn judge_schedule(&self, status: &mut Status, schedule: &Schedule, basis: &Basis) {
        status.next = upcoming(schedule, self.now).next();
        // Without a memory no scheduler has seen the definition, and it owes nothing.
        let Some(memory) = basis.memory.as_ref().filter(|memory| memory.is_of(schedule)) else { return };
        let memory = memory.mended(schedule, self.now);
        if let Some(retry) = memory.retry_at() {
            status.next = Some(status.next.map_or(retry, |next| next.min(retry)));
        }
        let newest = schedule.cron.last_until(self.now - deadline(schedule), schedule.timezone.0);
        let is_open = |due: &DateTime<Utc>| {
            // A run that a wrong clock dated has not happened for a time before it.
            let has_happened = |run: &RunRecord| run.started_at >= *due && run.started_at - self.now <= WRONG_CLOCK;
            *due > memory.done && !status.last(Outcome::Success).is_some_and(has_happened)
        };
        // A run that is in progress has happened, however long it takes.
        status.overdue = newest.filter(is_open).filter(|_| !status.is_running);
        if let Some(due) = status.overdue.map(to_minute) {
            status.reasons.push(match self.scheduler {
                None => format!("the run due at {due} has not happened: is `bellwether schedule` running?"),
                Some(look) => format!(
                    "the run due at {due} has not happened: `bellwether schedule`, which looked at {}, runs others (`--jobs`) or \
                     cannot start it",
                    to_minute(look.last_look)
                ),
            });
        }
    }

    /// The seal of the last run for a definition.
    fn fetched(&self, name: &str) -> Option<&Seal> {
        let archives = self.archives.iter().flat_map(|archives| archives.values().flatten());
        let seals = archives.flat_map(|opened| opened.archive.runs().iter().map(|run| run.seal()));
        let own = seals.filter(|seal| seal.definition.as_ref().is_some_and(|definition| definition.name == name));
        own.max_by_key(|seal| seal.sealed_at)
    }
}

/// What `bellwether prune` would free; `None` if that cannot be told.
fn prunable(folders: &Folders, archives: Archives) -> Option<u64> {
    let archives = archives.ok()?.into_values().map(|opened| opened.map(|OpenArchive { archive, .. }| archive));
    let options = PruneOptions {
        data: folders.data.clone(),
        archive: folders.archive.clone(),
        keep: kept_versions(&folders.definitions).ok()?,
        older_than: PruneOptions::OLDER_THAN,
        clock: Clock::System,
    };
    Prunable::with(&options, archives.collect::<Result<_>>().ok()?).ok().map(|prunable| prunable.freed)
}
