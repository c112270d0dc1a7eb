//! CSV as RFC 4180 has it: a header, ISO dates, the shortest numbers that read back equal, nothing where there is null.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::csv;
use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};
use crate::file;

/// A CSV file that is being written.
pub(super) struct Writer {
    path: PathBuf,
    inner: csv::Writer<BufWriter<File>>,
}

impl Writer {
    pub(super) fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 18, file::create(path)?);
        let mut writer = Self { path: path.to_owned(), inner: csv::WriterBuilder::new().with_header(true).build(out) };
        // The header comes with the first batch: with this one it comes even when no row does.
        writer.write(&RecordBatch::new_empty(schema))?;
        Ok(writer)
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.inner.write(rows).map_err(|error| file::encoding_failed(&self.path, error.into()))
    }

    pub(super) fn finish(self) -> Result<()> {
        let mut out = self.inner.into_inner();
        out.flush().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        file::sync(out.get_ref(), &self.path)
    }
}
