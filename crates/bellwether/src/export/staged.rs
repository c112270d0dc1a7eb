//! A complete dataset that is not published yet.

use std::path::PathBuf;

use super::link::Link;
use super::record::{RECORD, VersionRecord};
use super::retention;
use super::target_folder::TargetFolder;
use crate::disk::file::{self, FileRecord, Staging};
use crate::error::Result;

/// A version of a dataset under its hidden name, with all its files. Its record is written last.
pub(crate) struct Staged {
    pub(super) home: TargetFolder,
    pub(super) staging: Staging,
    pub(super) record: Box<VersionRecord>,
    pub(super) keep: usize,
}

/// A published dataset.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    /// The folder of this version.
    pub path: PathBuf,
    /// The link that now points to it; `None` for an ad hoc build, and if it was overtaken.
    pub latest: Option<PathBuf>,
    /// The version that knows more and was published while it was made, which `latest` stays at.
    pub overtaken_by: Option<String>,
    /// Old versions that could not be removed, in words.
    pub left: Option<String>,
    /// Number of rows; for a wide dataset, summed over matrices.
    pub rows: u64,
    /// Its files.
    pub files: Vec<FileRecord>,
    /// The digest of its content, which does not depend on its files.
    pub content: String,
}

impl Staged {
    /// Writes the record, and gives the folder its name. For the definition's own dataset, also moves `latest` to it and removes old versions;
    /// an ad hoc build does neither. `latest` never goes back to what knows less.
    pub(crate) fn publish(self) -> Result<Dataset> {
        let Self { home, staging, record, keep } = self;
        file::write_json(&staging.file(RECORD), &record)?;
        let VersionRecord { version, rows, files, content, as_of, .. } = *record;
        let folder = &home.folder;
        let path = folder.join(&version);
        let overtaken_by = home.newer_version(as_of);
        let latest = if home.is_own() && overtaken_by.is_none() {
            let link = Link::prepare(folder, &version, &version)?;
            staging.publish(&path)?;
            Some(link.show()?)
        } else {
            staging.publish(&path)?;
            None
        };
        let left = retention::tidy(folder, &version, latest.is_some().then_some(keep));
        Ok(Dataset { path, latest, overtaken_by, left, rows, files, content })
    }
}
