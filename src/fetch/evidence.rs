//! A body that is kept because it cannot be read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::links;
use crate::remove;
use crate::time::{Clock, unique_name};

/// A file for a body. It goes away again unless it is kept.
#[derive(Debug)]
pub(super) struct Evidence {
    folder: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl Evidence {
    pub(super) fn begin(folder: &Path, clock: Clock) -> Result<Self> {
        links::refuse(folder)?;
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let path = folder.join(format!("{}.body", unique_name(clock.now())));
        Ok(Self { folder: folder.to_owned(), path, is_kept: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the file, and says where it is.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if !self.is_kept {
            // Best effort: what the file holds proves nothing. The folder goes when it is empty.
            let _ = remove::file(&self.path);
            let _ = remove::folder(&self.folder);
        }
    }
}
