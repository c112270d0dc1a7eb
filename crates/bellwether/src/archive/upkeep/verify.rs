//! Verifies an archive: its seals, checksums, rows and counts of every file, and packs against the members that still exist.

use std::fs;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use rayon::prelude::*;

use super::contained::incomplete_files;
use crate::archive::forgotten::Forgetting;
use crate::archive::sealed::answers::{self, ANSWERS};
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::listings;
use crate::archive::sealed::requests::{self, REJECTS, REQUESTS};
use crate::archive::sealed::row_groups::RowGroups;
use crate::archive::sealed::rows::{changes, ticker};
use crate::archive::sealed::seal::{Counts, Seal};
use crate::disk::file::{self, Damaged, FileError, FileRecord};
use crate::disk::names::{MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits};
use crate::error::{Error, Reason, Result};
use crate::process::cancel::CancellationToken;
use crate::tables::{Change, Reject, RequestRecord, Table};

/// The sealed folders of an archive, each read on its own, so that one with a damaged seal hides no other.
#[derive(Debug)]
pub(crate) struct Inspected {
    /// The archive of a service.
    pub(crate) path: PathBuf,
    /// The runs, packs and merges whose seals can be read.
    pub(crate) seals: Vec<(PathBuf, Seal)>,
    /// The other ones, and the damaged notes, each with what is wrong.
    pub(crate) damaged: Vec<Damaged>,
}

impl Inspected {
    /// Reads the seals and notes of an archive.
    ///
    /// # Errors
    ///
    /// If one is a link, has another layout, or cannot be read for now, for want of a permission: that is no damage.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut inspected = Self { path: path.to_owned(), seals: Vec::new(), damaged: Forgetting::damaged(path)? };
        for folder in file::entries(path)?.into_iter().filter(|folder| has_sealed_name(folder)) {
            if folder.is_symlink() {
                return Err(FileError::damage(&folder, "it is a symbolic link, expected a folder"));
            }
            match Seal::read(&folder) {
                Ok(seal) => inspected.seals.push((folder, seal)),
                // It was pruned meanwhile, or is no folder.
                Err(_) if !folder.is_dir() => {}
                // It gets its name with the seal in it.
                Err(error) if FileError::is_missing(&error) => {
                    let fault = format!("`{}` has no seal, so it does not count", folder.display());
                    inspected.damaged.push((folder, fault));
                }
                Err(error) if FileError::is_damage(&error) => inspected.damaged.push((folder, with_source(&error))),
                Err(error) => return Err(error),
            }
        }
        Ok(inspected)
    }
}

/// Whether a folder has the name of a run, a pack or a merge.
fn has_sealed_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER].iter().any(|form| fits(name, form))
}

/// What is wrong with the rows of an archive whose files match their checksums: packs that miss rows of their members, by
/// folder, and other faults.
pub(crate) fn verify_rows(archive: &Archive) -> Result<(Vec<Damaged>, Vec<String>)> {
    // Each in its place, so that the first failure is the same on any number of threads.
    let of_rows: Vec<Result<RowFaults>> =
        archive.folders().par_iter().map(|folder| faults_of_rows(archive, folder)).collect();
    let (mut incomplete, mut faults) = (Vec::new(), Vec::new());
    for (folder, of_folder) in archive.folders().iter().zip(of_rows) {
        let (missing, others) = of_folder?;
        incomplete.extend(missing.map(|fault| (folder.path().to_owned(), fault)));
        faults.extend(others);
    }
    Ok((incomplete, faults))
}

/// That a pack misses rows, and what else is wrong.
type RowFaults = (Option<String>, Option<String>);

/// What is wrong with the rows of a folder.
fn faults_of_rows(archive: &Archive, folder: &Arc<Folder>) -> Result<RowFaults> {
    let at = folder.path().display();
    let found = || -> Result<RowFaults> {
        let files = if folder.seal().is_pack() { incomplete_files(archive, folder)? } else { Vec::new() };
        let missing = files.first().map(|file| format!("`{at}`: `{file}` is missing rows of its members"));
        let miscounted = (count_changes(folder)? != folder.seal().changes)
            .then(|| format!("`{at}`: its seal and its rows disagree on the number of changes"));
        Ok((missing, miscounted))
    };
    match found() {
        Err(error) if FileError::is_damage(&error) => Ok((None, Some(with_source(&error)))),
        found => found,
    }
}

/// A message with its reason.
pub(crate) fn with_source(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_string(),
    }
}

/// Reads all rows of a folder, and counts the changes in them.
fn count_changes(folder: &Arc<Folder>) -> Result<Counts> {
    let tables = Table::ALL.into_iter().filter(|table| folder.seal().rows(&table.file()) > 0);
    let mut counted = Counts::default();
    for of_table in tables.map(|table| count_in_table(folder, table)) {
        counted += of_table?;
    }
    counted += listings::count(&listings::read(std::slice::from_ref(folder))?);
    let damaged = |name: &str, reason: Reason| FileError::damage(&folder.path().join(name), reason);
    for rows in folder.all_rows(REQUESTS, &RequestRecord::schema())? {
        requests::records(&rows?).map_err(|reason| damaged(REQUESTS, reason))?;
    }
    for rows in folder.all_rows(ANSWERS, &answers::schema())? {
        answers::records(&rows?).map_err(|reason| damaged(ANSWERS, reason))?;
    }
    folder.all_rows(REJECTS, &Reject::schema())?.try_for_each(|rows| rows.map(drop))?;
    Ok(counted)
}

/// Reads all rows of a table, several row groups at once, and counts the changes in them.
fn count_in_table(folder: &Folder, table: Table) -> Result<Counts> {
    let file = RowGroups::open(folder, &table.file(), &table.file_schema())?;
    let of_group = |group: usize| -> Result<(Counts, Option<(String, String)>)> {
        let rows = file.whole(group)?;
        let mut counted = Counts::default();
        for change in changes(&rows) {
            match change {
                Change::Added => counted.added += 1,
                Change::Revised => counted.revised += 1,
                Change::Withdrawn => counted.withdrawn += 1,
            }
        }
        let last = rows.num_rows().checked_sub(1);
        Ok((counted, last.map(|last| (ticker(&rows, 0).to_owned(), ticker(&rows, last).to_owned()))))
    };
    let groups: Vec<Result<_>> = (0..file.count()).into_par_iter().map(of_group).collect();
    let (mut counted, mut last) = (Counts::default(), String::new());
    for group in groups {
        let (of_group, tickers) = group?;
        counted += of_group;
        let Some((from, to)) = tickers else { continue };
        if from < last {
            return Err(file.damage("its rows are not sorted by ticker"));
        }
        last = to;
    }
    Ok(counted)
}

/// How a file differs from its record, if it does. A file that is there and cannot be read for now is an error: that is no
/// damage.
pub(crate) fn difference(path: &Path, record: &FileRecord, stop: &CancellationToken) -> Result<Option<String>> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
            return Ok(Some(format!("`{shown}` cannot be read: {error}")));
        }
        Err(error) => return Err(FileError::read(path)(error)),
        Ok(found) if !found.is_file() => return Ok(Some(format!("`{shown}` is not a regular file"))),
        Ok(found) if found.len() != record.bytes => {
            return Ok(Some(format!("`{shown}` has {} bytes, expected {}", found.len(), record.bytes)));
        }
        Ok(_) => {}
    }
    let found = FileRecord::of(path, &record.name, record.rows, stop)?;
    if found.blake3 != record.blake3 {
        return Ok(Some(format!("`{shown}` does not match its checksum: its BLAKE3 is {}", found.blake3)));
    }
    let Some(rows) = rows_of(path) else { return Ok(None) };
    Ok((rows != record.rows).then(|| format!("`{shown}` has {rows} rows, expected {}", record.rows)))
}

/// Number of rows of a Parquet file; `None` for other files.
fn rows_of(path: &Path) -> Option<u64> {
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    let file = is_parquet.then(|| file::open(path).ok())??;
    let rows = SerializedFileReader::new(file).ok()?.metadata().file_metadata().num_rows();
    u64::try_from(rows).ok()
}
