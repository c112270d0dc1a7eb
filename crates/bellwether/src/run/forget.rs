//! Forgets runs: takes each back by a note in the archive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::observer::Control;
use crate::archive::{self, Archive, ForgetReason, Forgetting, claims_of, open_all, unknown_run};
use crate::disk::file;
use crate::error::Result;
use crate::export::VersionRecord;
use crate::time::{Clock, as_record};

/// The outcome of forgetting runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Forgot {
    /// The runs.
    pub runs: Vec<ForgotRun>,
}

/// A run that is forgotten.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForgotRun {
    /// The run.
    pub run: String,
    /// The service that answered.
    pub service: String,
    /// Why it is forgotten.
    pub reason: String,
    /// Since when.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub forgotten_at: DateTime<Utc>,
    /// Whether it was not forgotten before.
    pub is_new: bool,
}

/// Forgets runs of an archive: no command counts them any more, on any machine that gets the notes.
///
/// # Errors
///
/// If the archive does not have one of the runs, if others are based on them, or if a note cannot be written.
pub fn forget(archive: &Path, runs: &[String], reason: &ForgetReason, control: &Control) -> Result<Forgot> {
    let archives = open_all(archive)?;
    let mut by_archive: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    for run in runs.iter().collect::<BTreeSet<_>>() {
        let of_service = archives.iter().find(|(_, archive)| archive.known_names().contains(run.as_str()));
        let (_, of_service) = of_service.ok_or_else(|| unknown_run(archive, run))?;
        by_archive.entry(of_service.path()).or_default().push(run.clone());
    }
    let mut forgot = Vec::new();
    for (of_service, runs) in by_archive {
        for (note, is_new) in archive::forget(of_service, &runs, reason, Clock::System.now(), &control.stop)? {
            let Forgetting { run, service, reason, forgotten_at, .. } = note;
            forgot.push(ForgotRun { run, service, reason, forgotten_at, is_new });
        }
    }
    Ok(Forgot { runs: forgot })
}

/// The newest of some versions that was built from no forgotten run.
pub(super) fn newest_that_counts<'v>(
    archive: &Path,
    versions: impl IntoIterator<Item = &'v VersionRecord>,
) -> Result<Option<&'v VersionRecord>> {
    let mut versions: Vec<&VersionRecord> = versions.into_iter().collect();
    versions.sort_unstable_by_key(|one| Reverse((one.as_of, one.built_at)));
    for one in versions {
        if forgotten_run_of(archive, one)?.is_none() {
            return Ok(Some(one));
        }
    }
    Ok(None)
}

/// A forgotten run that a version was built from, if there is one.
pub(super) fn forgotten_run_of(archive: &Path, version: &VersionRecord) -> Result<Option<String>> {
    let folder = archive.join(&version.service.name);
    for folder in [claims_of(&folder), folder].into_iter().filter(|folder| !file::is_gone(folder)) {
        let archive = Archive::open(&folder)?;
        let forgotten: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
        if let Some(run) = version.runs.iter().find(|run| forgotten.contains(run.as_str())) {
            return Ok(Some(run.clone()));
        }
    }
    Ok(None)
}
