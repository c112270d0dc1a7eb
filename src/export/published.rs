//! The versions of datasets that are published.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::publication::RECORD;
use crate::error::{Error, Result};
use crate::file::FileRecord;

/// A published version of a dataset.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its folder.
    pub path: PathBuf,
    /// Its files, as they were written.
    pub files: Vec<FileRecord>,
}

#[derive(Deserialize)]
struct Record {
    files: Vec<FileRecord>,
}

/// Every published version of every dataset below a folder, in the order of their names.
///
/// # Errors
///
/// When a folder or a record cannot be read.
pub fn versions(datasets: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for dataset in folders(datasets)? {
        for path in folders(&dataset)?.into_iter().filter(|path| path.join(RECORD).exists()) {
            let file = path.join(RECORD);
            let text = fs::read(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
            let Record { files } =
                serde_json::from_slice(&text).map_err(|error| Error::Damaged { path: file, source: error.into() })?;
            versions.push(Version { path, files });
        }
    }
    Ok(versions)
}

/// The folders in a folder, links and hidden ones left out; none where there is no folder.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Read { path: folder.to_owned(), source }),
    };
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> =
        paths.filter(|path| path.is_dir() && !path.is_symlink() && !is_hidden(path)).collect();
    folders.sort();
    Ok(folders)
}
