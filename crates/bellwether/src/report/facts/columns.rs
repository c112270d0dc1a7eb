//! The columns of a dataset: in how many rows they are null, and between which values the others lie.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::columns::{Column, Rows};

/// A column of a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnFacts {
    /// Its name.
    pub name: String,
    /// Rows without a value.
    pub nulls: u64,
    /// The lowest and the highest value, if they are numbers; none without any.
    pub range: Option<(f64, f64)>,
}

impl ColumnFacts {
    /// The columns of a schema, of which no row was counted yet.
    pub(super) fn of(schema: &SchemaRef) -> Vec<Self> {
        let column = |name: &String| Self { name: name.clone(), nulls: 0, range: None };
        schema.fields().iter().map(|field| column(field.name())).collect()
    }

    /// Counts some rows.
    pub(super) fn count(&mut self, rows: &Rows) {
        let Some(column) = rows.column(&self.name) else { return };
        self.nulls += column.null_count() as u64;
        match column.data_type() {
            DataType::Float64 => {
                let values = column.values().as_primitive::<Float64Type>();
                self.widen(column, |index| values.value(index));
            }
            DataType::Int32 => {
                let values = column.values().as_primitive::<Int32Type>();
                self.widen(column, |index| values.value(index).into());
            }
            DataType::Int64 => {
                let values = column.values().as_primitive::<Int64Type>();
                self.widen(column, |index| values.value(index) as f64);
            }
            _ => {}
        }
    }

    fn widen(&mut self, column: &Column, value: impl Fn(usize) -> f64) {
        let indices = column.runs().map(|(index, _)| index).filter(|index| column.values().is_valid(*index));
        for number in indices.map(value).filter(|number| number.is_finite()) {
            let (low, high) = self.range.unwrap_or((number, number));
            // The sign of a zero must not depend on the order of the rows.
            let (is_lower, is_higher) = (number.total_cmp(&low).is_lt(), number.total_cmp(&high).is_gt());
            self.range = Some((if is_lower { number } else { low }, if is_higher { number } else { high }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int32Array};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::ColumnFacts;
    use crate::columns::{Column, Rows, Segments};

    #[test]
    fn the_range_has_each_value_however_many_rows_share_it() {
        let fields = [("score", DataType::Float64), ("count", DataType::Int32)];
        let schema = Arc::new(Schema::new(fields.map(|(name, kind)| Field::new(name, kind, true)).to_vec()));
        let scores = [Some(0.5), Some(-0.25), None, Some(f64::INFINITY), Some(0.75), Some(-0.5)];
        let segments = Segments::of([3, 2, 1, 4, 1, 2].into_iter());
        let shared = segments.column(Arc::new(Float64Array::from(scores.to_vec())) as ArrayRef);
        let own = Column::from(Arc::new(Int32Array::from_iter_values(7..20)) as ArrayRef);
        let mut facts = ColumnFacts::of(&schema);
        let rows = Rows::of(schema, vec![shared, own]).unwrap();
        facts.iter_mut().for_each(|column| column.count(&rows));
        let found: Vec<_> = facts.iter().map(|column| (column.nulls, column.range)).collect();
        assert_eq!(found, [(1, Some((-0.5, 0.75))), (0, Some((7.0, 19.0)))]);
    }
}
