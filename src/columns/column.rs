//! A column of rows on their way to files.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::Turns;

/// A value for each row, and where the rows turn.
///
/// What is said of a ticker's date holds for all its signals, so neighbours may share a value: it stands once then, and
/// whoever hashes, encodes or counts the rows looks at it once.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    values: ArrayRef,
    /// Which of the values each row has; none where each has its own.
    places: Option<ScalarBuffer<u32>>,
    turns: Turns,
}

impl Column {
    /// The rows.
    pub(crate) fn len(&self) -> usize {
        self.turns.len()
    }

    /// The values, of which there may be more than the rows have.
    pub(crate) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// The type of the values.
    pub(crate) fn data_type(&self) -> &DataType {
        self.values.data_type()
    }

    /// Which of the values a row has.
    #[inline]
    pub(crate) fn place(&self, row: usize) -> usize {
        self.places.as_ref().map_or(row, |places| places[row] as usize)
    }

    /// How many of the rows are null.
    pub(crate) fn null_count(&self) -> usize {
        match (&self.places, self.values.nulls()) {
            (None, _) => self.values.null_count(),
            (Some(_), None) => 0,
            (Some(_), Some(nulls)) => self.rows_where(|place| nulls.is_null(place)),
        }
    }

    /// How many of the rows have a value of some kind, by its place.
    pub(crate) fn rows_where(&self, is_meant: impl Fn(usize) -> bool) -> usize {
        self.runs().filter(|(place, _)| is_meant(*place)).map(|(_, rows)| rows).sum()
    }

    /// Whether neighbours may share a value.
    pub(crate) fn is_shared(&self) -> bool {
        self.places.is_some()
    }

    /// Where the rows turn.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The stretches from each turn to the next: the place of their value, and how many rows they have.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.turns.runs().map(|(start, end)| (self.place(start), end - start))
    }

    /// So many of the rows, from one on.
    pub(crate) fn slice(&self, from: usize, count: usize) -> Self {
        let turns = self.turns.slice(from, count);
        match &self.places {
            Some(places) => Self { values: Arc::clone(&self.values), places: Some(places.slice(from, count)), turns },
            None => Self { values: self.values.slice(from, count), places: None, turns },
        }
    }

    /// A value for each row, as others have it.
    pub(crate) fn flat(&self) -> Result<ArrayRef, ArrowError> {
        match &self.places {
            Some(places) => take(&self.values, &UInt32Array::new(places.clone(), None), None),
            None => Ok(Arc::clone(&self.values)),
        }
    }
}

impl From<ArrayRef> for Column {
    fn from(values: ArrayRef) -> Self {
        Self { turns: Turns::of(&values), values, places: None }
    }
}

/// Rows cut into stretches that share what is said of them.
#[derive(Debug)]
pub(crate) struct Stretches {
    /// Of each row, the stretch that it is in.
    places: ScalarBuffer<u32>,
    /// Where each stretch begins.
    starts: Vec<usize>,
}

impl Stretches {
    /// Stretches of so many rows each, one after another.
    pub(crate) fn of(counts: impl Iterator<Item = usize>) -> Self {
        /// The places that are written at once.
        const STRIDE: usize = 8;
        let (mut places, mut starts) = (Vec::new(), Vec::new());
        for (place, count) in counts.enumerate() {
            let start = places.len();
            // A few too many are quicker to write than as many as there are.
            (0..count.div_ceil(STRIDE)).for_each(|_| places.extend_from_slice(&[place as u32; STRIDE]));
            places.truncate(start + count);
            starts.push(start);
        }
        Self { places: places.into(), starts }
    }

    /// A column of which each stretch has a value.
    pub(crate) fn column(&self, values: ArrayRef) -> Column {
        let rows = self.places.len();
        if values.len() == rows {
            return values.into();
        }
        let turns = Turns::at(Turns::of(&values).starts().map(|place| self.starts[place]), rows);
        Column { values, places: Some(self.places.clone()), turns }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, Int32Array};

    use super::{Column, Stretches};

    #[test]
    fn a_shared_value_is_that_of_each_row_of_its_stretch() {
        let values = [Some(7), None, None, Some(8), Some(8), Some(7)];
        let counts = [1, 3, 2, 11, 8, 1];
        let stretches = Stretches::of(counts.into_iter());
        let column = stretches.column(Arc::new(Int32Array::from(values.to_vec())));
        let each = || values.iter().zip(counts).flat_map(|(value, count)| std::iter::repeat_n(*value, count));
        let flat = Column::from(Arc::new(each().collect::<Int32Array>()) as ArrayRef);
        assert!(column.is_shared());
        for (from, count) in [(0, 26), (0, 0), (2, 9), (5, 21), (20, 1)] {
            let (column, flat) = (column.slice(from, count), flat.slice(from, count));
            assert_eq!((column.len(), &column.flat().unwrap()), (count, &flat.flat().unwrap()));
            assert_eq!(column.null_count(), flat.null_count());
            assert!(column.turns().starts().eq(flat.turns().starts()), "{from} {count}");
            let said = |column: &Column| -> Vec<(ArrayRef, usize)> {
                column.runs().map(|(place, rows)| (column.values().slice(place, 1), rows)).collect()
            };
            assert_eq!(said(&column), said(&flat));
        }
    }

    #[test]
    fn stretches_of_one_row_share_nothing() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2]));
        let column = Stretches::of([1, 1, 1].into_iter()).column(Arc::clone(&values));
        assert!(!column.is_shared());
        assert_eq!(column.turns().starts().collect::<Vec<_>>(), [0, 2]);
        assert!(Stretches::of(std::iter::empty()).column(values.slice(0, 0)).values().is_empty());
    }
}
