//! Some rows of a batch, in an order, as ranges of consecutive ones.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, MutableArrayData, RecordBatch, UInt32Array, make_array, new_null_array};
use arrow::compute::take;
use arrow::error::ArrowError;

/// From this many rows per range on, ranges are copied faster than rows.
const ROWS_PER_RANGE: usize = 16;

/// Some rows of a batch, in an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::archive) struct RowRanges {
    ranges: Vec<Range<usize>>,
    rows: usize,
}

impl RowRanges {
    /// Adds rows after the others.
    pub(in crate::archive) fn push(&mut self, rows: Range<usize>) {
        self.rows += rows.len();
        match self.ranges.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ if rows.is_empty() => {}
            _ => self.ranges.push(rows),
        }
    }

    /// Number of rows.
    pub(in crate::archive) fn len(&self) -> usize {
        self.rows
    }

    /// The rows, in order.
    pub(in crate::archive) fn iter(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().cloned().flatten()
    }

    /// The values of these rows among those of all.
    pub(in crate::archive) fn values<T: Copy>(&self, all: &[T]) -> Vec<T> {
        let mut values = Vec::with_capacity(self.rows);
        self.ranges.iter().for_each(|range| values.extend_from_slice(&all[range.clone()]));
        values
    }

    /// These rows of a batch.
    pub(in crate::archive) fn of(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        match &self.ranges[..] {
            [] => Ok(rows.slice(0, 0)),
            [only] => Ok(rows.slice(only.start, only.len())),
            _ => RecordBatch::try_new(rows.schema(), self.of_columns(rows.columns())?),
        }
    }

    /// These rows of some columns.
    pub(in crate::archive) fn of_columns(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, ArrowError> {
        match &self.ranges[..] {
            [] => Ok(columns.iter().map(|column| column.slice(0, 0)).collect()),
            [only] => Ok(columns.iter().map(|column| column.slice(only.start, only.len())).collect()),
            ranges if ranges.len() * ROWS_PER_RANGE > self.rows => {
                let rows: UInt32Array = self.iter().map(|row| row as u32).collect();
                columns.iter().map(|column| take(column, &rows, None)).collect()
            }
            ranges => columns.iter().map(|column| copy_ranges(column, ranges, self.rows)).collect(),
        }
    }
}

/// Some ranges of a column.
fn copy_ranges(column: &ArrayRef, ranges: &[Range<usize>], rows: usize) -> Result<ArrayRef, ArrowError> {
    if column.null_count() == column.len() {
        return Ok(new_null_array(column.data_type(), rows));
    }
    let all = column.to_data();
    let mut copied = MutableArrayData::new(vec![&all], false, rows);
    ranges.iter().try_for_each(|range| copied.try_extend(0, range.start, range.end))?;
    Ok(make_array(copied.freeze()))
}

impl FromIterator<Range<usize>> for RowRanges {
    fn from_iter<I: IntoIterator<Item = Range<usize>>>(ranges: I) -> Self {
        let mut all = Self::default();
        ranges.into_iter().for_each(|rows| all.push(rows));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, new_null_array};
    use arrow::compute::take_record_batch;
    use arrow::datatypes::DataType;

    use super::RowRanges;
    use crate::tables::symbol_runs;

    #[test]
    fn ranges_of_rows_are_the_rows_taken_one_by_one() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..500).map(|row| (row % 7 > 0).then_some(row))));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|row| "x".repeat(row % 5))));
        let names = symbol_runs((0..100).map(|name| (["A", "B", "C"][name % 3], 5)));
        let nothing = new_null_array(&DataType::Float64, 500);
        let columns = [("numbers", numbers), ("texts", texts), ("names", names), ("nothing", nothing)];
        let rows =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        for ranges in [
            &[][..],
            &[0..500, 500..500],
            &[20..20, 7..7],
            &[20..200, 200..310, 311..400],
            &[400..450, 3..303, 1..2],
            &[5..6, 9..10, 7..9, 499..500],
        ] {
            let some: RowRanges = ranges.iter().cloned().collect();
            let each: UInt32Array = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
            assert_eq!((some.len(), some.iter().count()), (each.len(), each.len()));
            assert_eq!(some.of(&rows).unwrap(), take_record_batch(&rows, &each).unwrap(), "{ranges:?}");
            assert_eq!(some.values(&Vec::from_iter(0..500)), Vec::from_iter(some.iter()));
        }
    }
}
