//! Rows on their way to files.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::Column;

/// Some rows, and where each of their columns turns: it is found once, for all who hash, encode or count them.
#[derive(Clone, Debug)]
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Column>,
    count: usize,
}

impl Rows {
    /// Rows of some columns.
    pub(crate) fn of(schema: SchemaRef, columns: Vec<Column>) -> Result<Self, ArrowError> {
        let count = columns.first().map_or(0, Column::len);
        let is_sound = columns.len() == schema.fields().len()
            && columns.iter().zip(schema.fields()).all(|(column, field)| {
                let is_filled = field.is_nullable() || column.values().null_count() == 0;
                column.len() == count && column.data_type() == field.data_type() && is_filled
            });
        if is_sound {
            return Ok(Self { schema, columns, count });
        }
        Err(ArrowError::SchemaError(format!("rows are not as {schema} has them")))
    }

    /// How many they are.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.count
    }

    /// What their columns are called, and of what types they are.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A column that the rows have.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.schema.index_of(name).ok().map(|place| &self.columns[place])
    }

    /// So many of the rows, from one on.
    #[must_use]
    pub fn slice(&self, from: usize, count: usize) -> Self {
        let columns = self.columns.iter().map(|column| column.slice(from, count)).collect();
        Self { schema: Arc::clone(&self.schema), columns, count }
    }

    /// A value for each row, as others have it.
    ///
    /// # Errors
    ///
    /// When a column would be too large.
    pub fn flat(&self) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter().map(Column::flat).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl From<RecordBatch> for Rows {
    fn from(batch: RecordBatch) -> Self {
        let (schema, columns, count) = batch.into_parts();
        Self { schema, columns: columns.into_iter().map(Column::from).collect(), count }
    }
}

/// Rows that say the same are the same, however their values are shared and wherever their dictionaries turn.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.flat(), other.flat()), (Ok(one), Ok(other)) if one == other)
    }
}
