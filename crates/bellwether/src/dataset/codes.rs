//! The columns of closed sets as plain codes, while rows are sorted.
//!
//! Each batch brings a dictionary of its own, merging batches makes yet other ones, and an Arrow file has one dictionary
//! for all its rows. Codes refer to one list of names per column instead, so rows are merged and spilled without
//! dictionaries, and delivered with the same one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};
use arrow::error::ArrowError;

/// The names that the codes of a dataset's rows refer to.
#[derive(Debug)]
pub(super) struct Codes {
    schema_of_names: SchemaRef,
    schema: SchemaRef,
    /// The names of each column of a closed set, in the order in which batches brought them.
    names: Vec<(usize, ArrayRef)>,
}

impl Codes {
    /// Of rows with a schema, before any of them.
    pub(super) fn of(schema: &SchemaRef) -> Self {
        let is_choice = |field: &Field| matches!(field.data_type(), DataType::Dictionary(..));
        let coded = |field: &Arc<Field>| match is_choice(field) {
            true => Arc::new(Field::new(field.name(), DataType::Int8, field.is_nullable())),
            false => Arc::clone(field),
        };
        let none: ArrayRef = Arc::new(StringArray::new_null(0));
        let choices = schema.fields().iter().enumerate().filter(|(_, field)| is_choice(field));
        Self {
            schema_of_names: Arc::clone(schema),
            schema: Arc::new(Schema::new(schema.fields().iter().map(coded).collect::<Vec<_>>())),
            names: choices.map(|(index, _)| (index, Arc::clone(&none))).collect(),
        }
    }

    /// The schema of rows with codes.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows with codes, of rows with names.
    pub(super) fn encode(&mut self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = rows.columns().to_vec();
        for (index, names) in &mut self.names {
            let column = columns[*index].as_dictionary::<Int8Type>();
            let codes = codes(names, column.values().as_string())?;
            let is_same = (0..).zip(&codes).all(|(key, code)| key == *code);
            let code = |key: i8| codes[key as usize];
            columns[*index] = Arc::new(if is_same { column.keys().clone() } else { column.keys().unary(code) });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    /// Rows with names, of rows with codes.
    pub(super) fn decode(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = rows.columns().to_vec();
        for (index, names) in &self.names {
            let codes: &Int8Array = columns[*index].as_primitive();
            columns[*index] = Arc::new(DictionaryArray::try_new(codes.clone(), Arc::clone(names))?);
        }
        RecordBatch::try_new(Arc::clone(&self.schema_of_names), columns)
    }
}

/// The code of each name of a dictionary. Names that are new get the next ones.
fn codes(names: &mut ArrayRef, dictionary: &StringArray) -> Result<Vec<i8>, ArrowError> {
    let mut known: Vec<&str> = names.as_string::<i32>().iter().flatten().collect();
    let before = known.len();
    let mut codes = Vec::with_capacity(dictionary.len());
    for name in dictionary.iter().flatten() {
        let index = known.iter().position(|known| *known == name).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        });
        codes.push(i8::try_from(index).map_err(|_| ArrowError::DictionaryKeyOverflowError)?);
    }
    if known.len() > before {
        *names = Arc::new(StringArray::from(known));
    }
    Ok(codes)
}
