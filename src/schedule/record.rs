//! The record of a run: what hooks get, what the journal keeps, and what status and metrics are made from.

use std::path::PathBuf;

use bellwether::archive::Counts;
use bellwether::error::{Error, ErrorKind};
use bellwether::key::without_keys;
use bellwether::run::Summary;
use bellwether::time::as_record;
use chrono::{DateTime, Timelike, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the record. New fields may appear without a new version.
const VERSION: u32 = 1;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A version was published.
    Success,
    /// A temporary failure: the run is tried again.
    Later,
    /// It failed, or ran out of retries.
    Failure,
    /// It was interrupted, and can be resumed.
    Interrupted,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Success, Self::Later, Self::Failure, Self::Interrupted];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Later => "later",
            Self::Failure => "failure",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Version of the record.
    pub version: u32,
    /// The definition.
    pub definition: String,
    /// The name of the run, which its folder in the archive has once it is sealed; none if it failed before it had one.
    pub run: Option<String>,
    /// The service that was asked.
    pub service: Option<String>,
    /// The time that it was scheduled for; none for a run that was started by hand.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub due: Option<DateTime<Utc>>,
    /// When it started.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub ended_at: DateTime<Utc>,
    /// How long it took, by a monotonic clock.
    pub seconds: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// The exit code of `bellwether run` for it.
    pub exit_code: u8,
    /// What failed, and then why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedRecord>,
}

/// What a run published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRecord {
    /// The folder of the version.
    pub dataset: PathBuf,
    /// The hash of its content.
    pub content: String,
    /// Its rows.
    pub rows: u64,
    /// Its tickers.
    pub tickers: usize,
    /// Its first and last date.
    pub dates: Option<[String; 2]>,
    /// The number of answered requests.
    pub requests: usize,
    /// The number of retries.
    pub retries: u64,
    /// The number of rejected records.
    pub rejects: u64,
    /// Changes to the cells of the archive.
    pub changes: Counts,
    /// The cells that the archive knew before of the series that were answered.
    pub known: u64,
}

impl PublishedRecord {
    /// The share of the known cells that were revised or withdrawn; `None` if none was known.
    pub fn rewritten_share(&self) -> Option<f64> {
        (self.known > 0).then(|| (self.changes.revised + self.changes.withdrawn) as f64 / self.known as f64)
    }
}

impl RunRecord {
    /// The record of a run that has begun.
    pub(super) fn begin(definition: &str, due: Option<DateTime<Utc>>, started_at: DateTime<Utc>) -> Self {
        Self {
            version: VERSION,
            definition: definition.to_owned(),
            run: None,
            service: None,
            due,
            started_at,
            ended_at: started_at,
            seconds: 0.0,
            outcome: Outcome::Interrupted,
            exit_code: ErrorKind::Interrupted.exit_code(),
            reasons: Vec::new(),
            hint: None,
            published: None,
        }
    }

    /// Adds that it succeeded.
    pub(super) fn succeed(&mut self, summary: &Summary) {
        let (requests, retries, rejects, changes, known) = match &summary.fetched {
            Some(fetched) => (fetched.requests, fetched.retries, fetched.rejects, fetched.changes, fetched.known),
            None => Default::default(),
        };
        let dates = summary.first_date.zip(summary.last_date);
        self.outcome = Outcome::Success;
        self.exit_code = 0;
        self.published = Some(PublishedRecord {
            dataset: summary.dataset.clone(),
            content: summary.content.clone(),
            rows: summary.rows,
            tickers: summary.tickers,
            dates: dates.map(|(first, last)| [first.to_string(), last.to_string()]),
            requests,
            retries,
            rejects,
            changes,
            known,
        });
    }

    /// Adds that it failed.
    pub(super) fn fail(&mut self, error: &Error) {
        let Fault { reasons, hint, exit_code } = Fault::new(error);
        self.outcome = match error.kind() {
            ErrorKind::Busy | ErrorKind::Clock | ErrorKind::Temporary => Outcome::Later,
            ErrorKind::Interrupted => Outcome::Interrupted,
            _ => Outcome::Failure,
        };
        (self.exit_code, self.hint, self.reasons) = (exit_code, hint, reasons);
    }

    /// The record of a run that was due and did not start.
    pub(super) fn not_started(definition: &str, due: DateTime<Utc>, now: DateTime<Utc>, fault: &Fault) -> Self {
        let Fault { reasons, hint, exit_code } = fault.clone();
        let outcome = Outcome::Failure;
        Self { outcome, exit_code, hint, reasons, ..Self::begin(definition, Some(due), now) }
    }

    /// Adds that it is not tried again, and why.
    pub(super) fn give_up(&mut self, why: &str) {
        self.outcome = Outcome::Failure;
        // The same command would not try it again.
        (self.exit_code, self.hint) = (ErrorKind::Service.exit_code(), None);
        self.reasons.push(why.to_owned());
    }

    /// What failed and why, on one line; `None` if nothing did.
    pub fn reason(&self) -> Option<String> {
        (!self.reasons.is_empty()).then(|| self.reasons.join(": "))
    }
}

/// Why something failed, without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What failed, and then why.
    reasons: Vec<String>,
    /// What to do about it.
    hint: Option<String>,
    /// The exit code for it.
    pub exit_code: u8,
}

impl Fault {
    pub(super) fn new(error: &Error) -> Self {
        let (hint, exit_code) = (error.hint().map(without_keys), error.kind().exit_code());
        let reasons = std::iter::once(error.to_string()).chain(error.causes().map(ToString::to_string));
        Self { reasons: reasons.map(|reason| without_keys(&reason)).collect(), hint, exit_code }
    }

    /// What failed and why, on one line.
    pub fn reason(&self) -> String {
        let first_line =
            |text: &String| text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        self.reasons.iter().map(first_line).collect::<Vec<_>>().join(": ")
    }
}

/// An instant for people: `2026-11-20 23:30 UTC`, with seconds unless they are zero.
pub fn to_minute(instant: DateTime<Utc>) -> String {
    let form = if instant.second() == 0 { "%Y-%m-%d %H:%M UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    instant.format(form).to_string()
}
