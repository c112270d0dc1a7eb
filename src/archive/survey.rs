//! What else is in an archive: runs that were interrupted; and whether each file is what its seal says.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::FOLDER_OF_UNFINISHED;
use super::index::SealedRun;
use super::seal::Origin;
use super::unfinished::{self, ANSWERS};
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
