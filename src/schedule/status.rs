//! How each definition is doing: fresh, stale, failing, unknown, or not run yet.
//!
//! Everything comes from files: the published versions, the seals of the archive, the journal of runs and what schedulers
//! remember and saw. What they do not say is not assumed: without them a definition is unknown. Asking changes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use bellwether::archive::{Archive, Seal};
use bellwether::definition::{ChangedKey, changed_keys};
use bellwether::disk::footprint::{free_space, size};
use bellwether::disk::lock::Holder;
use bellwether::error::{ErrorKind, Result};
use bellwether::export::{ListedVersion, VersionKind};
use bellwether::facts::Facts;
use bellwether::freshness::{Age, days_ahead, today};
use bellwether::plan::{DayCount, Days, Plan, Schedule};
use bellwether::run::{Prunable, PruneOptions, kept_versions};
use bellwether::text::human::{count_of, group_digits};
use bellwether::time::Clock;
use chrono::{DateTime, NaiveDate, Timelike, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::basis::{Archives, Basis};
use super::definitions::files;
use super::disk::Disk;
use super::journal::{Counts, Journal};
use super::look::{LookRecord, last_look};
use super::memory::{WRONG_CLOCK, deadline};
use super::record::{Fault, Outcome, RunRecord};
use super::times::upcoming;

/// The age that data may have if the definition sets no `max_age`.
const DEFAULT_MAX_AGE: DayCount = DayCount::Trading(Days::new(2));

/// The folders of a project.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The definitions.
    pub definitions: PathBuf,
    /// The datasets, the journals, and what schedulers remember.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
}

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

/// The status of some definitions.
#[derive(Clone, Debug)]
pub struct Overview {
    /// When it was taken.
    pub now: DateTime<Utc>,
    /// Why it is unknown how the project is doing, a sentence each.
    pub reasons: Vec<String>,
    /// The definitions, by name.
    pub definitions: Vec<Status>,
    /// Whether they were asked for by name.
    pub are_named: bool,
    /// What the scheduler last saw; none if none is running.
    pub scheduler: Option<LookRecord>,
    /// What takes the room.
    pub disk: Disk,
    /// The free space of the disk with the data; none if the system does not report it.
    pub free: Option<u64>,
    /// The bytes that `bellwether prune` would free; `None` if that is unknown.
    pub prunable: Option<u64>,
}

/// The status of a definition.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// How it is doing.
    pub verdict: Verdict,
    /// Why, a line each; empty if it is fresh.
    pub reasons: Vec<String>,
    /// What changed in the definition since the latest version.
    pub changed: Vec<ChangedKey>,
    /// The newest date of the dataset.
    pub newest: Option<NaiveDate>,
    /// How old that is.
    pub age: Option<Age>,
    /// How old it may be.
    pub max_age: Option<DayCount>,
    /// When the archive was last fetched for it.
    pub fetched_at: Option<DateTime<Utc>>,
    /// Whether that run was sealed in part.
    pub in_part: bool,
    /// When it is due next, or tried again; none if it has no schedule.
    pub next: Option<DateTime<Utc>>,
    /// A run that is in progress.
    pub running: Option<Running>,
    /// The due time whose run has not begun by its deadline.
    pub overdue: Option<DateTime<Utc>>,
    /// The rows of the latest version, and of the one before.
    pub rows: [Option<u64>; 2],
    /// The tickers of the latest version, and of the run before.
    pub tickers: [Option<u64>; 2],
    /// The number of versions, and the bytes of the dataset's folder.
    pub versions: (usize, u64),
    /// Its runs, oldest first.
    pub runs: Vec<RunRecord>,
    /// How many runs ended in which way; none if the journal cannot be read.
    pub(super) counts: Option<Counts>,
}

/// A run that is in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Since when; none if it has not said so yet.
    pub since: Option<DateTime<Utc>>,
    /// Its process, for people.
    pub by: Option<String>,
}

/// What all definitions share.
struct Shared<'a> {
    folders: &'a Folders,
    archives: Archives,
    scheduler: Option<LookRecord>,
    now: DateTime<Utc>,
}

impl Overview {
    /// The status of some definitions, or of all. `scheduler` is what the scheduler of this process saw; without it, what
    /// another one wrote.
    ///
    /// # Errors
    ///
    /// If a definition does not exist.
    pub fn of(folders: &Folders, names: &[String], scheduler: Option<LookRecord>, now: DateTime<Utc>) -> Result<Self> {
        let mut reasons = Vec::new();
        let scheduler = scheduler.or_else(|| {
            last_look(&folders.data).unwrap_or_else(|error| {
                reasons.push(Fault::of(&error).reason());
                None
            })
        });
        reasons.extend(scheduler.iter().flat_map(|look| look.reasons(now)));
        let shared = Shared { folders, archives: Archives::open(&folders.archive), scheduler, now };
        let definitions = if names.is_empty() {
            let all = files(&folders.definitions).map(BTreeMap::into_keys);
            let all: Vec<String> = all.map_or_else(
                |error| {
                    reasons.push(Fault::of(&error).reason());
                    Vec::new()
                },
                Iterator::collect,
            );
            all.iter().map(|name| shared.status(name, shared.plan(name))).collect()
        } else {
            let of = |name: &String| match shared.plan(name) {
                Err(error) if error.kind() == ErrorKind::NoDefinition => Err(error),
                plan => Ok(shared.status(name, plan)),
            };
            names.iter().map(of).collect::<Result<Vec<_>>>()?
        };
        if definitions.is_empty() && reasons.is_empty() {
            let folder = folders.definitions.display();
            reasons.push(match folders.definitions.exists() {
                true => format!("there are no definitions in `{folder}`"),
                false => format!("there is no folder `{folder}`"),
            });
        }
        let disk = Disk::of(&folders.data, &folders.archive);
        let Shared { archives, scheduler, .. } = shared;
        let prunable = prunable(folders, archives.all());
        let (are_named, free) = (!names.is_empty(), free_space(&folders.data));
        Ok(Self { now, reasons, definitions, are_named, scheduler, disk, free, prunable })
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.definitions.iter().filter(|status| status.verdict == verdict).count()
    }

    /// The worst of the verdicts, where stale and failing data come first; `Unknown` if there are no definitions, or the
    /// scheduler does not work. What was never run counts if it was asked for by name, or if nothing was.
    pub fn verdict(&self) -> Verdict {
        let bad = [Verdict::Failing, Verdict::Stale, Verdict::Unknown].into_iter().find(|it| self.count(*it) > 0);
        match bad {
            Some(bad) => bad,
            None if !self.reasons.is_empty() => Verdict::Unknown,
            None if self.count(Verdict::NotRun) == 0 => Verdict::Fresh,
            None if self.are_named || self.count(Verdict::Fresh) == 0 => Verdict::NotRun,
            None => Verdict::Fresh,
        }
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

    /// How many runs in a row have not succeeded, up to the last one.
    pub fn consecutive_failures(&self) -> usize {
        let counts = self.runs.iter().rev().filter(|run| run.outcome != Outcome::Interrupted);
        counts.take_while(|run| run.outcome != Outcome::Success).count()
    }
}

impl fmt::Display for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.map_or_else(|| "now".to_owned(), |since| format!("since {}", to_minute(since)));
        match &self.by {
            Some(by) => write!(formatter, "{since} ({by})"),
            None => formatter.write_str(&since),
        }
    }
}

impl Running {
    fn of(holder: Option<Holder>) -> Self {
        let since = holder.as_ref().map(|holder| holder.since);
        Self { since, by: holder.map(|Holder { process, host, .. }| format!("process {process} on `{host}`")) }
    }
}

impl Shared<'_> {
    fn plan(&self, name: &str) -> Result<Plan> {
        Plan::of(bellwether::definition::find(name, &self.folders.definitions)?)
    }

    fn status(&self, name: &str, plan: Result<Plan>) -> Status {
        let Self { folders, archives, now, .. } = self;
        let basis = Basis::read(folders, archives, name, plan.as_ref().ok(), *now);
        let own = || basis.versions.iter().filter(|one| one.kind != VersionKind::AdHoc);
        let latest = basis.latest();
        let before = latest.and_then(|latest| own().take_while(|one| one.path != latest.path).last());
        let facts = basis.facts.as_ref();
        let fetched = self.fetched(name);
        let mut status = Status {
            name: name.to_owned(),
            description: None,
            verdict: Verdict::Unknown,
            reasons: Vec::new(),
            changed: Vec::new(),
            newest: facts.and_then(Facts::bounds).map(|(_, last)| last),
            age: None,
            max_age: None,
            fetched_at: fetched.map(|seal| seal.sealed_at),
            in_part: fetched.is_some_and(|seal| seal.in_part.is_some()),
            next: None,
            running: basis.running.clone().map(Running::of),
            overdue: None,
            rows: [latest, before].map(|version: Option<&ListedVersion>| version.map(|version| version.rows)),
            tickers: [facts.map(|facts| facts.tickers.len() as u64), None],
            versions: (basis.versions.len(), size(&folders.data.join("datasets").join(name))),
            runs: basis.journal.as_ref().map_or_else(Vec::new, |journal| journal.runs.clone()),
            counts: basis.journal.as_ref().map(Journal::counts),
        };
        let successes = status.runs.iter().rev().filter_map(|run| run.published.as_ref());
        status.tickers[1] = successes.skip(1).map(|published| published.tickers as u64).next();
        match plan {
            Ok(plan) => {
                let before = latest.map(|latest| &latest.definition);
                status.changed = before.map_or_else(Vec::new, |before| changed_keys(before, &plan.text));
                self.judge(&mut status, &plan, &basis);
            }
            Err(error) => status.reasons.push(Fault::of(&error).reason()),
        }
        status
    }

    /// Judges a definition by its last run, its schedule and its newest date, if all that is known.
    fn judge(&self, status: &mut Status, plan: &Plan, basis: &Basis) {
        status.description.clone_from(&plan.description);
        let today = today(plan, self.now);
        // What is dated in the future keeps nothing fresh.
        let newest = basis.facts.as_ref().and_then(|facts| facts.newest_by(today));
        status.age = newest.map(|newest| Age::of(newest, today, &plan.dataset.sessions));
        // A dataset that ends on a day is meant to grow old, and one of certain values may have none for weeks.
        let filter = &plan.dataset.filter;
        let default = (filter.to.is_none() && !filter.is_by_value()).then_some(DEFAULT_MAX_AGE);
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
        match (status.age, status.max_age) {
            (Some(age), Some(limit)) if age.is_above(limit) => {
                let newest = newest.map(|newest| newest.to_string()).unwrap_or_default();
                status.reasons.push(format!("the newest date is {newest}, {age} ago, above the limit of {limit}"));
            }
            (Some(_), _) => {}
            (None, _) if status.rows[0].is_none() => {
                let was_run = !status.runs.is_empty() || status.running.is_some() || status.fetched_at.is_some();
                if !was_run && status.reasons.is_empty() {
                    status.verdict = Verdict::NotRun;
                }
                status.reasons.push("no version has been published".to_owned());
                return;
            }
            (None, _) => {
                status.reasons.push("the newest date of the dataset cannot be read".to_owned());
                return;
            }
        }
        if let Some((newest, days)) = status.newest.and_then(|newest| Some((newest, days_ahead(newest, today)?))) {
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
        status.overdue = newest.filter(is_open).filter(|_| status.running.is_none());
        if let Some(due) = status.overdue.map(to_minute) {
            status.reasons.push(match &self.scheduler {
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
        let seals = self.archives.readable().flat_map(|archive| archive.runs().iter().map(|run| run.seal()));
        let own = seals.filter(|seal| seal.definition.as_ref().is_some_and(|definition| definition.name == name));
        own.max_by_key(|seal| seal.sealed_at)
    }
}

/// What `bellwether prune` would free; `None` if that cannot be told.
fn prunable(folders: &Folders, archives: Option<Vec<Archive>>) -> Option<u64> {
    let options = PruneOptions {
        data: folders.data.clone(),
        archive: folders.archive.clone(),
        keep: kept_versions(&folders.definitions).ok()?,
        older_than: PruneOptions::OLDER_THAN,
        clock: Clock::System,
    };
    Prunable::with(&options, archives?).ok().map(|prunable| prunable.freed)
}

/// An instant for people: `2026-11-20 23:30 UTC`, with seconds unless they are zero.
pub fn to_minute(instant: DateTime<Utc>) -> String {
    let form = if instant.second() == 0 { "%Y-%m-%d %H:%M UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    instant.format(form).to_string()
}
