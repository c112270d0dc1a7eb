//! Sealed folders from elsewhere: which are missing, and how one is added.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::leftovers;
use crate::archive::FOLDER_OF_UNFINISHED;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::seal::{SEAL, Seal};
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::remove;
use crate::error::Result;
use crate::time::random;

/// The sealed folders elsewhere that hold the runs an archive does not have, up to an instant: packs of runs that are
/// all missing, the largest first, then runs, then other folders with the rest.
pub(crate) fn missing_folders<'s>(archive: &Archive, there: &'s [Seal], until: Option<DateTime<Utc>>) -> Vec<&'s Seal> {
    let here = archive.names_in_folders();
    let is_due = |run: &Seal| until.is_none_or(|until| run.sealed_at <= until);
    let mut missing: HashSet<&str> = there
        .iter()
        .flat_map(Seal::runs)
        .filter(|run| is_due(run) && !here.contains(run.run.as_str()))
        .map(|run| run.run.as_str())
        .collect();
    let mut largest: Vec<&Seal> = there.iter().collect();
    largest.sort_by_key(|seal| (Reverse(seal.runs().count()), &seal.run));
    let mut wanted = Vec::new();
    let mut take = |fits: &dyn Fn(&Seal, &HashSet<&str>) -> bool| {
        for &seal in &largest {
            if fits(seal, &missing) {
                seal.runs().for_each(|run| _ = missing.remove(run.run.as_str()));
                wanted.push(seal);
            }
        }
    };
    let is_missing = |run: &Seal, missing: &HashSet<&str>| missing.contains(run.run.as_str());
    // A merge is made here, of what is here.
    take(&|seal, missing| !seal.is_merge() && seal.runs().all(|run| is_missing(run, missing)));
    take(&|seal, missing| seal.runs().any(|run| is_missing(run, missing)));
    wanted
}

/// A sealed folder that is being added to an archive, under a hidden name and without its seal.
#[derive(Debug)]
pub(crate) struct Incoming {
    path: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Incoming {
    /// Starts adding a folder.
    pub(crate) fn begin(archive: &Path, seal: &Seal) -> Result<Self> {
        let hidden = archive.join(FOLDER_OF_UNFINISHED);
        links::folder(&hidden)?;
        leftovers::clear(archive)?;
        let path = hidden.join(format!(".packing-{}-{:08x}", seal.run, random() as u32));
        let failed = FileError::write(&path);
        fs::create_dir(&path).map_err(failed)?;
        let lock = File::open(&path).map_err(failed)?;
        // Some file systems have no locks; there, age identifies a leftover.
        let _ = lock.lock();
        Ok(Self { path, target: archive.join(seal.folder_name()), _lock: lock })
    }

    /// The folder for the files.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the folder, whose files match its seal, unless another process was faster.
    pub(crate) fn finish(self, seal: &Seal) -> Result<()> {
        file::sync_all(&seal.files.iter().map(|file| self.path.join(&file.name)).collect::<Vec<_>>())?;
        file::write_bytes(&self.path.join(SEAL), seal.text().as_bytes())?;
        match file::rename_durably(&self.path, &self.target) {
            Err(_) if Seal::read(&self.target).is_ok() => Ok(()),
            renamed => renamed,
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Best effort: it is hidden and ignored by readers. After a rename there is nothing to remove.
        let _ = remove::folder(&self.path);
    }
}
