//! A sealed run, what is read of it, and the files that hold one run after another.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};

use super::answers::{self, ANSWERS, SeriesAnswer};
use super::folder::{FilePart, Folder};
use super::layout::{REJECTS, REQUESTS};
use super::seal::Seal;
use crate::disk::file::FileError;
use crate::error::{Reason, Result};
use crate::interface::Endpoint;
use crate::tables::{Drift, Reject, RequestRecord};

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
            requests.extend(request_records(&rows?).map_err(failed)?);
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
        let of = |folder: &Folder| {
            // Number of rows before them.
            let before = folder.seal().parts().iter().take_while(|part| part.run != self.seal.run);
            let skipped = before.map(|run| run.rows(name)).sum();
            folder.read(name, schema, FilePart::Rows { skipped, count: self.seal.rows(name) })
        };
        match (of(&self.folder), &self.pack) {
            (Err(_), Some(pack)) if !self.path().exists() => of(pack),
            (rows, _) => rows,
        }
    }
}

/// Reads request records from rows with the columns of the schema.
pub(in crate::archive) fn request_records(rows: &RecordBatch) -> Result<Vec<RequestRecord>, Reason> {
    let column = |name: &str| rows.column_by_name(name).expect("the rows were read in the columns of the schema");
    let texts = |name: &str| column(name).as_string::<i32>();
    let numbers = |column: &ArrayRef| column.as_primitive::<Int32Type>().values().clone();
    let counts = |name: &str| column(name).as_primitive::<Int64Type>().values();
    let (endpoints, requests, digests) = (texts("endpoint"), texts("request"), texts("digest"));
    let (statuses, attempts) = (numbers(column("status")), numbers(column("attempts")));
    let (bytes, typed, rejects) = (counts("bytes"), counts("rows"), counts("rejects"));
    let unknown = texts("unknown_fields");
    let unknown_fields = |row: usize| match unknown.is_valid(row) {
        true => serde_json::from_str(unknown.value(row)),
        false => Ok(Vec::new()),
    };
    let validators = texts("validator");
    let validator = |row: usize| match validators.is_valid(row) {
        true => serde_json::from_str(validators.value(row)).map(Some),
        false => Ok(None),
    };
    let seen = column("observed_at").as_primitive::<TimestampMicrosecondType>().values();
    let of_row = |row: usize| {
        Ok(RequestRecord {
            endpoint: endpoints.value(row).parse()?,
            request: requests.value(row).to_owned(),
            status: statuses[row] as u16,
            attempts: attempts[row] as u32,
            bytes: bytes[row] as u64,
            digest: digests.value(row).to_owned(),
            rows: typed[row] as u64,
            rejects: rejects[row] as u64,
            validator: validator(row)?,
            unknown_fields: unknown_fields(row)?,
            observed_at: DateTime::from_timestamp_micros(seen[row]).ok_or("an instant is out of range")?,
        })
    };
    (0..rows.num_rows()).map(of_row).collect()
}

/// What a report asks of an answered request.
pub(crate) struct AnsweredRequest<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) request: &'a str,
    /// Number of typed records.
    pub(crate) rows: u64,
    /// Number of rejected records.
    pub(crate) rejects: u64,
    pub(crate) unknown_fields: Vec<Drift>,
    pub(crate) observed_at: DateTime<Utc>,
}

impl AnsweredRequest<'_> {
    /// The columns that it is read from.
    pub(in crate::archive) const COLUMNS: [&'static str; 6] =
        ["endpoint", "request", "rows", "rejects", "unknown_fields", "observed_at"];
}

/// Reads the requests that are wanted from rows with the columns of [`AnsweredRequest::COLUMNS`].
pub(in crate::archive) fn answered_requests<'a>(
    rows: &'a RecordBatch,
    mut is_wanted: impl FnMut(&str) -> bool,
) -> Result<Vec<AnsweredRequest<'a>>, Reason> {
    let column = |name: &str| rows.column_by_name(name).expect("the rows were read with the column");
    let texts = |name: &str| column(name).as_string::<i32>();
    let counts = |name: &str| column(name).as_primitive::<Int64Type>().values();
    let (endpoints, requests, unknown) = (texts("endpoint"), texts("request"), texts("unknown_fields"));
    let (typed, rejects) = (counts("rows"), counts("rejects"));
    let seen = column("observed_at").as_primitive::<TimestampMicrosecondType>().values();
    let of_row = |row: usize| {
        Ok(AnsweredRequest {
            endpoint: endpoints.value(row).parse()?,
            request: requests.value(row),
            rows: typed[row] as u64,
            rejects: rejects[row] as u64,
            unknown_fields: match unknown.is_valid(row) {
                true => serde_json::from_str(unknown.value(row))?,
                false => Vec::new(),
            },
            observed_at: DateTime::from_timestamp_micros(seen[row]).ok_or("an instant is out of range")?,
        })
    };
    (0..rows.num_rows()).filter(|&row| is_wanted(requests.value(row))).map(of_row).collect()
}

/// The rows of a file that holds one run after another, read once from start to end, however many runs it holds.
pub(in crate::archive) struct RunRows {
    batches: Box<dyn Iterator<Item = Result<RecordBatch>>>,
    /// Rows that were read but not yet taken.
    rest: Option<RecordBatch>,
}

impl RunRows {
    /// Opens a file of a folder, for some of its columns or, if none are named, for all.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef, columns: &[&str]) -> Result<Self> {
        let part = if columns.is_empty() { FilePart::Whole } else { FilePart::Columns(columns) };
        Ok(Self { batches: Box::new(folder.read(name, schema, part)?), rest: None })
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
    /// Some columns of a file or, if none are named, all.
    pub(in crate::archive) fn new(
        folders: impl Iterator<Item = &'a Arc<Folder>>,
        name: &'static str,
        schema: SchemaRef,
        columns: &'static [&'static str],
    ) -> Self {
        let runs = |folder: &'a Arc<Folder>| folder.seal().runs().map(move |run| (run.run.as_str(), folder));
        let homes = folders.flat_map(runs).collect();
        Self { name, schema, columns, homes, open: HashMap::new() }
    }

    /// The rows of a run.
    pub(crate) fn of_run(&mut self, run: &SealedRun) -> Result<Vec<RecordBatch>> {
        let folder = *self.homes.get(run.name()).expect("the folders that are read hold every run");
        let parts = folder.seal().parts();
        let index = parts.iter().position(|part| part.run == run.name()).unwrap_or(parts.len());
        let (mut rows, read) = match self.open.remove(folder.path()) {
            Some((rows, read)) if read <= index => (rows, read),
            _ => (RunRows::open(folder, self.name, &self.schema, self.columns)?, 0),
        };
        rows.pass_over(parts[read..index].iter().map(|part| part.rows(self.name)).sum())?;
        let of_run = rows.next(run.seal().rows(self.name))?;
        if index + 1 < parts.len() {
            self.open.insert(folder.path(), (rows, index + 1));
        }
        Ok(of_run)
    }
}
