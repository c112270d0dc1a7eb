//! Repairs the folders of this machine: what is damaged is set aside, and what can be derived is made again.
//!
//! Nothing is removed. A damaged run, pack or version is moved to the hidden folder `.damaged` beside it, so that it blocks
//! no command. Its rows may be in a pack or in runs that are intact; if not, the archive lacks the run from then on, which
//! every command says. A file that cannot be read for now, for want of a permission, is not damaged: it ends the repair.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::forget::newest_that_counts;
use super::observer::Control;
use super::stage::Stage;
use super::upkeep::verify;
use crate::archive::{Forgetting, Inspected, Note, difference, folders, inspect, open_merged, set_aside};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{ErrorKind, Result};
use crate::export::{self, RECORD, VersionRecord};
use crate::process::cancel::{self, CancellationToken};
use crate::time::Clock;

/// Whether a repair is carried out, or only listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairMode {
    /// Nothing is changed.
    List,
    /// It is carried out.
    Repair,
}

/// What is done about something damaged or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// The store gets it from this machine.
    Sent,
    /// This machine gets it from the store.
    Fetched,
    /// It is made again from what is intact.
    Rebuilt,
    /// It is moved out of the way: nothing here has an intact copy.
    SetAside,
}

/// A repair of one file, folder or object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Repair {
    /// What is done.
    pub kind: RepairKind,
    /// The path or address.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// What a repair did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repairs {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// What was done, or would be.
    pub repaired: Vec<Repair>,
    /// What is wrong afterwards, a sentence each; empty in a dry run.
    pub left: Vec<String>,
}

impl Repairs {
    pub(super) fn new(mode: RepairMode) -> Self {
        Self { dry_run: mode == RepairMode::List, ..Self::default() }
    }

    pub(super) fn add(&mut self, kind: RepairKind, place: impl ToString, reason: impl Into<String>) {
        self.repaired.push(Repair { kind, place: place.to_string(), reason: reason.into() });
    }
}

/// A version on this machine.
#[derive(Clone, Debug)]
pub(super) struct InspectedVersion {
    pub(super) path: PathBuf,
    /// Its record, if that can be read.
    pub(super) whole: Option<VersionRecord>,
    pub(super) faults: Vec<String>,
}

/// The folders of this machine, each inspected on its own.
#[derive(Clone, Debug, Default)]
pub(super) struct InspectedFolders {
    /// The runs, packs and merges of each service.
    pub(super) archives: BTreeMap<String, Vec<Inspected>>,
    /// The damaged notes on forgotten runs of each service, and what is wrong with them.
    pub(super) notes: BTreeMap<String, Vec<(PathBuf, String)>>,
    /// The versions of each dataset, without ad hoc builds.
    pub(super) versions: BTreeMap<String, Vec<InspectedVersion>>,
}

/// Sets aside the damaged runs, packs and versions of a project, makes merges again, and has `latest` point to an intact
/// version.
///
/// # Errors
///
/// If a folder cannot be read or moved; [`ErrorKind::Interrupted`] when it was cancelled.
pub fn repair(archive: &Path, data: &Path, mode: RepairMode, control: &Control) -> Result<Repairs> {
    let mut repairs = Repairs::new(mode);
    let stage = Stage::begin(control, "repair");
    let folders = InspectedFolders::of(archive, &data.join("datasets"), &control.stop)?;
    for (path, fault) in folders.notes.values().flatten() {
        let reason = format!("{fault}; {}", Forgetting::WITHOUT);
        repairs.add(RepairKind::SetAside, path.display(), reason);
        if mode == RepairMode::Repair {
            set_aside(path)?;
        }
    }
    for (service, of_service) in &folders.archives {
        let damaged: Vec<&Inspected> = of_service.iter().filter(|folder| !folder.faults.is_empty()).collect();
        for folder in &damaged {
            let reason = format!("{}; {}", folder.faults[0], folders.stand_in(service, folder));
            repairs.add(RepairKind::SetAside, folder.path.display(), reason);
            if mode == RepairMode::Repair {
                set_aside(&folder.path)?;
            }
        }
        if mode == RepairMode::Repair && !damaged.is_empty() {
            let before = merges(&archive.join(service))?;
            open_merged(&archive.join(service), &control.stop)?;
            let is_new = |path: &PathBuf| !before.contains(path);
            for path in merges(&archive.join(service))?.into_iter().filter(is_new) {
                repairs.add(RepairKind::Rebuilt, path.display(), "from the runs that it merges");
            }
        }
    }
    for (name, versions) in &folders.versions {
        for version in versions.iter().filter(|version| !version.faults.is_empty()) {
            let reason = format!("{}; `bellwether build {name}` makes another one", version.faults[0]);
            repairs.add(RepairKind::SetAside, version.path.display(), reason);
            if mode == RepairMode::Repair {
                set_aside(&version.path)?;
            }
        }
        folders.repair_latest(archive, &data.join("datasets").join(name), &mut repairs)?;
    }
    if mode == RepairMode::Repair && !file::is_gone(archive) {
        repairs.left = verify(archive, data, control)?.faults;
    }
    stage.finish();
    Ok(repairs)
}

/// The merges in the archive of a service.
fn merges(archive: &Path) -> Result<Vec<PathBuf>> {
    let is_merge = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("merge="));
    Ok(file::entries(archive)?.into_iter().filter(is_merge).collect())
}

impl InspectedFolders {
    /// Inspects the archives and the versions of a project.
    pub(super) fn of(archive: &Path, datasets: &Path, stop: &CancellationToken) -> Result<Self> {
        let services = match folders(archive) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            services => services?,
        };
        let mut folders = Self::default();
        for service in services {
            folders.notes.insert(service.clone(), Forgetting::damaged(&archive.join(&service))?);
            let inspected = inspect(&archive.join(&service), stop)?;
            folders.archives.insert(service, inspected);
        }
        for name in export::names(datasets)? {
            let versions = export::version_folders(&datasets.join(&name))?.into_iter();
            let versions = versions.map(|path| inspect_version(path, stop)).collect::<Result<Vec<_>>>()?;
            folders.versions.insert(name, versions);
        }
        Ok(folders)
    }

    /// The intact folder of a service with a name.
    pub(super) fn intact(&self, service: &str, name: &str) -> Option<&Inspected> {
        let folders = self.archives.get(service)?.iter();
        folders.filter(|folder| folder.name() == name).find(|folder| folder.intact().is_some())
    }

    /// The intact version of a dataset with a name.
    pub(super) fn intact_version(&self, name: &str, version: &str) -> Option<(&Path, &VersionRecord)> {
        let versions = self.versions.get(name)?.iter().filter(|one| one.faults.is_empty());
        let mut versions = versions.filter_map(|one| Some((one.path.as_path(), one.whole.as_ref()?)));
        versions.find(|(_, whole)| whole.version == version)
    }

    /// What has the rows of a damaged folder.
    fn stand_in(&self, service: &str, damaged: &Inspected) -> String {
        let others = self.archives.get(service).into_iter().flatten();
        let held: HashSet<&str> = others.clone().flat_map(Inspected::runs).collect();
        if damaged.name().starts_with("merge=") {
            return "it is made again from its runs".to_owned();
        }
        let runs: Vec<&str> = match (&damaged.seal, damaged.name().strip_prefix("run=")) {
            (Some(seal), _) => seal.runs().map(|run| run.run.as_str()).collect(),
            (None, Some(run)) => vec![run],
            (None, None) => return "it was a pack: its runs count if they have folders".to_owned(),
        };
        match runs.iter().filter(|run| !held.contains(*run)).count() {
            0 => "other folders here have its rows".to_owned(),
            _ => {
                "no intact folder here has its rows; `bellwether store pull` fetches it if the store has it".to_owned()
            }
        }
    }

    /// Has `latest` point to the newest intact version that counts if the version that it points to is damaged or missing.
    fn repair_latest(&self, archive: &Path, dataset: &Path, repairs: &mut Repairs) -> Result<()> {
        let name = dataset.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let intact = self.versions[&name].iter().filter(|version| version.faults.is_empty());
        let intact: Vec<&VersionRecord> = intact.filter_map(|version| version.whole.as_ref()).collect();
        let target = export::latest_target(dataset);
        if target.is_some_and(|target| intact.iter().any(|whole| whole.version == target)) {
            return Ok(());
        }
        let Some(newest) = newest_that_counts(archive, intact)? else { return Ok(()) };
        let version = &newest.version;
        repairs.add(RepairKind::Rebuilt, dataset.join("latest").display(), format!("it points to `{version}`"));
        if !repairs.dry_run {
            export::point_latest(dataset, version, Clock::System.now())?;
        }
        Ok(())
    }
}

/// Inspects a version: its record, and every file that the record names.
fn inspect_version(path: PathBuf, stop: &CancellationToken) -> Result<InspectedVersion> {
    let record = path.join(RECORD);
    let whole = match links::read(&record) {
        Ok(text) => VersionRecord::of_version(&text, &path),
        Err(error) => Err(error),
    };
    let whole = match whole {
        Ok(whole) => whole,
        // An earlier version of the program wrote it.
        Err(error) if matches!(error.downcast_ref(), Some(FileError::Layout { .. })) => {
            return Ok(InspectedVersion { path, whole: None, faults: Vec::new() });
        }
        Err(error) if FileError::is_missing(&error) || is_damage(&error) => {
            return Ok(InspectedVersion { faults: vec![file::fault_of(&record, &error)], path, whole: None });
        }
        Err(error) => return Err(error),
    };
    let mut faults = Vec::new();
    for file in &whole.files {
        cancel::check(stop)?;
        faults.extend(difference(&path.join(&file.name), file, stop)?);
    }
    for (name, expected) in whole.describing().iter() {
        let file = path.join(name);
        match links::read(&file) {
            Ok(bytes) if digest::of(&bytes) == expected => {}
            Ok(_) => faults.push(format!("`{}` does not match its checksum", file.display())),
            Err(error) if FileError::is_unreadable(&error) => return Err(error),
            Err(error) => faults.push(file::fault_of(&file, &error)),
        }
    }
    Ok(InspectedVersion { path, whole: Some(whole), faults })
}

fn is_damage(error: &crate::error::Error) -> bool {
    matches!(error.downcast_ref(), Some(FileError::Damaged { .. }))
}

/// The files of a version with their sizes, those that describe its rows last.
pub(super) fn files_of(path: &Path, whole: &VersionRecord) -> Result<Vec<FileRecord>> {
    let mut files = whole.files.clone();
    for (name, digest) in whole.describing().iter() {
        let file = path.join(name);
        let bytes = links::open(&file)?.metadata().map_err(FileError::read(&file))?.len();
        files.push(FileRecord { name: name.to_owned(), rows: 0, bytes, blake3: digest.to_owned() });
    }
    Ok(files)
}
