//! The metadata that tells pandas which columns are the index.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde_json::{Value, json};

/// The version of pandas that this metadata is compatible with.
const VERSION: &str = "2.0.0";

/// The schema of rows that pandas reads with some columns as the index. Other readers see columns.
pub(super) fn indexed_by(index: &[&str], schema: &Schema) -> SchemaRef {
    let columns: Vec<Value> = schema.fields().iter().map(|field| describe(field)).collect();
    let names = json!({
        "name": null, "field_name": null, "pandas_type": "unicode", "numpy_type": "object",
        "metadata": { "encoding": "UTF-8" },
    });
    let convention = json!({
        "index_columns": index,
        "column_indexes": [names],
        "columns": columns,
        "creator": { "library": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": VERSION,
    });
    let metadata = HashMap::from([("pandas".to_owned(), convention.to_string())]);
    Arc::new(schema.clone().with_metadata(metadata))
}

fn describe(field: &Field) -> Value {
    let (pandas, numpy) = match field.data_type() {
        DataType::Float64 => ("float64", "float64"),
        DataType::Int8 => ("int8", "int8"),
        DataType::Int32 => ("int32", "int32"),
        DataType::Boolean => ("bool", "bool"),
        DataType::Timestamp(_, None) => ("datetime", "datetime64[us]"),
        DataType::Timestamp(_, Some(_)) => ("datetimetz", "datetime64[us]"),
        _ => ("unicode", "object"),
    };
    let zone = matches!(field.data_type(), DataType::Timestamp(_, Some(_))).then(|| json!({ "timezone": "UTC" }));
    json!({
        "name": field.name(), "field_name": field.name(), "pandas_type": pandas, "numpy_type": numpy, "metadata": zone,
    })
}
