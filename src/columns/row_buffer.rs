//! Rows cut into blocks of one length, wherever the batches ended in which they came. A block is given as the pieces that
//! it came in: putting them together would copy every value.

use arrow::array::AsArray;
use arrow::datatypes::DataType;

use super::{Column, Rows};

/// What an array costs beside its values, about.
const ARRAY_BYTES: usize = 256;

/// Rows that wait until there are enough of them.
#[derive(Debug)]
pub(crate) struct Pieces {
    length: usize,
    waiting: Vec<Rows>,
    rows: usize,
    bytes: usize,
}

impl Pieces {
    pub(crate) fn new(length: usize) -> Self {
        Self { length, waiting: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Takes rows, and gives the blocks that they complete.
    pub(crate) fn push(&mut self, rows: &Rows) -> Vec<Vec<Rows>> {
        let mut complete = Vec::new();
        let mut from = 0;
        while from < rows.num_rows() {
            let count = (rows.num_rows() - from).min(self.length - self.rows);
            let piece = rows.slice(from, count);
            from += count;
            self.rows += count;
            self.bytes += piece.columns().iter().map(weight).sum::<usize>();
            self.waiting.push(piece);
            if self.rows == self.length {
                complete.extend(self.rest());
            }
        }
        complete
    }

    /// The pieces that wait; none where there are none.
    pub(crate) fn rest(&mut self) -> Option<Vec<Rows>> {
        (self.rows, self.bytes) = (0, 0);
        let pieces = std::mem::take(&mut self.waiting);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// What the rows that wait take of the memory, about; it depends on nothing but them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same with what their pieces take, which is more than the rows where they came one by one.
    pub(crate) fn bytes_in_pieces(&self) -> usize {
        let arrays: usize = self.waiting.iter().map(|piece| piece.columns().len()).sum();
        self.bytes + arrays * ARRAY_BYTES
    }
}

/// What the values of all rows weigh, though neighbours may share them.
fn weight(column: &Column) -> usize {
    match column.data_type() {
        DataType::Utf8 => {
            let texts = column.values().as_string::<i32>();
            column.len() * 4
                + column.runs().map(|(place, rows)| rows * texts.value_length(place) as usize).sum::<usize>()
        }
        DataType::Dictionary(key, _) => column.len() * key.primitive_width().unwrap_or(1),
        DataType::FixedSizeBinary(width) => column.len() * *width as usize,
        // Lists are of texts here.
        DataType::List(_) => {
            let lists = column.values().as_list::<i32>();
            let (ends, ends_of_texts) = (lists.value_offsets(), lists.values().as_string::<i32>().value_offsets());
            let texts = |place: usize| {
                let (from, to) = (ends[place] as usize, ends[place + 1] as usize);
                (to - from) * 4 + (ends_of_texts[to] - ends_of_texts[from]) as usize
            };
            column.len() * 4 + column.runs().map(|(place, rows)| rows * texts(place)).sum::<usize>()
        }
        other => column.len() * other.primitive_width().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, FixedSizeBinaryArray, Int32Array, ListArray, RecordBatch, StringArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{DataType, Field};

    use super::Pieces;
    use crate::columns::Rows;

    #[test]
    fn what_rows_weigh_does_not_depend_on_how_they_came() {
        let texts = Arc::new(StringArray::from(vec!["a", "", "bcd", "ef"])) as Arc<dyn Array>;
        let numbers = Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as Arc<dyn Array>;
        let lists = ListArray::new(
            Arc::new(Field::new_list_field(DataType::Utf8, false)),
            OffsetBuffer::from_lengths([2, 0, 1, 1]),
            Arc::clone(&texts),
            None,
        );
        let digests = [[0_u8; 16]; 4].into_iter();
        let columns = [
            ("text", texts),
            ("number", numbers),
            ("list", Arc::new(lists) as Arc<dyn Array>),
            ("digest", Arc::new(FixedSizeBinaryArray::try_from_iter(digests).unwrap())),
        ];
        let rows = Rows::from(RecordBatch::try_from_iter(columns).unwrap());
        let weights = |ends: &[usize]| {
            let mut pieces = Pieces::new(100);
            let starts = std::iter::once(&0).chain(ends);
            for (&from, &to) in starts.zip(ends) {
                assert!(pieces.push(&rows.slice(from, to - from)).is_empty());
            }
            (pieces.bytes(), pieces.bytes_in_pieces())
        };
        assert_eq!(weights(&[4]), (140, 140 + 4 * 256));
        assert_eq!(weights(&[1, 2, 3, 4]), (140, 140 + 16 * 256));
    }

    #[test]
    fn nothing_waits_when_a_block_is_complete() {
        let numbers = Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as Arc<dyn Array>;
        let rows = Rows::from(RecordBatch::try_from_iter([("number", numbers)]).unwrap());
        let mut pieces = Pieces::new(6);
        assert!(pieces.push(&rows).is_empty());
        let complete = pieces.push(&rows);
        assert_eq!(complete, [vec![rows.clone(), rows.slice(0, 2)]]);
        assert_eq!((pieces.bytes(), pieces.rest()), (8, Some(vec![rows.slice(2, 2)])));
        assert_eq!((pieces.bytes(), pieces.bytes_in_pieces(), pieces.rest()), (0, 0, None));
    }
}
