//! Rows cut into blocks of one length, wherever the batches ended in which they came.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

/// What an array costs beside its values, about.
const ARRAY_BYTES: usize = 256;

/// Rows that wait until there are enough of them.
#[derive(Debug)]
pub(crate) struct Blocks {
    schema: SchemaRef,
    length: usize,
    waiting: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Blocks {
    pub(crate) fn new(schema: SchemaRef, length: usize) -> Self {
        Self { schema, length, waiting: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Takes rows, and gives the blocks that they complete.
    pub(crate) fn push(&mut self, rows: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        let mut complete = Vec::new();
        let mut from = 0;
        while from < rows.num_rows() {
            let count = (rows.num_rows() - from).min(self.length - self.rows);
            let piece = rows.slice(from, count);
            from += count;
            self.rows += count;
            self.bytes += weight(&piece);
            self.waiting.push(piece);
            if self.rows == self.length {
                complete.extend(self.rest()?);
            }
        }
        Ok(complete)
    }

    /// The rows that wait, as one block.
    pub(crate) fn rest(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let pieces = std::mem::take(&mut self.waiting);
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        match &pieces[..] {
            [] => Ok(None),
            [piece] => Ok(Some(piece.clone())),
            pieces => {
                let column =
                    |place: usize| joined(pieces.iter().map(|piece| Arc::clone(piece.column(place))).collect());
                let columns = (0..self.schema.fields().len()).map(column).collect::<Result<Vec<_>, _>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map(Some)
            }
        }
    }

    /// What the rows that wait take of the memory, about; it depends on nothing but them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// One column of several. Where their dictionaries are the same, so is the dictionary of the whole: an Arrow file has
/// one for all its rows.
fn joined(mut pieces: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
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

fn weight(rows: &RecordBatch) -> usize {
    let values = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8 => {
            let offsets = column.as_string::<i32>().value_offsets();
            offsets.len() * 4 + (offsets[offsets.len() - 1] - offsets[0]) as usize
        }
        DataType::Dictionary(key, _) => column.len() * key.primitive_width().unwrap_or(1),
        other => column.len() * other.primitive_width().unwrap_or(1),
    };
    rows.columns().iter().map(|column| ARRAY_BYTES + values(column)).sum()
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
            assert_eq!((blocks.bytes(), blocks.rest().unwrap()), (0, None));
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
