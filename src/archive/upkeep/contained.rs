//! Checks that a pack contains what it replaces: every row of every file is compared, regardless of the seals.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows, SortField};

use super::pack::observations;
use crate::archive::ArchiveError;
use crate::archive::sealed::answers::{self, ANSWERS};
use crate::archive::sealed::catalog::{Archive, SealedRun};
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::listings::{self, LISTINGS};
use crate::archive::sealed::requests::{REJECTS, REQUESTS};
use crate::error::Result;
use crate::tables::{Reject, Table};

/// The files of a pack that miss a row of a folder that the pack replaces: a member run, or a pack of such runs.
/// Folders that no longer exist cannot be checked.
pub(super) fn incomplete_files(archive: &Archive, pack: &Arc<Folder>) -> Result<Vec<String>> {
    let members: HashSet<&str> = pack.seal().members.iter().map(|member| member.seal.as_str()).collect();
    let is_replaced = |folder: &&Arc<Folder>| {
        folder.path() != pack.path() && folder.seal().parts().iter().all(|part| members.contains(part.seal.as_str()))
    };
    let replaced = archive.folders().iter().filter(is_replaced);
    let (packs, runs): (Vec<_>, Vec<_>) = replaced.partition(|folder| folder.seal().is_pack());
    let mut files = Vec::new();
    // Runs have no rows in common, so they are checked together. A pack may overlap with them and is checked by itself.
    for folders in [runs].into_iter().chain(packs.into_iter().map(|pack| vec![pack])).filter(|some| !some.is_empty()) {
        files.extend(lacking(pack, &folders)?);
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// The files of a pack that miss a row of some folders, which have no run in common.
fn lacking(pack: &Arc<Folder>, folders: &[&Arc<Folder>]) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for table in Table::ALL {
        if !holds(observations(&[pack], table)?, observations(folders, table)?, &table.file_schema())? {
            files.push(table.file());
        }
    }
    let folders: Vec<Arc<Folder>> = folders.iter().map(|folder| Arc::clone(folder)).collect();
    let mut held = listings::read(&[Arc::clone(pack)])?.into_iter();
    if !listings::read(&folders)?.iter().all(|wanted| held.any(|listing| listing == *wanted)) {
        files.push(LISTINGS.to_owned());
    }
    for folder in &folders {
        for run in folder.seal().runs() {
            let from = |folder: &Arc<Folder>| SealedRun::of(run.clone(), Arc::clone(folder));
            let (own, packed) = (from(folder), from(pack));
            if own.requests()? != packed.requests()? {
                files.push(REQUESTS.to_owned());
            }
            if !holds(
                packed.rows(ANSWERS, &answers::schema())?,
                own.rows(ANSWERS, &answers::schema())?,
                &answers::schema(),
            )? {
                files.push(ANSWERS.to_owned());
            }
            if !holds(packed.rejects()?, own.rejects()?, &Reject::schema())? {
                files.push(REJECTS.to_owned());
            }
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
    let failed = ArchiveError::merge;
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
