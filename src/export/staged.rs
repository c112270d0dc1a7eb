//! A dataset that is complete and not yet seen.

use std::path::PathBuf;

use super::link::Link;
use super::retention;
use crate::error::Result;
use crate::file::{self, FileRecord, Staging};

/// A version of a dataset under its hidden name, with all its files and its record.
pub struct Staged {
    pub(super) folder: PathBuf,
    pub(super) version: String,
    pub(super) staging: Staging,
    pub(super) files: Vec<FileRecord>,
    pub(super) content: String,
    pub(super) keep: usize,
}

/// A published dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The folder of this version.
    pub path: PathBuf,
    /// The link that now points at it.
    pub latest: PathBuf,
    /// Its files.
    pub files: Vec<FileRecord>,
    /// The digest of what it says, whatever its files are.
    pub content: String,
}

impl Staged {
    /// The version's name.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The digest of what it says, whatever its files are.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Lays a file beside the dataset, which is none of its own: no record names it, and no digest is taken of it.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn lay_beside(&self, name: &str, bytes: &[u8]) -> Result<()> {
        file::write_bytes(&self.staging.file(name), bytes)
    }

    /// Gives the folder its name, moves `latest` to it, and removes versions that are too many.
    ///
    /// # Errors
    ///
    /// When the disk does not take it. The version before is then still the latest.
    pub fn publish(self) -> Result<Dataset> {
        let Self { folder, version, staging, files, content, keep } = self;
        let path = folder.join(&version);
        let link = Link::prepare(&folder, &version)?;
        staging.publish(&path)?;
        let latest = link.show()?;
        if let Err(error) = retention::tidy(&folder, &version, keep) {
            tracing::warn!(folder = %folder.display(), %error, "cannot look for old versions of a dataset");
        }
        Ok(Dataset { path, latest, files, content })
    }
}
