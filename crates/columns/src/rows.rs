//! Rows of a dataset on their way to files.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::Column;

/// Rows of a dataset, stored so that adjacent rows may share a value.
///
/// Where the values of each column change is found once, for all that hash, encode or count them.
#[derive(Clone, Debug)]
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Column>,
    count: usize,
}

impl Rows {
    /// Rows from their columns.
    pub fn new(schema: SchemaRef, columns: Vec<Column>) -> Result<Self, ArrowError> {
        let count = columns.first().map_or(0, Column::len);
        let is_sound = columns.len() == schema.fields().len()
            && columns.iter().zip(schema.fields()).all(|(column, field)| {
                let is_filled = field.is_nullable() || column.values().null_count() == 0;
                column.len() == count && column.data_type() == field.data_type() && is_filled
            });
        if is_sound {
            return Ok(Self { schema, columns, count });
        }
        Err(ArrowError::SchemaError(format!("columns do not match the schema {schema}")))
    }

    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.count
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.schema.index_of(name).ok().map(|index| &self.columns[index])
    }

    /// The rows with some of their columns, under the names of a schema.
    pub fn project(&self, schema: &SchemaRef, indices: &[usize]) -> Self {
        let columns = indices.iter().map(|&index| self.columns[index].clone()).collect();
        Self { schema: Arc::clone(schema), columns, count: self.count }
    }

    /// `count` rows from `from` on.
    #[must_use]
    pub fn slice(&self, from: usize, count: usize) -> Self {
        let columns = self.columns.iter().map(|column| column.slice(from, count)).collect();
        Self { schema: Arc::clone(&self.schema), columns, count }
    }

    /// The rows as a record batch, with a value for each row.
    ///
    /// # Errors
    ///
    /// If a column would be too large.
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

/// Rows are equal if their values are, shared or not.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.flat(), other.flat()), (Ok(one), Ok(other)) if one == other)
    }
}
