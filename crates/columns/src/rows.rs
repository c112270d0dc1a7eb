//! Rows of a dataset on their way to files.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use arrow::datatypes::{DataType, Int8Type, SchemaRef};
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

/// Concatenates rows to one record batch.
pub fn concat(schema: &SchemaRef, pieces: &[Rows]) -> Result<RecordBatch, ArrowError> {
    if let [piece] = pieces {
        return piece.flat();
    }
    let columns =
        (0..schema.fields().len()).map(|index| concat_column(pieces, index)).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(pieces.iter().map(Rows::num_rows).sum()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Concatenates one column of all pieces.
pub(super) fn concat_column(pieces: &[Rows], index: usize) -> Result<ArrayRef, ArrowError> {
    let arrays = pieces.iter().map(|piece| piece.columns()[index].flat());
    concat_arrays(arrays.collect::<Result<_, _>>()?)
}

/// Concatenates arrays, and keeps the dictionary if all have the same.
pub fn concat_arrays(mut pieces: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
    // Arrays that are all null are the most common.
    if pieces.iter().all(|piece| piece.null_count() == piece.len()) {
        return Ok(new_null_array(pieces[0].data_type(), pieces.iter().map(|piece| piece.len()).sum()));
    }
    // Closed sets have the same dictionary everywhere, and an Arrow file stores one dictionary for all its rows.
    if let Some(first) = pieces[0].as_any_dictionary_opt().map(|first| Arc::clone(first.values())) {
        for piece in &mut pieces {
            let same = piece.as_any_dictionary();
            if !Arc::ptr_eq(same.values(), &first) && same.values().to_data() == first.to_data() {
                *piece = same.with_values(Arc::clone(&first));
            }
        }
    }
    arrow::compute::concat(&pieces.iter().map(|piece| &**piece as &dyn Array).collect::<Vec<_>>())
}

/// Rows with dictionaries reduced to the names that occur.
pub fn compact(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(keys, _) if **keys == DataType::Int8 => occurring(column.as_dictionary()),
        _ => Ok(Arc::clone(column)),
    };
    RecordBatch::try_new(rows.schema(), rows.columns().iter().map(column).collect::<Result<_, _>>()?)
}

fn occurring(column: &DictionaryArray<Int8Type>) -> Result<ArrayRef, ArrowError> {
    let names = column.values().as_string::<i32>();
    let mut kept: Vec<&str> = Vec::new();
    let mut keys = vec![0; names.len()];
    for index in column.occupancy().set_indices() {
        let name = names.value(index);
        let key = kept.iter().position(|other| *other == name).unwrap_or_else(|| {
            kept.push(name);
            kept.len() - 1
        });
        keys[index] = key as i8;
    }
    if kept.len() == names.len() {
        return Ok(Arc::new(column.clone()));
    }
    // What is behind a null may be any key.
    let keys: Int8Array = column.keys().unary(|key| keys.get(key as usize).copied().unwrap_or_default());
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(StringArray::from(kept)))?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, Int32Array, RecordBatch, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Schema};

    use super::{compact, concat};
    use crate::{RowBuffer, Rows};

    fn batch(from: i32, to: i32) -> RecordBatch {
        let names = Arc::new(StringArray::from(vec!["bear", "bull", "neutral"]));
        let regimes = Int8Array::from_iter_values((from..to).map(|number| (number % 3) as i8));
        let regimes = DictionaryArray::new(regimes, names);
        let numbers = Field::new("number", DataType::Int32, false);
        let schema = Schema::new(vec![numbers, Field::new("regime", regimes.data_type().clone(), false)]);
        let columns = [Arc::new(Int32Array::from_iter_values(from..to)) as Arc<dyn Array>, Arc::new(regimes)];
        RecordBatch::try_new(Arc::new(schema), columns.to_vec()).unwrap()
    }

    #[test]
    fn blocks_do_not_depend_on_how_rows_are_pushed() {
        let whole = batch(0, 100);
        let cut = |ends: &[i32]| {
            let mut buffer = RowBuffer::new(16);
            let starts = std::iter::once(&0).chain(ends);
            let batches = starts.zip(ends).map(|(&from, &to)| batch(from, to));
            let mut cut: Vec<Vec<Rows>> = batches.flat_map(|batch| buffer.push(&batch.into())).collect();
            cut.extend(buffer.take());
            cut.iter().map(|pieces| concat(&whole.schema(), pieces).unwrap()).collect::<Vec<_>>()
        };
        let expected: Vec<RecordBatch> = (0..7).map(|block| batch(block * 16, (block * 16 + 16).min(100))).collect();
        for ends in [&[100][..], &[1, 2, 3, 99, 100], &[16, 32, 100], &[0, 50, 50, 100]] {
            assert_eq!(cut(ends), expected, "{ends:?}");
        }
        assert_eq!(expected[6].column(0).as_primitive::<Int32Type>().values(), &[96, 97, 98, 99]);
    }

    #[test]
    fn a_dictionary_shared_by_all_pieces_is_kept() {
        let pieces: Vec<Rows> = (0..200).map(|from| batch(from, from + 1).into()).collect();
        let block = concat(pieces[0].schema(), &pieces).unwrap();
        let values = block.column(1).as_any_dictionary().values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["bear", "bull", "neutral"]);
    }

    #[test]
    fn a_dictionary_has_each_name_that_occurs_once() {
        let names = StringArray::from(vec!["bull", "never", "bear", "bull", "bear"]);
        let keys = Int8Array::from(vec![Some(3), Some(0), None, Some(4), Some(2), Some(0)]);
        let column: ArrayRef = Arc::new(DictionaryArray::try_new(keys, Arc::new(names)).unwrap());
        let rows = RecordBatch::try_from_iter_with_nullable([("regime", Arc::clone(&column), true)]).unwrap();
        let compact = compact(&rows).unwrap();
        let found = compact.column(0).as_dictionary::<Int8Type>();
        let names: Vec<Option<&str>> = found.values().as_string::<i32>().iter().collect();
        assert_eq!(names, [Some("bull"), Some("bear")]);
        let texts = |column: &ArrayRef| cast(column, &DataType::Utf8).unwrap();
        assert_eq!(&texts(compact.column(0)), &texts(&column));
    }
}
