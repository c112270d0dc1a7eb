//! The rows of an audit: an entry for each column with its value in a row, and what delivers them in batches.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, Float64Builder, Int32Builder, Int64Builder, RecordBatch, StringBuilder, StructBuilder,
    TimestampMicrosecondBuilder,
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

/// A column, and its value in a row.
pub(super) struct Entry<R> {
    column: AuditColumn,
    value: fn(&R) -> RowValue<'_>,
}

/// A value of a row.
pub(super) enum RowValue<'a> {
    Text(Option<&'a str>),
    Owned(Option<String>),
    /// A count, or microseconds.
    Whole(Option<i64>),
    Real(Option<f64>),
}

/// A column that has a value in every row.
pub(super) fn always<R>(name: &str, of: DataType, what: &'static str, value: fn(&R) -> RowValue<'_>) -> Entry<R> {
    Entry { column: AuditColumn { field: Field::new(name, of, false), what }, value }
}

/// A column that may be null.
pub(super) fn optional<R>(name: &str, of: DataType, what: &'static str, value: fn(&R) -> RowValue<'_>) -> Entry<R> {
    Entry { column: AuditColumn { field: Field::new(name, of, true), what }, value }
}

pub(super) fn columns_of<R>(entries: impl IntoIterator<Item = Entry<R>>) -> Vec<AuditColumn> {
    entries.into_iter().map(|entry| entry.column).collect()
}

pub(super) fn schema_of<R>(entries: impl IntoIterator<Item = Entry<R>>) -> SchemaRef {
    Arc::new(Schema::new(entries.into_iter().map(|entry| entry.column.field).collect::<Vec<_>>()))
}

/// Takes rows, and delivers them in batches.
pub(super) struct RowWriter<R, D> {
    entries: Vec<Entry<R>>,
    rows: StructBuilder,
    deliver: D,
}

impl<R, D: FnMut(&RecordBatch) -> Result<()>> RowWriter<R, D> {
    pub(super) fn new(entries: impl Into<Vec<Entry<R>>>, deliver: D) -> Self {
        let entries = entries.into();
        let fields: Vec<Field> = entries.iter().map(|entry| entry.column.field.clone()).collect();
        Self { entries, rows: StructBuilder::from_fields(fields, 0), deliver }
    }

    pub(super) fn push(&mut self, row: &R) -> Result<()> {
        for (index, Entry { column, value }) in self.entries.iter().enumerate() {
            match (value(row), column.field.data_type()) {
                (RowValue::Text(text), _) => builder::<StringBuilder>(&mut self.rows, index).append_option(text),
                (RowValue::Owned(text), _) => builder::<StringBuilder>(&mut self.rows, index).append_option(text),
                (RowValue::Real(real), _) => builder::<Float64Builder>(&mut self.rows, index).append_option(real),
                (RowValue::Whole(whole), DataType::Int32) => {
                    let whole = whole.map(|whole| i32::try_from(whole).unwrap_or(i32::MAX));
                    builder::<Int32Builder>(&mut self.rows, index).append_option(whole);
                }
                (RowValue::Whole(whole), DataType::Int64) => {
                    builder::<Int64Builder>(&mut self.rows, index).append_option(whole);
                }
                (RowValue::Whole(micros), _) => {
                    builder::<TimestampMicrosecondBuilder>(&mut self.rows, index).append_option(micros);
                }
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
