//! Cuts rows into blocks of a fixed length, whatever batches they arrive in. A block is returned in the pieces it arrived
//! in, because concatenating them would copy every value.

use arrow::array::AsArray;
use arrow::datatypes::DataType;

use super::{Column, Rows};

/// Approximate size of an array without its values.
const ARRAY_BYTES: usize = 256;

/// Rows that are buffered until they fill a block.
#[derive(Debug)]
pub struct RowBuffer {
    block_rows: usize,
    block_bytes: usize,
    pieces: Vec<Rows>,
    rows: usize,
    bytes: usize,
}

impl RowBuffer {
    /// A buffer for blocks of so many rows, of any size.
    pub fn new(block_rows: usize) -> Self {
        Self::bounded(block_rows, usize::MAX)
    }

    /// A buffer for blocks of at most so many rows and bytes; a row that is larger has a block of its own.
    pub fn bounded(block_rows: usize, block_bytes: usize) -> Self {
        Self { block_rows, block_bytes, pieces: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Adds rows, and returns the blocks that they complete.
    pub fn push(&mut self, rows: &Rows) -> Vec<Vec<Rows>> {
        let mut complete = Vec::new();
        let mut from = 0;
        while from < rows.num_rows() {
            let mut count = (rows.num_rows() - from).min(self.block_rows - self.rows);
            let (mut piece, mut size) = sized(rows, from, count);
            while self.bytes.saturating_add(size) > self.block_bytes && count > 1 {
                count /= 2;
                (piece, size) = sized(rows, from, count);
            }
            if self.bytes.saturating_add(size) > self.block_bytes && self.rows > 0 {
                complete.extend(self.take());
                continue;
            }
            from += count;
            self.rows += count;
            self.bytes += size;
            self.pieces.push(piece);
            if self.rows == self.block_rows || self.bytes >= self.block_bytes {
                complete.extend(self.take());
            }
        }
        complete
    }

    /// Takes the buffered rows, if there are any.
    pub fn take(&mut self) -> Option<Vec<Rows>> {
        (self.rows, self.bytes) = (0, 0);
        let pieces = std::mem::take(&mut self.pieces);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// Approximate memory of the buffered rows, which does not depend on their pieces.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Approximate memory including the pieces, which take more than the rows if these arrived one by one.
    pub fn bytes_with_overhead(&self) -> usize {
        let arrays: usize = self.pieces.iter().map(|piece| piece.columns().len()).sum();
        self.bytes + arrays * ARRAY_BYTES
    }
}

/// Some rows, and the size of their values.
fn sized(rows: &Rows, from: usize, count: usize) -> (Rows, usize) {
    let piece = rows.slice(from, count);
    let size = piece.columns().iter().map(bytes).sum();
    (piece, size)
}

/// Size of the values of all rows, as if none were shared.
fn bytes(column: &Column) -> usize {
    match column.data_type() {
        DataType::Utf8 => {
            let texts = column.values().as_string::<i32>();
            column.len() * 4
                + column.runs().map(|(index, rows)| rows * texts.value_length(index) as usize).sum::<usize>()
        }
        DataType::Dictionary(key, _) => column.len() * key.primitive_width().unwrap_or(1),
        DataType::FixedSizeBinary(width) => column.len() * *width as usize,
        // All lists are lists of texts.
        DataType::List(_) => {
            let lists = column.values().as_list::<i32>();
            let (ends, text_ends) = (lists.value_offsets(), lists.values().as_string::<i32>().value_offsets());
            let bytes = |index: usize| {
                let (from, to) = (ends[index] as usize, ends[index + 1] as usize);
                (to - from) * 4 + (text_ends[to] - text_ends[from]) as usize
            };
            column.len() * 4 + column.runs().map(|(index, rows)| rows * bytes(index)).sum::<usize>()
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

    use super::RowBuffer;
    use crate::Rows;

    #[test]
    fn the_size_of_rows_does_not_depend_on_how_they_are_pushed() {
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
        let sizes = |ends: &[usize]| {
            let mut buffer = RowBuffer::new(100);
            let starts = std::iter::once(&0).chain(ends);
            for (&from, &to) in starts.zip(ends) {
                assert!(buffer.push(&rows.slice(from, to - from)).is_empty());
            }
            (buffer.bytes(), buffer.bytes_with_overhead())
        };
        assert_eq!(sizes(&[4]), (140, 140 + 4 * 256));
        assert_eq!(sizes(&[1, 2, 3, 4]), (140, 140 + 16 * 256));
    }

    #[test]
    fn a_complete_block_leaves_nothing_buffered() {
        let numbers = Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as Arc<dyn Array>;
        let rows = Rows::from(RecordBatch::try_from_iter([("number", numbers)]).unwrap());
        let mut buffer = RowBuffer::new(6);
        assert!(buffer.push(&rows).is_empty());
        let complete = buffer.push(&rows);
        assert_eq!(complete, [vec![rows.clone(), rows.slice(0, 2)]]);
        assert_eq!((buffer.bytes(), buffer.take()), (8, Some(vec![rows.slice(2, 2)])));
        assert_eq!((buffer.bytes(), buffer.bytes_with_overhead(), buffer.take()), (0, 0, None));
    }
}
