//! Concatenation of rows and of arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::Rows;

/// Concatenates rows to one record batch.
pub fn concat(schema: &SchemaRef, pieces: &[Rows]) -> Result<RecordBatch, ArrowError> {
    if let [piece] = pieces {
        return piece.flat();
    }
    let columns =
        (0..schema.fields().len()).map(|index| concat_column(pieces, index)).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(pieces.iter().map(Rows::num_rows).sum()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Concatenates one column of all pieces.
pub(super) fn concat_column(pieces: &[Rows], index: usize) -> Result<ArrayRef, ArrowError> {
    let arrays = pieces.iter().map(|piece| piece.columns()[index].flat());
    concat_arrays(arrays.collect::<Result<_, _>>()?)
}

/// Concatenates arrays, and keeps the dictionary if all have the same.
pub fn concat_arrays(mut pieces: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
    // Arrays that are all null are the most common.
    if pieces.iter().all(|piece| piece.null_count() == piece.len()) {
        return Ok(new_null_array(pieces[0].data_type(), pieces.iter().map(|piece| piece.len()).sum()));
    }
    // Closed sets have the same dictionary everywhere, and an Arrow file stores one dictionary for all its rows.
    if let Some(first) = pieces[0].as_any_dictionary_opt().map(|first| Arc::clone(first.values())) {
        for piece in &mut pieces {
            let same = piece.as_any_dictionary();
            if !Arc::ptr_eq(same.values(), &first) && same.values().to_data() == first.to_data() {
                *piece = same.with_values(Arc::clone(&first));
            }
        }
    }
    arrow::compute::concat(&pieces.iter().map(|piece| &**piece as &dyn Array).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, DictionaryArray, Int8Array, Int32Array, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};

    use super::concat;
    use crate::{RowBuffer, Rows};

    fn batch(from: i32, to: i32) -> RecordBatch {
        let names = Arc::new(StringArray::from(vec!["bear", "bull", "neutral"]));
        let regimes = Int8Array::from_iter_values((from..to).map(|number| (number % 3) as i8));
        let regimes = DictionaryArray::new(regimes, names);
        let numbers = Field::new("number", DataType::Int32, false);
        let schema = Schema::new(vec![numbers, Field::new("regime", regimes.data_type().clone(), false)]);
        let columns = [Arc::new(Int32Array::from_iter_values(from..to)) as Arc<dyn Array>, Arc::new(regimes)];
        RecordBatch::try_new(Arc::new(schema), columns.to_vec()).unwrap()
    }

    #[test]
    fn blocks_do_not_depend_on_how_rows_are_pushed() {
        let whole = batch(0, 100);
        let cut = |ends: &[i32]| {
            let mut buffer = RowBuffer::new(16);
            let starts = std::iter::once(&0).chain(ends);
            let batches = starts.zip(ends).map(|(&from, &to)| batch(from, to));
            let mut cut: Vec<Vec<Rows>> = batches.flat_map(|batch| buffer.push(&batch.into())).collect();
            cut.extend(buffer.take());
            cut.iter().map(|pieces| concat(&whole.schema(), pieces).unwrap()).collect::<Vec<_>>()
        };
        let expected: Vec<RecordBatch> = (0..7).map(|block| batch(block * 16, (block * 16 + 16).min(100))).collect();
        for ends in [&[100][..], &[1, 2, 3, 99, 100], &[16, 32, 100], &[0, 50, 50, 100]] {
            assert_eq!(cut(ends), expected, "{ends:?}");
        }
        assert_eq!(expected[6].column(0).as_primitive::<Int32Type>().values(), &[96, 97, 98, 99]);
    }

    #[test]
    fn a_dictionary_shared_by_all_pieces_is_kept() {
        let pieces: Vec<Rows> = (0..200).map(|from| batch(from, from + 1).into()).collect();
        let block = concat(pieces[0].schema(), &pieces).unwrap();
        let values = block.column(1).as_any_dictionary().values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["bear", "bull", "neutral"]);
    }
}
