//! Rows with dictionaries reduced to the names that occur.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int8Type};
use arrow::error::ArrowError;

/// Rows with dictionaries reduced to the names that occur.
pub(crate) fn compacted(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
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
    // What is behind a null may be any key.
    let keys = column.keys().values().iter().map(|&key| keys.get(key as usize).copied().unwrap_or_default());
    let keys = Int8Array::new(keys.collect(), column.nulls().cloned());
    let names = StringArray::from_iter_values(kept.into_iter().map(|place| names.value(place)));
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(names))?))
}
