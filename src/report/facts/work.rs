//! What the runs did that a dataset is built from: requests, rejects, fields that nobody knows, and how long it took.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::AsArray;
use chrono::{DateTime, Utc};

use crate::archive::{Counts, SealedRun, View};
use crate::error::Result;
use crate::interface::Endpoint;
use crate::tables::{Drift, RequestRecord};

/// How many reasons are told apart.
const MOST_REASONS: usize = 256;

/// What the others are counted under.
const OTHER_REASONS: &str = "other reasons";

/// What the runs did.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The runs, the newest first.
    pub runs: Vec<RunRecord>,
    /// What was asked in the newest of them, by operation, in the order in which operations were answered first.
    pub answers: Vec<Answers>,
    /// Why records were set aside, what happened most often first.
    pub rejects: Vec<Reason>,
    /// Fields that the interface does not know, those seen most often first.
    pub drift: Vec<Drift>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Its name.
    pub name: String,
    /// Whose it was; none of one that was compacted out of others.
    pub definition: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it was sealed.
    pub sealed_at: DateTime<Utc>,
    /// The requests that were answered.
    pub requests: u64,
    /// The records that were set aside.
    pub rejects: u64,
    /// What it changed.
    pub changes: Counts,
}

/// The answers of one operation in a run.
#[derive(Clone, Debug)]
pub struct Answers {
    /// The operation.
    pub endpoint: Endpoint,
    /// How often something was asked again.
    pub again: u64,
    /// The rows that the answers gave.
    pub rows: u64,
    /// Their size.
    pub bytes: u64,
    /// How long after the run began each of them was complete, in order.
    pub complete: Vec<Duration>,
}

/// Why records were set aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The reason.
    pub reason: String,
    /// How many records.
    pub count: u64,
    /// Where the first of them stood: the request, and the place in its answer.
    pub example: (String, String),
}

impl Work {
    /// What the runs of a view did.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read.
    pub fn of(view: &View) -> Result<Self> {
        let begun = view.archive().runs().iter().filter(|run| run.seal().started_at <= view.as_of());
        let runs: Vec<&SealedRun> = begun.rev().collect();
        let mut work = Self { runs: runs.iter().map(|run| RunRecord::of(run)).collect(), ..Self::default() };
        let mut reasons: BTreeMap<String, Reason> = BTreeMap::new();
        for run in &runs {
            run.seal().drift.iter().cloned().for_each(|drift| drift.add_to(&mut work.drift));
            if run.reject_count() > 0 {
                count_rejects(run, &mut reasons)?;
            }
        }
        work.rejects = reasons.into_values().collect();
        work.rejects.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        work.drift.sort_by_key(|drift| std::cmp::Reverse(drift.count));
        if let Some(newest) = runs.first() {
            work.answers = answers(&newest.requests()?, newest.seal().started_at);
        }
        Ok(work)
    }

    /// How many records were set aside.
    pub fn rejected(&self) -> u64 {
        self.runs.iter().map(|run| run.rejects).sum()
    }
}

impl RunRecord {
    fn of(run: &SealedRun) -> Self {
        let seal = run.seal();
        Self {
            name: seal.run.clone(),
            definition: seal.definition.as_ref().map(|definition| definition.name.clone()),
            started_at: seal.started_at,
            sealed_at: seal.sealed_at,
            requests: run.request_count(),
            rejects: run.reject_count(),
            changes: seal.changes,
        }
    }

    /// How long it took.
    pub fn elapsed(&self) -> Duration {
        since(self.started_at, self.sealed_at)
    }
}

fn since(earlier: DateTime<Utc>, later: DateTime<Utc>) -> Duration {
    (later - earlier).to_std().unwrap_or_default()
}

fn count_rejects(run: &SealedRun, reasons: &mut BTreeMap<String, Reason>) -> Result<()> {
    for rows in run.rejects()? {
        let rows = rows?;
        let column = |name: &str| {
            rows.column_by_name(name).expect("a sealed run has the columns of its layout").as_string::<i32>()
        };
        let (reason, request, pointer) = (column("reason"), column("request"), column("pointer"));
        for row in 0..rows.num_rows() {
            let example = || (request.value(row).to_owned(), pointer.value(row).to_owned());
            // Reasons quote what the vendor wrote, so there may be as many as records.
            let is_full = reasons.len() >= MOST_REASONS && !reasons.contains_key(reason.value(row));
            let text = if is_full { OTHER_REASONS } else { reason.value(row) };
            match reasons.get_mut(text) {
                Some(known) => known.count += 1,
                None => {
                    let known = Reason { reason: text.to_owned(), count: 1, example: example() };
                    reasons.insert(text.to_owned(), known);
                }
            }
        }
    }
    Ok(())
}

fn answers(requests: &[RequestRecord], started_at: DateTime<Utc>) -> Vec<Answers> {
    let mut of_endpoints: BTreeMap<Endpoint, Answers> = BTreeMap::new();
    for request in requests {
        let endpoint = request.endpoint;
        let empty = Answers { endpoint, again: 0, rows: 0, bytes: 0, complete: Vec::new() };
        let answers = of_endpoints.entry(endpoint).or_insert(empty);
        answers.again += u64::from(request.attempts.saturating_sub(1));
        answers.rows += request.rows;
        answers.bytes += request.bytes;
        answers.complete.push(since(started_at, request.observed_at));
    }
    let mut answers: Vec<Answers> = of_endpoints.into_values().collect();
    answers.iter_mut().for_each(|answers| answers.complete.sort_unstable());
    answers.sort_by_key(|answers| answers.complete.first().copied());
    answers
}
