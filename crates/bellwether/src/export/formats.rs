//! Writes rows to a file or a pipe in any format.
//!
//! Parquet is compressed, with statistics, the declared sort order, provenance in the metadata, and what tells pandas which
//! columns are the index. Arrow IPC, also known as Feather version 2, has a stream format that needs no seeking, and sends
//! every batch at once. JSON Lines have an object per line, which `jq`, DuckDB, polars (`read_ndjson`) and pandas
//! (`lines=True`) can read.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Float64Type, Int8Type, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use serde_json::{Value, json};

use crate::columns::csv::{Coding, CsvWriter};
use crate::columns::{self, ParquetOptions, ParquetWriter, Rows, compact, timestamps};
use crate::error::Reason;
use crate::plan::{Codec, Column, FilesPlan, Format, FormulaGuard, Plan, Shape};

/// Rows per record batch of an Arrow file, the unit in which readers read it.
const BATCH_ROWS: usize = 1 << 16;

/// How rows are encoded.
#[derive(Clone, Debug)]
pub struct RowEncoding {
    pub(super) codec: Codec,
    pub(super) guard: FormulaGuard,
    /// The sort columns that a file has.
    pub(super) sort: Vec<String>,
    /// Metadata of a Parquet file.
    pub(super) metadata: Vec<(&'static str, String)>,
    /// Rows per row group of Parquet.
    pub(super) row_group_rows: usize,
}

impl Default for RowEncoding {
    fn default() -> Self {
        let (codec, guard) = (Codec::Zstd(3), FormulaGuard::None);
        Self { codec, guard, sort: Vec::new(), metadata: Vec::new(), row_group_rows: 1 << 18 }
    }
}

impl RowEncoding {
    /// As the published files of a dataset are encoded.
    pub fn of(plan: &Plan) -> Self {
        let FilesPlan { codec, guard, row_group_rows, .. } = plan.files;
        Self { codec, guard, sort: sort(plan), metadata: Vec::new(), row_group_rows }
    }
}

/// The columns that sort the rows of a file.
pub(super) fn sort(plan: &Plan) -> Vec<String> {
    match plan.dataset.shape {
        Shape::Long => plan.dataset.written.sort.clone(),
        Shape::Wide(_) => vec![plan.dataset.written.name(Column::Date).to_owned()],
    }
}

/// The format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Apache Parquet.
    Parquet,
    /// CSV with a header, compressed or not.
    Csv(Coding),
    /// JSON Lines.
    Json,
    /// Arrow IPC: a file or a stream, depending on the destination.
    Arrow,
}

impl From<Format> for RowFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Parquet => Self::Parquet,
            Format::Csv | Format::CsvGz | Format::CsvZst => Self::Csv(coding(format)),
            Format::Arrow => Self::Arrow,
        }
    }
}

/// How the bytes of files with rows as text are coded in a format.
pub(crate) fn coding(format: Format) -> Coding {
    match format {
        Format::Parquet | Format::Arrow | Format::Csv => Coding::Plain,
        Format::CsvGz => Coding::Gzip,
        Format::CsvZst => Coding::Zstd,
    }
}

/// Writes rows in one of the formats; each write is a row group, in the pieces it came in.
pub(super) enum FormatWriter<W: Write + Send> {
    Parquet(Box<ParquetWriter<W>>),
    Csv(CsvWriter<W>),
    Json(W),
    Arrow(Box<FileWriter<BufWriter<W>>>),
    ArrowStream(Box<StreamWriter<BufWriter<W>>>),
}

impl<W: Write + Send> FormatWriter<W> {
    /// Starts a file, and writes its header.
    pub(super) fn create(format: RowFormat, out: W, schema: SchemaRef, encoding: &RowEncoding) -> Result<Self, Reason> {
        Ok(match format {
            RowFormat::Parquet => {
                let options = parquet_options(&schema, encoding);
                Self::Parquet(Box::new(ParquetWriter::create(out, schema, options)?))
            }
            RowFormat::Csv(coding) => Self::Csv(CsvWriter::create(out, coding, &schema, encoding.guard)?),
            RowFormat::Json => Self::Json(out),
            RowFormat::Arrow => Self::Arrow(Box::new(FileWriter::try_new_buffered(out, &schema)?)),
        })
    }

    /// Starts a stream of Arrow, and writes its header.
    pub(super) fn create_arrow_stream(out: W, schema: &Schema) -> Result<Self, Reason> {
        Ok(Self::ArrowStream(Box::new(StreamWriter::try_new_buffered(out, schema)?)))
    }

    pub(super) fn write(&mut self, group: &[Rows]) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.write(group)?,
            Self::Csv(writer) => writer.write(group)?,
            Self::Json(out) => group.iter().try_for_each(|rows| write_json(out, &rows.flat()?))?,
            Self::Arrow(writer) => {
                let rows = columns::concat(group[0].schema(), group)?;
                for from in (0..rows.num_rows()).step_by(BATCH_ROWS) {
                    writer.write(&rows.slice(from, BATCH_ROWS.min(rows.num_rows() - from)))?;
                }
            }
            Self::ArrowStream(writer) => {
                for rows in group {
                    // Data frame libraries turn dictionaries into categories.
                    writer.write(&compact(&rows.flat()?)?)?;
                    writer.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Completes the file or stream.
    pub(super) fn finish(&mut self) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.finish()?,
            Self::Csv(writer) => writer.finish()?,
            Self::Json(out) => out.flush()?,
            Self::Arrow(writer) => {
                writer.finish()?;
                writer.get_mut().flush()?;
            }
            Self::ArrowStream(writer) => {
                writer.finish()?;
                writer.flush()?;
            }
        }
        Ok(())
    }

    /// The underlying output.
    pub(super) fn out(&self) -> &W {
        match self {
            Self::Parquet(writer) => writer.out(),
            Self::Csv(writer) => writer.out(),
            Self::Json(out) => out,
            Self::Arrow(writer) => writer.get_ref().get_ref(),
            Self::ArrowStream(writer) => writer.get_ref().get_ref(),
        }
    }
}

fn parquet_options(schema: &Schema, encoding: &RowEncoding) -> ParquetOptions {
    let own = encoding.metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let of_schema = schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    ParquetOptions {
        compression: match encoding.codec {
            Codec::Zstd(level) => {
                Compression::ZSTD(ZstdLevel::try_new(level.into()).expect("a plan has levels that zstd has"))
            }
            Codec::Snappy => Compression::SNAPPY,
            Codec::None => Compression::UNCOMPRESSED,
        },
        uncompressed_below: 0,
        sorted_by: encoding.sort.iter().filter_map(|name| schema.index_of(name).ok()).collect(),
        metadata: own.chain(of_schema).collect(),
    }
}

fn write_json(out: &mut impl Write, rows: &RecordBatch) -> Result<(), Reason> {
    let schema = rows.schema();
    let columns = rows.columns().iter().map(json_values).collect::<Result<Vec<_>, ArrowError>>()?;
    let mut lines = Vec::new();
    for row in 0..rows.num_rows() {
        let mut before = b'{';
        for (field, values) in schema.fields().iter().zip(&columns) {
            lines.push(before);
            serde_json::to_writer(&mut lines, field.name())?;
            lines.push(b':');
            serde_json::to_writer(&mut lines, &values[row])?;
            before = b',';
        }
        lines.extend_from_slice(b"}\n");
    }
    Ok(out.write_all(&lines)?)
}

/// The values of a column. JSON has no dates and no infinities: both are text.
fn json_values(column: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
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

/// The schema of rows that pandas reads with some columns as the index. Other readers see columns.
pub(super) fn indexed_by(index: &[&str], schema: &Schema) -> SchemaRef {
    let columns: Vec<Value> = schema.fields().iter().map(|field| describe_for_pandas(field)).collect();
    let names = json!({
        "name": null, "field_name": null, "pandas_type": "unicode", "numpy_type": "object",
        "metadata": { "encoding": "UTF-8" },
    });
    let convention = json!({
        "index_columns": index,
        "column_indexes": [names],
        "columns": columns,
        "creator": { "library": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        // The version of pandas that this is compatible with.
        "pandas_version": "2.0.0",
    });
    let metadata = HashMap::from([("pandas".to_owned(), convention.to_string())]);
    Arc::new(schema.clone().with_metadata(metadata))
}

fn describe_for_pandas(field: &Field) -> Value {
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
