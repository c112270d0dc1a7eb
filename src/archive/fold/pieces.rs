//! Joins what was read piece by piece.

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;

/// Concatenates batches column by column, so that only one column is in memory twice.
pub(in crate::archive) fn concatenated(
    schema: &SchemaRef,
    mut batches: Vec<RecordBatch>,
) -> Result<RecordBatch, ArrowError> {
    if batches.len() == 1 {
        return Ok(batches.remove(0));
    }
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); schema.fields().len()];
    for batch in batches {
        let (_, columns, _) = batch.into_parts();
        pieces.iter_mut().zip(columns).for_each(|(pieces, column)| pieces.push(column));
    }
    let column = |(field, pieces): (&FieldRef, Vec<ArrayRef>)| match &pieces[..] {
        [] => Ok(new_empty_array(field.data_type())),
        pieces => concat(&pieces.iter().map(|piece| &**piece as &dyn Array).collect::<Vec<_>>()),
    };
    let columns = schema.fields().iter().zip(pieces).map(column).collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new(SchemaRef::clone(schema), columns)
}
