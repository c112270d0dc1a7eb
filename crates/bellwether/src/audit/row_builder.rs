//! Builds result rows one at a time, on several threads, and delivers them in batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, Int64Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};

use crate::archive::merge_failed;
use crate::error::Result;

/// Approximate rows per batch.
const ROWS_AT_ONCE: usize = 1 << 14;

/// Rows being built.
pub(super) struct RowBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
}

enum ColumnBuilder {
    Text(StringBuilder),
    Count(Int64Builder),
    Real(Float64Builder),
    Moment(TimestampMicrosecondBuilder),
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowValue<'a> {
    Text(Option<&'a str>),
    Count(Option<i64>),
    Real(Option<f64>),
    /// Microseconds, with or without a time zone.
    Moment(Option<i64>),
}

impl RowBuilder {
    pub(super) fn new(schema: SchemaRef) -> Self {
        let column = |data_type: &DataType| match data_type {
            DataType::Int64 => ColumnBuilder::Count(Int64Builder::new()),
            DataType::Float64 => ColumnBuilder::Real(Float64Builder::new()),
            DataType::Timestamp(_, zone) => {
                ColumnBuilder::Moment(TimestampMicrosecondBuilder::new().with_timezone_opt(zone.clone()))
            }
            _ => ColumnBuilder::Text(StringBuilder::new()),
        };
        let columns = schema.fields().iter().map(|field| column(field.data_type())).collect();
        Self { schema, columns, rows: 0 }
    }

    /// Adds a row with its cells in column order.
    pub(super) fn push(&mut self, row: &[RowValue<'_>]) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows += 1;
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (column, *cell) {
                (ColumnBuilder::Text(column), RowValue::Text(text)) => column.append_option(text),
                (ColumnBuilder::Count(column), RowValue::Count(number)) => column.append_option(number),
                (ColumnBuilder::Real(column), RowValue::Real(number)) => column.append_option(number),
                (ColumnBuilder::Moment(column), RowValue::Moment(micros)) => column.append_option(micros),
                _ => unreachable!("a row has the types that its schema declares"),
            }
        }
    }

    /// The rows; none if there are none.
    pub(super) fn finish(mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let column = |column: &mut ColumnBuilder| -> ArrayRef {
            match column {
                ColumnBuilder::Text(column) => Arc::new(column.finish()),
                ColumnBuilder::Count(column) => Arc::new(column.finish()),
                ColumnBuilder::Real(column) => Arc::new(column.finish()),
                ColumnBuilder::Moment(column) => Arc::new(column.finish()),
            }
        };
        let columns = self.columns.iter_mut().map(column).collect();
        RecordBatch::try_new(self.schema, columns).map(Some).map_err(merge_failed)
    }
}

/// Rows of several builders on their way, delivered in larger batches.
#[derive(Default)]
pub(super) struct RowQueue {
    batches: Vec<RecordBatch>,
    rows: usize,
}

impl RowQueue {
    /// Adds rows, and delivers those that wait if there are enough.
    pub(super) fn add(
        &mut self,
        rows: Option<RecordBatch>,
        deliver: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.rows += rows.as_ref().map_or(0, RecordBatch::num_rows);
        self.batches.extend(rows);
        if self.rows >= ROWS_AT_ONCE { self.flush(deliver) } else { Ok(()) }
    }

    /// Delivers the rows that wait, if any.
    pub(super) fn flush(&mut self, mut deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        let Some(first) = self.batches.first() else { return Ok(()) };
        let rows = concat_batches(&first.schema(), &self.batches).map_err(merge_failed)?;
        *self = Self::default();
        deliver(&rows)
    }
}
