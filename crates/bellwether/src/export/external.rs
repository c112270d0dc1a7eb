//! Versions whose Parquet files another engine wrote. The files are read once, in order, to compute the record.
//!
//! The digest of the content is the same as that of a build with the same rows.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::Field;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::content::Content;
use super::record::{ColumnRecord, Provenance, VersionRecord};
use crate::columns::Rows;
use crate::disk::digest;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::error::{Reason, Result};
use crate::plan::{ColumnNames, Plan};
use crate::process::cancel::{self, CancellationToken};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 16;

/// The files of a version that were read so far.
pub(crate) struct ExternalFiles {
    plan: Plan,
    content: Content,
    files: Vec<FileRecord>,
    stop: CancellationToken,
}

impl ExternalFiles {
    /// Starts with no files.
    pub(crate) fn new(plan: Plan, stop: CancellationToken) -> Self {
        Self { content: Content::new(&plan.dataset.schema), plan, files: Vec::new(), stop }
    }

    /// Reads the file with the next rows, and delivers them in the columns of the dataset.
    pub(crate) fn add(
        &mut self,
        name: &str,
        path: &Path,
        mut take: impl FnMut(&RecordBatch) -> Result<(), ArrowError>,
    ) -> Result<()> {
        let damaged = |source: Reason| FileError::damage(Path::new(name), source);
        let reader = ParquetRecordBatchReaderBuilder::try_new(links::open(path)?);
        let reader = reader.and_then(|reader| reader.with_batch_size(BATCH_ROWS).build());
        let mut rows = 0;
        for batch in reader.map_err(|error| damaged(error.into()))? {
            cancel::check(&self.stop)?;
            let read = batch.and_then(|batch| self.cast(&batch)).and_then(|batch| {
                self.content.update(&[Rows::from(batch.clone())])?;
                take(&batch)?;
                rows += batch.num_rows() as u64;
                Ok(())
            });
            read.map_err(|error| damaged(error.into()))?;
        }
        self.files.push(FileRecord::of(path, name, rows, &self.stop)?);
        Ok(())
    }

    /// Rows in the columns of the dataset.
    fn cast(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = &self.plan.dataset.schema;
        let column = |field: &Arc<Field>| -> Result<ArrayRef, ArrowError> {
            let missing = || ArrowError::SchemaError(format!("no column `{}`", field.name()));
            cast(batch.column_by_name(field.name()).ok_or_else(missing)?, field.data_type())
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
        RecordBatch::try_new(Arc::clone(schema), columns)
    }

    /// The record of a version with these files and the facts of its rows.
    pub(crate) fn describe(self, version: String, provenance: Provenance, facts: &[u8]) -> VersionRecord {
        let Self { plan, content, files, .. } = self;
        let fields = plan.dataset.schema.fields().iter();
        VersionRecord {
            columns: fields.map(|field| ColumnRecord::new(field.name(), &ColumnNames::default(), field)).collect(),
            rows: files.iter().map(|file| file.rows).sum(),
            content: digest::hex(&content.digest()),
            files,
            facts: digest::of(facts),
            ..VersionRecord::new(&plan, provenance, version)
        }
    }
}
