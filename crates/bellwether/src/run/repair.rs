//! Repairs the folders of this machine: a damaged run, pack or version is moved aside, and fetched again from a store.
//!
//! Nothing is removed: it is moved to the hidden folder `.damaged` beside it, so that it blocks no command. Its rows may be in
//! a pack or in runs that are intact, or in a store; if not, the archive lacks the run from then on, which every command says.
//! A file that cannot be read for now, for want of a permission, is not damaged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::blocking;
use super::forget::newest_that_counts;
use super::observer::Control;
use super::store::{RemoteStore, is_damage};
use super::verify::{Damage, Repair, RepairKind, Verified, inspect};
use crate::archive::{SEAL, Seal, folders, open_merged, with_source};
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names::{PACK_FOLDER, fits, is_unique};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, VersionRecord};
use crate::time::{Clock, random};

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
        match fetched.await {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            // What was moved aside is said all the same.
            Err(error) => {
                let hint = "; `bellwether verify --store --repair`, on a machine that has it, sends it again";
                failures.push(format!("{}{}", with_source(&error), if is_damage(&error) { hint } else { "" }));
            }
            Ok(()) => {}
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
    let Some(FileError::Damaged { path, .. }) = error.downcast_ref() else { return Ok(None) };
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
