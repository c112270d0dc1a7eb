//! The rows of an audit: what their columns are, and what writes them one at a time and delivers them in batches.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder, StructBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::Result;

/// A column of the rows of an audit.
#[derive(Clone, Debug)]
pub struct AuditColumn {
    /// Its name and type.
    pub field: Field,
    /// What it holds; empty if that is what a column of this name has in a dataset, or in the same row.
    pub what: &'static str,
}

/// A column that has a value in every row.
pub(super) fn always(name: &str, data_type: DataType, what: &'static str) -> AuditColumn {
    AuditColumn { field: Field::new(name, data_type, false), what }
}

/// A column that may be null.
pub(super) fn optional(name: &str, data_type: DataType, what: &'static str) -> AuditColumn {
    AuditColumn { field: Field::new(name, data_type, true), what }
}

pub(super) fn schema_of(columns: Vec<AuditColumn>) -> SchemaRef {
    Arc::new(Schema::new(columns.into_iter().map(|column| column.field).collect::<Vec<_>>()))
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowValue<'a> {
    Text(Option<&'a str>),
    /// A count, or microseconds.
    Whole(Option<i64>),
    Real(Option<f64>),
}

/// Takes rows, and delivers them in batches.
pub(super) struct RowWriter<D> {
    schema: SchemaRef,
    rows: StructBuilder,
    deliver: D,
}

impl<D: FnMut(&RecordBatch) -> Result<()>> RowWriter<D> {
    pub(super) fn new(schema: SchemaRef, deliver: D) -> Self {
        Self { rows: StructBuilder::from_fields(schema.fields().clone(), 0), schema, deliver }
    }

    /// Adds a row; columns that are not named are null.
    pub(super) fn push(&mut self, row: &[(&str, RowValue<'_>)]) -> Result<()> {
        debug_assert!(row.iter().all(|(name, _)| self.schema.index_of(name).is_ok()), "{row:?} has these columns");
        for (column, field) in self.schema.fields().iter().enumerate() {
            let (mut text, mut whole, mut real) = (None, None, None);
            match row.iter().find(|(name, _)| name == field.name()) {
                Some((_, RowValue::Text(value))) => text = *value,
                Some((_, RowValue::Whole(value))) => whole = *value,
                Some((_, RowValue::Real(value))) => real = *value,
                None => {}
            }
            match field.data_type() {
                DataType::Utf8 => builder::<StringBuilder>(&mut self.rows, column).append_option(text),
                DataType::Int64 => builder::<Int64Builder>(&mut self.rows, column).append_option(whole),
                DataType::Float64 => builder::<Float64Builder>(&mut self.rows, column).append_option(real),
                _ => builder::<TimestampMicrosecondBuilder>(&mut self.rows, column).append_option(whole),
            }
        }
        self.rows.append(true);
        if self.rows.len() < 1 << 14 { Ok(()) } else { self.flush() }
    }

    /// Delivers the rows that wait, if any.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() { Ok(()) } else { (self.deliver)(&RecordBatch::from(self.rows.finish())) }
    }
}

fn builder<B: ArrayBuilder>(rows: &mut StructBuilder, column: usize) -> &mut B {
    rows.field_builder(column).expect("a row has the types that its schema declares")
}
