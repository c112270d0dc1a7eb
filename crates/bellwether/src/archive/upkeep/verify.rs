//! Verifies an archive: checksums, rows and counts of every file, and packs against the members that still exist.

use std::fs;
use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::contained::incomplete_files;
use super::inspect::has_sealed_name;
use crate::archive::lineage::contradictions;
use crate::archive::sealed::answers::{self, ANSWERS};
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::listings;
use crate::archive::sealed::requests::{self, REJECTS, REQUESTS};
use crate::archive::sealed::row_groups::RowGroups;
use crate::archive::sealed::rows::{changes, ticker};
use crate::archive::sealed::seal::{Counts, SEAL};
use crate::disk::file::{self, FileError, FileRecord};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::process::cancel::CancellationToken;
use crate::tables::{Change, Reject, RequestRecord, Table};

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Verified {
    /// Files whose size, checksum and rows were compared.
    pub files: usize,
    /// The problems found, a line each.
    pub faults: Vec<String>,
    /// Notes on the runs that are forgotten, a line each.
    pub notes: Vec<String>,
}

/// Verifies all folders of an archive, several files at once, and passes each file to `done`. Rows are read only if the
/// files match their checksums.
pub(crate) fn verify(archive: &Archive, done: impl Fn(&FileRecord) + Sync) -> Result<Verified> {
    let at = archive.path().display();
    let of_lineage = contradictions(archive.folders().iter().map(|folder| folder.seal()));
    let mut faults: Vec<String> = of_lineage.into_iter().map(|fault| format!("`{at}`: {fault}")).collect();
    let unsealed = file::entries(archive.path())?.into_iter().filter(|path| is_unsealed(path));
    faults.extend(unsealed.map(|path| format!("`{}` has no seal, so it does not count", path.display())));
    let folders = archive.folders().iter();
    let files: Vec<(&Arc<Folder>, &FileRecord)> =
        folders.flat_map(|folder| folder.seal().files.iter().map(move |file| (folder, file))).collect();
    let fault = |(folder, file): &(&Arc<Folder>, &FileRecord)| {
        let fault = fault(&folder.path().join(&file.name), file, archive.stop())?;
        done(file);
        Ok(fault)
    };
    let of_files = files.par_iter().map(fault).collect::<Result<Vec<Option<String>>>>()?;
    let are_sound = of_files.iter().all(Option::is_none);
    faults.extend(of_files.into_iter().flatten());
    if are_sound {
        // Each in its place, so that the first failure is the same on any number of threads.
        let of_rows: Vec<Result<Vec<String>>> =
            archive.folders().par_iter().map(|folder| faults_of_rows(archive, folder)).collect();
        for of_folder in of_rows {
            faults.extend(of_folder?);
        }
    }
    Ok(Verified { files: files.len(), faults, notes: Vec::new() })
}

/// Whether a folder has the name of a sealed one and lost its seal: it gets its name with the seal in it.
fn is_unsealed(path: &Path) -> bool {
    has_sealed_name(path) && path.is_dir() && file::is_gone(&path.join(SEAL)) && !file::is_gone(path)
}

/// What is wrong with the rows of a folder whose files match their checksums.
fn faults_of_rows(archive: &Archive, folder: &Arc<Folder>) -> Result<Vec<String>> {
    let found = || -> Result<Vec<String>> {
        let files = if folder.seal().is_pack() { incomplete_files(archive, folder)? } else { Vec::new() };
        let missing = files.iter().map(|file| format!("`{file}` is missing rows of its members"));
        let miscounted = (count_changes(folder)? != folder.seal().changes)
            .then(|| "its seal and its rows disagree on the number of changes".to_owned());
        Ok(missing.chain(miscounted).map(|fault| format!("`{}`: {fault}", folder.path().display())).collect())
    };
    match found() {
        Err(error) if matches!(error.downcast_ref(), Some(FileError::Damaged { .. })) => Ok(vec![with_source(&error)]),
        found => found,
    }
}

fn with_source(error: &Error) -> String {
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

/// What is wrong with a file, if anything is, and be it that it cannot be read.
pub(crate) fn fault(path: &Path, record: &FileRecord, stop: &CancellationToken) -> Result<Option<String>> {
    match difference(path, record, stop) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        Err(error) => Ok(Some(file::fault_of(path, &error))),
        found => found,
    }
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
