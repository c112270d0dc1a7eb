//! The versions of datasets that are published.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::record::{LAYOUT, RECORD};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};

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

/// Every published version of every dataset below a folder, in the order of their names.
///
/// # Errors
///
/// When a folder or a record cannot be read, or a record was written by a later version.
pub fn versions(datasets: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for dataset in folders(datasets)? {
        for path in folders(&dataset)?.into_iter().filter(|path| path.join(RECORD).exists()) {
            let file = path.join(RECORD);
            let text = fs::read(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
            let Record { layout, files } = serde_json::from_slice(&text)
                .map_err(|error| Error::Damaged { path: file.clone(), source: error.into() })?;
            if layout > u64::from(LAYOUT) {
                return Err(Error::Layout { path: file, layout, known: LAYOUT });
            }
            versions.push(Version { path, files });
        }
    }
    Ok(versions)
}

/// The folders in a folder; links and hidden ones are none.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| path.is_dir() && !path.is_symlink() && !file::is_hidden(path);
    Ok(file::entries(folder)?.into_iter().filter(is_folder).collect())
}
