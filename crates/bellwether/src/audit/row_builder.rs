//! Builds the rows of an audit one at a time, and delivers them in batches.

use arrow::array::{
    ArrayBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder, StructBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::Schema;

use crate::error::Result;

/// Rows per batch.
const ROWS_AT_ONCE: usize = 1 << 14;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowValue<'a> {
    Text(Option<&'a str>),
    Count(Option<i64>),
    Real(Option<f64>),
    /// Microseconds, with or without a time zone.
    Moment(Option<i64>),
}

/// Takes rows, and delivers them in batches.
pub(super) struct RowWriter<D> {
    rows: StructBuilder,
    deliver: D,
}

impl<D: FnMut(&RecordBatch) -> Result<()>> RowWriter<D> {
    pub(super) fn new(schema: &Schema, deliver: D) -> Self {
        Self { rows: StructBuilder::from_fields(schema.fields().clone(), 0), deliver }
    }

    /// Adds a row with its cells in column order.
    pub(super) fn push(&mut self, row: &[RowValue<'_>]) -> Result<()> {
        for (column, cell) in row.iter().enumerate() {
            match *cell {
                RowValue::Text(text) => self.column::<StringBuilder>(column).append_option(text),
                RowValue::Count(number) => self.column::<Int64Builder>(column).append_option(number),
                RowValue::Real(number) => self.column::<Float64Builder>(column).append_option(number),
                RowValue::Moment(micros) => self.column::<TimestampMicrosecondBuilder>(column).append_option(micros),
            }
        }
        self.rows.append(true);
        if self.rows.len() < ROWS_AT_ONCE { Ok(()) } else { self.flush() }
    }

    fn column<B: ArrayBuilder>(&mut self, column: usize) -> &mut B {
        self.rows.field_builder(column).expect("a row has the types that its schema declares")
    }

    /// Delivers the rows that wait, if any.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() { Ok(()) } else { (self.deliver)(&RecordBatch::from(self.rows.finish())) }
    }
}
