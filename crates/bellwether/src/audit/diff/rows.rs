//! Differences as rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::{ComparedColumns, values};
use crate::export::PublishedReader;

/// A row that differs, by its index in the current batch of each version.
pub(super) enum RowChange {
    Added(usize),
    Removed(usize),
    /// With the indices of the changed columns.
    Changed(usize, usize, Vec<usize>),
}

impl RowChange {
    fn kind(&self) -> &'static str {
        match self {
            Self::Added(_) => "added",
            Self::Removed(_) => "removed",
            Self::Changed(..) => "changed",
        }
    }

    /// Its row before and after.
    fn sides(&self) -> [Option<usize>; 2] {
        match *self {
            Self::Added(after) => [None, Some(after)],
            Self::Removed(before) => [Some(before), None],
            Self::Changed(before, after, _) => [Some(before), Some(after)],
        }
    }
}

/// The columns of differences: `change`, the key, the names of changed columns, and each column before (`old_…`) and
/// after (`new_…`).
pub fn schema(version: &PublishedReader) -> SchemaRef {
    of(version.schema(), version.key().unwrap_or_default())
}

fn of(version: &Schema, key: &[String]) -> SchemaRef {
    let field = |name: &String| version.field_with_name(name).ok().cloned();
    let mut fields = vec![Field::new("change", DataType::Utf8, false)];
    fields.extend(key.iter().filter_map(field));
    fields.push(Field::new("columns", DataType::Utf8, true));
    for value in values(version, key).iter().filter_map(field) {
        for side in ["old", "new"] {
            fields.push(value.clone().with_name(format!("{side}_{}", value.name())).with_nullable(true));
        }
    }
    Arc::new(Schema::new(fields))
}

/// Builds rows for differences between two batches.
pub(super) fn batch(
    sides: &[RecordBatch; 2],
    ComparedColumns { key, values }: ComparedColumns<'_>,
    different: &[RowChange],
) -> Result<RecordBatch, ArrowError> {
    let column = |side: usize, name: &str| sides[side].column_by_name(name).expect("both have the columns");
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from_iter_values(different.iter().map(RowChange::kind)))];
    let of_either = |row: &RowChange| match row.sides() {
        [Some(before), _] => (0, before),
        [None, after] => (1, after.expect("a row is of one side at least")),
    };
    let places: Vec<(usize, usize)> = different.iter().map(of_either).collect();
    for name in key {
        let either = [0, 1].map(|side| column(side, name).as_ref());
        columns.push(interleave(&either, &places)?);
    }
    let names = |row: &RowChange| match row {
        RowChange::Changed(_, _, changed) => {
            Some(changed.iter().map(|&index| values[index].as_str()).collect::<Vec<_>>().join(","))
        }
        _ => None,
    };
    columns.push(Arc::new(different.iter().map(names).collect::<StringArray>()));
    let rows = [0, 1].map(|side: usize| -> UInt32Array {
        different.iter().map(|row| row.sides()[side].map(|row| row as u32)).collect()
    });
    for name in values {
        for (side, rows) in rows.iter().enumerate() {
            columns.push(take(column(side, name), rows, None)?);
        }
    }
    RecordBatch::try_new(of(sides[0].schema_ref(), key), columns)
}
