//! How each definition is doing: fresh, stale, failing, or unknown.
//!
//! Everything comes from files: the published versions, the seals of the archive, the journal of runs and what schedulers
//! remember. Asking changes nothing and takes no lock.

use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Timelike, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::definitions::files;
use super::disk::Disk;
use super::journal;
use super::memory::{Memory, Place, deadline};
use super::record::{Outcome, RunRecord};
use super::times::upcoming;
use crate::archive::{Archive, open_all};
use crate::definition::{ChangedKey, DefinitionError, changed_keys};
use crate::error::{Error, Result};
use crate::export::{self, ListedVersion, VersionKind};
use crate::footprint::size;
use crate::freshness::{Age, days_ahead, today};
use crate::human::counted;
use crate::plan::{Days, MaxAge, Plan, Schedule};
use crate::report::facts::Facts;
use crate::run::{Prunable, PruneOptions, kept_versions};
use crate::time::Clock;

/// The age that data may have if the definition sets no `max_age`.
const DEFAULT_MAX_AGE: MaxAge = MaxAge::Trading(Days::new(2));

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
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Its newest date is recent, and its last run succeeded.
    Fresh,
    /// Its newest date is too old, or a run is overdue.
    Stale,
    /// Its last run failed.
    Failing,
    /// There is nothing to judge it by.
    Unknown,
}

impl Verdict {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Failing => "failing",
            Self::Unknown => "unknown",
        }
    }
}

/// The status of some definitions.
#[derive(Clone, Debug)]
pub struct Overview {
    /// When it was taken.
    pub now: DateTime<Utc>,
    /// The definitions, by name.
    pub definitions: Vec<Status>,
    /// What takes the room.
    pub disk: Disk,
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
    pub max_age: Option<MaxAge>,
    /// When the archive was last fetched for it.
    pub fetched_at: Option<DateTime<Utc>>,
    /// When it is due next, or tried again.
    pub next: Option<DateTime<Utc>>,
    /// The rows of the latest version, and of the one before.
    pub rows: [Option<u64>; 2],
    /// The tickers of the latest version, and of the run before.
    pub tickers: [Option<u64>; 2],
    /// The number of versions, and the bytes of the dataset's folder.
    pub versions: (usize, u64),
    /// Its runs, oldest first.
    pub runs: Vec<RunRecord>,
}

/// What all definitions share.
struct Shared<'a> {
    folders: &'a Folders,
    published: Result<Vec<ListedVersion>>,
    /// The archive of each service; none if they cannot be read.
    archives: Option<Vec<(String, Archive)>>,
    now: DateTime<Utc>,
}

impl Overview {
    /// The status of some definitions, or of all.
    ///
    /// # Errors
    ///
    /// If the folder of definitions cannot be read, or a definition does not exist.
    pub fn of(folders: &Folders, names: &[String], now: DateTime<Utc>) -> Result<Self> {
        let all = files(&folders.definitions)?;
        let published = export::published(&folders.data.join("datasets"));
        let shared = Shared { folders, published, archives: open_all(&folders.archive).ok(), now };
        let definitions = if names.is_empty() {
            all.keys().map(|name| shared.status(name, shared.plan(name))).collect()
        } else {
            let of = |name: &String| match shared.plan(name) {
                Err(error) if matches!(error.downcast_ref(), Some(DefinitionError::Missing { .. })) => Err(error),
                plan => Ok(shared.status(name, plan)),
            };
            names.iter().map(of).collect::<Result<_>>()?
        };
        let disk = Disk::of(&folders.data, &folders.archive);
        let prunable = prunable(folders, shared.archives);
        Ok(Self { now, definitions, disk, prunable })
    }

    /// The worst of the verdicts, where stale and failing data come first: `Fresh` if there are no definitions.
    pub fn verdict(&self) -> Verdict {
        let has = |verdict: Verdict| self.definitions.iter().any(|status| status.verdict == verdict);
        let worst = [Verdict::Failing, Verdict::Stale, Verdict::Unknown].into_iter().find(|verdict| has(*verdict));
        worst.unwrap_or(Verdict::Fresh)
    }
}

impl Status {
    /// The last run that ended in some way.
    pub fn last(&self, outcome: Outcome) -> Option<&RunRecord> {
        self.runs.iter().rfind(|run| run.outcome == outcome)
    }
}

impl Shared<'_> {
    fn plan(&self, name: &str) -> Result<Plan> {
        Plan::of(crate::definition::find(name, &self.folders.definitions)?)
    }

    fn status(&self, name: &str, plan: Result<Plan>) -> Status {
        let data = &self.folders.data;
        let versions: Vec<&ListedVersion> =
            self.published.iter().flatten().filter(|one| one.recorded.name == name).collect();
        let own: Vec<&&ListedVersion> = versions.iter().filter(|one| one.kind != VersionKind::AdHoc).collect();
        let latest = own.iter().rposition(|one| one.kind == VersionKind::Latest);
        let before = latest.and_then(|latest| latest.checked_sub(1)).map(|before| own[before].rows);
        let facts = latest.and_then(|latest| facts(&own[latest].path));
        let runs = journal::read(data, name);
        let mut status = Status {
            name: name.to_owned(),
            description: None,
            verdict: Verdict::Unknown,
            reasons: Vec::new(),
            changed: Vec::new(),
            newest: facts.as_ref().and_then(Facts::bounds).map(|(_, last)| last),
            age: None,
            max_age: None,
            fetched_at: self.fetched_at(name),
            next: None,
            rows: [latest.map(|latest| own[latest].rows), before],
            tickers: [facts.as_ref().map(|facts| facts.tickers.len() as u64), None],
            versions: (versions.len(), size(&data.join("datasets").join(name))),
            runs: Vec::new(),
        };
        match (plan, runs, &self.published) {
            (Ok(plan), Ok(runs), Ok(_)) => {
                let successes = runs.iter().rev().filter_map(|run| run.published.as_ref());
                status.tickers[1] = successes.skip(1).map(|published| published.tickers as u64).next();
                status.runs = runs;
                let before = latest.map(|latest| &own[latest].recorded.definition);
                status.changed = before.map_or_else(Vec::new, |before| changed_keys(before, &plan.text));
                self.judge(&mut status, &plan, facts.as_ref());
            }
            (Err(error), _, _) => status.reasons.push(first_line(&error)),
            (_, Err(error), _) => status.reasons.push(first_line(&error)),
            (_, _, Err(error)) => status.reasons.push(first_line(error)),
        }
        status
    }

    /// Judges a definition by its last run, its schedule and its newest date.
    fn judge(&self, status: &mut Status, plan: &Plan, facts: Option<&Facts>) {
        status.description.clone_from(&plan.description);
        let today = today(plan, self.now);
        // What is dated in the future keeps nothing fresh.
        let newest = facts.and_then(|facts| facts.newest_by(today));
        status.age = newest.map(|newest| Age::of(newest, today));
        // A dataset that ends on a day is meant to grow old.
        let default = plan.dataset.filter.to.is_none().then_some(DEFAULT_MAX_AGE);
        status.max_age = plan.checks.max_age.or(default);
        if let Some(schedule) = &plan.schedule {
            self.judge_schedule(status, schedule);
        }
        let last = status.runs.iter().rfind(|run| run.outcome != Outcome::Interrupted);
        if let Some(failed) = last.filter(|run| run.outcome == Outcome::Failure) {
            status.verdict = Verdict::Failing;
            let reason = failed.reason().unwrap_or_default();
            status.reasons.insert(0, format!("the run of {} failed: {reason}", to_minute(failed.started_at)));
            return;
        }
        match (status.age, status.max_age) {
            (Some(age), Some(limit)) if age.is_above(limit) => {
                let newest = newest.map(|newest| newest.to_string()).unwrap_or_default();
                status.reasons.push(format!("the newest date is {newest}, {age} ago, above the limit of {limit}"));
            }
            (Some(_), _) => {}
            (None, _) if status.rows[0].is_none() => {
                status.reasons.push("no version has been published".to_owned());
                return;
            }
            (None, _) => {
                status.reasons.push("the newest date of the dataset cannot be read".to_owned());
                return;
            }
        }
        if let Some((newest, days)) = status.newest.and_then(|newest| Some((newest, days_ahead(newest, today)?))) {
            let days = counted(days.into(), "day", "days");
            status.reasons.push(format!("the newest date is {newest}, {days} in the future"));
        }
        status.verdict = if status.reasons.is_empty() { Verdict::Fresh } else { Verdict::Stale };
    }

    /// The next time, and whether a run is overdue.
    fn judge_schedule(&self, status: &mut Status, schedule: &Schedule) {
        let memory: Option<Memory> = Place::of(&self.folders.data, &status.name).read(schedule).ok().flatten();
        status.next = upcoming(schedule, self.now).next();
        // Without a memory no scheduler has seen the definition, and it owes nothing.
        let Some(memory) = memory else { return };
        if let Some(retry) = memory.retry_at() {
            status.next = Some(status.next.map_or(retry, |next| next.min(retry)));
        }
        let newest = schedule.cron.last_until(self.now - deadline(schedule), schedule.timezone.0);
        let is_open = |due: &DateTime<Utc>| {
            *due > memory.done && status.last(Outcome::Success).is_none_or(|run| run.started_at < *due)
        };
        if let Some(due) = newest.filter(is_open) {
            let due = to_minute(due);
            status.reasons.push(format!("the run due at {due} has not happened: is `bellwether schedule` running?"));
        }
    }

    fn fetched_at(&self, name: &str) -> Option<DateTime<Utc>> {
        let archives = self.archives.iter().flatten();
        let seals = archives.flat_map(|(_, archive)| archive.runs().iter().map(|run| run.seal()));
        let own = seals.filter(|seal| seal.definition.as_ref().is_some_and(|definition| definition.name == name));
        own.map(|seal| seal.sealed_at).max()
    }
}

/// What `bellwether prune` would free; `None` if that cannot be told.
fn prunable(folders: &Folders, archives: Option<Vec<(String, Archive)>>) -> Option<u64> {
    if archives.is_none() && folders.archive.exists() {
        return None;
    }
    let options = PruneOptions {
        data: folders.data.clone(),
        archive: folders.archive.clone(),
        keep: kept_versions(&folders.definitions),
        older_than: PruneOptions::OLDER_THAN,
        clock: Clock::System,
    };
    let archives = archives.into_iter().flatten().map(|(_, archive)| archive).collect();
    Prunable::with(options, archives).ok().map(|prunable| prunable.freed)
}

fn facts(version: &Path) -> Option<Facts> {
    Facts::from_json(&export::facts(version).ok()?).ok()
}

/// The first line of what an error says, and of why.
fn first_line(error: &Error) -> String {
    let line = |text: String| text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let reason = std::error::Error::source(error).map(|reason| format!(": {reason}")).unwrap_or_default();
    line(format!("{}{}", line(error.to_string()), reason))
}

/// An instant for people: `2026-11-20 23:30 UTC`, with seconds unless they are zero.
pub fn to_minute(instant: DateTime<Utc>) -> String {
    let form = if instant.second() == 0 { "%Y-%m-%d %H:%M UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    instant.format(form).to_string()
}
