//! The runs of an archive as they are told to users: `--json` prints these documents, and Python's rows have the same
//! columns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::forgotten::{ForgottenCause, ForgottenRun};
use super::sealed::catalog::Archive;
use super::sealed::seal::Parent;
use super::sealed::sealed_run::SealedRun;
use super::services::{open_all, services};
use super::unfinished::{UnfinishedRun, unfinished_runs};
use crate::disk::file::FileRecord;
use crate::error::{Error, Result};
use crate::tables::Drift;
use crate::text::human::group_digits;
use crate::time::{as_record, to_record};

/// The runs of every service.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunListing {
    /// The sealed runs, oldest first.
    pub runs: Vec<ListedRun>,
    /// Runs that were interrupted, or are in progress.
    pub unfinished: Vec<UnfinishedRun>,
    /// The folders that `prune` would remove.
    pub packed_folders: usize,
    /// The runs that are forgotten, and do not count.
    pub forgotten: Vec<LeftOut>,
    /// What stands for all that was ever sealed, for each service.
    pub past: Vec<Past>,
}

/// What stands for every run of a service, forgotten ones included. Claims are not part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Past {
    /// The service.
    pub service: String,
    /// The service, and each run that no other run knew with its seal; that names the seals of the runs that it knew.
    pub statement: String,
    /// The SHA-256 of the statement.
    pub sha256: String,
}

/// A sealed run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedRun {
    /// Its name.
    pub run: String,
    /// The service that answered.
    pub service: String,
    /// The name of its definition.
    pub definition: Option<String>,
    /// When it started.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub started_at: DateTime<Utc>,
    /// When it was sealed.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub sealed_at: DateTime<Utc>,
    /// When it was imported, if it is a claim.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub imported_at: Option<DateTime<Utc>>,
    /// Why it was sealed before all requests were answered, if it was.
    pub in_part: Option<String>,
    /// The number of answered requests.
    pub requests: u64,
    /// New cells.
    pub added: u64,
    /// Cells whose values changed.
    pub revised: u64,
    /// Cells that are no longer listed.
    pub withdrawn: u64,
    /// Rejected records.
    pub rejected: u64,
    /// The size of its files.
    pub bytes: u64,
}

/// A sealed run with its files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunDetails {
    /// Its line in a list.
    #[serde(flatten)]
    pub listed: ListedRun,
    /// The folder of its rows: its own, or that of a pack.
    pub folder: String,
    /// The BLAKE3 of its definition.
    pub definition_digest: Option<String>,
    /// The version of bellwether that wrote it.
    pub written_by: String,
    /// Its layout.
    pub layout: u32,
    /// Series that were listed for the first time, or again.
    pub series_listed: u64,
    /// Series that are no longer listed.
    pub series_delisted: u64,
    /// Its files.
    pub files: Vec<FileRecord>,
    /// Fields that the interface does not have.
    pub unknown_fields: Vec<Drift>,
    /// Why records were rejected, the most frequent reason first.
    pub reject_reasons: Vec<RejectGroup>,
}

/// Records of a run that were rejected for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RejectGroup {
    /// The reason, with the value of the first one.
    pub reason: String,
    /// How many were; a history that was rejected as a whole counts once.
    pub count: u64,
    /// The request that the first was in the answer to.
    pub request: String,
    /// Where in the answer: a JSON pointer.
    pub pointer: String,
}

impl fmt::Display for RejectGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, count, request, pointer } = self;
        write!(formatter, "{} times: {reason}, at `{pointer}` of `{request}`", group_digits(*count))
    }
}

impl RejectGroup {
    /// The most reasons that are told apart.
    const MAX_GROUPS: usize = 20;

    /// Why records of a run were rejected, the most frequent reason first. Values in a reason do not tell reasons apart.
    pub(crate) fn of_run(run: &SealedRun) -> Result<Vec<Self>> {
        let mut groups: BTreeMap<String, Self> = BTreeMap::new();
        if !run.has_rejects() {
            return Ok(Vec::new());
        }
        for rows in run.rejects()? {
            let rows = rows?;
            let text = |name: &str| rows.column_by_name(name).expect("a column of the layout").as_string::<i32>();
            let [request, reason, pointer] = ["request", "reason", "pointer"].map(text);
            for row in 0..rows.num_rows() {
                // What is between backticks changes, but for the name of a field before it.
                let parts = reason.value(row).split('`').enumerate();
                let kind: String =
                    parts.filter(|(part, _)| part % 2 == 0 || *part == 1).map(|(_, text)| text).collect();
                if let Some(group) = groups.get_mut(&kind) {
                    group.count += 1;
                } else if groups.len() < Self::MAX_GROUPS {
                    let [reason, request, pointer] =
                        [reason, request, pointer].map(|texts| texts.value(row).to_owned());
                    groups.insert(kind, Self { reason, count: 1, request, pointer });
                }
            }
        }
        let mut groups: Vec<Self> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        Ok(groups)
    }
}

/// A run that does not count.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub run: String,
    /// Why it was forgotten; none if it is based on another one that is.
    pub reason: Option<String>,
    /// When it was forgotten.
    pub forgotten_at: Option<String>,
    /// The forgotten run that it is based on.
    pub based_on: Option<String>,
    /// All that in words.
    #[serde(skip)]
    pub in_words: String,
}

impl RunListing {
    /// The runs in the archive of a project.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn of(archive: &Path) -> Result<Self> {
        let (mut runs, mut unfinished, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        let mut packed_folders = 0;
        for (service, archive) in open_all(archive)? {
            unfinished.extend(unfinished_runs(archive.path())?);
            for run in archive.runs() {
                runs.push(ListedRun::of(&service, run)?);
            }
            packed_folders += archive.superseded_folders().len();
            forgotten.extend(archive.forgotten_runs().map(LeftOut::of));
        }
        runs.sort_by_key(|run| run.sealed_at);
        let mut past = Vec::new();
        for service in services(archive)? {
            past.extend(Past::of(&archive.join(&service), service)?);
        }
        Ok(Self { runs, unfinished, packed_folders, forgotten, past })
    }
}

impl Past {
    /// Of the archive of a service; none without runs.
    fn of(archive: &Path, service: String) -> Result<Option<Self>> {
        let whole = Archive::open_whole(archive)?;
        let heads: BTreeSet<&Parent> = whole.lineage().heads().iter().collect();
        if heads.is_empty() {
            return Ok(None);
        }
        let mut statement = format!("bellwether archive {service}\n");
        for head in heads {
            statement.push_str(&format!("run {} {}\n", head.run, head.seal));
        }
        let sha256 = Sha256::digest(statement.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(Self { service, statement, sha256 }))
    }
}

impl ListedRun {
    /// Runs as rows.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns have the same length.
    pub fn rows(runs: &[Self]) -> Result<RecordBatch> {
        let text =
            |of: fn(&Self) -> Option<&str>| -> ArrayRef { Arc::new(runs.iter().map(of).collect::<StringArray>()) };
        let instant = |of: fn(&Self) -> Option<DateTime<Utc>>| -> ArrayRef {
            let micros = runs.iter().map(|run| of(run).map(|instant| instant.timestamp_micros()));
            Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        };
        let count = |of: fn(&Self) -> u64| -> ArrayRef {
            Arc::new(runs.iter().map(|run| Some(of(run) as i64)).collect::<Int64Array>())
        };
        let columns = [
            ("run", text(|run| Some(&run.run))),
            ("service", text(|run| Some(&run.service))),
            ("definition", text(|run| run.definition.as_deref())),
            ("started_at", instant(|run| Some(run.started_at))),
            ("sealed_at", instant(|run| Some(run.sealed_at))),
            ("imported_at", instant(|run| run.imported_at)),
            ("in_part", text(|run| run.in_part.as_deref())),
            ("requests", count(|run| run.requests)),
            ("added", count(|run| run.added)),
            ("revised", count(|run| run.revised)),
            ("withdrawn", count(|run| run.withdrawn)),
            ("rejected", count(|run| run.rejected)),
            ("bytes", count(|run| run.bytes)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true)))
            .map_err(Error::frame)
    }

    pub(crate) fn of(service: &str, run: &SealedRun) -> Result<Self> {
        let seal = run.seal();
        Ok(Self {
            run: seal.run.clone(),
            service: service.to_owned(),
            definition: seal.definition.as_ref().map(|definition| definition.name.clone()),
            started_at: seal.started_at,
            sealed_at: seal.sealed_at,
            imported_at: seal.claimed.as_ref().map(|claim| claim.imported_at),
            in_part: seal.in_part.clone(),
            requests: seal.rows("requests.parquet"),
            added: seal.changes.added,
            revised: seal.changes.revised,
            withdrawn: seal.changes.withdrawn,
            rejected: run.reject_count()?,
            bytes: seal.bytes(),
        })
    }
}

impl RunDetails {
    /// A run with its files.
    ///
    /// # Errors
    ///
    /// If its requests cannot be read.
    pub fn of(run: &SealedRun) -> Result<Self> {
        let seal = run.seal();
        Ok(Self {
            listed: ListedRun::of(&seal.service.name, run)?,
            folder: run.path().display().to_string(),
            definition_digest: seal.definition.as_ref().map(|definition| definition.digest.clone()),
            written_by: seal.bellwether.clone(),
            layout: seal.layout,
            series_listed: seal.changes.listed,
            series_delisted: seal.changes.delisted,
            files: seal.files.clone(),
            unknown_fields: seal.drift.clone(),
            reject_reasons: RejectGroup::of_run(run)?,
        })
    }
}

impl LeftOut {
    fn of(forgotten: &ForgottenRun) -> Self {
        let (note, based_on) = match &forgotten.cause {
            ForgottenCause::Noted(note) => (Some(note), None),
            // Only who asks for claims meets one that is left out.
            ForgottenCause::Witnessed(_) => (None, None),
            ForgottenCause::BasedOn(run) => (None, Some(run.clone())),
        };
        Self {
            run: forgotten.run.clone(),
            reason: note.map(|note| note.reason.clone()),
            forgotten_at: note.map(|note| to_record(note.forgotten_at)),
            based_on,
            in_words: forgotten.to_string(),
        }
    }
}
