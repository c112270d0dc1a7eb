//! What is in an archive: its sealed runs, those that were interrupted, and whether each file is what its seal says.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::seal::{LAYOUT, Origin, Seal};
use super::sealed::SealedRun;
use super::unfinished::{self, ANSWERS};
use super::{FOLDER_OF_UNFINISHED, SEAL};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};

/// A run that was interrupted, or that somebody is making.
#[derive(Clone, Debug)]
pub struct UnfinishedRun {
    /// Its name.
    pub run: String,
    /// The definition's name.
    pub definition: String,
    /// When it began.
    pub started_at: chrono::DateTime<chrono::Utc>,
    /// The requests that were answered.
    pub answers: usize,
}

/// The sealed runs of an archive, oldest first. A folder without a seal is none.
///
/// # Errors
///
/// When the archive or a seal cannot be read, or a seal is of a later layout.
pub fn sealed_runs(archive: &Path) -> Result<Vec<SealedRun>> {
    let is_run = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run="));
    let mut runs = Vec::new();
    for path in file::entries(archive)?.into_iter().filter(is_run).filter(|path| path.join(SEAL).exists()) {
        runs.push(open(&path)?);
    }
    Ok(runs)
}

/// The runs of an archive that are not sealed, oldest first.
///
/// # Errors
///
/// When the archive cannot be read.
pub fn unfinished_runs(archive: &Path) -> Result<Vec<UnfinishedRun>> {
    let of_folder = |path: PathBuf| {
        let text = fs::read(path.join(unfinished::RECORD)).ok()?;
        let Origin { run, definition, started_at, .. } = serde_json::from_slice(&text).ok()?;
        let answers = file::entries(&path.join(ANSWERS)).ok()?;
        let answers = answers.into_iter().filter(|path| !file::is_hidden(path)).count();
        Some(UnfinishedRun { run, definition, started_at, answers })
    };
    Ok(file::entries(&archive.join(FOLDER_OF_UNFINISHED))?.into_iter().filter_map(of_folder).collect())
}

impl SealedRun {
    /// Everything in which the run's files differ from what its seal says, a line each.
    pub fn faults(&self) -> Vec<String> {
        self.seal().files.iter().filter_map(|file| fault(&self.path().join(&file.name), file)).collect()
    }
}

/// In what a file differs from its record.
pub fn fault(path: &Path, record: &FileRecord) -> Option<String> {
    let shown = path.display();
    let found = match FileRecord::of(path, &record.name, record.rows) {
        Ok(found) => found,
        Err(Error::Read { source, .. }) => return Some(format!("`{shown}` cannot be read: {source}")),
        Err(error) => return Some(error.to_string()),
    };
    if found.bytes != record.bytes {
        return Some(format!("`{shown}` has {} bytes and should have {}", found.bytes, record.bytes));
    }
    if found.sha256 != record.sha256 {
        return Some(format!("`{shown}` is not what was written: its SHA-256 is {}", found.sha256));
    }
    let rows = rows_of(path)?;
    (rows != record.rows).then(|| format!("`{shown}` has {rows} rows and should have {}", record.rows))
}

/// The rows of a Parquet file; of another file nobody can tell without reading it.
fn rows_of(path: &Path) -> Option<u64> {
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    let file = is_parquet.then(|| file::open(path).ok())??;
    let rows = SerializedFileReader::new(file).ok()?.metadata().file_metadata().num_rows();
    u64::try_from(rows).ok()
}

fn open(path: &Path) -> Result<SealedRun> {
    let file = path.join(SEAL);
    let text = fs::read(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
    let damaged = |source: crate::error::Reason| Error::Damaged { path: file.clone(), source };
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
    // A later layout may have another seal: its version is all that can be relied on.
    match value["layout"].as_u64() {
        Some(layout) if layout == u64::from(LAYOUT) => {}
        Some(layout) => return Err(Error::Layout { path: path.to_owned(), layout }),
        None => return Err(damaged("it names no layout".into())),
    }
    let seal: Seal = serde_json::from_value(value).map_err(|error| damaged(error.into()))?;
    Ok(SealedRun::new(path.to_owned(), seal))
}
