//! Versions that are fetched from elsewhere: their records, and the folders that receive them.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::link::{self, Link};
use super::published::{self, CommonRecord, RecordedProvenance};
use super::record::{LAYOUT, RECORD};
use super::retention;
use crate::error::Result;
use crate::file::{self, FileError, FileRecord, Staging};
use crate::links;
use crate::names::is_unique;
use crate::time::unique_name;

/// A version as its record describes it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedVersion {
    /// Its provenance.
    pub recorded: RecordedProvenance,
    /// Its data files.
    pub files: Vec<FileRecord>,
    /// The digest of its facts.
    pub facts: Option<String>,
}

impl RecordedVersion {
    /// Parses the record of a folder, which need not be on this machine.
    ///
    /// # Errors
    ///
    /// If it is damaged, has another layout, or lists files that no version has.
    pub(crate) fn parsed(text: &[u8], folder: &Path) -> Result<Self> {
        let damaged = |error: serde_json::Error| FileError::damaged(&folder.join(RECORD), error);
        let record: CommonRecord = serde_json::from_slice(text).map_err(damaged)?;
        if record.layout != u64::from(LAYOUT) {
            return Err(FileError::Layout {
                path: folder.join(RECORD),
                layout: record.layout,
                known: LAYOUT,
                bellwether: None,
            }
            .into());
        }
        record.check_names(folder)?;
        let recorded: RecordedProvenance = serde_json::from_slice(text).map_err(damaged)?;
        if !is_unique(&recorded.version) || folder.file_name().is_none_or(|name| *name != *recorded.version) {
            let reason = "it is the record of another version";
            return Err(FileError::damaged(&folder.join(RECORD), reason));
        }
        Ok(Self { recorded, files: record.files, facts: record.facts })
    }

    /// The definition's own versions of a dataset in a folder of datasets, of the current layout.
    ///
    /// # Errors
    ///
    /// If a folder or a record cannot be read.
    pub(crate) fn of_dataset(datasets: &Path, name: &str) -> Result<Vec<(PathBuf, Self)>> {
        let mut found = Vec::new();
        for path in published::folders(&datasets.join(name))? {
            let is_version = path.file_name().and_then(|name| name.to_str()).is_some_and(is_unique);
            if !is_version || !path.join(RECORD).exists() {
                continue;
            }
            match Self::parsed(&links::read(&path.join(RECORD))?, &path) {
                Err(error) if matches!(error.downcast_ref(), Some(FileError::Layout { .. })) => {}
                whole => found.push((path, whole?)),
            }
        }
        Ok(found)
    }
}

/// The names of the datasets in a folder of datasets.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn names(datasets: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let folders = published::folders(datasets)?;
    Ok(folders.into_iter().filter_map(name).filter(|name| crate::names::is_dataset(name)).collect())
}

/// A version being received, under a hidden name and without its record.
#[derive(Debug)]
pub(crate) struct IncomingVersion {
    folder: PathBuf,
    version: String,
    /// The name of this attempt.
    unique: String,
    staging: Staging,
}

impl IncomingVersion {
    /// Starts receiving a version.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written, or something is in the way of `latest`.
    pub(crate) fn begin(datasets: &Path, name: &str, version: &str, now: DateTime<Utc>) -> Result<Self> {
        let folder = datasets.join(name);
        link::check(&folder)?;
        let unique = unique_name(now);
        let staging = Staging::create(&folder, &unique)?;
        Ok(Self { folder, version: version.to_owned(), unique, staging })
    }

    /// The folder for the files.
    pub(crate) fn path(&self) -> PathBuf {
        self.staging.file("")
    }

    /// Publishes it and moves `latest` to it. Its files must match its record. Clears what killed attempts left.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn publish(self, record: &[u8], files: &[FileRecord]) -> Result<()> {
        let Self { folder, version, unique, staging } = self;
        file::sync_below(&staging.file(""), files.iter().map(|file| file.name.as_str()))?;
        file::write_bytes(&staging.file(RECORD), record)?;
        let link = Link::prepare(&folder, &version, &unique)?;
        let target = folder.join(&version);
        if !target.join(RECORD).exists() {
            staging.publish(&target)?;
        }
        link.show()?;
        if let Err(error) = retention::tidy(&folder, &version, None) {
            tracing::warn!(folder = %folder.display(), %error, "cannot look for interrupted downloads of a dataset");
        }
        Ok(())
    }
}
