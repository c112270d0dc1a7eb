//! The rows of a run's files: the columns common to all of them, the keys of series, and how a file is written.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{ArrowNativeType, Float64Type, Int8Type, Int32Type, SchemaRef};
use arrow::error::ArrowError;
use parquet::basic::{Compression, ZstdLevel};

use crate::columns::{Boundaries, ParquetOptions, ParquetWriter, RowBuffer, Rows};
use crate::disk::file::{self, DigestWriter, FileError, FileRecord};
use crate::error::{Error, Reason, Result};
use crate::interface::{Endpoint, Period, Regime, Signal, Ticker};
use crate::tables::{Change, SeriesKey, Table};

/// The ticker of a row, the first column of every file.
pub(in crate::archive) fn ticker(batch: &RecordBatch, row: usize) -> &str {
    let dictionary = batch.column(0).as_dictionary::<Int32Type>();
    let code = dictionary.keys().value(row) as usize;
    dictionary.values().as_string::<i32>().value(code)
}

/// Binary search for the first row at which `holds` becomes true.
pub(in crate::archive) fn first_where(rows: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = rows;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// When each row was observed.
pub(in crate::archive) fn observation_times(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("observed_at").expect("every table has the column").as_primitive()
}

/// The kind of change of each row.
pub(in crate::archive) fn changes(rows: &RecordBatch) -> Vec<Change> {
    let column = rows.column_by_name("change").expect("every table has the column");
    let column = column.as_dictionary::<Int8Type>();
    let meaning = |text: Option<&str>| Change::ALL.into_iter().find(|change| Some(change.as_str()) == text);
    let meanings = column.values().as_string::<i32>().iter().map(|text| meaning(text).unwrap_or(Change::Added));
    let meanings: Vec<Change> = meanings.collect();
    column.keys().values().iter().map(|key| meanings[key.as_usize()]).collect()
}

/// Whether every row adds its cell.
pub(in crate::archive) fn are_added(rows: &RecordBatch) -> bool {
    let column = rows.column_by_name("change").expect("every table has the column").as_dictionary::<Int8Type>();
    let is_added = |text: Option<&str>| text == Some(Change::Added.as_str());
    let are_added: Vec<bool> = column.values().as_string::<i32>().iter().map(is_added).collect();
    column.null_count() == 0 && column.keys().values().iter().all(|key| are_added[key.as_usize()])
}

/// Validates rows: closed sets have known spellings, numbers are finite, tickers are valid and sorted.
pub(in crate::archive) fn check(rows: &RecordBatch) -> Result<(), Reason> {
    fn is<T: FromStr>(text: &str) -> bool {
        text.parse::<T>().is_ok()
    }
    let is_change = |text: &str| Change::ALL.iter().any(|change| change.as_str() == text);
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let is_known: &dyn Fn(&str) -> bool = match field.name().as_str() {
            "period" => &is::<Period>,
            "regime" => &is::<Regime>,
            "source" => &is::<Endpoint>,
            "signal" => &is::<Signal>,
            "change" => &is_change,
            _ => continue,
        };
        let column = column.as_dictionary::<Int8Type>();
        let spellings = column.values().as_string::<i32>();
        // A reader may have added spellings that no row uses.
        let unknown: Vec<usize> = (0..spellings.len()).filter(|&code| !is_known(spellings.value(code))).collect();
        let mut keys = column.keys().iter().flatten().map(ArrowNativeType::as_usize);
        if !unknown.is_empty()
            && let Some(key) = keys.find(|key| unknown.contains(key))
        {
            return Err(format!("`{}` is not a {}", spellings.value(key), field.name()).into());
        }
    }
    check_numbers(rows)?;
    check_tickers(rows)
}

/// Checks that tickers are valid and sorted.
fn check_tickers(rows: &RecordBatch) -> Result<(), Reason> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>();
    let mut last = "";
    for alike in tickers.keys().values().chunk_by(|one, next| one == next) {
        let name = names.value(alike[0].as_usize());
        if name < last {
            return Err("its rows are not sorted by ticker".into());
        }
        if name != last && name.parse::<Ticker>().is_err() {
            return Err(format!("`{name}` is not a ticker").into());
        }
        last = name;
    }
    Ok(())
}

/// Checks that every number is finite, as all JSON numbers are.
fn check_numbers(rows: &RecordBatch) -> Result<(), Reason> {
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let Some(numbers) = column.as_primitive_opt::<Float64Type>() else { continue };
        if numbers.values().iter().all(|number| number.is_finite()) {
            continue;
        }
        let is_flaw = |row: &usize| numbers.is_valid(*row) && !numbers.value(*row).is_finite();
        if let Some(row) = (0..numbers.len()).find(is_flaw) {
            let (name, number, ticker) = (field.name(), numbers.value(row), ticker(rows, row));
            return Err(format!("`{name}` of `{ticker}` is {number}: not a finite number").into());
        }
    }
    Ok(())
}

/// Contiguous rows of each series of a table.
pub(in crate::archive) fn ranges(table: Table, rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    ranges_of(rows, &boundaries(rows)?, |_| Ok(Some(table)))
}

/// Contiguous rows of each series, in a file with series of all tables, whose operations tell which.
pub(in crate::archive) fn ranges_of_any(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let table = |row| Ok(Table::of(sources.get(row)?.ok_or("a row has no operation")?));
    ranges_of(rows, &boundaries_in(rows, &["ticker", "period", "regime", "source"])?, table)
}

fn ranges_of(
    rows: &RecordBatch,
    boundaries: &Boundaries,
    table: impl Fn(usize) -> Result<Option<Table>, Reason>,
) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = ParsedDictionary::<Period>::of(rows, "period");
    let regimes = ParsedDictionary::<Regime>::of(rows, "regime");
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for (start, end) in boundaries.runs() {
        let (period, regime, table) = (periods.get(start)?, regimes.get(start)?, table(start)?);
        let symbol = ticker(rows, start);
        let last = ranges.last_mut().filter(|(last, _)| last.ticker.as_str() == symbol);
        let ticker = match last {
            // One name may have two dictionary codes.
            Some((last, range)) if (last.period, last.regime, last.table) == (period, regime, table) => {
                range.end = end;
                continue;
            }
            Some((last, _)) => last.ticker.clone(),
            None => symbol.parse().map_err(|_| format!("`{symbol}` is not a ticker"))?,
        };
        ranges.push((SeriesKey { ticker, period, regime, table }, start..end));
    }
    Ok(ranges)
}

/// Boundaries between series of a table.
pub(in crate::archive) fn boundaries(rows: &RecordBatch) -> Result<Boundaries, Reason> {
    boundaries_in(rows, &["ticker", "period", "regime"])
}

fn boundaries_in(rows: &RecordBatch, columns: &[&str]) -> Result<Boundaries, Reason> {
    let named = columns.iter().filter_map(|name| rows.column_by_name(name));
    let boundaries = named.map(|column| Boundaries::new(column)).reduce(|one, other| &one | &other);
    boundaries.ok_or_else(|| "a row has no series".into())
}

/// Ranks of the series of some rows of a table: by ticker, period and regime. Missing and unknown values rank first.
pub(in crate::archive) fn ranks(rows: &RecordBatch, of: &[usize]) -> Vec<u64> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>();
    let code = |row: usize| tickers.keys().value(row) as usize;
    // The dictionary may have many more names than these rows use, and duplicates.
    let (mut codes, mut ticker_ranks) = (Vec::new(), vec![None; names.len()]);
    for &row in of {
        if ticker_ranks[code(row)].replace(0).is_none() {
            codes.push(code(row));
        }
    }
    codes.sort_unstable_by_key(|&code| names.value(code));
    for (rank, alike) in (0_u64..).zip(codes.chunk_by(|&one, &other| names.value(one) == names.value(other))) {
        alike.iter().for_each(|&code| ticker_ranks[code] = Some(rank));
    }
    let periods = ParsedDictionary::<Period>::of(rows, "period");
    let regimes = ParsedDictionary::<Regime>::of(rows, "regime");
    let rank = |row: usize| {
        let period = periods.get(row).ok().flatten().map_or(0, |period| period.index() as u64);
        let regime = regimes.get(row).ok().flatten().map_or(0, |regime| regime as u64);
        (ticker_ranks[code(row)].unwrap_or_default() << 16) | (period << 8) | regime
    };
    of.iter().map(|&row| rank(row)).collect()
}

/// A dictionary column, parsed. A column that does not exist is null in every row.
pub(in crate::archive) struct ParsedDictionary<'a, T> {
    column: Option<&'a DictionaryArray<Int8Type>>,
    /// The parsed entries. Unused ones may be invalid: a reader may have added some.
    meanings: Vec<Option<T>>,
    name: &'a str,
}

impl<'a, T: FromStr + Copy> ParsedDictionary<'a, T> {
    pub(in crate::archive) fn of(rows: &'a RecordBatch, name: &'a str) -> Self {
        let column = rows.column_by_name(name).map(|column| column.as_dictionary::<Int8Type>());
        let spellings = column.iter().flat_map(|column| column.values().as_string::<i32>().iter());
        Self { column, meanings: spellings.map(|text| text?.parse().ok()).collect(), name }
    }

    pub(in crate::archive) fn get(&self, row: usize) -> Result<Option<T>, Reason> {
        let Some(column) = self.column.filter(|column| column.keys().is_valid(row)) else { return Ok(None) };
        let code = column.keys().value(row) as usize;
        let unknown = || format!("`{}` is not a {}", column.values().as_string::<i32>().value(code), self.name);
        self.meanings[code].map(Some).ok_or_else(|| unknown().into())
    }
}

/// Rows per row group: few enough to skip tickers that are not wanted, enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// The most bytes of a row group, unless one row has more: rows of articles are long and held in memory.
const ROW_GROUP_BYTES: usize = 6 << 20;

// What is written is read.
const _: () = assert!(ROW_GROUP_ROWS as i64 <= MAX_GROUP_ROWS && (ROW_GROUP_BYTES as i64) < MAX_GROUP_BYTES);

/// Columns up to this size are not compressed. Runs with few changes have only such columns, and many of them are read
/// at once.
const UNCOMPRESSED_BYTES: usize = 1 << 12;

/// A Parquet file being written.
pub(in crate::archive) struct Rowfile {
    path: PathBuf,
    writer: ParquetWriter<DigestWriter<File>>,
    buffer: RowBuffer,
    rows: u64,
}

impl Rowfile {
    /// Creates a file whose rows are sorted by its first `ordered_by` columns.
    pub(in crate::archive) fn create(path: &Path, schema: SchemaRef, ordered_by: usize) -> Result<Self> {
        let options = ParquetOptions {
            compression: Compression::ZSTD(ZstdLevel::default()),
            uncompressed_below: UNCOMPRESSED_BYTES,
            sorted_by: (0..ordered_by).collect(),
            metadata: Vec::new(),
        };
        let writer = ParquetWriter::create(DigestWriter::new(file::create(path)?), SchemaRef::clone(&schema), options)
            .map_err(|error| FileError::encode(path, error))?;
        Ok(Self { path: path.to_owned(), writer, buffer: RowBuffer::bounded(ROW_GROUP_ROWS, ROW_GROUP_BYTES), rows: 0 })
    }

    /// The same with smaller row groups, for a file that is written beside others and read as a whole.
    pub(in crate::archive) fn in_groups_of(self, rows: usize) -> Self {
        Self { buffer: RowBuffer::bounded(rows, ROW_GROUP_BYTES), ..self }
    }

    pub(in crate::archive) fn write(&mut self, batch: Result<RecordBatch, ArrowError>) -> Result<()> {
        let batch = batch.map_err(|error| FileError::encode(&self.path, error))?;
        self.add(&batch.into())
    }

    /// Writes rows.
    pub(in crate::archive) fn add(&mut self, rows: &Rows) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        let groups = self.buffer.push(rows);
        groups.iter().try_for_each(|group| self.writer.write(group)).map_err(|error| self.failure(error))
    }

    /// Completes the file. It becomes durable when it is sealed.
    pub(in crate::archive) fn finish(mut self) -> Result<FileRecord> {
        let rest = self.buffer.take();
        rest.map_or(Ok(()), |rows| self.writer.write(&rows)).map_err(|error| self.failure(error))?;
        self.writer.finish().map_err(|error| self.failure(error))?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(self.writer.out().record(&name, self.rows))
    }

    fn failure(&self, error: impl Into<Reason>) -> Error {
        FileError::encode(&self.path, error)
    }
}

/// The most rows of a row group; files written here have an eighth of that.
pub(super) const MAX_GROUP_ROWS: i64 = 1 << 20;

/// The most bytes of a decompressed row group.
pub(super) const MAX_GROUP_BYTES: i64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, RecordBatch, StringArray};
    use arrow::compute::concat_batches;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{ROW_GROUP_BYTES, Rowfile};
    use crate::disk::file;

    #[test]
    fn long_rows_make_smaller_row_groups_whatever_batches_they_arrive_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.parquet");
        let texts = Arc::new(StringArray::from_iter_values((0..100).map(|row| format!("{row:09999}"))));
        let batch = RecordBatch::try_from_iter([("text", texts as Arc<dyn Array>)]).unwrap();
        let mut out = Rowfile::create(&path, batch.schema(), 1).unwrap();
        (0..20).for_each(|_| out.write(Ok(batch.clone())).unwrap());
        // All at once, as a merge of many runs hands them out.
        let schema = batch.schema();
        let all = concat_batches(&schema, &vec![batch; 20]).unwrap();
        out.write(Ok(all)).unwrap();
        // A row that is larger than a row group has one of its own.
        let texts =
            Arc::new(StringArray::from(vec!["short".to_owned(), "x".repeat(2 * ROW_GROUP_BYTES), "short".to_owned()]));
        out.write(RecordBatch::try_from_iter([("text", texts as Arc<dyn Array>)])).unwrap();
        assert_eq!(out.finish().unwrap().rows, 4_003);
        let read = ParquetRecordBatchReaderBuilder::try_new(file::open(&path).unwrap()).unwrap();
        let groups: Vec<i64> = read.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups.iter().sum::<i64>(), 4_003);
        assert!(groups.iter().all(|rows| rows * 10_003 <= ROW_GROUP_BYTES as i64), "{groups:?}");
        assert!(groups.len() <= 10, "{groups:?}");
        assert!(groups.contains(&1), "{groups:?}");
    }
}
