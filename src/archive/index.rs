//! What an archive is made of: its sealed runs, which of them are replaced, and which are the newest.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::seal::{SEAL, Seal, sealed_path};
use crate::error::{Error, Reason, Result};
use crate::file::{self, FileRecord};

/// A run that is complete and will never change.
#[derive(Clone, Debug)]
pub struct SealedRun {
    path: PathBuf,
    seal: Seal,
}

impl SealedRun {
    pub(super) fn new(path: PathBuf, seal: Seal) -> Self {
        Self { path, seal }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.seal.run
    }

    /// Where one of its files is, which is what was written: nothing is read of a file that is not.
    pub(super) fn checked(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let unnamed = || Error::Damaged { path: self.path.join(SEAL), source: format!("it names no `{name}`").into() };
        let record = self.seal.file(name).ok_or_else(unnamed)?;
        let found = FileRecord::of(&path, name, record.rows)?;
        if found == *record {
            return Ok(path);
        }
        let reason = format!("its BLAKE3 is {} and should be {}", found.blake3, record.blake3);
        Err(Error::Damaged { path, source: reason.into() })
    }
}

impl SealedRun {
    /// The rows of one of its files, batch by batch, whatever its columns.
    pub(super) fn rows(&self, name: &str) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let path = self.checked(name)?;
        let damaged = |path: &Path, source: Reason| Error::Damaged { path: path.to_owned(), source };
        let rows = ParquetRecordBatchReaderBuilder::try_new(file::open(&path)?)
            .and_then(ParquetRecordBatchReaderBuilder::build)
            .map_err(|error| damaged(&path, error.into()))?;
        Ok(rows.map(move |rows| rows.map_err(|error| damaged(&path, error.into()))))
    }
}

/// The sealed runs of an archive, as they were when it was opened. Runs that are sealed later are not in it.
#[derive(Clone, Debug)]
pub struct Archive {
    path: PathBuf,
    /// Those that count, in the order in which they were sealed.
    runs: Vec<SealedRun>,
    replaced: Vec<SealedRun>,
    /// Where the rows of a run are now, by its name.
    places: HashMap<String, usize>,
}

impl Archive {
    /// Opens an archive. A folder without a seal is no run, and a folder that is not there is an archive without runs.
    ///
    /// # Errors
    ///
    /// When the folder or a seal cannot be read, when a seal is of another layout, and when a run that another one
    /// came after is missing.
    pub fn open(path: &Path) -> Result<Self> {
        let is_run = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run="));
        let mut runs = Vec::new();
        for folder in file::entries(path)?.into_iter().filter(is_run).filter(|folder| folder.join(SEAL).exists()) {
            let seal = Seal::read(&folder)?;
            if sealed_path(path, &seal.run) != folder {
                let reason = format!("it is the seal of run `{}`", seal.run);
                return Err(Error::Damaged { path: folder.join(SEAL), source: reason.into() });
            }
            runs.push(SealedRun::new(folder, seal));
        }
        let replaced: BTreeSet<String> = runs.iter().flat_map(|run| run.seal.replaces.iter().cloned()).collect();
        let (replaced, mut runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| replaced.contains(run.name()));
        runs.sort_by(|one, other| (one.seal.sealed_at, one.name()).cmp(&(other.seal.sealed_at, other.name())));
        let mut places = HashMap::new();
        for (place, run) in runs.iter().enumerate() {
            for name in &run.seal.replaces {
                places.insert(name.clone(), place);
            }
            places.insert(run.name().to_owned(), place);
        }
        let archive = Self { path: path.to_owned(), runs, replaced, places };
        for run in &archive.runs {
            for name in run.seal.after.iter().chain(&run.seal.since) {
                archive.place(name)?;
            }
        }
        Ok(archive)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The runs that count, in the order in which they were sealed.
    pub fn runs(&self) -> &[SealedRun] {
        &self.runs
    }

    /// The runs whose place another one has taken, and that are still there.
    pub fn replaced(&self) -> &[SealedRun] {
        &self.replaced
    }

    /// Where the rows of a run are now.
    pub(super) fn place(&self, name: &str) -> Result<usize> {
        let missing = || Error::MissingRun { run: name.to_owned(), archive: self.path.clone() };
        self.places.get(name).copied().ok_or_else(missing)
    }

    /// The runs that no other one came after.
    pub(super) fn heads(&self) -> Vec<&SealedRun> {
        self.heads_of(&self.runs.iter().collect::<Vec<_>>())
    }

    /// Those of some runs that no other one of them came after.
    pub(super) fn heads_of<'a>(&self, runs: &[&'a SealedRun]) -> Vec<&'a SealedRun> {
        // Of a compacted run, those that it went on from may be among those that it replaces.
        let before = |run: &&SealedRun| {
            let own = self.places.get(run.name()).copied();
            let places = run.seal.after.iter().filter_map(|name| self.places.get(name).copied());
            places.filter(|place| Some(*place) != own).collect::<Vec<_>>()
        };
        let before: BTreeSet<usize> = runs.iter().flat_map(before).collect();
        let is_head = |run: &&&SealedRun| self.places.get(run.name()).is_none_or(|place| !before.contains(place));
        runs.iter().filter(is_head).copied().collect()
    }
}
