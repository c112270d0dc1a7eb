//! Writes a dataset in a hidden folder, to be published as a version.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use blake3::Hash;
use chrono::{DateTime, Utc};

use super::content::{self, Content};
use super::formats::{RowEncoding, indexed_by};
use super::partitions::{Limits, Partitions, escape};
use super::record::{ColumnRecord, FACTS, VersionRecord};
use super::staged::{Staged, TargetFolder};
use super::table::{TableWriter, WriteOptions, make_durable};
use crate::columns::{self, RowBuffer, Rows};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord, Staging};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Period, Regime};
use crate::plan::{AdHoc, Column, ColumnNames, Plan, ServiceIdentity, Shape};
use crate::process::cancel::CancellationToken;
use crate::process::trace::work;
use crate::tables::Watch;

/// Rows hashed and passed on at once.
const BLOCK_ROWS: usize = 1 << 16;

/// Where a dataset comes from.
#[derive(Clone, Debug)]
pub(crate) struct Provenance {
    /// Name of the dataset.
    pub name: String,
    /// Text of its definition.
    pub definition: String,
    /// Options of the build that are not in the definition.
    pub ad_hoc: AdHoc,
    /// The digest of everything that determines its files: datasets with the same basis have the same files.
    pub basis: String,
    /// The service whose data it holds.
    pub service: ServiceIdentity,
    /// The runs whose observations it was built from.
    pub runs: Vec<String>,
    /// The one of them that knew all others and was of this definition, if there is one.
    pub rebuilt_as_of: Option<String>,
    /// Observations after this instant are ignored.
    pub as_of: DateTime<Utc>,
    /// When the vendor told of its series; none if it is not known.
    pub watched: Option<Watch>,
    /// When it was built.
    pub built_at: DateTime<Utc>,
}

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
    kind: Output,
}

enum Output {
    Long(Box<Long>),
    Wide { matrices: Vec<Matrix> },
}

/// A long dataset.
struct Long {
    blocks: RowBuffer,
    content: Content,
    files: Files,
}

/// The files of a long dataset.
enum Files {
    Whole(TableWriter),
    Folders(Partitions),
}

/// A finished matrix.
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
        let kind = match plan.dataset.shape {
            Shape::Wide(_) => Output::Wide { matrices: Vec::new() },
            Shape::Long => Output::long(plan, &options)?,
        };
        let names = plan.dataset.written.names().clone();
        Ok(Self { home, version, provenance, staging, options, names, rows: 0, kind })
    }

    /// Adds rows, in order, to every file of a long dataset.
    pub(crate) fn write(&mut self, rows: &Rows) -> Result<()> {
        let Output::Long(long) = &mut self.kind else {
            return Err(defect(&self.home.folder, "a wide dataset has matrices"));
        };
        let Long { blocks, content, files } = &mut **long;
        self.rows += rows.num_rows() as u64;
        blocks.push(rows).iter().try_for_each(|block| deliver(block, content, files, &self.home.folder))
    }

    /// Adds a matrix to a wide dataset: dates, then a column per ticker.
    pub(crate) fn write_matrix(
        &mut self,
        (period, regime): (Period, Regime),
        value: &str,
        rows: &RecordBatch,
    ) -> Result<()> {
        let Output::Wide { matrices } = &mut self.kind else {
            return Err(defect(&self.home.folder, "a long dataset has no matrices"));
        };
        self.rows += rows.num_rows() as u64;
        let stem = format!("{}-{}/{}", period.as_str(), regime.as_str(), escape(self.names.of(value)));
        let date = self.names.of(Column::Date.name());
        if rows.schema_ref().fields().iter().skip(1).any(|ticker| ticker.name() == date) {
            let what = format!("`{date}` is the name of a ticker and of the dates beside it");
            return Err(Error::new(ErrorKind::Data, what)
                .with_hint("give the dates another name: `date = \"…\"` in `[dataset.rename]`"));
        }
        let rows = &rename_dates(rows, date);
        let mut content = Content::new(rows.schema());
        let hashed =
            || content.update(std::slice::from_ref(rows)).map_err(|error| FileError::encode(&self.home.folder, error));
        let written = || {
            let schema = indexed_by(&[date], rows.schema());
            let mut table = TableWriter::create(&self.options, &stem, &schema)?;
            table.push(rows)?;
            table.finish()
        };
        let (hashed, files) = rayon::join(hashed, written);
        hashed?;
        let fields = rows.schema().fields().iter();
        let columns = [Column::Date.name(), value].into_iter().zip(fields);
        let columns = columns.map(|(own, field)| ColumnRecord::new(own, &self.names, field)).collect();
        matrices.push(Matrix { stem, content: content.digest(), columns, files: files? });
        Ok(())
    }

    /// Number of rows written, summed over matrices.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the files and prepares their record, with the facts about the rows.
    pub(crate) fn complete(self, plan: &Plan, facts: impl FnOnce() -> Result<Vec<u8>> + Send) -> Result<Staged> {
        let Self { home, version, provenance, staging, options, names: _, rows, kind } = self;
        let complete = || -> Result<_> {
            let (files, columns, content) = kind.complete(plan, &home.folder)?;
            let _work = work!("make durable");
            make_durable(&options.root, &files)?;
            Ok((files, columns, digest::hex(&content)))
        };
        // Writing the last files takes some time.
        let (completed, facts) = rayon::join(complete, facts);
        let (files, columns, content) = completed?;
        let facts = facts?;
        file::write_bytes(&staging.file(FACTS), &facts)?;
        let (facts, record) = (digest::of(&facts), VersionRecord::new(plan, provenance, version));
        let record = Box::new(VersionRecord { columns, rows, content, files, facts, ..record });
        Ok(Staged { home, staging, record, keep: plan.files.keep })
    }
}

impl Output {
    fn long(plan: &Plan, options: &WriteOptions) -> Result<Self> {
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
            let (is_file_each, limits) = (plan.files.partition_by == [Column::Ticker], Limits::default());
            Files::Folders(Partitions::new(
                options.clone(),
                &plan.name,
                schema,
                (&by, &written.sort),
                is_file_each,
                limits,
            ))
        };
        let blocks = RowBuffer::new(BLOCK_ROWS);
        Ok(Self::Long(Box::new(Long { blocks, content: Content::new(written.schema()), files })))
    }

    /// The files, their columns and the digest of their content, once all rows are written.
    fn complete(self, plan: &Plan, folder: &Path) -> Result<(Vec<FileRecord>, Vec<ColumnRecord>, Hash)> {
        match self {
            Self::Long(long) => {
                let Long { mut blocks, mut content, mut files } = *long;
                blocks.take().map_or(Ok(()), |block| deliver(&block, &mut content, &mut files, folder))?;
                let files = match files {
                    Files::Whole(table) => table.finish()?,
                    Files::Folders(partitions) => partitions.finish()?,
                };
                let written = &plan.dataset.written;
                let own =
                    |field: &FieldRef| ColumnRecord::new(written.names().own(field.name()), written.names(), field);
                let columns = written.schema().fields().iter().map(own).collect();
                Ok((files, columns, content.digest()))
            }
            Self::Wide { mut matrices } => {
                let digests = matrices.iter().map(|matrix| (matrix.stem.as_str(), matrix.content));
                let content = content::of_matrices(digests);
                let mut columns: Vec<ColumnRecord> = Vec::new();
                for column in matrices.iter().flat_map(|matrix| &matrix.columns) {
                    if !columns.iter().any(|known| known.name == column.name) {
                        columns.push(column.clone());
                    }
                }
                matrices.sort_by(|one, other| one.stem.cmp(&other.stem));
                Ok((matrices.into_iter().flat_map(|matrix| matrix.files).collect(), columns, content))
            }
        }
    }
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

/// Hashes a block and writes it.
fn deliver(block: &[Rows], content: &mut Content, files: &mut Files, folder: &Path) -> Result<()> {
    let failed = |error: ArrowError| FileError::encode(folder, error);
    let write = || match files {
        Files::Whole(table) => {
            block.iter().try_for_each(|rows| table.push(rows))?;
            table.relieve()
        }
        // The pieces of each folder are counted.
        Files::Folders(partitions) => partitions.push(&columns::concat(block[0].schema(), block).map_err(failed)?),
    };
    let hash = || {
        let _work = work!("hash content");
        content.update(block).map_err(failed)
    };
    let (hashed, written) = rayon::join(hash, write);
    hashed.and(written)
}

fn defect(folder: &Path, what: &str) -> Error {
    FileError::encode(folder, what)
}
