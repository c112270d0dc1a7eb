//! The rows of one file of prices, or of a table in memory, whatever its format and the types of its columns.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format as CsvFormat;
use arrow::datatypes::{DataType, Field, Float64Type, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Day, PriceColumns, PriceRows};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::interface::Ticker;
use crate::tables::Leniencies;
use crate::tables::dates;
use crate::text::escape::escape;
use crate::text::human::group_digits;
use crate::time::MICROS_PER_DAY;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8192;

/// A row of a file.
pub(super) enum PriceRow {
    /// A close.
    Close { ticker: Ticker, day: Day, close: f64 },
    /// A missing close, or a name that no service can have.
    Nothing,
}

type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>;

/// The rows of a file.
pub(super) fn rows_of_file(
    path: &Path,
    file: File,
    columns: &PriceColumns,
) -> Result<impl Iterator<Item = Result<Vec<PriceRow>>>> {
    let named = names_of(columns);
    let batches = match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => of_parquet(path, file, &named)?,
        Some("csv") => of_csv(path, file, &named)?,
        _ => {
            let what = format!("cannot tell the format of `{}` from its extension", path.display());
            return Err(Error::new(ErrorKind::Usage, what).with_hint("prices are read from `.parquet` and `.csv`"));
        }
    };
    Ok(typed_rows(path, batches, named))
}

/// The rows of a table in memory.
pub(super) fn rows_in_memory<'a>(
    path: &Path,
    rows: &'a PriceRows,
    columns: &PriceColumns,
) -> Result<impl Iterator<Item = Result<Vec<PriceRow>>> + 'a> {
    let named = names_of(columns);
    let names: Vec<&str> = rows.schema.fields().iter().map(|field| field.name().as_str()).collect();
    places(path, &names, &named)?;
    Ok(typed_rows(path, Box::new(rows.batches.iter().cloned().map(Ok)), named))
}

fn names_of(columns: &PriceColumns) -> [String; 3] {
    [&columns.ticker, &columns.date, &columns.close].map(String::clone)
}

fn typed_rows<'a>(
    path: &Path,
    batches: Batches<'a>,
    named: [String; 3],
) -> impl Iterator<Item = Result<Vec<PriceRow>>> + use<'a> {
    let path = path.to_owned();
    let mut before = 0;
    batches.map(move |batch| {
        let batch = batch.map_err(|error| unreadable(&path, error))?;
        let typed = TypedRows { path: &path, before, columns: &named };
        before += batch.num_rows() as u64;
        typed.of(&batch)
    })
}

fn unreadable(path: &Path, source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Data, format!("cannot read prices from `{}`", path.display())).with_source(source)
}

/// The indices of the columns.
fn places(path: &Path, names: &[&str], wanted: &[String; 3]) -> Result<[usize; 3]> {
    let mut indices = [0; 3];
    for (index, column) in indices.iter_mut().zip(wanted) {
        *index = names.iter().position(|name| name == column).ok_or_else(|| {
            let columns: Vec<String> = names.iter().take(20).map(|name| format!("`{}`", escape(name))).collect();
            let columns = if columns.is_empty() { "none".to_owned() } else { columns.join(", ") };
            Error::new(ErrorKind::Data, format!("`{}` has no column `{column}`: it has {columns}", path.display()))
                .with_hint("name it in the definition: `columns = { close = \"adj_close\" }` in `[prices]`")
        })?;
    }
    Ok(indices)
}

fn of_parquet(path: &Path, file: File, named: &[String; 3]) -> Result<Batches<'static>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(path, error))?;
    let names: Vec<&str> = builder.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let wanted = ProjectionMask::roots(builder.parquet_schema(), places(path, &names, named)?);
    let reader = builder.with_projection(wanted).with_batch_size(BATCH_ROWS).build();
    Ok(Box::new(reader.map_err(|error| unreadable(path, error))?))
}

fn of_csv(path: &Path, mut file: File, named: &[String; 3]) -> Result<Batches<'static>> {
    let (header, _) = CsvFormat::default()
        .with_header(true)
        .infer_schema(&mut file, Some(0))
        .map_err(|error| unreadable(path, error))?;
    file.seek(SeekFrom::Start(0)).map_err(crate::disk::file::FileError::read(path))?;
    let names: Vec<&str> = header.fields().iter().map(|field| field.name().as_str()).collect();
    let wanted = places(path, &names, named)?;
    let texts: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let reader = ReaderBuilder::new(Arc::new(Schema::new(texts))).with_header(true).with_batch_size(BATCH_ROWS);
    let reader = reader.with_projection(wanted.to_vec()).build(file).map_err(|error| unreadable(path, error))?;
    Ok(Box::new(reader))
}

/// What turns a batch into rows.
struct TypedRows<'a> {
    path: &'a PathBuf,
    /// The rows of the file before the batch.
    before: u64,
    columns: &'a [String; 3],
}

/// A column of dates.
enum Dates {
    Texts(ArrayRef),
    Moments(ArrayRef),
}

impl TypedRows<'_> {
    fn of(&self, batch: &RecordBatch) -> Result<Vec<PriceRow>> {
        let [tickers, dates, closes] = self
            .columns
            .each_ref()
            .map(|name| batch.column_by_name(name).expect("the batch has the columns that were asked for"));
        let tickers = match tickers.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
                self.cast(0, tickers, &DataType::Utf8, "text")?
            }
            _ => return Err(self.type_of(0, tickers, "text")),
        };
        let tickers = tickers.as_string::<i32>();
        let dates = self.dates(dates)?;
        let texts = matches!(closes.data_type(), DataType::Utf8).then(|| closes.as_string::<i32>());
        let numbers = match texts {
            Some(_) => None,
            None if closes.data_type().is_numeric() => Some(self.cast(2, closes, &DataType::Float64, "a number")?),
            None => return Err(self.type_of(2, closes, "a number")),
        };
        let numbers = numbers.as_ref().map(|numbers| numbers.as_primitive::<Float64Type>());
        let row = |row: usize| {
            let day = self.day(&dates, row)?;
            if tickers.is_null(row) || tickers.value(row).is_empty() {
                return Err(self.row(row, "no ticker".to_owned()));
            }
            let close = match (texts, numbers) {
                (Some(texts), _) if texts.is_null(row) || texts.value(row).is_empty() => None,
                (Some(texts), _) => {
                    let text = texts.value(row);
                    let number = text.parse::<f64>();
                    Some(number.map_err(|_| self.row(row, format!("`{}` is not a number", escape(text))))?)
                }
                (None, Some(numbers)) => numbers.is_valid(row).then(|| numbers.value(row)),
                (None, None) => None,
            };
            let Some(close) = close else { return Ok(PriceRow::Nothing) };
            if !close.is_finite() || close <= 0.0 {
                return Err(self.row(row, format!("a close of {close}")));
            }
            Ok(tickers.value(row).parse().map_or(PriceRow::Nothing, |ticker| PriceRow::Close { ticker, day, close }))
        };
        (0..batch.num_rows()).map(row).collect()
    }

    fn dates(&self, dates: &ArrayRef) -> Result<Dates> {
        let wanted = "a date";
        match dates.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
                self.cast(1, dates, &DataType::Utf8, wanted).map(Dates::Texts)
            }
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => {
                let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
                self.cast(1, dates, &moment, wanted).map(Dates::Moments)
            }
            DataType::Timestamp(_, Some(zone)) => {
                let (column, path, zone) = (&self.columns[1], self.path.display(), escape(zone));
                let what = format!(
                    "column `{column}` of `{path}` has instants in the zone `{zone}`, not the days of sessions"
                );
                Err(Error::new(ErrorKind::Data, what)
                    .with_hint("write the day of each session as a date without a zone"))
            }
            _ => Err(self.type_of(1, dates, wanted)),
        }
    }

    fn day(&self, dates: &Dates, row: usize) -> Result<Day> {
        let micros = match dates {
            Dates::Texts(texts) => {
                let texts = texts.as_string::<i32>();
                let text = if texts.is_null(row) { "" } else { texts.value(row) };
                let read = dates::read(text, &mut Leniencies::default());
                let read = read.map_err(|what| self.row(row, format!("date `{}` {what}", escape(text))))?;
                if read.offset_minutes.is_some() {
                    let what = format!("date `{}` has a zone: write the day of the session", escape(text));
                    return Err(self.row(row, what));
                }
                read.micros
            }
            Dates::Moments(moments) => {
                let moments = moments.as_primitive::<TimestampMicrosecondType>();
                if moments.is_null(row) {
                    return Err(self.row(row, "no date".to_owned()));
                }
                moments.value(row)
            }
        };
        Day::try_from(micros.div_euclid(MICROS_PER_DAY)).map_err(|_| self.row(row, "a date out of range".to_owned()))
    }

    fn cast(&self, index: usize, column: &ArrayRef, to: &DataType, wanted: &'static str) -> Result<ArrayRef> {
        cast(column, to).map_err(|_| self.type_of(index, column, wanted))
    }

    fn type_of(&self, index: usize, column: &ArrayRef, wanted: &'static str) -> Error {
        let (path, column, found) = (self.path.display(), &self.columns[index], column.data_type());
        Error::new(ErrorKind::Data, format!("column `{column}` of `{path}` is {found}, not {wanted}"))
    }

    /// A row that cannot be used.
    fn row(&self, row: usize, what: String) -> Error {
        let row = group_digits(self.before + row as u64 + 1);
        Error::new(ErrorKind::Data, format!("row {row} of `{}`: {what}", self.path.display()))
    }
}
