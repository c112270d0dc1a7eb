//! A sealed folder and its files. A file is trusted only once it matches its seal: a regular file of the sealed length
//! and digest, with the layout's columns, but for optional ones, in row groups of bounded size.
//!
//! A file of rows sorted by ticker is read in parts: some of its row groups in any order and from several threads, or all from start to end.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use arrow::array::{RecordBatch, RecordBatchReader as _};
use arrow::compute::concat_batches;
use arrow::datatypes::{Fields, Schema, SchemaRef};
use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;

use super::layout::{self, fill};
use super::rows::{MAX_GROUP_BYTES, MAX_GROUP_ROWS, check, ticker};
use super::seal::{SEAL, Seal};
use crate::archive::sealed::layout::SEALED_AT;
use crate::archive::sealed::seal::{CountedShare, Horizon};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::{expansion, links};
use crate::error::{Error, Reason, Result};
use crate::interface::Ticker;
use crate::process::cancel::{self, CancellationToken};
use crate::tables::Change;

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

/// Rows per batch: a few tickers of daily history. Larger batches take more memory and no less time.
pub(super) const BATCH_ROWS: usize = 1 << 12;

/// The row groups of a file.
pub(in crate::archive) struct RowGroups {
    path: PathBuf,
    file: FileBytes,
    metadata: ArrowReaderMetadata,
    /// The columns to hand out.
    schema: SchemaRef,
    /// Cancels reading it.
    stop: CancellationToken,
}

impl RowGroups {
    /// Opens a file with the columns of a schema.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef) -> Result<Self> {
        let (path, file, metadata) = folder.open(name, schema)?;
        Ok(Self { path, file, metadata, schema: SchemaRef::clone(schema), stop: folder.stop().clone() })
    }

    /// Number of row groups.
    pub(in crate::archive) fn count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn group(&self, group: usize) -> &RowGroupMetaData {
        self.metadata.metadata().row_group(group)
    }

    fn rows_in(&self, group: usize) -> usize {
        usize::try_from(self.group(group).num_rows()).unwrap_or(0)
    }

    /// Whether a row group may have one of the tickers from one to another, as far as its statistics show.
    pub(in crate::archive) fn may_have(&self, group: usize, first: &Ticker, last: &Ticker) -> bool {
        match self.group(group).column(0).statistics() {
            Some(Statistics::ByteArray(tickers)) => {
                let is_after = tickers.min_opt().is_some_and(|least| least.data() > last.as_str().as_bytes());
                let is_before = tickers.max_opt().is_some_and(|most| most.data() < first.as_str().as_bytes());
                !is_after && !is_before
            }
            _ => true,
        }
    }

    /// The first columns of a row group, which are the keys of its rows.
    pub(in crate::archive) fn keys(&self, group: usize, count: usize) -> Result<RecordBatch> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), 0..count);
        self.read_checked(group, &mask, &[Range { start: 0, end: self.rows_in(group) }])
    }

    /// All rows of a row group.
    pub(in crate::archive) fn whole(&self, group: usize) -> Result<RecordBatch> {
        self.rows(group, &[Range { start: 0, end: self.rows_in(group) }])
    }

    /// Some rows of a row group, as ranges in order.
    pub(in crate::archive) fn rows(&self, group: usize, rows: &[Range<usize>]) -> Result<RecordBatch> {
        let rows = self.read_checked(group, &ProjectionMask::all(), rows)?;
        fill(rows, &self.schema).map_err(|error| self.damage(error))
    }

    fn read_checked(&self, group: usize, mask: &ProjectionMask, rows: &[Range<usize>]) -> Result<RecordBatch> {
        cancel::check(&self.stop)?;
        let selection = RowSelection::from_consecutive_ranges(rows.iter().cloned(), self.rows_in(group));
        let count: usize = rows.iter().map(Range::len).sum();
        let reader = self.reader(group, mask, Some(selection), count.max(1))?;
        let schema = reader.schema();
        let (mut batches, mut expanded) = (Vec::new(), Expanded::default());
        for batch in reader {
            let batch = batch.map_err(|error| self.damage(error))?;
            expanded.add(&batch, 1).map_err(|reason| self.damage(reason))?;
            batches.push(batch);
        }
        let rows = concat_batches(&schema, &batches).map_err(|error| self.damage(error))?;
        check(&rows).map_err(|reason| self.damage(reason))?;
        Ok(rows)
    }

    /// Opens some columns of a row group, in batches of at most as many rows.
    fn reader(
        &self,
        group: usize,
        mask: &ProjectionMask,
        selection: Option<RowSelection>,
        rows: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let columns = self.file.columns(self.group(group), mask).map_err(|error| self.damage(error))?;
        let source = Arc::new(columns.clone());
        let rows = expansion::batch_rows(&source, self.metadata.metadata(), [group], mask, rows)
            .map_err(|error| self.damage(error))?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(columns, self.metadata.clone())
            .with_projection(mask.clone())
            .with_row_groups(vec![group])
            .with_batch_size(rows);
        let reader = match selection {
            Some(selection) => reader.with_row_selection(selection),
            None => reader,
        };
        reader.build().map_err(|error| self.damage(error))
    }

    pub(in crate::archive) fn damage(&self, error: impl Into<Reason>) -> Error {
        FileError::damage(&self.path, error)
    }
}

/// The rows of a file, in batches, from start to end.
pub(in crate::archive) struct FileRows {
    file: RowGroups,
    mask: ProjectionMask,
    /// Which rows count, unless all do.
    horizon: Option<Horizon>,
    /// The row groups to read.
    groups: Range<usize>,
    batches: Option<ParquetRecordBatchReader>,
    /// What was decoded of the row group being read.
    expanded: Expanded,
    /// Rows left in the open batches.
    left_in_batches: usize,
    /// The last ticker that was read.
    last: String,
}

impl FileRows {
    /// Opens a file with the columns of a schema.
    pub(in crate::archive) fn open(folder: &Folder, name: &str, schema: &SchemaRef) -> Result<Self> {
        let file = RowGroups::open(folder, name, schema)?;
        Ok(Self {
            groups: 0..file.count(),
            file,
            mask: ProjectionMask::all(),
            horizon: None,
            batches: None,
            expanded: Expanded::default(),
            left_in_batches: 0,
            last: String::new(),
        })
    }

    /// The columns of its rows.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.file.schema
    }

    /// Opens a file for the rows that count, without the column that says so; none if none do.
    pub(in crate::archive) fn open_known(
        folder: &Folder,
        name: &str,
        schema: &SchemaRef,
        horizon: &Horizon,
    ) -> Result<Option<Self>> {
        let share = horizon.share(folder.seal());
        if share == CountedShare::None {
            return Ok(None);
        }
        let whole = Self::open(folder, name, schema)?;
        let horizon = (share == CountedShare::Some).then(|| horizon.clone());
        Ok(Some(Self { horizon, ..whole }.narrow_to(|_| true)))
    }

    /// Reads only some of the columns; the first one always.
    pub(super) fn narrow_to(self, is_read: impl Fn(&str) -> bool) -> Self {
        let fields = self.schema().fields().iter().enumerate();
        let is_handed_out = |name: &str| name != SEALED_AT && is_read(name);
        let indices: Vec<usize> = fields
            .filter(|(index, field)| *index == 0 || is_handed_out(field.name()))
            .map(|(index, _)| index)
            .collect();
        let schema = Arc::new(self.schema().project(&indices).expect("these are indices of its columns"));
        let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if self.horizon.is_some() {
            names.push(SEALED_AT);
        }
        let mask = ProjectionMask::columns(self.file.metadata.parquet_schema(), names);
        Self { file: RowGroups { schema, ..self.file }, mask, ..self }
    }

    /// Whether every row adds its cell, according to the file's statistics.
    pub(super) fn are_added(&self) -> bool {
        let Ok(index) = self.file.metadata.schema().index_of("change") else { return false };
        let added = Change::Added.as_str().as_bytes();
        self.file.metadata.metadata().row_groups().iter().all(|group| match group.column(index).statistics() {
            Some(Statistics::ByteArray(statistics)) => {
                let bounds = [statistics.min_opt(), statistics.max_opt()];
                bounds.iter().all(|bound| bound.is_some_and(|bound| bound.data() == added))
                    && statistics.null_count_opt() == Some(0)
            }
            _ => false,
        })
    }

    /// Skips row groups that end before a ticker, unless one is being read.
    pub(super) fn skip_groups(&mut self, wanted: &str) {
        if self.batches.is_some() {
            return;
        }
        while !self.groups.is_empty() {
            let ends_before = match self.file.group(self.groups.start).column(0).statistics() {
                Some(Statistics::ByteArray(statistics)) => {
                    statistics.max_opt().is_some_and(|last| last.data() < wanted.as_bytes())
                }
                _ => false,
            };
            if !ends_before {
                return;
            }
            self.groups.start += 1;
        }
    }

    /// The next rows; none at the end.
    pub(super) fn read(&mut self) -> Result<Option<RecordBatch>> {
        cancel::check(&self.file.stop)?;
        loop {
            match &mut self.batches {
                Some(batches) => match batches.next().transpose() {
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => {
                        self.expanded.add(&batch, 1).map_err(|reason| self.damage(reason))?;
                        self.left_in_batches = self.left_in_batches.saturating_sub(batch.num_rows());
                        if self.left_in_batches == 0 {
                            // Many files may wait for their next ticker, and the decoders of a file take more memory
                            // than most of them hold.
                            self.batches = None;
                        }
                        let batch = match &self.horizon {
                            Some(horizon) => horizon.rows(&batch).map_err(|error| self.damage(error))?,
                            None => batch,
                        };
                        if batch.num_rows() > 0 {
                            let batch = fill(batch, self.schema()).map_err(|error| self.damage(error))?;
                            self.check(&batch)?;
                            return Ok(Some(batch));
                        }
                    }
                    Ok(None) => self.batches = None,
                    Err(error) => return Err(self.damage(error)),
                },
                None if !self.groups.is_empty() => {
                    let group = self.groups.start;
                    self.left_in_batches = self.file.rows_in(group);
                    self.expanded = Expanded::default();
                    let rows = self.left_in_batches.clamp(1, BATCH_ROWS);
                    self.batches = Some(self.file.reader(group, &self.mask, None, rows)?);
                    self.groups.start += 1;
                }
                None => return Ok(None),
            }
        }
    }

    /// All remaining rows.
    pub(in crate::archive) fn take_rest(&mut self) -> Result<RecordBatch> {
        let mut rest = Vec::new();
        while let Some(batch) = self.read()? {
            rest.push(batch);
        }
        concat_batches(self.schema(), &rest).map_err(|error| self.damage(error))
    }

    /// Validates rows that were just read.
    fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        check(batch).map_err(|reason| self.damage(reason))?;
        if ticker(batch, 0) < self.last.as_str() {
            return Err(self.damage("its rows are not sorted by ticker"));
        }
        ticker(batch, batch.num_rows() - 1).clone_into(&mut self.last);
        Ok(())
    }

    pub(in crate::archive) fn damage(&self, error: impl Into<Reason>) -> Error {
        self.file.damage(error)
    }
}

/// The bytes of a file. Many runs are read at once and most of their files are small: these are not kept open.
pub(super) enum FileBytes {
    Held(Bytes),
    Open(File, u64),
}

/// The largest file that is held in memory.
const HELD_BYTES: u64 = 1 << 20;

impl FileBytes {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = FileError::read(path);
        let mut file = links::open(path)?;
        let length = file.metadata().map_err(failed)?.len();
        if length > HELD_BYTES {
            return Ok(Self::Open(file, length));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self::Held(bytes.into()))
    }

    /// Reads the file's metadata.
    pub(super) fn metadata(&self) -> Result<ParquetMetaData, ParquetError> {
        let reader = ParquetMetaDataReader::new();
        match self {
            Self::Held(bytes) => reader.parse_and_finish(bytes),
            Self::Open(file, _) => reader.parse_and_finish(file),
        }
    }

    /// Reads columns of a row group.
    fn columns(&self, group: &RowGroupMetaData, mask: &ProjectionMask) -> Result<GroupColumns, ParquetError> {
        let columns = group.columns().iter().enumerate().filter(|(index, _)| mask.leaf_included(*index));
        let bytes = |(_, column): (usize, &ColumnChunkMetaData)| {
            let (from, length) = column.byte_range();
            Ok((from, self.bytes(from, length)?))
        };
        columns.map(bytes).collect::<Result<Vec<_>, ParquetError>>().map(GroupColumns)
    }

    fn bytes(&self, from: u64, length: u64) -> Result<Bytes, ParquetError> {
        let whole = match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::Open(_, length) => *length,
        };
        if from.checked_add(length).is_none_or(|end| end > whole) {
            return Err(ParquetError::EOF(format!("a column of {length} bytes at {from} extends past its end")));
        }
        match self {
            Self::Held(bytes) => bytes.get_bytes(from, length as usize),
            Self::Open(file, _) => Ok(file::read_at(file, from, length as usize)?.into()),
        }
    }
}

/// Columns of a row group, by their offset in the file. Reading page by page would take several system calls per
/// column.
#[derive(Clone)]
struct GroupColumns(Vec<(u64, Bytes)>);

impl GroupColumns {
    /// The rest of the column that has the byte at an offset.
    fn from(&self, index: u64) -> Result<Bytes, ParquetError> {
        let found = self.0.iter().find_map(|(from, bytes)| {
            let start = usize::try_from(index.checked_sub(*from)?).ok()?;
            (start < bytes.len()).then(|| bytes.slice(start..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("no selected column has a page at {index}")))
    }
}

impl Length for GroupColumns {
    fn len(&self) -> u64 {
        self.0.iter().map(|(from, bytes)| from + bytes.len() as u64).max().unwrap_or(0)
    }
}

impl ChunkReader for GroupColumns {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("a page of {length} bytes at {start} extends past its column")));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}
