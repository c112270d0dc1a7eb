//! The status as JSON, for `bellwether status --json` and for `/status`.

use bellwether::definition::ChangedKey;
use bellwether::time::to_record;
use schemars::JsonSchema;
use serde::Serialize;

use super::disk::Disk;
use super::look::LookRecord;
use super::record::{Outcome, RunRecord};
use super::status::{Overview, Status, Verdict};

/// Version of the shape. New members and new values of enumerations do not change it.
const VERSION: u32 = 1;

/// How some definitions are doing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusDocument {
    /// The version of the shape.
    version: u32,
    /// When the status was taken.
    now: String,
    /// The worst verdict: `failing`, then `stale`, then `unknown`; also `unknown` without definitions. `not_run` counts only if
    /// the definition was asked for by name, or if none was ever run.
    verdict: Verdict,
    /// Why it is unknown how the project is doing, a sentence each: no definitions, or a scheduler that does not work.
    reasons: Vec<String>,
    /// The definitions, by name.
    definitions: Vec<Definition>,
    /// The scheduler that is running, if one is.
    scheduler: Option<LookRecord>,
    /// The bytes of the project's folders, by what they are for.
    disk: Disk,
    /// The bytes that are free on the disk with the data.
    disk_free_bytes: Option<u64>,
    /// The bytes that `prune` would free.
    prunable_bytes: Option<u64>,
}

/// How a definition is doing.
#[derive(Debug, Serialize, JsonSchema)]
struct Definition {
    /// Its name.
    name: String,
    /// Its description.
    description: Option<String>,
    /// How it is doing.
    verdict: Verdict,
    /// Why, a sentence each; empty if it is fresh.
    reasons: Vec<String>,
    /// What changed in the definition since the latest version, key by key.
    changed: Vec<ChangedKey>,
    /// The newest date of the dataset.
    newest_date: Option<String>,
    /// The age of that date in trading days.
    age_trading_days: Option<u32>,
    /// The age of that date in calendar days.
    age_days: Option<u32>,
    /// How old it may be: `2 trading days`, `3d`.
    max_age: Option<String>,
    /// When the archive was last fetched for it.
    fetched_at: Option<String>,
    /// Whether that run was sealed in part.
    in_part: bool,
    /// The last run that published a version.
    last_success: Option<RunRecord>,
    /// The last run that failed.
    last_failure: Option<RunRecord>,
    /// The last run that ended with a temporary failure.
    last_later: Option<RunRecord>,
    /// How many runs in a row have not succeeded, up to the last one.
    consecutive_failures: usize,
    /// Whether a run is in progress.
    is_running: bool,
    /// Since when it is.
    running_since: Option<String>,
    /// When it is due next, or tried again.
    next: Option<String>,
    /// The due time whose run has not begun by its deadline.
    overdue: Option<String>,
    /// The rows of the latest version.
    rows: Option<u64>,
    /// The rows of the version before.
    rows_before: Option<u64>,
    /// The tickers of the latest version.
    tickers: Option<u64>,
    /// The tickers of the run before.
    tickers_before: Option<u64>,
    /// The number of versions.
    versions: usize,
    /// The bytes of the dataset's folder.
    bytes: u64,
}

impl StatusDocument {
    /// The status of some definitions.
    pub fn of(overview: &Overview) -> Self {
        Self {
            version: VERSION,
            now: to_record(overview.now),
            verdict: overview.verdict(),
            reasons: overview.reasons.clone(),
            definitions: overview.definitions.iter().map(Definition::of).collect(),
            scheduler: overview.scheduler.clone(),
            disk: overview.disk,
            disk_free_bytes: overview.free,
            prunable_bytes: overview.prunable,
        }
    }

    /// One line of JSON.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("a status is text, numbers and lists");
        line.push('\n');
        line
    }
}

impl Definition {
    fn of(status: &Status) -> Self {
        let last = |outcome: Outcome| status.last(outcome).cloned();
        let ([rows, rows_before], [tickers, tickers_before]) = (status.rows, status.tickers);
        Self {
            name: status.name.clone(),
            description: status.description.clone(),
            verdict: status.verdict,
            reasons: status.reasons.clone(),
            changed: status.changed.clone(),
            newest_date: status.newest.map(|day| day.to_string()),
            age_trading_days: status.age.map(|age| age.trading_days),
            age_days: status.age.map(|age| age.days),
            max_age: status.max_age.map(|limit| limit.to_string()),
            fetched_at: status.fetched_at.map(to_record),
            in_part: status.in_part,
            last_success: last(Outcome::Success),
            last_failure: last(Outcome::Failure),
            last_later: last(Outcome::Later),
            consecutive_failures: status.consecutive_failures(),
            is_running: status.running.is_some(),
            running_since: status.running.as_ref().and_then(|running| running.since).map(to_record),
            next: status.next.map(to_record),
            overdue: status.overdue.map(to_record),
            rows,
            rows_before,
            tickers,
            tickers_before,
            versions: status.versions.0,
            bytes: status.versions.1,
        }
    }
}
