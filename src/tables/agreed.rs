//! Columns for records whose fields nobody describes: those that every record has, with one type.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use serde_json::{Map, Value};

const TEXT: &str = "record";

/// A table with a `record` column, and a column `record_NAME` for each field that all records have with one scalar type.
///
/// The text of the records stays, so nothing depends on what they agree on today.
pub(crate) fn with_agreed_columns(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some(texts) = batch.column_by_name(TEXT) else { return Ok(batch) };
    let parsed: Option<Vec<Map<String, Value>>> =
        texts.as_string::<i32>().iter().map(|text| serde_json::from_str(text?).ok()).collect();
    let Some(records) = parsed.filter(|records| !records.is_empty()) else { return Ok(batch) };
    let mut fields: Vec<Arc<Field>> = batch.schema().fields().to_vec();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for (name, scalar) in agreed(&records) {
        let values = records.iter().map(|record| &record[&name]);
        let column: ArrayRef = match scalar {
            Scalar::Number => Arc::new(values.map(Value::as_f64).collect::<Float64Array>()),
            Scalar::Text => Arc::new(values.map(Value::as_str).collect::<StringArray>()),
            Scalar::Truth => Arc::new(values.map(Value::as_bool).collect::<BooleanArray>()),
        };
        let is_nullable = column.null_count() > 0;
        fields.push(Arc::new(Field::new(format!("{TEXT}_{name}"), scalar.data_type(), is_nullable)));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Number,
    Text,
    Truth,
}

impl Scalar {
    fn data_type(self) -> DataType {
        match self {
            Self::Number => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Truth => DataType::Boolean,
        }
    }

    /// The type of a value; null says nothing about it.
    fn of(value: &Value) -> Option<Option<Self>> {
        match value {
            Value::Null => Some(None),
            Value::Number(_) => Some(Some(Self::Number)),
            Value::String(_) => Some(Some(Self::Text)),
            Value::Bool(_) => Some(Some(Self::Truth)),
            Value::Array(_) | Value::Object(_) => None,
        }
    }
}

fn agreed(records: &[Map<String, Value>]) -> BTreeMap<String, Scalar> {
    let names = records.first().into_iter().flat_map(Map::keys);
    let type_of = |name: &String| {
        let mut agreed = None;
        for record in records {
            match (agreed, Scalar::of(record.get(name)?)?) {
                (_, None) => {}
                (None, seen) => agreed = seen,
                (Some(agreed), Some(seen)) if agreed == seen => {}
                _ => return None,
            }
        }
        agreed
    };
    names.filter_map(|name| Some((name.clone(), type_of(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray};

    use super::with_agreed_columns;

    fn columns(records: &[&str]) -> Vec<String> {
        let texts: ArrayRef = Arc::new(StringArray::from(records.to_vec()));
        let batch = RecordBatch::try_from_iter([("record", texts)]).expect("one column");
        let batch = with_agreed_columns(batch).expect("columns that fit");
        let of_field = |field: &Arc<arrow::datatypes::Field>| format!("{} {}", field.name(), field.data_type());
        batch.schema().fields().iter().skip(1).map(of_field).collect()
    }

    #[test]
    fn a_field_is_a_column_when_every_record_has_it_with_one_type() {
        let records = [
            r#"{"a":1,"b":"x","c":true,"d":[1],"e":1,"f":null}"#,
            r#"{"a":2.5,"b":null,"c":false,"d":[2],"e":"1","f":null}"#,
        ];
        assert_eq!(columns(&records), ["record_a Float64", "record_b Utf8", "record_c Boolean"]);
    }

    #[test]
    fn records_that_are_no_objects_stay_text_alone() {
        assert!(columns(&["[1]", "{}"]).is_empty());
        assert!(columns(&[]).is_empty());
    }
}
