//! Whether two observations have the same value of a column.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DynComparator, RecordBatch, make_comparator};
use arrow::compute::SortOptions;
use arrow::error::ArrowError;

use crate::tables::Table;

/// Compares the values of a column.
pub(in crate::archive) struct ValueComparator {
    pub(super) name: &'static str,
    compare: DynComparator,
    /// Whether a row says nothing of the column, for each side; none if every row does.
    pub(super) says_nothing: Option<[ArrayRef; 2]>,
}

impl ValueComparator {
    /// Compares the columns of a table's values, between two sides.
    pub(in crate::archive) fn of_values(
        table: Table,
        names: impl Iterator<Item = &'static str>,
        sides: [&RecordBatch; 2],
    ) -> Result<Vec<Self>, ArrowError> {
        let columns = names.filter_map(|name| {
            let [one, other] = sides.map(|rows| rows.column_by_name(name));
            Some((name, one?, other?))
        });
        let comparator = |(name, one, other): (&'static str, &ArrayRef, &ArrayRef)| {
            let compare = make_comparator(one, other, SortOptions::default())?;
            let has_nulls = one.null_count() > 0 || other.null_count() > 0;
            let is_optional = table.optional().contains(&name) && has_nulls;
            Ok(Self { name, compare, says_nothing: is_optional.then(|| [Arc::clone(one), Arc::clone(other)]) })
        };
        columns.map(comparator).collect()
    }

    /// Whether two values are equal, or one of them says nothing.
    pub(in crate::archive) fn is_same(&self, one: usize, other: usize) -> bool {
        let says_nothing = |[ones, others]: &[ArrayRef; 2]| ones.is_null(one) || others.is_null(other);
        (self.compare)(one, other).is_eq() || self.says_nothing.as_ref().is_some_and(says_nothing)
    }
}
