//! Rows that came in pieces, as one batch.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::Rows;
use crate::tables;

/// Some rows as one batch.
pub(crate) fn joined(schema: &SchemaRef, pieces: &[Rows]) -> Result<RecordBatch, ArrowError> {
    if let [piece] = pieces {
        return piece.flat();
    }
    let columns =
        (0..schema.fields().len()).map(|place| joined_column(pieces, place)).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(pieces.iter().map(|piece| piece.num_rows()).sum()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// One column of several pieces.
pub(super) fn joined_column(pieces: &[Rows], place: usize) -> Result<ArrayRef, ArrowError> {
    let flat = pieces.iter().map(|piece| piece.columns()[place].flat());
    tables::joined(flat.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, Int8Array, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};

    use super::joined;
    use crate::columns::{Pieces, Rows};
    use crate::tables::{choice, choices};

    fn batch(from: i32, to: i32) -> RecordBatch {
        let schema =
            Schema::new(vec![Field::new("number", DataType::Int32, false), Field::new("regime", choice(), false)]);
        let regimes = Int8Array::from_iter_values((from..to).map(|number| (number % 3) as i8));
        let columns = [
            Arc::new(Int32Array::from_iter_values(from..to)) as Arc<dyn Array>,
            choices(regimes, ["bear", "bull", "neutral"]),
        ];
        RecordBatch::try_new(Arc::new(schema), columns.to_vec()).unwrap()
    }

    #[test]
    fn blocks_are_the_same_however_the_rows_came() {
        let whole = batch(0, 100);
        let cut = |ends: &[i32]| {
            let mut pieces = Pieces::new(16);
            let starts = std::iter::once(&0).chain(ends);
            let batches = starts.zip(ends).map(|(&from, &to)| batch(from, to));
            let mut cut: Vec<Vec<Rows>> = batches.flat_map(|batch| pieces.push(&batch.into())).collect();
            cut.extend(pieces.rest());
            cut.iter().map(|pieces| joined(&whole.schema(), pieces).unwrap()).collect::<Vec<_>>()
        };
        let expected: Vec<RecordBatch> = (0..7).map(|block| batch(block * 16, (block * 16 + 16).min(100))).collect();
        for ends in [&[100][..], &[1, 2, 3, 99, 100], &[16, 32, 100], &[0, 50, 50, 100]] {
            assert_eq!(cut(ends), expected, "{ends:?}");
        }
        assert_eq!(expected[6].column(0).as_primitive::<Int32Type>().values(), &[96, 97, 98, 99]);
    }

    #[test]
    fn a_dictionary_that_all_pieces_share_stays_as_it_is() {
        let pieces: Vec<Rows> = (0..200).map(|from| batch(from, from + 1).into()).collect();
        let block = joined(pieces[0].schema(), &pieces).unwrap();
        let values = block.column(1).as_any_dictionary().values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["bear", "bull", "neutral"]);
    }
}
