//! Prunes a project by fixed rules: first a plan, which changes nothing, then its execution.
//!
//! | what | is removed |
//! |---|---|
//! | versions | beyond the newest `keep` of their definition, unless `latest` or another link points to them |
//! | packed runs | once their pack has been there for a day and is verified to hold every row |
//! | replaced packs | likewise; every run does that, too |
//! | interrupted runs | once they can no longer be resumed |
//! | leftovers | of killed processes, after a day |
//! | evidence, reports | when they are older than a limit |
//!
//! Builds as of an instant read runs and packs, and every row of them stays. Ad hoc builds stay, and so do
//! the versions of a dataset without a definition. Runs and publications may be in progress: what they are writing is
//! younger than what is removed, or locked. Two processes never prune an archive at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::observer::{Control, Stage};
use super::start::EVIDENCE;
use crate::archive::{self, Archive, Pruning, Removal, open_all};
use crate::definition;
use crate::disk::file::{self, FileError, as_text};
use crate::disk::footprint::{Footprint, size};
use crate::disk::links;
use crate::disk::lock::{Attempt, Holder, Lock};
use crate::disk::names::{self, JOURNAL, SCHEDULE};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Result};
use crate::export;
use crate::plan::Plan;
use crate::process::cancel;
use crate::process::trace::work;
use crate::text::human::count_of;
use crate::time::Clock;

/// The folder of reports written by `bellwether report`.
const REPORTS: &str = "reports";

/// What pruning does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneMode {
    /// It lists what it would remove.
    List,
    /// It removes it.
    Remove,
}

/// The options of pruning a project.
#[derive(Clone, Debug)]
pub struct PruneOptions {
    /// The folder of datasets, evidence and reports.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// How many versions each dataset keeps; those of other datasets stay.
    pub keep: BTreeMap<String, usize>,
    /// The age above which evidence and reports are removed.
    pub older_than: Duration,
    /// Where the time comes from.
    pub clock: Clock,
}

/// What is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrunedKind {
    /// A version of a dataset.
    Version,
    /// The folder of a run or a pack that another pack replaces.
    PackedRun,
    /// A run that can no longer be resumed.
    InterruptedRun,
    /// What a killed process left behind.
    Leftover,
    /// A body or rejected records that were kept for the vendor.
    Evidence,
    /// A report written by `bellwether report`.
    Report,
}

impl PrunedKind {
    /// It in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::PackedRun => "packed run",
            Self::InterruptedRun => "interrupted run",
            Self::Leftover => "leftover",
            Self::Evidence => "evidence",
            Self::Report => "report",
        }
    }
}

/// Something to remove, or that was removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pruned {
    /// What it is.
    pub kind: PrunedKind,
    /// Its file or folder.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// What can be removed from a project.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Prunable {
    /// Whether nothing was removed.
    pub dry_run: bool,
    /// Each of them, by kind and path.
    #[serde(rename = "removed")]
    pub all: Vec<Pruned>,
    /// Entries that match the rules but are kept, with the reason, a line each.
    pub kept: Vec<String>,
    /// The bytes that are freed. Versions may share files with others.
    pub freed: u64,
}

impl PruneOptions {
    /// The age above which evidence and reports are removed by default.
    pub const OLDER_THAN: Duration = Duration::from_secs(90 * 24 * 60 * 60);
}

impl Prunable {
    /// Finds what can be removed from a project.
    ///
    /// # Errors
    ///
    /// If a folder cannot be read.
    pub fn of(options: &PruneOptions) -> Result<Self> {
        let archives = if file::is_gone(&options.archive) { Vec::new() } else { open_all(&options.archive)? };
        Self::with(options, archives.into_iter().map(|(_, archive)| archive).collect())
    }

    /// Like [`of`](Self::of), for the archives of the services if they are already open.
    ///
    /// # Errors
    ///
    /// If a folder cannot be read.
    pub fn with(options: &PruneOptions, archives: Vec<Archive>) -> Result<Self> {
        let mut prunable = Self { dry_run: true, all: Vec::new(), kept: Vec::new(), freed: 0 };
        prunable.find_in_datasets(options)?;
        for archive in archives {
            let pruning = Pruning::of(archive).without_recent();
            let archive = pruning.archive();
            for path in archive::abandoned_runs(archive, options.clock.now())? {
                prunable.add(PrunedKind::InterruptedRun, path);
            }
            for Removal { folder, bytes, .. } in &pruning.removals {
                let path = archive.path().join(folder);
                prunable.all.push(Pruned { kind: PrunedKind::PackedRun, path, bytes: *bytes });
            }
        }
        prunable.find_in_data(options)?;
        prunable.all.sort_by(|one, other| (one.kind, &one.path).cmp(&(other.kind, &other.path)));
        let mut footprint = Footprint::default();
        prunable.all.iter().for_each(|pruned| footprint.add(&pruned.path));
        prunable.freed = footprint.freed_bytes();
        Ok(prunable)
    }

    /// Removes it all, and lists only what is gone. What cannot be removed does not stop the rest; the first failure is
    /// returned.
    ///
    /// # Errors
    ///
    /// If another process is pruning the archive, if something cannot be removed, or once it is cancelled.
    pub fn remove(&mut self, options: &PruneOptions, control: &Control) -> Result<()> {
        let found = std::mem::take(&mut self.all);
        (self.dry_run, self.freed) = (false, 0);
        let clock = options.clock;
        let archive = (!file::is_gone(&options.archive)).then_some(options.archive.as_path());
        let _lock = archive.map(|archive| lock(archive, clock)).transpose()?;
        let archives = archive.map_or(Ok(Vec::new()), open_all)?;
        let archives: Vec<Archive> = archives.into_iter().map(|(_, archive)| archive.until(&control.stop)).collect();
        let stage = Stage::begin(control, "prune");
        let (packed, single): (Vec<Pruned>, Vec<Pruned>) =
            found.into_iter().partition(|pruned| pruned.kind == PrunedKind::PackedRun);
        let mut first = self.remove_packed(packed, &archives);
        for pruned in single {
            cancel::check(&control.stop)?;
            let archive = archives.iter().find(|archive| pruned.path.starts_with(archive.path()));
            // Other names of its files may have been removed just now.
            let footprint = Footprint::of(&pruned.path);
            let removed = match (pruned.kind, archive) {
                (PrunedKind::Version, _) => export::remove_surplus(&pruned.path),
                (PrunedKind::InterruptedRun, Some(archive)) => {
                    archive::remove_abandoned(archive, &pruned.path, clock.now())
                }
                _ => {
                    let is_folder = pruned.path.is_dir() && !pruned.path.is_symlink();
                    let removed = if is_folder { remove::folder(&pruned.path) } else { remove::file(&pruned.path) };
                    removed.map_err(FileError::remove(&pruned.path))
                }
            };
            self.count(pruned, &footprint);
            first = first.and(removed);
        }
        // It stays if anything is left in it.
        let _ = remove::folder(&options.data.join(EVIDENCE));
        stage.finish();
        first
    }

    /// Removes packed runs, and leftovers of killed packing.
    fn remove_packed(&mut self, packed: Vec<Pruned>, archives: &[Archive]) -> Result<()> {
        let footprints: Vec<Footprint> = packed.iter().map(|pruned| Footprint::of(&pruned.path)).collect();
        let removed = archives.iter().map(|archive| {
            let mut pruning = Pruning::of(archive.clone()).without_recent();
            let path = |removal: &Removal| archive.path().join(&removal.folder);
            pruning.removals.retain(|removal| packed.iter().any(|pruned| pruned.path == path(removal)));
            archive::prune(&pruning)
        });
        let removed = removed.fold(Ok(()), Result::and);
        packed.into_iter().zip(&footprints).for_each(|(pruned, footprint)| self.count(pruned, footprint));
        removed
    }

    /// Counts what is gone.
    fn count(&mut self, pruned: Pruned, footprint: &Footprint) {
        if file::is_gone(&pruned.path) {
            self.freed += footprint.freed_bytes();
            self.all.push(pruned);
        }
    }

    fn add(&mut self, kind: PrunedKind, path: PathBuf) {
        let bytes = size(&path);
        self.all.push(Pruned { kind, path, bytes });
    }

    /// Versions, and leftovers of publications.
    fn find_in_datasets(&mut self, options: &PruneOptions) -> Result<()> {
        let datasets = options.data.join("datasets");
        links::refuse(&datasets)?;
        for dataset in file::entries(&datasets)?.into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
            let Some(name) = name_of(&dataset).filter(|name| names::is_dataset(name)) else { continue };
            let Some(keep) = options.keep.get(name).copied() else {
                let entries = file::entries(&dataset)?;
                let versions = entries.iter().filter(|path| name_of(path).is_some_and(names::is_unique)).count();
                if versions > 0 {
                    let versions = count_of(versions as u64, "version", "versions");
                    self.kept.push(format!("`{name}` has no valid definition: kept its {versions}"));
                }
                continue;
            };
            for version in export::surplus(&dataset, keep)? {
                match remove::check(&version) {
                    Ok(()) => self.add(PrunedKind::Version, version),
                    Err(error) => self.kept.push(format!("kept `{}`: {error}", version.display())),
                }
            }
            for path in export::abandoned_folders(&dataset)? {
                self.add(PrunedKind::Leftover, path);
            }
        }
        Ok(())
    }

    /// Evidence, reports, and leftovers of builds.
    fn find_in_data(&mut self, options: &PruneOptions) -> Result<()> {
        for (kind, folder) in [(PrunedKind::Evidence, EVIDENCE), (PrunedKind::Report, REPORTS)] {
            let folder = options.data.join(folder);
            links::refuse(&folder)?;
            let older_than = options.older_than;
            for path in file::entries(&folder)?.into_iter().filter(|path| file::is_older(path, older_than)) {
                match remove::is_file_of_ours(&path) {
                    Ok(true) => self.add(kind, path),
                    Ok(false) => {}
                    Err(error) => self.kept.push(format!("kept `{}`: {error}", path.display())),
                }
            }
        }
        let mut left = file::stale_scratch(&options.data);
        // The folders with files that are replaced.
        left.extend([JOURNAL, REPORTS, SCHEDULE].iter().flat_map(|it| file::stale_hidden(&options.data.join(it))));
        left.into_iter().for_each(|path| self.add(PrunedKind::Leftover, path));
        Ok(())
    }
}

/// Removes the copies of rows in packs that a larger pack has replaced for a day, which every run does. The run is
/// complete, so a failure is a warning in the log; so is a removal that another process is at.
pub(super) fn prune_copies(archive: &Archive) {
    let Some(root) = archive.path().parent() else { return };
    let pruned = archive.apart().and_then(|archives| {
        let plans: Vec<Pruning> = archives.into_iter().map(Pruning::of_copies).collect();
        if plans.iter().all(|plan| plan.removals.is_empty()) {
            return Ok(());
        }
        let _work = work!("prune packs");
        let _lock = lock(root, Clock::System)?;
        plans.iter().try_for_each(archive::prune)
    });
    if let Err(error) = pruned {
        tracing::warn!(%error, "cannot remove replaced packs");
    }
}

/// How many versions each dataset keeps that has a valid definition in a folder.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn kept_versions(definitions: &Path) -> Result<BTreeMap<String, usize>> {
    let keep = |name: String| {
        let plan = definition::find(&name, definitions).and_then(Plan::of).ok()?;
        Some((plan.name, plan.files.keep))
    };
    Ok(definition::names(definitions)?.into_iter().filter_map(keep).collect())
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

/// The right to prune an archive.
fn lock(archive: &Path, clock: Clock) -> Result<Lock> {
    // No definition has such a name.
    match Lock::try_take(archive, ".prune", &Holder::this(clock.now()))? {
        Attempt::Taken(lock) => Ok(lock),
        Attempt::Held(holder) => {
            let by = holder.map_or_else(String::new, |holder| format!(": {holder}"));
            let what = format!("another process is pruning `{}`{by}", archive.display());
            Err(Error::new(ErrorKind::Temporary, what).with_hint("try again when it has finished"))
        }
    }
}
