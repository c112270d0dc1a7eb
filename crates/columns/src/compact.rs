//! Rows with dictionaries reduced to the names that occur.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int8Type};
use arrow::error::ArrowError;

/// Rows with dictionaries reduced to the names that occur.
pub fn compact(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
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
    let mut kept: Vec<&str> = Vec::new();
    let mut keys = vec![0; names.len()];
    for index in (0..names.len()).filter(|&index| occurs[index]) {
        let name = names.value(index);
        let key = kept.iter().position(|other| *other == name).unwrap_or_else(|| {
            kept.push(name);
            kept.len() - 1
        });
        keys[index] = key as i8;
    }
    if kept.len() == names.len() {
        return Ok(Arc::new(column.clone()));
    }
    // What is behind a null may be any key.
    let keys = column.keys().values().iter().map(|&key| keys.get(key as usize).copied().unwrap_or_default());
    let keys = Int8Array::new(keys.collect(), column.nulls().cloned());
    let names = StringArray::from_iter_values(kept);
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(names))?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Int8Type};

    use super::compact;

    #[test]
    fn a_dictionary_has_each_name_that_occurs_once() {
        let names = StringArray::from(vec!["bull", "never", "bear", "bull", "bear"]);
        let keys = Int8Array::from(vec![Some(3), Some(0), None, Some(4), Some(2), Some(0)]);
        let column: ArrayRef = Arc::new(DictionaryArray::try_new(keys, Arc::new(names)).unwrap());
        let rows = RecordBatch::try_from_iter_with_nullable([("regime", Arc::clone(&column), true)]).unwrap();
        let compact = compact(&rows).unwrap();
        let found = compact.column(0).as_dictionary::<Int8Type>();
        let names: Vec<Option<&str>> = found.values().as_string::<i32>().iter().collect();
        assert_eq!(names, [Some("bull"), Some("bear")]);
        let texts = |column: &ArrayRef| cast(column, &DataType::Utf8).unwrap();
        assert_eq!(&texts(compact.column(0)), &texts(&column));
    }
}
