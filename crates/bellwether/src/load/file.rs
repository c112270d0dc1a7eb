//! Any file of rows: Parquet, CSV or Arrow, whoever wrote it.
//!
//! Nothing declares the columns of CSV: their types are those that every value of the file has. Types that a dataset does not
//! have become the one that is nearest: whole numbers have 64 bits, days are instants, and what is neither text nor a number
//! is shown as text.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format as CsvFormat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReaderBuilder, StreamReader};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::Selection;
use crate::disk::{expansion, file};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::export::coding;
use crate::plan::{Column, ColumnNames, Format};
use crate::tables;

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 13;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The rows of a file, or a part of them.
pub struct FileRows {
    /// The selected columns.
    pub schema: SchemaRef,
    /// Number of rows, if it is known without reading them and all are selected.
    pub count: Option<u64>,
    /// The rows. An error is an [`ArrowError::ExternalError`] with an [`Error`] inside.
    pub batches: Batches,
}

impl FileRows {
    /// Opens a file, and selects a part of it.
    ///
    /// # Errors
    ///
    /// When its name does not say its format, when it cannot be read, or has no column that is selected or selected by.
    pub fn open(path: &Path, selection: Selection) -> Result<Self> {
        let format = Format::of_file(path).ok_or_else(|| {
            let what = format!("cannot tell the format of `{}` from its extension", path.display());
            Error::usage(what, "files end in `.parquet`, `.csv`, `.csv.gz`, `.csv.zst` or `.arrow`")
        })?;
        let (schema, count, batches) = match format {
            Format::Parquet => parquet(path),
            Format::Arrow => arrow(path),
            Format::Csv | Format::CsvGz | Format::CsvZst => csv(path, format),
        }
        .map_err(|error| unreadable(path, error))?;
        if schema.fields().is_empty() {
            return Err(unreadable(path, "it has no columns".into()));
        }
        let schema = Arc::new(Schema::new(schema.fields().iter().map(|field| plain(field)).collect::<Vec<_>>()));
        let names = ColumnNames::default();
        selection.check(&schema, &names)?;
        if selection.selects_by(Column::Date)
            && let Ok(date) = schema.field_with_name(Column::Date.name())
            && !matches!(date.data_type(), DataType::Timestamp(..))
        {
            let what = format!("cannot select dates: the column `date` of `{}` has none", path.display());
            return Err(Error::usage(what, "leave out `--from` and `--to`"));
        }
        let (path, all, part) = (path.to_owned(), Arc::clone(&schema), selection.clone());
        let batches = batches.map(move |batch| {
            let rows = batch.and_then(|batch| converted(&batch, &all)).and_then(|rows| part.part(&rows, &names));
            rows.map_err(|error| ArrowError::ExternalError(Box::new(unreadable(&path, error.into()))))
        });
        let is_whole = Selection { columns: None, ..selection.clone() } == Selection::default();
        Ok(Self { schema: selection.schema(&schema)?, count: count.filter(|_| is_whole), batches: Box::new(batches) })
    }
}

fn unreadable(path: &Path, source: Reason) -> Error {
    match source.downcast::<Error>() {
        Ok(error) => *error,
        Err(source) => {
            Error::new(ErrorKind::Data, format!("cannot read rows from `{}`", path.display())).with_source(source)
        }
    }
}

fn parquet(path: &Path) -> Result<(SchemaRef, Option<u64>, Batches), Reason> {
    let file = Arc::new(file::open(path)?);
    let metadata = ArrowReaderMetadata::load(&*file, ArrowReaderOptions::new())?;
    let (schema, count) = (Arc::clone(metadata.schema()), metadata.metadata().file_metadata().num_rows());
    let groups = 0..metadata.metadata().num_row_groups();
    let rows = expansion::batch_rows(&file, metadata.metadata(), groups, &ProjectionMask::all(), BATCH_ROWS)?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata);
    Ok((schema, u64::try_from(count).ok(), Box::new(builder.with_batch_size(rows).build()?)))
}

fn arrow(path: &Path) -> Result<(SchemaRef, Option<u64>, Batches), Reason> {
    let (mut file, mut first) = (file::open(path)?, Vec::new());
    file.by_ref().take(6).read_to_end(&mut first)?;
    file.seek(SeekFrom::Start(0))?;
    // A file without these bytes is a stream.
    Ok(if first == b"ARROW1" {
        let reader = FileReaderBuilder::new().build(file)?;
        (reader.schema(), None, Box::new(reader))
    } else {
        let reader = StreamReader::try_new_buffered(file, None)?;
        (reader.schema(), None, Box::new(reader))
    })
}

fn csv(path: &Path, format: Format) -> Result<(SchemaRef, Option<u64>, Batches), Reason> {
    let text = |file: File| coding(format).text_of(file);
    let (schema, count) = CsvFormat::default().with_header(true).infer_schema(text(file::open(path)?)?, None)?;
    let schema = Arc::new(schema);
    let reader = ReaderBuilder::new(Arc::clone(&schema)).with_header(true).with_batch_size(BATCH_ROWS);
    Ok((schema, Some(count as u64), Box::new(reader.build(text(file::open(path)?)?)?)))
}

/// A column in the type that is nearest among those that a dataset has.
fn plain(field: &Field) -> Field {
    let nearest = match field.data_type() {
        DataType::Boolean => DataType::Boolean,
        number if number.is_integer() && *number != DataType::UInt64 => DataType::Int64,
        number if number.is_floating() => DataType::Float64,
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => tables::date(),
        DataType::Timestamp(_, Some(_)) => tables::instant(),
        _ => DataType::Utf8,
    };
    Field::new(field.name(), nearest, true)
}

/// The rows in the columns of a schema.
fn converted(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| -> Result<ArrayRef, ArrowError> {
        if field.data_type() != &DataType::Utf8 || column.data_type().is_string() {
            return cast(column, field.data_type());
        }
        let options = FormatOptions::default();
        let texts = ArrayFormatter::try_new(column.as_ref(), &options)?;
        let text = |row| column.is_valid(row).then(|| texts.value(row).to_string());
        Ok(Arc::new((0..column.len()).map(text).collect::<StringArray>()))
    };
    let columns = rows.columns().iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Whether a text names a file of rows, not a dataset or a version of one.
pub fn names_file(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    let is_named = Format::of_file(&path).is_some() && !path.is_dir();
    (is_named || path.extension().is_some() && path.is_file()).then_some(path)
}
