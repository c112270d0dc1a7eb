//! A copy of a body, kept if it turns out to be unreadable.

use std::path::{Path, PathBuf};

use crate::disk::file::{self};
use crate::disk::links;
use crate::disk::remove;
use crate::error::Result;
use crate::time::{Clock, unique_name};

/// A file for a body, removed on drop unless it is kept.
#[derive(Debug)]
pub(super) struct Evidence {
    folder: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl Evidence {
    pub(super) fn begin(folder: &Path, clock: Clock) -> Result<Self> {
        links::refuse(folder)?;
        file::create_folders(folder)?;
        let path = folder.join(format!("{}.body", unique_name(clock.now())));
        Ok(Self { folder: folder.to_owned(), path, is_kept: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the file and returns its path.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if !self.is_kept {
            // Best effort: the file is of no use. The folder is removed once it is empty.
            let _ = remove::file(&self.path);
            let _ = remove::folder(&self.folder);
        }
    }
}
