//! Forgets a run: takes it back by a note in the archive.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::observer::Control;
use crate::archive::{self, Archive, ArchiveError, ForgetReason, Forgetting, claims_of, open_all};
use crate::error::Result;
use crate::export::VersionRecord;
use crate::time::{Clock, as_record};

/// The outcome of forgetting a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Forgot {
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

/// Forgets a run of an archive: no command counts it any more, on any machine that gets the note.
///
/// # Errors
///
/// If the archive does not have the run, if other runs are based on it, or if the note cannot be written.
pub fn forget(archive: &Path, run: &str, reason: &ForgetReason, control: &Control) -> Result<Forgot> {
    let has_run = |archive: &Archive| archive.known_names().contains(run);
    let archives = open_all(archive)?;
    let Some((_, of_service)) = archives.iter().find(|(_, archive)| has_run(archive)) else {
        return Err(ArchiveError::UnknownRun { path: archive.to_owned(), run: run.to_owned() }.into());
    };
    let (Forgetting { run, service, reason, forgotten_at, .. }, is_new) =
        archive::forget(of_service.path(), run, reason, Clock::System.now(), &control.stop)?;
    Ok(Forgot { run, service, reason, forgotten_at, is_new })
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
    let Some(service) = &version.service else { return Ok(None) };
    let folder = archive.join(&service.name);
    let folders = [claims_of(&folder), folder].into_iter().filter(|folder| folder.exists());
    let archives = folders.map(|folder| Archive::open(&folder)).collect::<Result<Vec<Archive>>>()?;
    let forgotten: BTreeSet<&str> =
        archives.iter().flat_map(Archive::forgotten_runs).map(|run| run.run.as_str()).collect();
    Ok(version.runs.iter().find(|run| forgotten.contains(run.as_str())).cloned())
}
