//! JSON Lines, an object per line, which `jq`, DuckDB, polars (`read_ndjson`) and pandas (`lines=True`) can read.

use std::io::{self, Write};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int8Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::columns::timestamps;
use crate::error::Reason;

/// A JSON Lines file being written.
pub(super) struct JsonWriter<W: Write> {
    out: W,
}

impl<W: Write> JsonWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Reason> {
        let schema = rows.schema();
        let columns = rows.columns().iter().map(values).collect::<Result<Vec<_>, ArrowError>>()?;
        let mut lines = Vec::new();
        for row in 0..rows.num_rows() {
            serde_json::to_writer(&mut lines, &JsonRow { schema: &schema, columns: &columns, row })?;
            lines.push(b'\n');
        }
        Ok(self.out.write_all(&lines)?)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A row, in column order.
struct JsonRow<'a> {
    schema: &'a Schema,
    columns: &'a [Vec<Value>],
    row: usize,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.schema.fields().iter().map(|field| field.name());
        serializer.collect_map(names.zip(self.columns.iter().map(|column| &column[self.row])))
    }
}

/// The values of a column. JSON has no dates and no infinities: both are text.
fn values(column: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    Ok(match column.data_type() {
        DataType::Boolean => column.as_boolean().iter().map(Value::from).collect(),
        DataType::Int8 => column.as_primitive::<Int8Type>().iter().map(Value::from).collect(),
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().map(Value::from).collect(),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(Value::from).collect(),
        DataType::Float64 => {
            let number = |value: f64| if value.is_finite() { value.into() } else { value.to_string().into() };
            column.as_primitive::<Float64Type>().iter().map(|value| value.map_or(Value::Null, number)).collect()
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let text = |micros: i64| timestamps::text(micros) + if zone.is_some() { "Z" } else { "" };
            let column = column.as_primitive::<TimestampMicrosecondType>();
            column.iter().map(|micros| micros.map(text).into()).collect()
        }
        _ => cast(column, &DataType::Utf8)?.as_string::<i32>().iter().map(Value::from).collect(),
    })
}
