//! The versions of datasets that are published.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::home::BUILDS;
use super::link::LATEST;
use super::record::{LAYOUT, RECORD};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::time::as_record;

/// A published version of a dataset.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its folder.
    pub path: PathBuf,
    /// Its files, as they were written; their names are paths below the folder, with `/`.
    pub files: Vec<FileRecord>,
}

/// What every form of `dataset.json` says.
#[derive(Deserialize)]
struct Record {
    layout: u64,
    files: Vec<FileRecord>,
}

/// What the record of a version says of where it comes from.
#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    /// The dataset's name.
    pub name: String,
    /// The version's name.
    pub version: String,
    /// The instant after which nothing that was observed counts.
    #[serde(with = "as_record")]
    pub as_of: DateTime<Utc>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub built_at: DateTime<Utc>,
    /// The text of its definition.
    pub definition: String,
    /// The digest of what it says.
    pub content: String,
}

/// The latest version of a dataset, or of the one that was built last of all below a folder; none where there is none.
///
/// # Errors
///
/// When a record cannot be read, or was written in another form.
pub fn latest(datasets: &Path, name: Option<&str>) -> Result<Option<Recorded>> {
    let all = match name {
        Some(name) => vec![datasets.join(name)],
        None => folders(datasets)?,
    };
    let mut latest: Option<Recorded> = None;
    for folder in all.into_iter().map(|dataset| dataset.join(LATEST)).filter(|folder| folder.join(RECORD).exists()) {
        let Record { layout, .. } = read(&folder)?;
        if layout != u64::from(LAYOUT) {
            return Err(Error::Layout { path: folder.join(RECORD), layout, known: LAYOUT });
        }
        let recorded: Recorded = read(&folder)?;
        if latest.as_ref().is_none_or(|latest| latest.built_at < recorded.built_at) {
            latest = Some(recorded);
        }
    }
    Ok(latest)
}

/// Every published version and ad hoc build of every dataset below a folder, in the order of their names.
///
/// # Errors
///
/// When a folder or a record cannot be read, or a record was written by a later version.
pub fn versions(datasets: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for dataset in folders(datasets)? {
        let paths = folders(&dataset)?.into_iter().chain(folders(&dataset.join(BUILDS))?);
        for path in paths.filter(|path| path.join(RECORD).exists()) {
            let Record { layout, files } = read(&path)?;
            if layout > u64::from(LAYOUT) {
                return Err(Error::Layout { path: path.join(RECORD), layout, known: LAYOUT });
            }
            versions.push(Version { path, files });
        }
    }
    Ok(versions)
}

/// The record in a folder, as far as it is asked for.
pub(super) fn read<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let file = folder.join(RECORD);
    let text = fs::read(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
    serde_json::from_slice(&text).map_err(|error| Error::Damaged { path: file, source: error.into() })
}

/// The folders in a folder; links and hidden ones are none.
pub(super) fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| path.is_dir() && !path.is_symlink() && !file::is_hidden(path);
    Ok(file::entries(folder)?.into_iter().filter(is_folder).collect())
}
