//! Arrow IPC files, also known as Feather version 2.

use std::io::{BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;

/// Rows per record batch, the unit in which readers read a file.
const BATCH_ROWS: usize = 1 << 16;

/// An Arrow file being written.
pub(super) struct ArrowFileWriter<W: Write> {
    inner: FileWriter<BufWriter<W>>,
}

impl<W: Write> ArrowFileWriter<W> {
    pub(super) fn create(out: W, schema: &Schema) -> Result<Self, ArrowError> {
        Ok(Self { inner: FileWriter::try_new_buffered(out, schema)? })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let count = rows.num_rows();
        let batches = (0..count).step_by(BATCH_ROWS).map(|from| rows.slice(from, BATCH_ROWS.min(count - from)));
        batches.into_iter().try_for_each(|batch| self.inner.write(&batch))
    }

    pub(super) fn finish(&mut self) -> Result<(), ArrowError> {
        self.inner.finish()?;
        Ok(self.inner.get_mut().flush()?)
    }

    pub(super) fn out(&self) -> &W {
        self.inner.get_ref().get_ref()
    }
}
