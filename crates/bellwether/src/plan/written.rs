//! The columns of a dataset as they are written: which, in which order, under which names.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};

use super::Column;
use crate::columns::Rows;

/// The columns that are written, out of those that are built.
#[derive(Clone, Debug)]
pub struct WrittenColumns {
    /// Their indices among those that are built.
    indices: Vec<usize>,
    schema: SchemaRef,
    names: ColumnNames,
    /// The written columns that identify a row; `None` if they are not unique without the others.
    pub key: Option<Vec<String>>,
    /// The written columns that sort the rows.
    pub sort: Vec<String>,
}

/// What columns are called, by their own names; a column that is not renamed has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames(BTreeMap<String, String>);

impl ColumnNames {
    /// Names by own names.
    pub fn new(names: BTreeMap<String, String>) -> Self {
        Self(names)
    }

    /// What a column is called.
    pub fn of<'a>(&'a self, column: &'a str) -> &'a str {
        self.0.get(column).map_or(column, String::as_str)
    }

    /// What a column is called among some that are written; none if it is not one of them. Another column may have taken
    /// its name.
    pub fn find<'a>(&'a self, column: Column, schema: &Schema) -> Option<&'a str> {
        let name = self.of(column.name());
        let is_written = self.own(name) == column.name() && schema.column_with_name(name).is_some();
        is_written.then_some(name)
    }

    /// The own name of a column.
    pub fn own<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|(_, written)| *written == name).map_or(name, |(own, _)| own)
    }
}

/// What is written of the columns that are built.
pub(super) struct ColumnChoice<'a> {
    /// The columns, by their own names.
    pub(super) columns: &'a [String],
    pub(super) names: ColumnNames,
    pub(super) key: &'a [Column],
    pub(super) sort: &'a [Column],
    /// The columns that have the same value in every row.
    pub(super) constant: &'a [Column],
}

impl WrittenColumns {
    /// All columns that are built, as they are.
    pub(crate) fn all(schema: &SchemaRef, key: &[Column], sort: &[Column]) -> Self {
        let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self::of(schema, ColumnChoice { columns: &columns, names: ColumnNames::default(), key, sort, constant: &[] })
    }

    /// Some of the columns that are built.
    pub(super) fn of(schema: &SchemaRef, choice: ColumnChoice<'_>) -> Self {
        let ColumnChoice { columns, names, key, sort, constant } = choice;
        let indices: Vec<usize> = columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let field = |&index: &usize| {
            let field = schema.field(index);
            field.clone().with_name(names.of(field.name()))
        };
        let has = |column: &Column| columns.iter().any(|name| name == column.name());
        let is_known = |column: &&Column| has(column) || constant.contains(column);
        let written = |columns: &mut dyn Iterator<Item = &Column>| -> Vec<String> {
            columns.filter(|column| has(column)).map(|column| names.of(column.name()).to_owned()).collect()
        };
        let key = key.iter().all(|column| is_known(&column)).then(|| written(&mut key.iter()));
        // Without one of the columns, the order of those that follow it cannot be seen.
        let sort = written(&mut sort.iter().take_while(is_known));
        Self {
            schema: Arc::new(Schema::new(indices.iter().map(field).collect::<Vec<Field>>())),
            indices,
            names,
            key,
            sort,
        }
    }

    /// The same, and the last column that is built.
    #[must_use]
    pub(super) fn with_last(mut self, schema: &SchemaRef) -> Self {
        let index = schema.fields().len() - 1;
        let field = Arc::clone(&schema.fields()[index]);
        self.indices.push(index);
        self.schema = Arc::new(Schema::new(self.schema.fields().iter().cloned().chain([field]).collect::<Vec<_>>()));
        self
    }

    /// What a column that is built is called where it is written; none if it is not.
    pub fn name_of<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        let name = self.names.of(own);
        let is_written = self.names.own(name) == own && self.schema.column_with_name(name).is_some();
        is_written.then_some(name)
    }

    /// Whether one of the columns that are built is written, from an index on.
    pub(super) fn has_any_from(&self, index: usize) -> bool {
        self.indices.iter().any(|written| *written >= index)
    }

    /// The columns as they are written.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the columns are called.
    pub fn names(&self) -> &ColumnNames {
        &self.names
    }

    /// What a column that is written is called.
    pub fn name(&self, column: Column) -> &str {
        self.names.of(column.name())
    }

    /// Rows that were built, as they are written.
    pub fn part(&self, rows: &Rows) -> Rows {
        rows.project(&self.schema, &self.indices)
    }
}
