//! The versions of datasets that are published.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::home::BUILDS;
use super::link::LATEST;
use super::record::{FACTS, LAYOUT, RECORD};
use crate::digest;
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::links;
use crate::names;
use crate::time::as_record;

/// A published version of a dataset.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its folder.
    pub path: PathBuf,
    /// Its files, as they were written; their names are paths below the folder, with `/`.
    pub files: Vec<FileRecord>,
    /// The digest of what was counted of its rows; none in the record of an earlier layout.
    facts: Option<String>,
}

impl Version {
    /// In what the file with what was counted of the rows differs from the record.
    pub fn fault_of_facts(&self) -> Option<String> {
        let expected = self.facts.as_ref()?;
        let path = self.path.join(FACTS);
        match links::read(&path) {
            Err(Error::Read { source, .. }) => Some(format!("`{}` cannot be read: {source}", path.display())),
            Err(error) => Some(error.to_string()),
            Ok(facts) if digest::of(&facts) == *expected => None,
            Ok(facts) => {
                Some(format!("`{}` is not what was written: its BLAKE3 is {}", path.display(), digest::of(&facts)))
            }
        }
    }

    /// The files that have a digest.
    pub fn file_count(&self) -> usize {
        self.files.len() + usize::from(self.facts.is_some())
    }
}

/// What every form of `dataset.json` says.
#[derive(Deserialize)]
struct Record {
    layout: u64,
    #[serde(default)]
    name: String,
    files: Vec<FileRecord>,
    facts: Option<String>,
}

impl Record {
    /// Refuses a record that names a file which no version has.
    fn check_names(&self, folder: &Path) -> Result<()> {
        match self.files.iter().find(|file| !names::is_file_of_version(&file.name, &self.name)) {
            Some(FileRecord { name, .. }) => {
                let reason = format!("`{}` is not the name of a file of a version", name.escape_debug());
                Err(Error::Damaged { path: folder.join(RECORD), source: reason.into() })
            }
            None => Ok(()),
        }
    }
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
            let record: Record = read(&path)?;
            let layout = record.layout;
            if layout > u64::from(LAYOUT) {
                return Err(Error::Layout { path: path.join(RECORD), layout, known: LAYOUT });
            }
            record.check_names(&path)?;
            versions.push(Version { path, files: record.files, facts: record.facts });
        }
    }
    Ok(versions)
}

/// The record in a folder, as far as it is asked for.
pub(super) fn read<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let file = folder.join(RECORD);
    let text = links::read(&file)?;
    serde_json::from_slice(&text).map_err(|error| Error::Damaged { path: file, source: error.into() })
}

/// The folders in a folder; links and hidden ones are none.
pub(super) fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| path.is_dir() && !path.is_symlink() && !file::is_hidden(path);
    Ok(file::entries(folder)?.into_iter().filter(is_folder).collect())
}
