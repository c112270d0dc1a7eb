//! Copies an archive with some of its runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::merge::open_merged;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::seal::SEAL;
use crate::archive::sealed::sealed_run::SealedRun;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::remove;
use crate::error::Result;
use crate::process::cancel::{self, CancellationToken};

/// Copies the wanted runs of an archive into a new folder; `None` if a wanted run is only in a pack that also has runs
/// that are not. A pack may have runs that do not count: they do not in the copy either. Sealed files never change, so they
/// are linked where possible.
pub(crate) fn copy(
    archive: &Archive,
    target: &Path,
    is_wanted: impl Fn(&SealedRun) -> bool,
) -> Result<Option<Archive>> {
    let wanted: BTreeSet<&str> = archive.runs().iter().filter(|run| is_wanted(run)).map(SealedRun::name).collect();
    let left_out: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
    fs::create_dir(target).map_err(FileError::write(target))?;
    let mut copied: BTreeSet<&str> = BTreeSet::new();
    for folder in archive.folders() {
        let mut runs =
            folder.seal().runs().map(|run| run.run.as_str()).filter(|run| !left_out.contains(run)).peekable();
        // Without its runs, a merge is of no use; with fewer, another one is made.
        if runs.peek().is_none() || !runs.clone().all(|run| wanted.contains(run)) {
            continue;
        }
        let target = target.join(folder.seal().folder_name());
        match copy_folder(folder, &target, archive.stop()) {
            Ok(()) => copied.extend(runs),
            // It was pruned meanwhile: a pack has its runs.
            Err(_) if file::is_gone(folder.path()) => remove::folder(&target).map_err(FileError::write(&target))?,
            Err(error) => return Err(error),
        }
    }
    archive.notes_on_forgotten().try_for_each(|note| note.add_to(target))?;
    if copied == wanted { open_merged(target, archive.stop()).map(Some) } else { Ok(None) }
}

fn copy_folder(folder: &Folder, target: &Path, stop: &CancellationToken) -> Result<()> {
    fs::create_dir(target).map_err(FileError::write(target))?;
    for name in folder.seal().files.iter().map(|file| file.name.as_str()).chain([SEAL]) {
        cancel::check(stop)?;
        links::link_or_copy(&folder.path().join(name), &target.join(name))?;
    }
    Ok(())
}
