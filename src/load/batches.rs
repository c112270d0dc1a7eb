//! The rows of a dataset as Arrow readers take them.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::error::Result;

/// The rows of a dataset, batch by batch. An error is an [`ArrowError::ExternalError`] that holds an
/// [`Error`](crate::error::Error).
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
        Some(self.rows.next()?.map_err(|error| ArrowError::ExternalError(Box::new(error))))
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
