//! Verifies an archive: its seals, checksums, rows and counts of every file, and packs against the members that still exist:
//! every row of every file is compared, regardless of the seals.
//!
//! A pack of packs is compared with these, and each of them with the runs that it replaces itself. So a row is compared
//! once for each pack that it was copied into, and a file is read from start to end, however many runs are in it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows, SortField};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rayon::prelude::*;

use super::pack::observations;
use crate::archive::forgotten::Forgetting;
use crate::archive::sealed::answers::{self, ANSWERS, LISTINGS};
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::{Folder, RowGroups};
use crate::archive::sealed::layout::{REJECTS, REQUESTS};
use crate::archive::sealed::rows::{changes, ticker};
use crate::archive::sealed::seal::{Counts, Seal};
use crate::archive::sealed::sealed_run::{RunRows, request_records};
use crate::archive::{merge_failed, settle};
use crate::disk::file::{self, Damaged, FileError, FileRecord};
use crate::disk::names::{MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits};
use crate::error::{Error, Reason, Result};
use crate::process::cancel::CancellationToken;
use crate::tables::{Reject, RequestRecord, Table};

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
    counted += answers::listing_counts(&answers::read_listings(std::slice::from_ref(folder))?);
    let damaged = |name: &str, reason: Reason| FileError::damage(&folder.path().join(name), reason);
    for rows in folder.all_rows(REQUESTS, &RequestRecord::schema())? {
        request_records(&rows?).map_err(|reason| damaged(REQUESTS, reason))?;
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
        let counted = settle::count_changes(&changes(&rows));
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

/// The folders that a pack directly replaces: those whose runs are all in it, and not in a smaller pack that it
/// replaces as well. Folders that no longer exist cannot be checked.
pub(super) fn replaced_by<'a>(folders: &'a [Arc<Folder>], pack: &Folder) -> Vec<&'a Arc<Folder>> {
    let members: HashSet<&str> = parts(pack).collect();
    let is_replaced =
        |folder: &&Arc<Folder>| folder.path() != pack.path() && parts(folder).all(|part| members.contains(part));
    let mut replaced: Vec<&Arc<Folder>> = folders.iter().filter(is_replaced).collect();
    replaced.sort_by_key(|folder| (Reverse(parts(folder).count()), folder.path()));
    let mut smaller_packs: Vec<HashSet<&str>> = Vec::new();
    replaced.retain(|folder| {
        let is_direct = !smaller_packs.iter().any(|pack| parts(folder).all(|part| pack.contains(part)));
        // Two packs of the same runs replace each other, and neither may account for the rows of the other.
        if is_direct && folder.seal().is_pack() && parts(folder).count() < members.len() {
            smaller_packs.push(parts(folder).collect());
        }
        is_direct
    });
    replaced
}

/// The seals of the runs in a folder.
pub(super) fn parts(folder: &Folder) -> impl Iterator<Item = &str> {
    folder.seal().parts().iter().map(|part| part.seal.as_str())
}

/// The files of a pack that miss a row of a folder that the pack directly replaces.
pub(super) fn incomplete_files(archive: &Archive, pack: &Arc<Folder>) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folders in disjoint(replaced_by(archive.folders(), pack)) {
        files.extend(lacking(pack, &folders)?);
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Folders in groups without a run in common: their rows are in the pack together.
fn disjoint(folders: Vec<&Arc<Folder>>) -> Vec<Vec<&Arc<Folder>>> {
    let mut groups: Vec<(HashSet<&str>, Vec<&Arc<Folder>>)> = Vec::new();
    for folder in folders {
        let fits = |(held, _): &&mut (HashSet<&str>, _)| parts(folder).all(|part| !held.contains(part));
        match groups.iter_mut().find(fits) {
            Some((held, group)) => {
                held.extend(parts(folder));
                group.push(folder);
            }
            None => groups.push((parts(folder).collect(), vec![folder])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The files of a pack that miss a row of some folders, which have no run in common.
fn lacking(pack: &Arc<Folder>, folders: &[&Arc<Folder>]) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for table in Table::ALL {
        if !holds(observations(&[pack], table)?, observations(folders, table)?, &table.file_schema())? {
            files.push(table.file());
        }
    }
    let owned: Vec<Arc<Folder>> = folders.iter().map(|folder| Arc::clone(folder)).collect();
    let mut held = answers::read_listings(&[Arc::clone(pack)])?.into_iter();
    if !answers::read_listings(&owned)?.iter().all(|wanted| held.any(|listing| listing == *wanted)) {
        files.push(LISTINGS.to_owned());
    }
    let by_run = [(REQUESTS, RequestRecord::schema()), (ANSWERS, answers::schema()), (REJECTS, Reject::schema())];
    for (name, schema) in by_run {
        if !holds_runs(pack, folders, name, &schema)? {
            files.push(name.to_owned());
        }
    }
    Ok(files)
}

/// Whether some rows contain all of others. Both are in the same order.
fn holds(
    mut some: impl Iterator<Item = Result<RecordBatch>>,
    wanted: impl Iterator<Item = Result<RecordBatch>>,
    schema: &SchemaRef,
) -> Result<bool> {
    let failed = merge_failed;
    let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).map_err(failed)?;
    let encoded = |rows: RecordBatch| converter.convert_columns(rows.columns()).map_err(failed);
    let (mut held, mut next): (Option<Rows>, usize) = (None, 0);
    for rows in wanted {
        for wanted in &encoded(rows?)? {
            loop {
                match &held {
                    Some(rows) if next < rows.num_rows() => {
                        next += 1;
                        if rows.row(next - 1) == wanted {
                            break;
                        }
                    }
                    _ => match some.next().transpose()? {
                        Some(rows) => (held, next) = (Some(encoded(rows)?), 0),
                        None => return Ok(false),
                    },
                }
            }
        }
    }
    Ok(true)
}

/// Whether a file of a pack, which holds one run after another, has the rows of each run in some folders.
fn holds_runs(pack: &Folder, folders: &[&Arc<Folder>], name: &str, schema: &SchemaRef) -> Result<bool> {
    let mut homes: HashMap<&str, &Arc<Folder>> = HashMap::new();
    for folder in folders {
        homes.extend(folder.seal().parts().iter().map(|part| (part.run.as_str(), *folder)));
    }
    let mut packed = RunRows::open(pack, name, schema, &[])?;
    // Runs come in the same order everywhere, so a folder is read from start to end.
    let mut open: HashMap<&Path, RunRows> = HashMap::new();
    for run in pack.seal().parts() {
        let count = run.rows(name);
        let Some(folder) = homes.get(run.run.as_str()) else {
            packed.pass_over(count)?;
            continue;
        };
        let mut own = match open.remove(folder.path()) {
            Some(own) => own,
            None => RunRows::open(folder, name, schema, &[])?,
        };
        if !packed.are_next_of(&mut own, count)? {
            return Ok(false);
        }
        if folder.seal().parts().last().is_some_and(|last| last.run != run.run) {
            open.insert(folder.path(), own);
        }
    }
    Ok(true)
}
