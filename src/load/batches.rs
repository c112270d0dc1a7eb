//! The rows of a dataset as a `RecordBatchReader`.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, RecordBatchReader, StringArray};
use arrow::datatypes::{DataType, Int8Type, SchemaRef};
use arrow::error::ArrowError;

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
        Some(rows.map_err(|error| ArrowError::ExternalError(Box::new(error))).and_then(|rows| compacted(&rows)))
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

/// Rows with dictionaries reduced to the names that occur.
fn compacted(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(keys, _) if **keys == DataType::Int8 => occurring(column.as_dictionary()),
        _ => Ok(Arc::clone(column)),
    };
    RecordBatch::try_new(rows.schema(), rows.columns().iter().map(column).collect::<Result<_, _>>()?)
}

fn occurring(column: &DictionaryArray<Int8Type>) -> Result<ArrayRef, ArrowError> {
    let names = column.values().as_string::<i32>();
    let mut occurs = vec![false; names.len()];
    match column.nulls() {
        None => column.keys().values().iter().for_each(|&key| occurs[key as usize] = true),
        Some(_) => column.keys().iter().flatten().for_each(|key| occurs[key as usize] = true),
    }
    if occurs.iter().all(|occurs| *occurs) {
        return Ok(Arc::new(column.clone()));
    }
    let kept: Vec<usize> = (0..names.len()).filter(|&place| occurs[place]).collect();
    let mut keys = vec![0; names.len()];
    kept.iter().zip(0..).for_each(|(&place, key)| keys[place] = key);
    // A null may have any key.
    let keys = column.keys().values().iter().map(|&key| keys.get(key as usize).copied().unwrap_or_default());
    let keys = Int8Array::new(keys.collect(), column.nulls().cloned());
    let names = StringArray::from_iter_values(kept.into_iter().map(|place| names.value(place)));
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(names))?))
}
