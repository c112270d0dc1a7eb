//! Files that hold one run after another, read once from start to end, however many runs they hold.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::catalog::Archive;
use super::folder::Folder;
use super::sealed_run::SealedRun;
use crate::error::Result;

/// The rows of such a file.
pub(in crate::archive) struct RunRows {
    batches: Box<dyn Iterator<Item = Result<RecordBatch>>>,
    /// Rows that were read but not yet taken.
    rest: Option<RecordBatch>,
}

impl RunRows {
    /// Opens a file of a folder, for all of its columns.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef) -> Result<Self> {
        Ok(Self { batches: Box::new(folder.all_rows(name, schema)?), rest: None })
    }

    /// Opens a file of a folder, for some of its columns.
    fn narrow(folder: &Folder, name: &str, schema: &SchemaRef, columns: &[&str]) -> Result<Self> {
        Ok(Self { batches: Box::new(folder.columns(name, schema, columns)?), rest: None })
    }

    /// At most `most` rows; none at the end.
    fn take(&mut self, most: u64) -> Result<Option<RecordBatch>> {
        let next = self.rest.take().map_or_else(|| self.batches.next().transpose(), |rest| Ok(Some(rest)))?;
        Ok(next.map(|rows| {
            let count = rows.num_rows().min(usize::try_from(most).unwrap_or(usize::MAX));
            if count < rows.num_rows() {
                self.rest = Some(rows.slice(count, rows.num_rows() - count));
            }
            rows.slice(0, count)
        }))
    }

    /// Whether the next rows here are the next ones there, too.
    pub(in crate::archive) fn are_next_of(&mut self, other: &mut Self, count: u64) -> Result<bool> {
        let mut left = count;
        while left > 0 {
            let Some(rows) = self.take(left)? else { return Ok(false) };
            left -= rows.num_rows() as u64;
            let mut from = 0;
            while from < rows.num_rows() {
                let Some(others) = other.take((rows.num_rows() - from) as u64)? else { return Ok(false) };
                if rows.slice(from, others.num_rows()) != others {
                    return Ok(false);
                }
                from += others.num_rows();
            }
        }
        Ok(true)
    }

    /// The next rows.
    fn next(&mut self, count: u64) -> Result<Vec<RecordBatch>> {
        let (mut batches, mut left) = (Vec::new(), count);
        while left > 0
            && let Some(rows) = self.take(left)?
        {
            left -= rows.num_rows() as u64;
            batches.push(rows);
        }
        Ok(batches)
    }

    pub(in crate::archive) fn pass_over(&mut self, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0
            && let Some(rows) = self.take(left)?
        {
            left -= rows.num_rows() as u64;
        }
        Ok(())
    }
}

/// The rows of a file for many runs, in the order in which these were sealed: read from packs where there are some.
pub(crate) struct RowsByRun<'a> {
    name: &'static str,
    schema: SchemaRef,
    /// The columns to read; all of them if there are none.
    columns: &'static [&'static str],
    homes: HashMap<&'a str, &'a Arc<Folder>>,
    /// The files that are being read, and how many of their runs have been.
    open: HashMap<&'a Path, (RunRows, usize)>,
}

impl<'a> RowsByRun<'a> {
    /// All columns of a file.
    pub(in crate::archive) fn whole(archive: &'a Archive, name: &'static str, schema: SchemaRef) -> Self {
        Self::of(archive, name, schema, &[])
    }

    /// Some columns of a file.
    pub(in crate::archive) fn of(
        archive: &'a Archive,
        name: &'static str,
        schema: SchemaRef,
        columns: &'static [&'static str],
    ) -> Self {
        let runs = |folder: &'a Arc<Folder>| folder.seal().runs().map(move |run| (run.run.as_str(), folder));
        let homes = archive.read_runs().flat_map(runs).collect();
        Self { name, schema, columns, homes, open: HashMap::new() }
    }

    /// The rows of a run.
    pub(crate) fn of_run(&mut self, run: &SealedRun) -> Result<Vec<RecordBatch>> {
        let folder = *self.homes.get(run.name()).expect("the folders that are read hold every run");
        let parts = folder.seal().parts();
        let index = parts.iter().position(|part| part.run == run.name()).unwrap_or(parts.len());
        let (mut rows, read) = match self.open.remove(folder.path()) {
            Some((rows, read)) if read <= index => (rows, read),
            _ if self.columns.is_empty() => (RunRows::open(folder, self.name, &self.schema)?, 0),
            _ => (RunRows::narrow(folder, self.name, &self.schema, self.columns)?, 0),
        };
        rows.pass_over(parts[read..index].iter().map(|part| part.rows(self.name)).sum())?;
        let of_run = rows.next(run.seal().rows(self.name))?;
        if index + 1 < parts.len() {
            self.open.insert(folder.path(), (rows, index + 1));
        }
        Ok(of_run)
    }
}
