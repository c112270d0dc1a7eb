//! A sealed folder and its files. A file is trusted only once it matches its seal: a regular file of the sealed length
//! and digest, with the layout's columns, but for optional ones, in row groups of bounded size.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use arrow::array::RecordBatch;
use arrow::datatypes::{Fields, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::file_rows::FileBytes;
use super::layout::{self, fill};
use super::seal::{SEAL, Seal};
use crate::disk::expansion;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::error::{Reason, Result};
use crate::process::cancel::{self, CancellationToken};

/// The most rows of a row group; files written here have an eighth of that.
pub(super) const MAX_GROUP_ROWS: i64 = 1 << 20;

/// The most bytes of a decompressed row group.
pub(super) const MAX_GROUP_BYTES: i64 = 256 << 20;

/// The most rows of a batch of a file that is read as a whole.
const FOLDER_BATCH_ROWS: usize = 1 << 10;

/// A sealed folder: a run, a pack that replaces several runs, or a merge of their histories.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Folder {
    path: PathBuf,
    seal: Arc<Seal>,
    /// Cancels reading it.
    stop: CancellationToken,
}

/// A verified file: path, digest, length and modification time.
type VerifiedFile = (PathBuf, String, u64, Option<SystemTime>);

/// Files that this process has verified, and need not read again.
static CHECKED: LazyLock<Mutex<HashSet<VerifiedFile>>> = LazyLock::new(Mutex::default);

impl Folder {
    pub(in crate::archive) fn new(path: PathBuf, seal: impl Into<Arc<Seal>>) -> Self {
        Self { path, seal: seal.into(), stop: CancellationToken::new() }
    }

    /// The same folder, read until a token is cancelled.
    pub(in crate::archive) fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    pub(in crate::archive) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(in crate::archive) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::archive) fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The path of a file, once it is verified.
    pub(in crate::archive) fn verified_path(&self, name: &str) -> Result<PathBuf> {
        let (path, record) = (self.path.join(name), self.record(name)?);
        let damaged = |reason: String| FileError::damage(&path, reason);
        let found = identify(&path, record)?.map_err(damaged)?;
        if CHECKED.lock().unwrap_or_else(PoisonError::into_inner).contains(&found) {
            return Ok(path);
        }
        let read = FileRecord::of(&path, name, record.rows, &self.stop)?;
        if read != *record {
            return Err(damaged(format!("its BLAKE3 checksum is {}, expected {}", read.blake3, record.blake3)));
        }
        CHECKED.lock().unwrap_or_else(PoisonError::into_inner).insert(found);
        Ok(path)
    }

    fn record(&self, name: &str) -> Result<&FileRecord> {
        let missing = || FileError::damage(&self.path.join(SEAL), format!("it does not list `{name}`"));
        self.seal.file(name).ok_or_else(missing)
    }

    /// Opens a file for reading in the columns of a schema. Its rows lack the optional columns that the file does not have,
    /// until [`fill`] adds them.
    pub(super) fn open(&self, name: &str, schema: &SchemaRef) -> Result<(PathBuf, FileBytes, ArrowReaderMetadata)> {
        let path = self.verified_path(name)?;
        let rows = self.record(name)?.rows;
        let file = FileBytes::open(&path)?;
        let metadata = || -> Result<ArrowReaderMetadata, Reason> {
            let metadata = Arc::new(file.metadata()?);
            // Types come from the layout, not from the file's metadata.
            let columns = metadata.file_metadata().schema_descr().root_schema().get_fields();
            let has = |name: &str| columns.iter().any(|column| column.name() == name);
            let options = ArrowReaderOptions::new().with_schema(layout::columns_in(name, schema, has));
            let metadata = ArrowReaderMetadata::try_new(metadata, options)?;
            check_bounds(&metadata, rows)?;
            Ok(metadata)
        };
        let metadata = metadata();
        match metadata {
            Ok(metadata) => Ok((path, file, metadata)),
            Err(source) => Err(FileError::damage(&path, source)),
        }
    }

    /// All rows of a file, batch by batch.
    pub(in crate::archive) fn all_rows(
        &self,
        name: &str,
        schema: &SchemaRef,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        self.read(name, schema, FilePart::Whole)
    }

    /// Some rows or columns of a file, batch by batch.
    pub(super) fn read(
        &self,
        name: &str,
        schema: &SchemaRef,
        part: FilePart<'_>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let (path, _, metadata) = self.open(name, schema)?;
        let damaged = |path: &Path, source: Reason| FileError::damage(path, source);
        let file = Arc::new(links::open(&path)?);
        let (all, groups) = (ProjectionMask::all(), 0..metadata.metadata().num_row_groups());
        let batch_rows = expansion::batch_rows(&file, metadata.metadata(), groups.clone(), &all, FOLDER_BATCH_ROWS)
            .map_err(|error| damaged(&path, error.into()))?;
        let file = file.try_clone().map_err(FileError::read(&path))?;
        let rows = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(batch_rows);
        let limit = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let mut schema = SchemaRef::clone(schema);
        let rows = match part {
            FilePart::Whole => rows,
            FilePart::Rows { skipped, count } => rows.with_offset(limit(skipped)).with_limit(limit(count)),
            FilePart::Columns(columns) => {
                let mask = ProjectionMask::columns(rows.parquet_schema(), columns.iter().copied());
                let wanted = schema.fields().iter().filter(|field| columns.contains(&field.name().as_str()));
                schema = Arc::new(Schema::new(wanted.cloned().collect::<Fields>()));
                rows.with_projection(mask)
            }
        };
        let rows = rows.build().map_err(|error| damaged(&path, error.into()))?;
        let stop = self.stop.clone();
        let mut expanded = Expanded::default();
        Ok(rows.map(move |rows| {
            cancel::check(&stop)?;
            let rows = rows.map_err(|error| damaged(&path, error.into()))?;
            expanded.add(&rows, groups.len()).map_err(|reason| damaged(&path, reason))?;
            fill(rows, &schema).map_err(|error| damaged(&path, error.into()))
        }))
    }
}

/// What is read of a file.
pub(super) enum FilePart<'a> {
    Whole,
    /// As many rows after the first ones.
    Rows {
        skipped: u64,
        count: u64,
    },
    Columns(&'a [&'a str]),
}

/// The identity of a file from its metadata, or why it cannot match its record.
fn identify(path: &Path, record: &FileRecord) -> Result<Result<VerifiedFile, String>> {
    let failed = FileError::read(path);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Ok(Err("it is not a regular file".to_owned()));
    }
    if metadata.len() != record.bytes {
        return Ok(Err(format!("it has {} bytes, expected {}", metadata.len(), record.bytes)));
    }
    Ok(Ok((path.to_owned(), record.blake3.clone(), record.bytes, metadata.modified().ok())))
}

/// What was decoded of some row groups. A dictionary may make that much more than the pages that [`check_bounds`] counts.
#[derive(Debug, Default)]
pub(super) struct Expanded(usize);

impl Expanded {
    /// Counts rows, and refuses those beyond what a number of row groups may take.
    pub(super) fn add(&mut self, rows: &RecordBatch, groups: usize) -> Result<(), Reason> {
        self.0 = self.0.saturating_add(rows.get_array_memory_size());
        let limit = MAX_GROUP_BYTES as usize * groups.max(1);
        match self.0 > limit {
            true => Err(format!("its rows take more than {limit} bytes once they are decoded").into()),
            false => Ok(()),
        }
    }
}

/// Checks number of rows and size of row groups before anything is decoded.
fn check_bounds(metadata: &ArrowReaderMetadata, rows: u64) -> Result<(), Reason> {
    let metadata = metadata.metadata();
    let counted: i64 = metadata.row_groups().iter().map(|group| group.num_rows().max(0)).fold(0, i64::saturating_add);
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(rows) || u64::try_from(counted) != Ok(rows) {
        return Err(format!("it declares {counted} rows, expected {rows}").into());
    }
    for group in metadata.row_groups() {
        let bytes = group.columns().iter().map(|column| column.uncompressed_size().max(0)).fold(0, i64::saturating_add);
        if group.num_rows() > MAX_GROUP_ROWS || bytes > MAX_GROUP_BYTES {
            return Err(format!("a row group has {} rows and {bytes} bytes", group.num_rows()).into());
        }
    }
    Ok(())
}
