//! Versions that are fetched from elsewhere: their records, and the folders that receive them.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::link::{self, Link};
use super::published;
use super::record::{RECORD, VersionRecord};
use super::retention;
use crate::disk::file::{self, FileError, FileRecord, Staging};
use crate::disk::links;
use crate::disk::names::is_unique;
use crate::error::{ErrorKind, Result};
use crate::time::unique_name;

impl VersionRecord {
    /// Parses the record of the definition's own version in a folder, which need not be on this machine.
    pub(crate) fn of_version(text: &[u8], folder: &Path) -> Result<Self> {
        let record = Self::parse(text, folder)?;
        if !is_unique(&record.version) || folder.file_name().is_none_or(|name| *name != *record.version) {
            let reason = "it is the record of another version";
            return Err(FileError::damage(&folder.join(RECORD), reason));
        }
        Ok(record)
    }

    /// The definition's own versions of a dataset in a folder of datasets, of the current layout.
    pub(crate) fn of_dataset(datasets: &Path, name: &str) -> Result<Vec<(PathBuf, Self)>> {
        let mut found = Vec::new();
        for path in published::version_folders(&datasets.join(name))? {
            if file::is_gone(&path.join(RECORD)) {
                continue;
            }
            match Self::of_version(&links::read(&path.join(RECORD))?, &path) {
                Err(error) if error.kind() == ErrorKind::Layout => {}
                whole => found.push((path, whole?)),
            }
        }
        Ok(found)
    }
}

/// The names of the datasets in a folder of datasets.
pub(crate) fn names(datasets: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let folders = file::folders(datasets)?;
    Ok(folders.into_iter().filter_map(name).filter(|name| crate::disk::names::is_dataset(name)).collect())
}

/// What becomes of `latest` once a version has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// It points to that version.
    Latest,
    /// It points to the same version as before.
    Unchanged,
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

    /// Publishes it. Its files must match its record. Clears what killed attempts left.
    pub(crate) fn publish(self, record: &[u8], files: &[FileRecord], linking: Linking) -> Result<()> {
        let Self { folder, version, unique, staging } = self;
        file::sync_below(&staging.file(""), files.iter().map(|file| file.name.as_str()))?;
        file::write_bytes(&staging.file(RECORD), record)?;
        let link = match linking {
            Linking::Latest => Some(Link::prepare(&folder, &version, &unique)?),
            Linking::Unchanged => None,
        };
        let target = folder.join(&version);
        if !target.join(RECORD).exists() {
            staging.publish(&target)?;
        }
        link.map_or(Ok(()), |link| link.show().map(drop))?;
        if let Some(left) = retention::tidy(&folder, &version, None) {
            tracing::warn!(folder = %folder.display(), left, "an interrupted download cannot be removed");
        }
        Ok(())
    }
}
