//! A dataset that is complete and not yet seen.

use std::path::PathBuf;

use super::home::Home;
use super::link::Link;
use super::retention;
use crate::error::Result;
use crate::file::{self, FileRecord, Staging};

/// A version of a dataset under its hidden name, with all its files and its record.
pub struct Staged {
    pub(super) home: Home,
    pub(super) version: String,
    pub(super) staging: Staging,
    pub(super) rows: u64,
    pub(super) files: Vec<FileRecord>,
    pub(super) content: String,
    pub(super) keep: usize,
}

/// A published dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The folder of this version.
    pub path: PathBuf,
    /// The link that now points at it; none for an ad hoc build.
    pub latest: Option<PathBuf>,
    /// Its rows; of a wide dataset those of all its matrices.
    pub rows: u64,
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

    /// Gives the folder its name. If it is the definition's own, also moves `latest` to it and removes versions that are
    /// too many; an ad hoc build touches neither.
    ///
    /// # Errors
    ///
    /// When the disk does not take it. The version before is then still the latest.
    pub fn publish(self) -> Result<Dataset> {
        let Self { home, version, staging, rows, files, content, keep } = self;
        let folder = &home.folder;
        let path = folder.join(&version);
        let latest = if home.is_own() {
            let link = Link::prepare(folder, &version)?;
            staging.publish(&path)?;
            Some(link.show()?)
        } else {
            staging.publish(&path)?;
            None
        };
        let keep = latest.is_some().then_some(keep);
        if let Err(error) = retention::tidy(folder, &version, keep) {
            tracing::warn!(folder = %folder.display(), %error, "cannot look for old versions of a dataset");
        }
        Ok(Dataset { path, latest, rows, files, content })
    }
}
