//! Upkeep: merging histories that meet, packing runs, removing folders that a pack replaces, and verification.
//! What replaced folders are removed is planned first.
//!
//! A process that opened the archive before the pack was sealed may still read them. What is removed unattended is
//! therefore restricted to packs that have been there for a day.

mod merge;
mod pack;
mod verify;

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use self::pack::clear_leftovers;
use self::verify::{incomplete_files, parts, replaced_by};
use super::FOLDER_OF_UNFINISHED;
use super::sealed::catalog::Archive;
use super::sealed::folder::Folder;
use super::sealed::seal::{SEAL, Seal};
use crate::disk::file::{self, FileError};
use crate::disk::{links, remove};
use crate::error::Result;
use crate::process::cancel;

pub use merge::open_merged;
pub(in crate::archive) use merge::open_merged_part;
pub(crate) use merge::{copy, open_merged_with};
#[cfg(feature = "harness")]
pub(crate) use pack::pack_most;
pub(super) use pack::pack_small;
pub(crate) use pack::{HiddenFolder, missing_folders};
pub(crate) use verify::{Inspected, difference, verify_rows, with_source};

/// The folders to remove.
#[derive(Clone, Debug)]
pub(crate) struct Pruning {
    archive: Archive,
    /// The folders, by name.
    pub removals: Vec<Removal>,
}

/// A folder to remove.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Removal {
    /// Its name: `run=…`, `pack=…` or `merge=…`.
    pub folder: String,
    /// The pack or merge that replaces it.
    pub pack: String,
    /// Its size.
    pub bytes: u64,
}

impl Pruning {
    /// Plans the pruning of an archive.
    pub(crate) fn of(archive: Archive) -> Self {
        Self::with(archive, |_| true)
    }

    /// Plans the pruning of the packs and merges that a larger one has replaced for a day: copies of rows that the runs
    /// and the larger one have as well.
    pub(crate) fn of_copies(archive: Archive) -> Self {
        Self::with(archive, |seal| seal.is_pack() || seal.is_merge()).without_recent()
    }

    fn with(archive: Archive, is_removed: impl Fn(&Seal) -> bool) -> Self {
        let packs: Vec<(&Arc<Folder>, HashSet<&str>)> = archive
            .read()
            .iter()
            .filter(|read| read.seal().is_pack())
            .map(|pack| (pack, parts(pack).collect()))
            .collect();
        // The pack that is read instead of a folder and holds every run of it, or the merge that replaces it.
        let replacing = |folder: &Folder| match folder.seal().is_merge() {
            true => archive.read().iter().find(|read| read.seal().replaces(folder.seal())),
            false => {
                packs.iter().find(|(_, held)| parts(folder).all(|part| held.contains(part))).map(|(pack, _)| *pack)
            }
        };
        let removal = |folder: &&Arc<Folder>| {
            let seal = folder.seal();
            let pack = replacing(folder)?.seal().folder_name();
            Some(Removal { folder: seal.folder_name(), pack, bytes: seal.bytes() })
        };
        let superseded = archive.superseded_folders().into_iter().filter(|folder| is_removed(folder.seal()));
        let removals = superseded.filter_map(|folder| removal(&folder)).collect();
        drop(packs);
        Self { archive, removals }
    }

    /// Without the folders of packs that were sealed less than a day ago.
    pub(crate) fn without_recent(mut self) -> Self {
        let seal = |removal: &Removal| self.archive.path().join(&removal.pack).join(SEAL);
        self.removals.retain(|removal| file::is_older(&seal(removal), file::DAY));
        self
    }

    /// The archive.
    pub(crate) fn archive(&self) -> &Archive {
        &self.archive
    }
}

/// Compares each pack of a plan with the folders that it replaces.
pub(crate) fn check_contained(plan: &Pruning) -> Result<()> {
    let archive = &plan.archive;
    let is_needed = |pack: &&Arc<Folder>| plan.removals.iter().any(|removal| removal.pack == pack.seal().folder_name());
    let mut packs: Vec<&Arc<Folder>> = archive.read_runs().filter(is_needed).collect();
    // A pack that replaces packs has the rows of their runs if these have them.
    let mut checked = 0;
    while let Some(&pack) = packs.get(checked) {
        checked += 1;
        let replaced = replaced_by(archive.folders(), pack).into_iter().filter(|folder| folder.seal().is_pack());
        let more: Vec<&Arc<Folder>> =
            replaced.filter(|folder| !packs.iter().any(|known| Arc::ptr_eq(known, folder))).collect();
        packs.extend(more);
        if let Some(file) = incomplete_files(archive, pack)?.into_iter().next() {
            let reason = format!("`{file}` is missing rows of its members");
            return Err(FileError::damage(pack.path(), reason));
        }
    }
    Ok(())
}

/// Carries out a plan, once each pack is verified to have every row of the folders that it replaces; and removes
/// leftovers of a killed removal. A folder that cannot be removed does not stop the rest; the first failure is returned.
pub(crate) fn prune(plan: &Pruning) -> Result<()> {
    let archive = &plan.archive;
    check_contained(plan)?;
    let hidden = archive.path().join(FOLDER_OF_UNFINISHED);
    links::folder(&hidden)?;
    clear_leftovers(archive.path())?;
    let mut first = Ok(());
    for Removal { folder, .. } in &plan.removals {
        cancel::check(archive.stop())?;
        let (from, aside) = (archive.path().join(folder), hidden.join(format!(".removing-{folder}")));
        let removed = remove::check(&from)
            .and_then(|()| file::move_aside(&from, &aside))
            .and_then(|()| remove::folder(&aside))
            .map_err(FileError::remove(&from));
        first = first.and(removed);
    }
    first
}
