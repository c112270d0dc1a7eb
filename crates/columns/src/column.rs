//! A column whose equal values are stored once per run.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::Boundaries;

/// A value for each row, and where the values change.
///
/// What holds for a ticker's date holds for all its signals, so adjacent rows may share a value. It is then stored once,
/// and hashing, encoding or counting the rows reads it once.
#[derive(Clone, Debug)]
pub struct Column {
    values: ArrayRef,
    /// The index of each row's value; none if each row has its own value, in order.
    indices: Option<ScalarBuffer<u32>>,
    boundaries: Boundaries,
}

impl Column {
    /// Number of rows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether there are none")]
    pub fn len(&self) -> usize {
        self.boundaries.len()
    }

    /// The values; the rows may not use all of them.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// The type of the values.
    pub fn data_type(&self) -> &DataType {
        self.values.data_type()
    }

    /// The index of a row's value.
    #[inline]
    pub fn index(&self, row: usize) -> usize {
        self.indices.as_ref().map_or(row, |indices| indices[row] as usize)
    }

    /// Number of rows that are null.
    pub fn null_count(&self) -> usize {
        match (&self.indices, self.values.nulls()) {
            (None, _) => self.values.null_count(),
            (Some(_), None) => 0,
            (Some(_), Some(nulls)) => self.rows_where(|index| nulls.is_null(index)),
        }
    }

    /// Number of rows whose value, given by its index, meets a condition.
    pub fn rows_where(&self, matches: impl Fn(usize) -> bool) -> usize {
        self.runs().filter(|(index, _)| matches(*index)).map(|(_, rows)| rows).sum()
    }

    /// Whether rows may share a value.
    pub fn is_shared(&self) -> bool {
        self.indices.is_some()
    }

    /// Where the values change.
    pub fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }

    /// The runs of equal values: the index of the value, and the number of rows.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.boundaries.runs().map(|(start, end)| (self.index(start), end - start))
    }

    /// `count` rows from `from` on.
    pub fn slice(&self, from: usize, count: usize) -> Self {
        let boundaries = self.boundaries.slice(from, count);
        match &self.indices {
            Some(indices) => {
                Self { values: Arc::clone(&self.values), indices: Some(indices.slice(from, count)), boundaries }
            }
            None => Self { values: self.values.slice(from, count), indices: None, boundaries },
        }
    }

    /// The column as a plain array, with a value for each row.
    pub fn flat(&self) -> Result<ArrayRef, ArrowError> {
        match &self.indices {
            Some(indices) => take(&self.values, &UInt32Array::new(indices.clone(), None), None),
            None => Ok(Arc::clone(&self.values)),
        }
    }
}

impl From<ArrayRef> for Column {
    fn from(values: ArrayRef) -> Self {
        Self { boundaries: Boundaries::new(&values), values, indices: None }
    }
}

/// Rows divided into segments; the rows of a segment share the values of some columns.
#[derive(Debug)]
pub struct Segments {
    /// The segment of each row.
    indices: ScalarBuffer<u32>,
    /// The first row of each segment.
    starts: Vec<usize>,
}

impl Segments {
    /// Adjacent segments with the given numbers of rows.
    pub fn new(counts: impl Iterator<Item = usize>) -> Self {
        /// Indices written at once.
        const STRIDE: usize = 8;
        let (mut indices, mut starts) = (Vec::new(), Vec::new());
        for (index, count) in counts.enumerate() {
            let start = indices.len();
            // Writing a few too many is faster than writing the exact number.
            (0..count.div_ceil(STRIDE)).for_each(|_| indices.extend_from_slice(&[index as u32; STRIDE]));
            indices.truncate(start + count);
            starts.push(start);
        }
        Self { indices: indices.into(), starts }
    }

    /// A column with one value per segment.
    pub fn column(&self, values: ArrayRef) -> Column {
        let rows = self.indices.len();
        if values.len() == rows {
            return values.into();
        }
        let boundaries = Boundaries::at(Boundaries::new(&values).starts().map(|segment| self.starts[segment]), rows);
        Column { values, indices: Some(self.indices.clone()), boundaries }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, Int32Array};

    use super::{Column, Segments};

    #[test]
    fn each_row_of_a_segment_has_the_value_of_the_segment() {
        let values = [Some(7), None, None, Some(8), Some(8), Some(7)];
        let counts = [1, 3, 2, 11, 8, 1];
        let segments = Segments::new(counts.into_iter());
        let column = segments.column(Arc::new(Int32Array::from(values.to_vec())));
        let each = || values.iter().zip(counts).flat_map(|(value, count)| std::iter::repeat_n(*value, count));
        let flat = Column::from(Arc::new(each().collect::<Int32Array>()) as ArrayRef);
        assert!(column.is_shared());
        for (from, count) in [(0, 26), (0, 0), (2, 9), (5, 21), (20, 1)] {
            let (column, flat) = (column.slice(from, count), flat.slice(from, count));
            assert_eq!((column.len(), &column.flat().unwrap()), (count, &flat.flat().unwrap()));
            assert_eq!(column.null_count(), flat.null_count());
            assert!(column.boundaries().starts().eq(flat.boundaries().starts()), "{from} {count}");
            let runs = |column: &Column| -> Vec<(ArrayRef, usize)> {
                column.runs().map(|(index, rows)| (column.values().slice(index, 1), rows)).collect()
            };
            assert_eq!(runs(&column), runs(&flat));
        }
    }

    #[test]
    fn segments_of_one_row_share_nothing() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2]));
        let column = Segments::new([1, 1, 1].into_iter()).column(Arc::clone(&values));
        assert!(!column.is_shared());
        assert_eq!(column.boundaries().starts().collect::<Vec<_>>(), [0, 2]);
        assert!(Segments::new(std::iter::empty()).column(values.slice(0, 0)).values().is_empty());
    }
}
