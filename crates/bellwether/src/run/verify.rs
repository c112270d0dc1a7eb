//! Verification of the archive and the datasets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::observer::Control;
use super::stage::Stage;
use crate::archive::{Archive, Inspected, contradictions, difference, folders, services, verify_rows};
use crate::disk::digest;
use crate::disk::file::{self, Damaged, FileError, FileRecord, fault_of};
use crate::disk::links;
use crate::error::{ErrorKind, Result};
use crate::export::{Version, versions};
use crate::text::human::count_of;

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
    let mut attempt = 1;
    loop {
        let names = if file::is_gone(archive) { Vec::new() } else { folders(archive)? };
        let archives: Vec<Inspected> =
            names.iter().map(|name| Inspected::open(&archive.join(name))).collect::<Result<_>>()?;
        let (versions, damaged) = versions(&data.join("datasets"))?;
        let verified = verify_listed(&archives, &versions, damaged, control);
        let is_well = verified.as_ref().is_ok_and(|verified| verified.faults.is_empty());
        // What was pruned meanwhile is not missing.
        let sealed = archives.iter().flat_map(|archive| &archive.seals).map(|(path, _)| path);
        let mut listed = sealed.chain(versions.iter().map(|version| &version.path));
        if is_well || attempt == LISTINGS || !listed.any(|path| file::is_gone(path)) {
            return verified;
        }
        attempt += 1;
    }
}

/// How often a folder is listed that others keep changing.
const LISTINGS: usize = 5;

/// Verifies the files of archives and versions.
fn verify_listed(
    archives: &[Inspected],
    versions: &[Version],
    damaged_versions: Vec<Damaged>,
    control: &Control,
) -> Result<Verified> {
    let of_versions = versions.iter().flat_map(|version| version.files.iter().map(|file| (&version.path, file)));
    let sealed = || archives.iter().flat_map(|archive| &archive.seals);
    let of_archives = sealed().flat_map(|(path, seal)| seal.files.iter().map(move |file| (path, file)));
    // Those of versions are the largest.
    let files: Vec<(&PathBuf, &FileRecord)> = of_versions.chain(of_archives).collect();
    let stage = Stage::of_files(control, "verify", files.len());
    let compare = |(folder, file): &(&PathBuf, &FileRecord)| {
        let difference = difference(&folder.join(&file.name), file, &control.stop);
        stage.count(0, file.bytes);
        difference
    };
    let compared: Vec<Result<Option<String>>> = files.par_iter().map(compare).collect();
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
    let (mut known, mut lost) = (BTreeSet::new(), BTreeSet::new());
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
        for run in inspected.seals.iter().flat_map(|(_, seal)| seal.runs()) {
            known.insert(run.run.clone());
            lost.extend(run.lost.iter().map(String::as_str));
        }
        for (path, seal) in &inspected.seals {
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
        let is_missing = |run: &&String| !known.contains(*run) && !lost.contains(run.as_str());
        let gone = version.runs.iter().filter(is_missing).count();
        if gone > 0 {
            let gone = count_of(gone as u64, "run", "runs");
            verified.faults.push(format!("`{path}` was built from {gone} that the archive lacks"));
        }
        for (name, expected) in version.describing() {
            verified.files += 1;
            let file = version.path.join(name);
            match links::read(&file).map(|bytes| digest::of(&bytes)) {
                Ok(found) if found == expected => {}
                Ok(found) => {
                    let shown = file.display();
                    let fault = format!("`{shown}` does not match its checksum: its BLAKE3 is {found}");
                    verified.damage(&version.path, fault);
                }
                Err(error) if FileError::is_unreadable(&error) => verified.faults.push(fault_of(&file, &error)),
                Err(error) => verified.damage(&version.path, fault_of(&file, &error)),
            }
        }
    }
    stage.finish();
    Ok(verified)
}
