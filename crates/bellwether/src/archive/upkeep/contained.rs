//! Checks that a pack contains what it replaces: every row of every file is compared, regardless of the seals.
//!
//! A pack of packs is compared with these, and each of them with the runs that it replaces itself. So a row is compared
//! once for each pack that it was copied into, and a file is read from start to end, however many runs are in it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows, SortField};

use super::pack::observations;
use crate::archive::merge_failed;
use crate::archive::sealed::answers::{self, ANSWERS};
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::listings::{self, LISTINGS};
use crate::archive::sealed::requests::{REJECTS, REQUESTS};
use crate::archive::sealed::run_rows::RunRows;
use crate::error::Result;
use crate::tables::{Reject, RequestRecord, Table};

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
    let mut held = listings::read(&[Arc::clone(pack)])?.into_iter();
    if !listings::read(&owned)?.iter().all(|wanted| held.any(|listing| listing == *wanted)) {
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
    let mut packed = RunRows::open(pack, name, schema)?;
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
            None => RunRows::open(folder, name, schema)?,
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
