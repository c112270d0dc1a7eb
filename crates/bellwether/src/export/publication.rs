//! Writes a dataset in a hidden folder, to be published as a version.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use blake3::Hash;

use super::content::{self, Content};
use super::formats::{RowEncoding, indexed_by};
use super::partitions::{Limits, Partitions, escape};
use super::record::{ColumnRecord, FACTS, Provenance, VersionRecord};
use super::staged::{Staged, TargetFolder};
use super::table::{TableWriter, WriteOptions};
use crate::columns::{self, RowBuffer, Rows};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord, Staging};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Period, Regime};
use crate::plan::{Column, ColumnNames, Plan, Shape};
use crate::process::cancel::CancellationToken;
use crate::process::trace::work;

/// Rows hashed and passed on at once.
const BLOCK_ROWS: usize = 1 << 16;

/// A dataset being written.
pub(crate) struct Publication {
    home: TargetFolder,
    version: String,
    provenance: Provenance,
    staging: Staging,
    options: WriteOptions,
    /// The names of the columns.
    names: ColumnNames,
    rows: u64,
    /// The rows of a long dataset.
    long: Option<LongRows>,
    /// The finished matrices of a wide one.
    matrices: Vec<Matrix>,
}

/// The rows of a long dataset.
struct LongRows {
    blocks: RowBuffer,
    content: Content,
    files: Files,
}

/// The files of a long dataset.
enum Files {
    Whole(TableWriter),
    Folders(Box<Partitions>),
}

struct Matrix {
    stem: String,
    content: Hash,
    columns: Vec<ColumnRecord>,
    files: Vec<FileRecord>,
}

impl Publication {
    /// Starts a version of a dataset in a folder of datasets; an ad hoc build goes into its own folder there. Writing
    /// fails once the token is cancelled.
    pub(crate) fn begin(
        datasets: &Path,
        plan: &Plan,
        provenance: Provenance,
        stop: &CancellationToken,
    ) -> Result<Self> {
        let home = TargetFolder::of(datasets, &plan.name, &provenance.ad_hoc)?;
        let (version, staging) = home.stage(provenance.built_at)?;
        // When it was built, as of when and from which runs is in `dataset.json` alone, so that the same rows have the same
        // bytes, even after runs were compacted.
        let metadata = vec![
            ("bellwether.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("bellwether.dataset", provenance.name.clone()),
            ("bellwether.definition", provenance.definition.clone()),
        ];
        let encoding = RowEncoding { metadata, ..RowEncoding::of(plan) };
        let (root, formats) = (staging.file(""), plan.files.formats.clone());
        let options = WriteOptions { root, formats, encoding, stop: stop.clone() };
        let long = match plan.dataset.shape {
            Shape::Wide(_) => None,
            Shape::Long => Some(LongRows::create(plan, &options)?),
        };
        let names = plan.dataset.written.names().clone();
        Ok(Self { home, version, provenance, staging, options, names, rows: 0, long, matrices: Vec::new() })
    }

    /// Adds rows, in order, to every file of a long dataset.
    pub(crate) fn write(&mut self, rows: &Rows) -> Result<()> {
        let long = self.long.as_mut().expect("a wide dataset has matrices");
        self.rows += rows.num_rows() as u64;
        long.blocks.push(rows).iter().try_for_each(|block| long.deliver(block, &self.home.folder))
    }

    /// Adds a matrix to a wide dataset: dates, then a column per ticker.
    pub(crate) fn write_matrix(
        &mut self,
        (period, regime): (Period, Regime),
        value: &str,
        rows: &RecordBatch,
    ) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        let stem = format!("{period}-{regime}/{}", escape(self.names.of(value)));
        let date = self.names.of(Column::Date.name());
        if rows.schema_ref().fields().iter().skip(1).any(|ticker| ticker.name() == date) {
            let what = format!("`{date}` is the name of a ticker and of the dates beside it");
            return Err(Error::new(ErrorKind::Data, what)
                .with_hint("give the dates another name: `date = \"…\"` in `[dataset.rename]`"));
        }
        let rows = &rename_dates(rows, date);
        let mut content = Content::new(rows.schema());
        let (hashed, files) = rayon::join(
            || content.update(std::slice::from_ref(rows)).map_err(|error| FileError::encode(&self.home.folder, error)),
            || {
                let mut table = TableWriter::create(&self.options, &stem, &indexed_by(&[date], rows.schema()))?;
                table.push(rows)?;
                table.finish()
            },
        );
        hashed?;
        let columns = [Column::Date.name(), value].into_iter().zip(rows.schema().fields());
        let columns = columns.map(|(own, field)| ColumnRecord::new(own, &self.names, field)).collect();
        self.matrices.push(Matrix { stem, content: content.digest(), columns, files: files? });
        Ok(())
    }

    /// Number of rows written, summed over matrices.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the files and prepares their record, with the facts about the rows.
    pub(crate) fn complete(self, plan: &Plan, facts: impl FnOnce() -> Result<Vec<u8>> + Send) -> Result<Staged> {
        let Self { home, version, provenance, staging, options, names: _, rows, long, matrices } = self;
        let complete = || -> Result<_> {
            let completed = match long {
                Some(long) => long.complete(plan, &home.folder)?,
                None => complete_matrices(matrices),
            };
            let _work = work!("make durable");
            file::sync_below(&options.root, completed.0.iter().map(|file| file.name.as_str()))?;
            Ok(completed)
        };
        // Writing the last files takes some time.
        let (completed, facts) = rayon::join(complete, facts);
        let ((files, columns, content), facts) = (completed?, facts?);
        file::write_bytes(&staging.file(FACTS), &facts)?;
        let record = VersionRecord {
            columns,
            rows,
            content: digest::hex(&content),
            files,
            facts: digest::of(&facts),
            ..VersionRecord::new(plan, provenance, version)
        };
        Ok(Staged { home, staging, record: Box::new(record), keep: plan.files.keep })
    }
}

impl LongRows {
    fn create(plan: &Plan, options: &WriteOptions) -> Result<Self> {
        let written = &plan.dataset.written;
        let index: Vec<&str> = plan.files.index.iter().map(|column| written.name(*column)).collect();
        let schema = &match index.is_empty() {
            true => SchemaRef::clone(written.schema()),
            false => indexed_by(&index, written.schema()),
        };
        let by: Vec<String> = plan.files.partition_by.iter().map(|&column| written.name(column).to_owned()).collect();
        let files = if by.is_empty() {
            Files::Whole(TableWriter::create(options, &plan.name, schema)?)
        } else {
            let (is_file_each, order) = (plan.files.partition_by == [Column::Ticker], (&*by, &*written.sort));
            let limits = Limits::default();
            Files::Folders(Box::new(Partitions::new(options.clone(), &plan.name, schema, order, is_file_each, limits)))
        };
        Ok(Self { blocks: RowBuffer::new(BLOCK_ROWS), content: Content::new(written.schema()), files })
    }

    /// Hashes a block and writes it.
    fn deliver(&mut self, block: &[Rows], folder: &Path) -> Result<()> {
        let failed = |error: ArrowError| FileError::encode(folder, error);
        let write = || match &mut self.files {
            Files::Whole(table) => {
                block.iter().try_for_each(|rows| table.push(rows))?;
                table.relieve()
            }
            // The pieces of each folder are counted.
            Files::Folders(partitions) => partitions.push(&columns::concat(block[0].schema(), block).map_err(failed)?),
        };
        let hash = || {
            let _work = work!("hash content");
            self.content.update(block).map_err(failed)
        };
        let (hashed, written) = rayon::join(hash, write);
        hashed.and(written)
    }

    /// The files, their columns and the digest of their content, once all rows are written.
    fn complete(mut self, plan: &Plan, folder: &Path) -> Result<(Vec<FileRecord>, Vec<ColumnRecord>, Hash)> {
        if let Some(block) = self.blocks.take() {
            self.deliver(&block, folder)?;
        }
        let files = match self.files {
            Files::Whole(table) => table.finish()?,
            Files::Folders(partitions) => partitions.finish()?,
        };
        let written = &plan.dataset.written;
        let names = written.names();
        let own = |field: &FieldRef| ColumnRecord::new(names.own(field.name()), names, field);
        Ok((files, written.schema().fields().iter().map(own).collect(), self.content.digest()))
    }
}

/// The same of a wide dataset.
fn complete_matrices(mut matrices: Vec<Matrix>) -> (Vec<FileRecord>, Vec<ColumnRecord>, Hash) {
    let mut columns: Vec<ColumnRecord> = Vec::new();
    for column in matrices.iter().flat_map(|matrix| &matrix.columns) {
        if !columns.iter().any(|known| known.name == column.name) {
            columns.push(column.clone());
        }
    }
    matrices.sort_by(|one, other| one.stem.cmp(&other.stem));
    let content = content::of_matrices(matrices.iter().map(|matrix| (matrix.stem.as_str(), matrix.content)));
    (matrices.into_iter().flat_map(|matrix| matrix.files).collect(), columns, content)
}

/// A matrix with another name for its first column, the dates.
fn rename_dates(rows: &RecordBatch, date: &str) -> Rows {
    let fields = rows.schema_ref().fields().iter().enumerate();
    let field = |(index, field): (usize, &FieldRef)| match index {
        0 => Arc::new(field.as_ref().clone().with_name(date)),
        _ => Arc::clone(field),
    };
    let schema = Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()));
    Rows::from(rows.clone()).project(&schema, &(0..rows.num_columns()).collect::<Vec<_>>())
}
