//! Arrow IPC files, which others call Feather version 2.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};

use crate::error::{Error, Result};
use crate::file;

/// An Arrow file that is being written.
pub(super) struct Writer {
    path: PathBuf,
    inner: FileWriter<File>,
}

impl Writer {
    pub(super) fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Resend);
        let inner = FileWriter::try_new_with_options(file::create(path)?, &schema, options)
            .map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), inner })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.inner.write(rows).map_err(|error| failed(&self.path, error))
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.inner.finish().map_err(|error| failed(&self.path, error))?;
        file::sync(self.inner.get_ref(), &self.path)
    }
}

fn failed(path: &Path, error: ArrowError) -> Error {
    file::encoding_failed(path, error.into())
}
