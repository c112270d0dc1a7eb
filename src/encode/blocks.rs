//! Rows cut into blocks of one length, wherever the batches ended in which they came, each block as one batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::pieces::Pieces;

/// Rows that wait until there are enough of them.
#[derive(Debug)]
pub(crate) struct Blocks {
    schema: SchemaRef,
    pieces: Pieces,
}

impl Blocks {
    pub(crate) fn new(schema: SchemaRef, length: usize) -> Self {
        Self { schema, pieces: Pieces::new(length) }
    }

    /// Takes rows, and gives the blocks that they complete.
    pub(crate) fn push(&mut self, rows: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        self.pieces.push(rows).iter().map(|pieces| joined(&self.schema, pieces)).collect()
    }

    /// The rows that wait, as one block.
    pub(crate) fn rest(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.pieces.rest().map(|pieces| joined(&self.schema, &pieces)).transpose()
    }
}

/// Some rows as one batch.
pub(crate) fn joined(schema: &SchemaRef, pieces: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    if let [piece] = pieces {
        return Ok(piece.clone());
    }
    let columns =
        (0..schema.fields().len()).map(|place| joined_column(pieces, place)).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(pieces.iter().map(RecordBatch::num_rows).sum()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// One column of several. Where their dictionaries are the same, so is the dictionary of the whole: an Arrow file has
/// one for all its rows.
pub(super) fn joined_column(pieces: &[RecordBatch], place: usize) -> Result<ArrayRef, ArrowError> {
    let mut pieces: Vec<ArrayRef> = pieces.iter().map(|piece| Arc::clone(piece.column(place))).collect();
    if let Some(first) = pieces[0].as_any_dictionary_opt().map(|first| Arc::clone(first.values())) {
        for piece in &mut pieces {
            let same = piece.as_any_dictionary();
            if same.values().to_data() == first.to_data() {
                *piece = same.with_values(Arc::clone(&first));
            }
        }
    }
    concat(&pieces.iter().map(|piece| &**piece as &dyn Array).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, Int8Array, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};

    use super::Blocks;
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
            let mut blocks = Blocks::new(whole.schema(), 16);
            let starts = std::iter::once(&0).chain(ends);
            let pieces = starts.zip(ends).map(|(&from, &to)| batch(from, to));
            let mut cut: Vec<RecordBatch> = pieces.flat_map(|piece| blocks.push(&piece).unwrap()).collect();
            cut.extend(blocks.rest().unwrap());
            assert_eq!(blocks.rest().unwrap(), None);
            cut
        };
        let expected: Vec<RecordBatch> = (0..7).map(|block| batch(block * 16, (block * 16 + 16).min(100))).collect();
        for ends in [&[100][..], &[1, 2, 3, 99, 100], &[16, 32, 100], &[0, 50, 50, 100]] {
            assert_eq!(cut(ends), expected, "{ends:?}");
        }
        assert_eq!(expected[6].column(0).as_primitive::<Int32Type>().values(), &[96, 97, 98, 99]);
    }

    #[test]
    fn a_dictionary_that_all_pieces_share_stays_as_it_is() {
        let mut blocks = Blocks::new(batch(0, 1).schema(), 1000);
        for from in 0..200 {
            blocks.push(&batch(from, from + 1)).unwrap();
        }
        let block = blocks.rest().unwrap().unwrap();
        let values = block.column(1).as_any_dictionary().values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["bear", "bull", "neutral"]);
    }
}
