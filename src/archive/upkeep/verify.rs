//! Verifies an archive: checksums, rows and counts of every file, and packs against the members that still exist.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::contained::incomplete_files;
use crate::archive::sealed::bound::Cuts;
use crate::archive::sealed::by_ticker::ByTicker;
use crate::archive::sealed::catalog::{Archive, SealedRun};
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::listings;
use crate::archive::sealed::rows::changes;
use crate::archive::sealed::seal::Counts;
use crate::cancel::CancellationToken;
use crate::error::{Error, ErrorKind, Result};
use crate::file::{self, FileError, FileRecord};
use crate::tables::{Change, Table};

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Files whose size, checksum and rows were compared.
    pub files: usize,
    /// The problems found, a line each.
    pub faults: Vec<String>,
}

/// Verifies all folders of an archive, and passes each file to `done`. Rows are read only if the files match their
/// checksums.
///
/// # Errors
///
/// If a folder cannot be read, or once the archive's token is cancelled.
pub(crate) fn verify(archive: &Archive, mut done: impl FnMut(&FileRecord)) -> Result<Verified> {
    let mut verified = Verified::default();
    for run in archive.missing() {
        let fault = format!("`{}` lacks run `{run}`, which later runs are based on", archive.path().display());
        verified.faults.push(fault);
    }
    let missing = verified.faults.len();
    for folder in archive.folders() {
        let files = &folder.seal().files;
        verified.files += files.len();
        for file in files {
            verified.faults.extend(fault(&folder.path().join(&file.name), file, archive.stop())?);
            done(file);
        }
    }
    if verified.faults.len() == missing {
        for folder in archive.folders() {
            let files = if folder.seal().is_pack() { incomplete_files(archive, folder) } else { Ok(Vec::new()) };
            let faults = files.and_then(|files| {
                let faults = files.iter().map(|file| format!("`{file}` is missing rows of its members"));
                Ok(faults.chain(counts_what_it_has(folder)?).collect::<Vec<String>>())
            });
            match faults {
                Ok(faults) => {
                    let located = |fault: String| format!("`{}`: {fault}", folder.path().display());
                    verified.faults.extend(faults.into_iter().map(located));
                }
                Err(error) if matches!(error.downcast_ref(), Some(FileError::Damaged { .. })) => {
                    verified.faults.push(with_source(&error));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(verified)
}

fn with_source(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_string(),
    }
}

/// Reads all rows of a folder and compares the changes that its seal counts with those in the rows.
fn counts_what_it_has(folder: &Folder) -> Result<Vec<String>> {
    let mut counted = Counts::default();
    for table in Table::ALL.into_iter().filter(|table| folder.seal().rows(&table.file()) > 0) {
        let mut file = ByTicker::open(folder, &table.file(), &table.file_schema())?;
        while let Some(rows) = file.take_rows(1, Cuts::of_cells(table))? {
            for change in changes(&rows) {
                match change {
                    Change::Added => counted.added += 1,
                    Change::Revised => counted.revised += 1,
                    Change::Withdrawn => counted.withdrawn += 1,
                }
            }
        }
    }
    counted += listings::counted(&listings::read(&[Arc::new(folder.clone())])?);
    for run in folder.seal().runs() {
        let run = SealedRun::of(run.clone(), Arc::new(folder.clone()));
        run.requests()?;
        run.answers()?;
        run.rejects()?.try_for_each(|rows| rows.map(drop))?;
    }
    let fault = || "its seal and its rows disagree on the number of changes".to_owned();
    Ok((counted != folder.seal().changes).then(fault).into_iter().collect())
}

/// How a file differs from its record, if it does.
///
/// # Errors
///
/// [`ErrorKind::Interrupted`](crate::error::ErrorKind) once the token is cancelled.
pub(crate) fn fault(path: &Path, record: &FileRecord, stop: &CancellationToken) -> Result<Option<String>> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Err(error) => return Ok(Some(format!("`{shown}` cannot be read: {error}"))),
        Ok(found) if !found.is_file() => return Ok(Some(format!("`{shown}` is not a regular file"))),
        Ok(found) if found.len() != record.bytes => {
            return Ok(Some(format!("`{shown}` has {} bytes, expected {}", found.len(), record.bytes)));
        }
        Ok(_) => {}
    }
    let found = match FileRecord::of(path, &record.name, record.rows, stop) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
        Err(error) => return Ok(Some(file::fault_of(path, &error))),
    };
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
