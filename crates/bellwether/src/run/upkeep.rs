//! Upkeep of the archive and the datasets: verification and packing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::observer::Control;
use super::stage::Stage;
use crate::archive::{self, Archive, Seal, Verified, fault, open_all};
use crate::disk::file::{self, FileRecord};
use crate::error::Result;
use crate::export::{self, RECORD, Version, versions};
use crate::text::human::count_of;

/// Verifies every file of an archive, and of the datasets in an output folder.
///
/// # Errors
///
/// When a folder or a record cannot be read; [`ErrorKind::Interrupted`](crate::error::ErrorKind::Interrupted) when it was
/// cancelled.
pub fn verify(archive: &Path, data: &Path, control: &Control) -> Result<Verified> {
    let mut attempt = 1;
    loop {
        let archives: Vec<Archive> =
            open_all(archive)?.into_iter().map(|(_, archive)| archive.until(&control.stop)).collect();
        let versions = versions(&data.join("datasets"))?;
        let verified = verify_listed(&archives, &versions, data, control);
        let is_well = verified.as_ref().is_ok_and(|verified| verified.faults.is_empty());
        // What was pruned meanwhile is not missing.
        let was_pruned =
            || archives.iter().any(Archive::was_pruned) || versions.iter().any(|version| file::is_gone(&version.path));
        if is_well || attempt == LISTINGS || !was_pruned() {
            return verified;
        }
        attempt += 1;
    }
}

/// How often a folder is listed that others keep changing.
const LISTINGS: usize = 5;

/// Verifies the files of archives and versions.
fn verify_listed(archives: &[Archive], versions: &[Version], data: &Path, control: &Control) -> Result<Verified> {
    let of_archives = archives.iter().map(Archive::file_count).sum::<usize>();
    let count = of_archives + versions.iter().map(Version::file_count).sum::<usize>();
    let stage = Stage::of_files(control, "verify", count);
    let of_archive = |archive: &Archive| archive::verify(archive, |file| stage.count(0, file.bytes));
    let of_version = |version: &Version| {
        let of_file = |file: &FileRecord| {
            let fault = fault(&version.path.join(&file.name), file, &control.stop)?;
            stage.count(0, file.bytes);
            Ok(fault)
        };
        version.files.par_iter().map(of_file).collect::<Result<Vec<Option<String>>>>()
    };
    // A file is checked by one thread, and those of versions are the largest: they do not wait for the archives.
    let (of_archives, of_versions) = rayon::join(
        || archives.iter().map(of_archive).collect::<Result<Vec<_>>>(),
        || versions.par_iter().map(of_version).collect::<Vec<_>>(),
    );
    let (mut files, mut faults) = (0, Vec::new());
    for verified in of_archives? {
        files += verified.files;
        faults.extend(verified.faults);
    }
    let runs: BTreeSet<&str> = archives.iter().flat_map(Archive::known_names).collect();
    let lost: BTreeSet<&str> =
        archives.iter().flat_map(Archive::runs).flat_map(|run| &run.seal().lost).map(String::as_str).collect();
    faults.extend(unrecorded_folders(&data.join("datasets"))?);
    let forgotten: BTreeSet<&str> =
        archives.iter().flat_map(Archive::forgotten_runs).map(|forgotten| forgotten.run.as_str()).collect();
    let mut notes: Vec<String> = archives.iter().flat_map(Archive::forgotten_runs).map(ToString::to_string).collect();
    for (version, of_files) in versions.iter().zip(of_versions) {
        for run in version.runs.iter().filter(|run| forgotten.contains(run.as_str())) {
            notes.push(format!("`{}` was built from run `{run}`, which was forgotten since", version.path.display()));
        }
        let gone =
            version.runs.iter().filter(|run| !runs.contains(run.as_str()) && !lost.contains(run.as_str())).count();
        if gone > 0 {
            let gone = count_of(gone as u64, "run", "runs");
            faults.push(format!("`{}` was built from {gone} that the archive lacks", version.path.display()));
        }
        files += version.file_count();
        faults.extend(version.faults_of_describing());
        faults.extend(of_files?.into_iter().flatten());
    }
    stage.finish();
    Ok(Verified { files, faults, notes })
}

/// Folders with the names of versions that lost their record: a version gets its name with the record in it.
fn unrecorded_folders(datasets: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for name in export::names(datasets)? {
        let folders = export::version_folders(&datasets.join(name))?.into_iter();
        let is_unrecorded = |path: &PathBuf| file::is_gone(&path.join(RECORD)) && !file::is_gone(path);
        faults.extend(
            folders
                .filter(is_unrecorded)
                .map(|path| format!("`{}` has no record, so it does not count", path.display())),
        );
    }
    Ok(faults)
}

/// Packs the runs of each service of an archive, except the newest, into one folder with the same content, unless there
/// are fewer than two folders to pack. The packed runs stay until they are pruned.
///
/// # Errors
///
/// When a run cannot be read or is damaged, or the pack cannot be written;
/// [`ErrorKind::Interrupted`](crate::error::ErrorKind::Interrupted) when it was cancelled.
pub fn compact(archive: &Path, keep: usize, control: &Control) -> Result<Vec<Seal>> {
    let stage = Stage::begin(control, "pack");
    let mut packs = Vec::new();
    for (_, of_service) in open_all(archive)? {
        packs.extend(archive::compact(of_service.path(), keep, &control.stop)?);
    }
    stage.finish();
    Ok(packs)
}
