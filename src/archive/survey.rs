//! The unsealed runs of an archive.

use std::path::{Path, PathBuf};

use super::FOLDER_OF_UNFINISHED;
use super::sealed::seal::Origin;
use super::unfinished;
use crate::error::Result;
use crate::file;

/// A run that was interrupted, or is in progress.
#[derive(Clone, Debug)]
pub struct UnfinishedRun {
    /// Its name.
    pub run: String,
    /// Name of its definition.
    pub definition: String,
    /// When it started.
    pub started_at: chrono::DateTime<chrono::Utc>,
    /// Number of answered requests.
    pub answers: usize,
}

/// The unsealed runs of an archive, oldest first.
///
/// # Errors
///
/// If the archive cannot be read.
pub fn unfinished_runs(archive: &Path) -> Result<Vec<UnfinishedRun>> {
    let of_folder = |path: PathBuf| {
        let Origin { run, definition, started_at, .. } = Origin::read(&path)?;
        let answers = unfinished::answered(&path);
        Some(UnfinishedRun { run, definition, started_at, answers })
    };
    Ok(file::entries(&archive.join(FOLDER_OF_UNFINISHED))?.into_iter().filter_map(of_folder).collect())
}
