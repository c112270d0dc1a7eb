//! The rows of a dataset as a `RecordBatchReader`.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::columns::compact;
use crate::error::Result;

/// The rows of a dataset, batch by batch. A dictionary has only the names that occur in its batch, since frame
/// libraries turn them into categories. An error is an [`ArrowError::ExternalError`] with an
/// [`Error`](crate::error::Error) inside.
pub struct Batches {
    schema: SchemaRef,
    rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
}

impl Batches {
    pub(super) fn new(schema: SchemaRef, rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>) -> Self {
        Self { schema, rows }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.next()?;
        Some(rows.map_err(|error| ArrowError::ExternalError(Box::new(error))).and_then(|rows| compact(&rows)))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Batches").field("schema", &self.schema).finish_non_exhaustive()
    }
}
