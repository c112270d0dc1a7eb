//! Builds result rows one at a time and delivers them in batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Builder, Int32Builder, Int64Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, SchemaRef};

use crate::archive::ArchiveError;
use crate::error::Result;

/// Approximate rows per batch.
pub(super) const ROWS_AT_ONCE: usize = 1 << 14;

/// Rows not delivered yet.
pub(super) struct RowBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
}

enum ColumnBuilder {
    Text(StringBuilder),
    Whole(Int32Builder),
    Count(Int64Builder),
    Real(Float64Builder),
    Moment(TimestampMicrosecondBuilder),
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Text(Option<&'a str>),
    Whole(Option<i32>),
    Count(Option<i64>),
    Real(Option<f64>),
    /// Microseconds, with or without a time zone.
    Moment(Option<i64>),
}

impl RowBuilder {
    pub(super) fn new(schema: SchemaRef) -> Self {
        let column = |data_type: &DataType| match data_type {
            DataType::Int32 => ColumnBuilder::Whole(Int32Builder::new()),
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
    pub(super) fn push(&mut self, row: &[Cell<'_>]) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows += 1;
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (column, *cell) {
                (ColumnBuilder::Text(column), Cell::Text(text)) => column.append_option(text),
                (ColumnBuilder::Whole(column), Cell::Whole(number)) => column.append_option(number),
                (ColumnBuilder::Count(column), Cell::Count(number)) => column.append_option(number),
                (ColumnBuilder::Real(column), Cell::Real(number)) => column.append_option(number),
                (ColumnBuilder::Moment(column), Cell::Moment(micros)) => column.append_option(micros),
                _ => unreachable!("a row has the types that its schema declares"),
            }
        }
    }

    /// Delivers the pending rows if there are enough.
    pub(super) fn relieve(&mut self, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        if self.rows >= ROWS_AT_ONCE { self.flush(deliver) } else { Ok(()) }
    }

    /// Delivers the pending rows, if any.
    pub(super) fn flush(&mut self, mut deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let column = |column: &mut ColumnBuilder| -> ArrayRef {
            match column {
                ColumnBuilder::Text(column) => Arc::new(column.finish()),
                ColumnBuilder::Whole(column) => Arc::new(column.finish()),
                ColumnBuilder::Count(column) => Arc::new(column.finish()),
                ColumnBuilder::Real(column) => Arc::new(column.finish()),
                ColumnBuilder::Moment(column) => Arc::new(column.finish()),
            }
        };
        let columns = self.columns.iter_mut().map(column).collect();
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        deliver(&rows.map_err(ArchiveError::merge)?)
    }
}
