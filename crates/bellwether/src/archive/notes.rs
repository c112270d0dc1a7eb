//! Notes beside the runs of an archive: a folder each, `KIND=NAME/run.json`, which appears whole and never changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::sealed::seal::{SEAL, read_bounded};
use super::upkeep::PackFolder;
use crate::disk::file::{self, Damaged, FileError};
use crate::disk::names::fits;
use crate::error::Result;

/// A kind of note.
pub(crate) trait Note: Sized {
    /// The form of its folder's name.
    const FORM: &'static str;

    /// Parses the note in a folder, wherever that is, and checks that it is consistent.
    fn parse(text: &[u8], folder: &Path) -> Result<Self>;

    /// What it is named by.
    fn name(&self) -> &str;

    /// The name of its folder.
    fn folder_name(&self) -> String;

    /// Its text, as it is written.
    fn text(&self) -> String;

    /// Reads the note in a folder.
    fn read(folder: &Path) -> Result<Self> {
        Self::parse(read(folder)?.as_bytes(), folder)
    }

    /// Adds the note to an archive, unless that has one of this name.
    fn add_to(&self, archive: &Path) -> Result<()> {
        add(archive, &self.folder_name(), self.name(), &self.text())
    }

    /// The folders of damaged notes in an archive, and what is wrong with each.
    fn damaged(archive: &Path) -> Result<Vec<Damaged>> {
        let mut damaged = Vec::new();
        for path in folders(archive, Self::FORM)? {
            match Self::read(&path) {
                Ok(_) => {}
                Err(error) if FileError::is_missing(&error) || FileError::is_damage(&error) => {
                    damaged.push((path.clone(), file::fault_of(&path.join(SEAL), &error)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }
}

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
