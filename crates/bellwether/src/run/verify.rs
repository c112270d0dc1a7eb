//! Verification of the archive and the datasets, and the repair of the folders of this machine: a damaged run, pack or version is
//! moved aside, and fetched again from a store.
//!
//! Nothing is removed: it is moved to the hidden folder `.damaged` beside it, so that it blocks no command. Its rows may be in
//! a pack or in runs that are intact, or in a store; if not, the archive lacks the run from then on, which every command says.
//! A file that cannot be read for now, for want of a permission, is not damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::blocking;
use super::forget::newest_that_counts;
use super::observer::{Control, Stage};
use super::store::RemoteStore;
use crate::archive::{
    Archive, Inspected, SEAL, Seal, contradictions, difference, folders, open_merged, services, verify_rows,
    with_source,
};
use crate::disk::digest;
use crate::disk::file::{self, Damaged, FileError, FileRecord, fault_of};
use crate::disk::links;
use crate::disk::names::{PACK_FOLDER, fits, is_unique};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, FACTS, Version, VersionRecord, versions};
use crate::text::human::count_of;
use crate::time::{Clock, random};

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Verified {
    /// Files whose size, checksum and rows were compared.
    pub files: usize,
    /// What was repaired.
    pub repaired: Vec<Repair>,
    /// The problems found, a line each; after a repair, those that are left.
    pub faults: Vec<String>,
    /// Notes on the runs that are forgotten, a line each.
    pub notes: Vec<String>,
    /// The damaged folders: runs, packs, merges, notes and versions.
    #[serde(skip)]
    pub(super) damaged: BTreeMap<PathBuf, Damage>,
    /// The runs in the other folders.
    #[serde(skip)]
    pub(super) runs: BTreeSet<String>,
}

/// What is done about something damaged or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// The store got it from this machine.
    Sent,
    /// This machine got it from the store.
    Fetched,
    /// It was made again from what is intact.
    Rebuilt,
    /// It was moved aside, and not replaced.
    SetAside,
}

/// A repair of a folder, a file or an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Repair {
    /// What was done.
    pub kind: RepairKind,
    /// The path or address.
    pub place: String,
    /// Why, and what stands in for what was moved aside.
    pub reason: String,
}

/// What is wrong with a damaged folder.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    /// What is wrong first.
    pub(super) fault: String,
    /// The runs that it holds, if that can be told.
    pub(super) runs: Vec<String>,
}

impl Verified {
    fn damage(&mut self, folder: &Path, fault: String) {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let runs = name.strip_prefix("run=").map(str::to_owned).into_iter().collect();
        self.damaged.entry(folder.to_owned()).or_insert_with(|| Damage { fault: fault.clone(), runs });
        self.faults.push(fault);
    }
}

/// Verifies every file of an archive, and of the datasets in an output folder.
///
/// # Errors
///
/// When there is no archive, or a folder or a record cannot be read; [`ErrorKind::Interrupted`] when it was cancelled.
pub fn verify(archive: &Path, data: &Path, control: &Control) -> Result<Verified> {
    services(archive)?;
    inspect(archive, data, control)
}

/// The same, where there may be no archive.
pub(super) fn inspect(archive: &Path, data: &Path, control: &Control) -> Result<Verified> {
    // Others may keep changing the folders.
    let mut attempts = 5;
    loop {
        attempts -= 1;
        let names = folders_of(archive)?.into_iter();
        let archives = names.map(|name| Inspected::open(&archive.join(name))).collect::<Result<Vec<_>>>()?;
        let (versions, damaged) = versions(&data.join("datasets"))?;
        let verified = verify_listed(&archives, &versions, damaged, control);
        let is_well = verified.as_ref().is_ok_and(|verified| verified.faults.is_empty());
        // What was pruned meanwhile is not missing.
        let sealed = archives.iter().flat_map(|archive| &archive.seals).map(|(path, _)| path);
        let mut listed = sealed.chain(versions.iter().map(|version| &version.path));
        if is_well || attempts == 0 || !listed.any(|path| file::is_gone(path)) {
            return verified;
        }
    }
}

/// Verifies the files of archives and versions.
fn verify_listed(
    archives: &[Inspected],
    versions: &[Version],
    damaged_versions: Vec<Damaged>,
    control: &Control,
) -> Result<Verified> {
    let of_versions = versions.iter().flat_map(|version| version.files.iter().map(|file| (&version.path, file)));
    let sealed = archives.iter().flat_map(|archive| &archive.seals);
    let of_archives = sealed.flat_map(|(path, seal)| seal.files.iter().map(move |file| (path, file)));
    // Those of versions are the largest.
    let files: Vec<(&PathBuf, &FileRecord)> = of_versions.chain(of_archives).collect();
    let stage = Stage::of_files(control, "verify", files.len());
    let compared: Vec<Result<Option<String>>> = files
        .par_iter()
        .map(|(folder, file)| {
            let difference = difference(&folder.join(&file.name), file, &control.stop);
            stage.count(0, file.bytes);
            difference
        })
        .collect();
    let mut verified = Verified { files: files.len(), ..Verified::default() };
    let damaged_seals = archives.iter().flat_map(|archive| &archive.damaged).cloned();
    for (folder, fault) in damaged_seals.chain(damaged_versions) {
        verified.damage(&folder, fault);
    }
    for ((folder, file), difference) in files.iter().zip(compared) {
        match difference {
            Ok(None) => {}
            Ok(Some(fault)) => verified.damage(folder, fault),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            // What cannot be read for now, for want of a permission, is not damaged.
            Err(error) => verified.faults.push(fault_of(&folder.join(&file.name), &error)),
        }
    }
    let are_sound = verified.faults.is_empty();
    let mut forgotten: BTreeSet<String> = BTreeSet::new();
    // There, or known to be lost.
    let mut known: BTreeSet<String> = BTreeSet::new();
    for inspected in archives {
        let path = inspected.path.display();
        let lineage = contradictions(inspected.seals.iter().map(|(_, seal)| seal));
        verified.faults.extend(lineage.into_iter().map(|fault| format!("`{path}`: {fault}")));
        if inspected.damaged.is_empty() {
            let archive = Archive::open(&inspected.path)?.until(&control.stop);
            for run in archive.forgotten_runs() {
                verified.notes.push(run.to_string());
                forgotten.insert(run.run.clone());
            }
            // Rows are read only if the files match their checksums.
            if are_sound {
                let (incomplete, others) = verify_rows(&archive)?;
                incomplete.into_iter().for_each(|(folder, fault)| verified.damage(&folder, fault));
                verified.faults.extend(others);
            }
        }
        for (path, seal) in &inspected.seals {
            known.extend(seal.runs().flat_map(|run| run.lost.iter().chain([&run.run])).cloned());
            let runs = seal.runs().map(|run| run.run.clone());
            match verified.damaged.get_mut(path) {
                Some(damage) => damage.runs = runs.collect(),
                None => verified.runs.extend(runs),
            }
        }
    }
    known.extend(forgotten.iter().cloned());
    for version in versions {
        let path = version.path.display();
        for run in version.runs.iter().filter(|run| forgotten.contains(*run)) {
            verified.notes.push(format!("`{path}` was built from run `{run}`, which was forgotten since"));
        }
        let gone = version.runs.iter().filter(|run| !known.contains(*run)).count();
        if gone > 0 {
            let gone = count_of(gone as u64, "run", "runs");
            verified.faults.push(format!("`{path}` was built from {gone} that the archive lacks"));
        }
        verified.files += 1;
        let file = version.path.join(FACTS);
        match links::read(&file).map(|bytes| digest::of(&bytes)) {
            Ok(found) if found == version.facts => {}
            Ok(found) => {
                let shown = file.display();
                let fault = format!("`{shown}` does not match its checksum: its BLAKE3 is {found}");
                verified.damage(&version.path, fault);
            }
            Err(error) if FileError::is_unreadable(&error) => verified.faults.push(fault_of(&file, &error)),
            Err(error) => verified.damage(&version.path, fault_of(&file, &error)),
        }
    }
    stage.finish();
    Ok(verified)
}

/// The hidden folder that damaged folders are moved to.
const DAMAGED: &str = ".damaged";

/// Moves the damaged runs, packs, notes and versions of a project aside, fetches from stores what is damaged or missing,
/// makes merges again, and has `latest` point to an intact version. Returns what is wrong afterwards.
///
/// # Errors
///
/// If there is a link in the archive or in place of a version, if a folder cannot be read or moved, if a store cannot be
/// read, and when it was cancelled.
pub async fn repair(archive: &Path, data: &Path, stores: &[RemoteStore], control: &Control) -> Result<Verified> {
    refuse_links(archive, data)?;
    for store in stores {
        store.test_reading().await?;
    }
    let before = inspect_once(archive, data, control).await?;
    before.damaged.keys().try_for_each(|path| set_aside(path))?;
    let mut failures = Vec::new();
    for store in stores {
        let fetched = async {
            store.pull_archive(None).await?;
            for (name, version) in missing_versions(data, before.damaged.keys())? {
                if store.read_version(&name, &version).await?.is_some() {
                    store.pull_version(&name, &version).await?;
                }
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = fetched.await {
            if error.kind() == ErrorKind::Interrupted {
                return Err(error);
            }
            // What was moved aside is said all the same.
            let mut failure = with_source(&error);
            if FileError::is_damage(&error) {
                failure += "; `bellwether verify --store --repair`, on a machine that has it, sends it again";
            }
            failures.push(failure);
        }
    }
    if !before.damaged.is_empty() {
        let (root, stop) = (archive.to_owned(), control.stop.clone());
        let merge = move |name: &String| open_merged(&root.join(name), &stop).map(drop);
        let names = folders_of(archive)?;
        blocking(move || names.iter().try_for_each(merge)).await?;
    }
    let mut repaired = repair_latest(archive, &data.join("datasets"))?;
    let mut after = inspect_once(archive, data, control).await?;
    let damaged_runs: BTreeSet<&String> = before.damaged.values().flat_map(|damage| &damage.runs).collect();
    for run in after.runs.difference(&before.runs).filter(|run| !damaged_runs.contains(run)) {
        let (kind, reason) = (RepairKind::Fetched, "it was missing here".to_owned());
        repaired.push(Repair { kind, place: format!("run={run}"), reason });
    }
    for (path, Damage { fault, runs }) in &before.damaged {
        let (kind, reason) = match file::is_gone(path) {
            true => (RepairKind::SetAside, format!("{fault}; {}", stand_in(path, runs, &after, stores))),
            false if path.to_string_lossy().contains("/merge=") => (RepairKind::Rebuilt, fault.clone()),
            false => (RepairKind::Fetched, fault.clone()),
        };
        repaired.push(Repair { kind, place: path.display().to_string(), reason });
    }
    after.repaired = repaired;
    after.faults.extend(failures);
    Ok(after)
}

/// The folders of services in an archive, if there is one.
fn folders_of(archive: &Path) -> Result<Vec<String>> {
    if file::is_gone(archive) { Ok(Vec::new()) } else { folders(archive) }
}

async fn inspect_once(archive: &Path, data: &Path, control: &Control) -> Result<Verified> {
    let (archive, data, control) = (archive.to_owned(), data.to_owned(), control.clone());
    blocking(move || inspect(&archive, &data, &control)).await
}

/// Refuses links where folders are moved and fetched, before anything is. Other links in the folder of a dataset pin
/// versions, and are not followed.
fn refuse_links(archive: &Path, data: &Path) -> Result<()> {
    let datasets = data.join("datasets");
    links::refuse_below(data, archive)?;
    links::refuse(&datasets)?;
    for service in folders_of(archive)? {
        file::entries(&archive.join(service))?.iter().try_for_each(|path| links::refuse(path))?;
    }
    for dataset in file::entries(&datasets)? {
        links::refuse(&dataset)?;
        [DAMAGED, "builds"].iter().try_for_each(|name| links::refuse(&dataset.join(name)))?;
    }
    Ok(())
}

/// Moves the pack that an error found damaged aside, if each of its runs has a folder of its own here. Returns what to say
/// of it; `None` if the error is about something else.
pub(super) fn set_pack_aside(archive: &Path, error: &Error) -> Result<Option<String>> {
    let Some(path) = error.path() else { return Ok(None) };
    let Some(pack) = path.strip_prefix(archive).ok().and_then(|below| below.iter().next()) else { return Ok(None) };
    if !fits(&pack.to_string_lossy(), PACK_FOLDER) {
        return Ok(None);
    }
    let pack = archive.join(pack);
    let Ok(seal) = links::read(&pack.join(SEAL)).and_then(|text| Seal::of(&text, &pack)) else { return Ok(None) };
    let is_here = |run: &Seal| !file::is_gone(&archive.join(format!("run={}", run.run)).join(SEAL));
    if !seal.runs().all(is_here) {
        return Ok(None);
    }
    links::refuse(&pack)?;
    set_aside(&pack)?;
    let shown = pack.display();
    Ok(Some(format!(
        "`{shown}` was moved to `{DAMAGED}`, since it cannot be read: {}; its runs are here",
        with_source(error)
    )))
}

/// Moves a damaged folder to the hidden folder beside it.
fn set_aside(path: &Path) -> Result<()> {
    let (folder, name) = (file::folder_of(path), path.file_name().unwrap_or_default().to_string_lossy());
    let hidden = folder.join(DAMAGED);
    links::folder(&hidden)?;
    let mut target = hidden.join(&*name);
    if !file::is_gone(&target) {
        target = hidden.join(format!("{name}-{:08x}", random() as u32));
    }
    fs::rename(path, &target).map_err(FileError::write(&target))?;
    file::sync_folder(&hidden)?;
    file::sync_folder(folder)
}

/// The datasets and names of the versions that were moved aside, or that `latest` points to in vain.
fn missing_versions<'p>(data: &Path, damaged: impl Iterator<Item = &'p PathBuf>) -> Result<BTreeSet<(String, String)>> {
    let datasets = data.join("datasets");
    let mut missing = BTreeSet::new();
    for path in damaged.filter_map(|path| path.strip_prefix(&datasets).ok()?.to_str()) {
        missing.extend(path.split_once('/').map(|(name, version)| (name.to_owned(), version.to_owned())));
    }
    for name in export::names(&datasets)? {
        missing.extend(export::latest_target(&datasets.join(&name)).map(|version| (name, version)));
    }
    missing.retain(|(name, version)| is_unique(version) && file::is_gone(&datasets.join(name).join(version)));
    Ok(missing)
}

/// Has the `latest` of each dataset point to the newest version that counts, if it points to none.
fn repair_latest(archive: &Path, datasets: &Path) -> Result<Vec<Repair>> {
    let mut repaired = Vec::new();
    for name in export::names(datasets)? {
        let dataset = datasets.join(&name);
        let versions = VersionRecord::of_dataset(datasets, &name)?;
        let target = export::latest_target(&dataset);
        if target.is_some_and(|target| versions.iter().any(|(_, whole)| whole.version == target)) {
            continue;
        }
        if let Some(newest) = newest_that_counts(archive, versions.iter().map(|(_, whole)| whole))? {
            export::point_latest(&dataset, &newest.version, Clock::System.now())?;
            let (place, reason) = (dataset.join("latest").display().to_string(), &newest.version);
            repaired.push(Repair { kind: RepairKind::Rebuilt, place, reason: format!("it points to `{reason}`") });
        }
    }
    Ok(repaired)
}

/// What has the rows of a folder that was moved aside, or what to do.
fn stand_in(path: &Path, runs: &[String], after: &Verified, stores: &[RemoteStore]) -> String {
    let lost = match stores {
        [] => "nothing else here has it: name a store that may, with `BELLWETHER_STORE`, or restore it from a backup",
        _ => "no store has it intact: restore it from a backup",
    };
    match path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('=')) {
        Some(_) if !runs.is_empty() && runs.iter().all(|run| after.runs.contains(run)) => {
            "other folders here have its rows".to_owned()
        }
        Some(("pack", _)) if runs.is_empty() => "its runs count if they have folders of their own".to_owned(),
        Some(("merge", _)) => "its runs are merged again where that is needed".to_owned(),
        Some(("forgotten", _)) => "the run counts again until it is forgotten again".to_owned(),
        Some(_) => lost.to_owned(),
        None => format!("{lost}, or build another version"),
    }
}
