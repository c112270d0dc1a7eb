//! The archive.

use schemars::JsonSchema;
use serde::Serialize;

use crate::archive::{self, Archive, ForgottenCause, ForgottenRun, Seal, SealedRun, UnfinishedRun};
use crate::audit::documents::UnknownField;
use crate::run::{Forgot, Prunable, PruneMode};
use crate::time::to_record;

/// The runs of an archive.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Runs {
    /// The sealed runs, in the order in which they were sealed.
    runs: Vec<Listed>,
    /// Runs that were interrupted, or are in progress.
    unfinished: Vec<Unfinished>,
    /// The folders that `archive prune` would remove.
    packed_folders: usize,
    /// The runs that are forgotten, and do not count.
    forgotten: Vec<LeftOut>,
}

/// A run that is forgotten.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Forgotten {
    /// Its name.
    run: String,
    /// The service that answered.
    service: String,
    /// Why it is forgotten.
    reason: String,
    /// Since when.
    forgotten_at: String,
    /// Whether it was not forgotten before.
    is_new: bool,
}

impl Forgotten {
    pub(in crate::cli) fn of(Forgot { note, is_new }: &Forgot) -> Self {
        Self {
            run: note.run.clone(),
            service: note.service.clone(),
            reason: note.reason.clone(),
            forgotten_at: to_record(note.forgotten_at),
            is_new: *is_new,
        }
    }
}

/// A run that does not count.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut {
    /// Its name.
    run: String,
    /// Why it was forgotten; none if it is based on another one that is.
    reason: Option<String>,
    /// When it was forgotten.
    forgotten_at: Option<String>,
    /// The forgotten run that it is based on.
    based_on: Option<String>,
}

impl LeftOut {
    fn of(forgotten: &ForgottenRun) -> Self {
        let (note, based_on) = match &forgotten.cause {
            ForgottenCause::Noted(note) => (Some(note), None),
            ForgottenCause::BasedOn(run) => (None, Some(run.clone())),
            // Only who asks for claims meets one that is left out.
            ForgottenCause::Witnessed(_) => (None, None),
        };
        Self {
            run: forgotten.run.clone(),
            reason: note.map(|note| note.reason.clone()),
            forgotten_at: note.map(|note| to_record(note.forgotten_at)),
            based_on,
        }
    }
}

/// A sealed run.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// Its name.
    run: String,
    /// The service that answered.
    service: String,
    /// The name of its definition.
    definition: Option<String>,
    /// When it started.
    started_at: String,
    /// When it was sealed.
    sealed_at: String,
    /// When it was imported, if it is a claim.
    imported_at: Option<String>,
    /// The number of answered requests.
    requests: u64,
    /// New cells.
    added: u64,
    /// Cells whose values changed.
    revised: u64,
    /// Cells that are no longer listed.
    withdrawn: u64,
    /// Rejected records.
    rejected: u64,
    /// The size of its files.
    bytes: u64,
}

/// A run that is not sealed.
#[derive(Debug, Serialize, JsonSchema)]
struct Unfinished {
    /// Its name.
    run: String,
    /// The service that is asked.
    service: String,
    /// The name of its definition.
    definition: String,
    /// The number of answered requests.
    answers: usize,
}

/// A sealed run with its files.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Run {
    #[serde(flatten)]
    listed: Listed,
    /// The folder of its rows: its own, or that of a pack.
    folder: String,
    /// The BLAKE3 of its definition.
    definition_digest: Option<String>,
    /// The version of bellwether that wrote it.
    written_by: String,
    /// Its layout.
    layout: u32,
    /// Series that were listed for the first time, or again.
    series_listed: u64,
    /// Series that are no longer listed.
    series_delisted: u64,
    /// Its files.
    files: Vec<File>,
    /// Fields that the interface does not have.
    unknown_fields: Vec<UnknownField>,
}

/// A file.
#[derive(Debug, Serialize, JsonSchema)]
struct File {
    /// Its name.
    name: String,
    /// Its rows.
    rows: u64,
    /// Its size.
    bytes: u64,
}

/// What was verified.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Verified {
    /// The number of files.
    files: usize,
    /// What is wrong, a sentence each.
    faults: Vec<String>,
    /// The runs that are forgotten, a sentence each.
    notes: Vec<String>,
}

impl Runs {
    pub(in crate::cli) fn of(archives: &[(String, Archive)], unfinished: &[(String, Vec<UnfinishedRun>)]) -> Self {
        let open = |(service, run): (&String, &UnfinishedRun)| Unfinished {
            run: run.run.clone(),
            service: service.clone(),
            definition: run.definition.clone(),
            answers: run.answers,
        };
        let runs = archives.iter().flat_map(|(_, archive)| archive.runs());
        let unfinished = unfinished.iter().flat_map(|(service, runs)| runs.iter().map(move |run| (service, run)));
        Self {
            runs: runs.map(|run| Listed::of(run.seal())).collect(),
            unfinished: unfinished.map(open).collect(),
            packed_folders: archives.iter().map(|(_, archive)| archive.superseded_count()).sum(),
            forgotten: archives.iter().flat_map(|(_, archive)| archive.forgotten()).map(LeftOut::of).collect(),
        }
    }
}

impl Listed {
    fn of(seal: &Seal) -> Self {
        Self {
            run: seal.run.clone(),
            service: seal.service.name.clone(),
            definition: seal.definition.as_ref().map(|definition| definition.name.clone()),
            started_at: to_record(seal.started_at),
            sealed_at: to_record(seal.sealed_at),
            imported_at: seal.claimed.as_ref().map(|claim| to_record(claim.imported_at)),
            requests: seal.rows("requests.parquet"),
            added: seal.changes.added,
            revised: seal.changes.revised,
            withdrawn: seal.changes.withdrawn,
            rejected: seal.rows("rejects.parquet"),
            bytes: seal.bytes(),
        }
    }
}

impl Run {
    pub(in crate::cli) fn of(run: &SealedRun) -> Self {
        let seal = run.seal();
        let files = seal.files.iter().map(|file| File { name: file.name.clone(), rows: file.rows, bytes: file.bytes });
        Self {
            listed: Listed::of(seal),
            folder: run.path().display().to_string(),
            definition_digest: seal.definition.as_ref().map(|definition| definition.digest.clone()),
            written_by: seal.bellwether.clone(),
            layout: seal.layout,
            series_listed: seal.changes.listed,
            series_delisted: seal.changes.delisted,
            files: files.collect(),
            unknown_fields: seal.drift.iter().map(UnknownField::of).collect(),
        }
    }
}

impl Verified {
    pub(in crate::cli) fn of(verified: &archive::Verified) -> Self {
        Self { files: verified.files, faults: verified.faults.clone(), notes: verified.notes.clone() }
    }
}

/// What was pruned, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Pruned {
    /// Whether nothing was removed.
    dry_run: bool,
    /// What was removed, or would be.
    removed: Vec<PrunedPath>,
    /// Entries that match the rules but are kept, with the reason, a line each.
    kept: Vec<String>,
    /// The bytes that this frees. Versions may share files with others.
    freed: u64,
}

/// A file or folder.
#[derive(Debug, Serialize, JsonSchema)]
struct PrunedPath {
    /// `version`, `packed run`, `interrupted run`, `leftover`, `evidence` or `report`.
    kind: &'static str,
    /// Its path.
    path: String,
    /// Its size.
    bytes: u64,
}

impl Pruned {
    pub(in crate::cli) fn of(prunable: &Prunable, mode: PruneMode) -> Self {
        let removed = prunable.all.iter().map(|pruned| PrunedPath {
            kind: pruned.kind.as_str(),
            path: pruned.path.display().to_string(),
            bytes: pruned.bytes,
        });
        Self {
            dry_run: mode == PruneMode::List,
            removed: removed.collect(),
            kept: prunable.kept.clone(),
            freed: prunable.freed,
        }
    }
}
