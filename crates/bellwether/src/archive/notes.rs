//! Notes beside the runs of an archive: a folder each, `KIND=NAME/run.json`, which appears whole and never changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::sealed::seal::{SEAL, read_bounded};
use super::upkeep::PackFolder;
use crate::disk::file::{self, FileError};
use crate::disk::names::fits;
use crate::error::Result;

/// The text of the note in a folder.
pub(super) fn read(folder: &Path) -> Result<String> {
    if !fs::symlink_metadata(folder).map_err(FileError::read(folder))?.is_dir() {
        return Err(FileError::damage(folder, "it is not a folder"));
    }
    read_bounded(&folder.join(SEAL))
}

/// Adds a note to an archive, unless that has one in a folder of this name.
pub(super) fn add(archive: &Path, folder: &str, name: &str, text: &str) -> Result<()> {
    let target = archive.join(folder);
    if !file::is_gone(&target) {
        return Ok(());
    }
    let work = PackFolder::begin(archive, name)?;
    file::write_bytes(&work.path.join(SEAL), text.as_bytes())?;
    match file::rename_durably(&work.path, &target) {
        Err(_) if !file::is_gone(&target) => Ok(()),
        renamed => renamed,
    }
}

/// The folders of notes of a form in an archive, by name.
pub(super) fn folders(archive: &Path, form: &str) -> Result<Vec<PathBuf>> {
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let is_note = |path: &PathBuf| name(path).is_some_and(|name| fits(&name, form));
    let mut folders: Vec<PathBuf> = file::entries(archive)?.into_iter().filter(is_note).collect();
    folders.sort();
    Ok(folders)
}
