//! A sealed run, and what is read of it.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::answers::{self, ANSWERS, SeriesAnswer};
use super::folder::Folder;
use super::requests::{REJECTS, REQUESTS, records};
use super::seal::Seal;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::tables::{Reject, RequestRecord};

/// A complete run, which never changes.
#[derive(Clone, Debug)]
pub struct SealedRun {
    pub(super) seal: Seal,
    /// Its own folder, or that of a pack.
    pub(super) folder: Arc<Folder>,
    /// The pack that is read once its own folder has been removed.
    pub(super) pack: Option<Arc<Folder>>,
}

impl SealedRun {
    /// A run with its seal and the folder of its rows.
    pub(in crate::archive) fn of(seal: Seal, folder: Arc<Folder>) -> Self {
        Self { seal, folder, pack: None }
    }

    /// The folder with its rows: its own, or that of a pack.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its seal.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.seal.run
    }

    /// Whether it is a claim: nobody witnessed what it says.
    pub fn is_claimed(&self) -> bool {
        self.seal.claimed.is_some()
    }

    /// Whether records were rejected.
    pub(crate) fn has_rejects(&self) -> bool {
        self.seal.rows(REJECTS) > 0
    }

    /// The number of rejected records, of which the file has one for a whole history, and not all if they are very many.
    pub(in crate::archive) fn reject_count(&self) -> Result<u64> {
        if self.has_rejects() { Ok(self.requests()?.iter().map(|request| request.rejects).sum()) } else { Ok(0) }
    }

    /// The answered requests.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn requests(&self) -> Result<Vec<RequestRecord>> {
        let mut requests = Vec::new();
        for rows in self.rows(REQUESTS, &RequestRecord::schema())? {
            let failed = |reason| FileError::damage(&self.path().join(REQUESTS), reason);
            requests.extend(records(&rows?).map_err(failed)?);
        }
        Ok(requests)
    }

    /// What was answered about each series.
    pub(crate) fn answers(&self) -> Result<Vec<SeriesAnswer>> {
        let mut answers = Vec::new();
        for rows in self.rows(ANSWERS, &answers::schema())? {
            let failed = |reason| FileError::damage(&self.path().join(ANSWERS), reason);
            answers.extend(answers::records(&rows?).map_err(failed)?);
        }
        Ok(answers)
    }

    /// The rejected records, batch by batch, as `rejects.parquet` has them.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn rejects(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        self.rows(REJECTS, &Reject::schema())
    }

    /// Its rows in a file: from its own folder, or from a pack if that was removed since the archive was opened.
    pub(in crate::archive) fn rows(
        &self,
        name: &str,
        schema: &SchemaRef,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let of = |folder: &Folder| folder.rows(name, schema, self.place(folder, name));
        match (of(&self.folder), &self.pack) {
            (Err(_), Some(pack)) if !self.path().exists() => of(pack),
            (rows, _) => rows,
        }
    }

    /// Its rows in a file that holds one run after another: number of rows before them, and their number.
    fn place(&self, folder: &Folder, name: &str) -> (u64, u64) {
        let before = folder.seal().parts().iter().take_while(|part| part.run != self.seal.run);
        (before.map(|run| run.rows(name)).sum(), self.seal.rows(name))
    }
}
