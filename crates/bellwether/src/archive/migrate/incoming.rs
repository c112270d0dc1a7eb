//! An old folder that is fetched from a store, to be migrated.

use std::path::{Path, PathBuf};

use super::legacy::{KEPT, LegacySeal};
use crate::archive::sealed::seal::SEAL;
use crate::archive::upkeep::PackFolder;
use crate::disk::file::{self};
use crate::disk::links;
use crate::error::Result;

/// An old folder that is being added to those that were migrated, under a hidden name and without its seal.
pub(crate) struct IncomingLegacy {
    folder: PackFolder,
    kept: PathBuf,
}

impl IncomingLegacy {
    /// Starts adding a folder.
    pub(crate) fn begin(archive: &Path, seal: &LegacySeal) -> Result<Self> {
        file::create_folders(archive)?;
        Ok(Self { folder: PackFolder::begin(archive, seal.name())?, kept: archive.join(KEPT) })
    }

    /// The folder for the files.
    pub(crate) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// Adds the folder, whose files match its seal.
    pub(crate) fn finish(self, seal: &LegacySeal, text: &[u8]) -> Result<()> {
        let path = &self.folder.path;
        file::sync_all(&seal.files.iter().map(|file| path.join(&file.name)).collect::<Vec<_>>())?;
        file::write_bytes(&path.join(SEAL), text)?;
        links::folder(&self.kept)?;
        file::rename_durably(path, &self.kept.join(seal.folder_name()))
    }
}
