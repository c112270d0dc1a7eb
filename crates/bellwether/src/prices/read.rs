//! Prices from files or from rows in memory: which files, and all their rows in one grid.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::{Day, MOST, PriceColumns, PriceFile, PriceRows, Prices, date, too_many};
use crate::disk::file::{self, FileError};
use crate::disk::{digest, table_file};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::Ticker;
use crate::process::cancel::{self, CancellationToken};
use crate::tables::{Leniencies, dates};
use crate::text::escape::escape;
use crate::text::human::{count_of, group_digits};
use crate::time::MICROS_PER_DAY;

/// The name of rows in memory.
const IN_MEMORY: &str = "prices";

/// The files that some names stand for, in order: `*` in the last part of a name stands for any letters.
pub(crate) fn find(names: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in names {
        let pattern = name.file_name().and_then(|last| last.to_str()).filter(|last| last.contains('*'));
        let Some(pattern) = pattern.filter(|_| !name.exists()) else {
            files.push(name.clone());
            continue;
        };
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut found = Vec::new();
        for entry in folder.read_dir().map_err(FileError::read(folder))? {
            let entry = entry.map_err(FileError::read(folder))?;
            if entry.file_name().to_str().is_some_and(|entry| is_like(entry, pattern)) {
                found.push(entry.path());
            }
        }
        if found.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, format!("no file matches `{}`", name.display())));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// Whether a name is like a pattern.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| is_like(&name[at..], rest))
        }),
    }
}

/// Prices that are being read.
#[derive(Default)]
pub(super) struct Reading {
    tickers: HashMap<Ticker, u32>,
    /// A row for each that was read, so that its index tells which it is; one without a close has not a number.
    rows: Vec<Row>,
    /// Each file, and the number of rows up to its end.
    files: Vec<(PriceFile, usize)>,
}

struct Row {
    day: Day,
    ticker: u32,
    close: f64,
}

impl Reading {
    /// Reads a file.
    pub(super) fn add_file(&mut self, path: &Path, columns: &PriceColumns, stop: &CancellationToken) -> Result<()> {
        let digest = digest::of_reader(file::open(path)?, || stop.is_cancelled()).map_err(FileError::read(path))?;
        let (digest, _) = digest.ok_or_else(Error::interruption)?;
        let reader = table_file::open(path).map_err(|error| match error.kind() {
            ErrorKind::Usage => error.with_hint("prices are read from `.parquet` and `.csv`"),
            _ => error,
        })?;
        let (name, schema) = (path.display().to_string(), reader.schema());
        self.add(&name, &schema, reader, columns, stop)?;
        self.files.push((PriceFile { path: name, blake3: digest::hex(&digest) }, self.rows.len()));
        Ok(())
    }

    /// Takes rows in memory. Their digest is that of the closes.
    pub(super) fn add_rows(
        &mut self,
        rows: &PriceRows,
        columns: &PriceColumns,
        stop: &CancellationToken,
    ) -> Result<()> {
        let begin = self.rows.len();
        self.add(IN_MEMORY, &rows.schema, rows.batches.iter().cloned().map(Ok), columns, stop)?;
        let names = self.names();
        let mut content = Vec::new();
        for row in self.rows[begin..].iter().filter(|row| !row.close.is_nan()) {
            content.extend_from_slice(names[row.ticker as usize].as_str().as_bytes());
            content.push(0);
            content.extend_from_slice(&row.day.to_le_bytes());
            content.extend_from_slice(&row.close.to_le_bytes());
        }
        let file = PriceFile { path: IN_MEMORY.to_owned(), blake3: digest::of(&content) };
        self.files.push((file, self.rows.len()));
        Ok(())
    }

    fn add(
        &mut self,
        path: &str,
        schema: &Schema,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        columns: &PriceColumns,
        stop: &CancellationToken,
    ) -> Result<()> {
        for column in [&columns.ticker, &columns.date, &columns.close] {
            if schema.index_of(column).is_err() {
                let names = schema.fields().iter().take(20).map(|field| format!("`{}`", escape(field.name())));
                let names = names.collect::<Vec<_>>().join(", ");
                let names = if names.is_empty() { "none" } else { &names };
                let what = format!("`{path}` has no column `{column}`: it has {names}");
                return Err(Error::new(ErrorKind::Data, what)
                    .with_hint("name it in the definition: `columns = { close = \"adj_close\" }` in `[prices]`"));
            }
        }
        let begin = self.rows.len();
        for batch in batches {
            cancel::check(stop)?;
            let batch = batch.map_err(|error| table_file::unreadable(Path::new(path), error))?;
            let tickers = column(path, &batch, &columns.ticker, "text")?;
            let dates = column(path, &batch, &columns.date, "a date")?;
            let closes = column(path, &batch, &columns.close, "a number")?;
            let tickers = tickers.as_string::<i32>();
            for row in 0..batch.num_rows() {
                let number = self.rows.len() - begin + 1;
                let problem = |what: String| {
                    let row = group_digits(number as u64);
                    Error::new(ErrorKind::Data, format!("row {row} of `{path}`: {what}"))
                };
                let day = day(&dates, row).map_err(problem)?;
                if tickers.is_null(row) || tickers.value(row).is_empty() {
                    return Err(problem("no ticker".to_owned()));
                }
                let close = close(&closes, row).map_err(problem)?;
                if let Some(close) = close.filter(|close| !close.is_finite() || *close <= 0.0) {
                    return Err(problem(format!("a close of {close}"))
                        .with_hint("a close is a number above zero, not its logarithm or its change"));
                }
                // A name that no service can have has no close either.
                let (ticker, close) = match (tickers.value(row).parse::<Ticker>(), close) {
                    (Ok(ticker), Some(close)) => {
                        let next = self.tickers.len() as u32;
                        (*self.tickers.entry(ticker).or_insert(next), close)
                    }
                    _ => (0, f64::NAN),
                };
                self.rows.push(Row { day, ticker, close });
            }
        }
        Ok(())
    }

    /// The tickers by number.
    fn names(&self) -> Vec<&Ticker> {
        let mut names: Vec<(&Ticker, u32)> = self.tickers.iter().map(|(ticker, number)| (ticker, *number)).collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        names.into_iter().map(|(ticker, _)| ticker).collect()
    }

    /// The prices of all files.
    pub(super) fn finish(self) -> Result<Prices> {
        let priced = || self.rows.iter().enumerate().filter(|(_, row)| !row.close.is_nan());
        let mut sessions: Vec<Day> = priced().map(|(_, row)| row.day).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let (Some(first), Some(last)) = (sessions.first().copied(), sessions.last().copied()) else {
            let files = count_of(self.files.len() as u64, "file", "files");
            return Err(Error::new(ErrorKind::Data, format!("no prices in {files}")));
        };
        let mut counts = [("tickers", self.tickers.len()), ("days", (last - first) as usize)].into_iter();
        if let Some((what, found)) = counts.find(|(_, found)| *found >= MOST) {
            return Err(too_many(what, found));
        }
        let mut session_of_day = vec![0; (last - first) as usize + 1];
        sessions.iter().enumerate().for_each(|(index, day)| session_of_day[(day - first) as usize] = index);
        // Tickers are in the order of their names, so that sums over them have the same last digits whatever the order of the
        // rows.
        let sorted: BTreeMap<&Ticker, u32> = self.tickers.iter().map(|(ticker, number)| (ticker, *number)).collect();
        let mut index_of_ticker = vec![0; sorted.len()];
        sorted.values().enumerate().for_each(|(index, number)| index_of_ticker[*number as usize] = index);
        let mut closes = vec![f64::NAN; sessions.len() * sorted.len()];
        for (number, row) in priced() {
            let index =
                index_of_ticker[row.ticker as usize] * sessions.len() + session_of_day[(row.day - first) as usize];
            if !closes[index].is_nan() {
                return Err(self.duplicate(number));
            }
            closes[index] = row.close;
        }
        let tickers = sorted.into_keys().cloned().zip(0..).collect();
        Ok(Prices::new(sessions, tickers, closes, self.files.into_iter().map(|(file, _)| file).collect()))
    }

    /// What is wrong with a row that has the ticker and day of one before.
    fn duplicate(&self, number: usize) -> Error {
        let row = &self.rows[number];
        let is_same = |other: &Row| (other.day, other.ticker) == (row.day, row.ticker) && !other.close.is_nan();
        let first = self.rows.iter().position(is_same).unwrap_or(number);
        let [second, first] = [number, first].map(|number| {
            let file = self.files.partition_point(|(_, end)| *end <= number);
            let begin = file.checked_sub(1).map_or(0, |before| self.files[before].1);
            format!("row {} of `{}`", group_digits((number - begin) as u64 + 1), self.files[file].0.path)
        });
        let (ticker, day) = (self.names()[row.ticker as usize], date(row.day));
        Error::new(ErrorKind::Data, format!("{second} is a second close of {ticker} on {day}, after {first}"))
    }
}

/// A column of some rows: of texts, or as an instant or a number if it is none of texts.
fn column(path: &str, batch: &RecordBatch, name: &str, expected: &str) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Dictionary, Float64, LargeUtf8, Timestamp, Utf8, Utf8View};
    let column = batch.column_by_name(name).expect("the schema has the column");
    let to = match (column.data_type(), expected) {
        (Utf8 | LargeUtf8 | Utf8View | Dictionary(..), _) => Some(Utf8),
        (Timestamp(_, Some(zone)), "a date") => {
            let zone = escape(zone);
            let what =
                format!("column `{name}` of `{path}` has instants in the zone `{zone}`, not the days of sessions");
            return Err(
                Error::new(ErrorKind::Data, what).with_hint("write the day of each session as a date without a zone")
            );
        }
        (Date32 | Date64 | Timestamp(_, None), "a date") => Some(Timestamp(TimeUnit::Microsecond, None)),
        (other, "a number") if other.is_numeric() => Some(Float64),
        _ => None,
    };
    to.and_then(|to| cast(column, &to).ok()).ok_or_else(|| {
        let what = format!("column `{name}` of `{path}` is {}, not {expected}", column.data_type());
        Error::new(ErrorKind::Data, what)
    })
}

/// The day of a row, or what is wrong with it.
fn day(dates: &ArrayRef, row: usize) -> Result<Day, String> {
    let micros = if let Some(texts) = dates.as_string_opt::<i32>() {
        let text = if texts.is_null(row) { "" } else { texts.value(row) };
        let date =
            dates::read(text, &mut Leniencies::default()).map_err(|what| format!("date `{}` {what}", escape(text)))?;
        if date.offset_minutes.is_some() {
            return Err(format!("date `{}` has a zone: write the day of the session", escape(text)));
        }
        date.micros
    } else {
        let instants = dates.as_primitive::<TimestampMicrosecondType>();
        if instants.is_null(row) {
            return Err("no date".to_owned());
        }
        instants.value(row)
    };
    Day::try_from(micros.div_euclid(MICROS_PER_DAY)).map_err(|_| "a date out of range".to_owned())
}

/// The close of a row, none if it is missing, or what is wrong with it.
fn close(closes: &ArrayRef, row: usize) -> Result<Option<f64>, String> {
    let Some(texts) = closes.as_string_opt::<i32>() else {
        return Ok(closes.is_valid(row).then(|| closes.as_primitive::<Float64Type>().value(row)));
    };
    if texts.is_null(row) || texts.value(row).is_empty() {
        return Ok(None);
    }
    texts.value(row).parse().map(Some).map_err(|_| format!("`{}` is not a number", escape(texts.value(row))))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (name, pattern, expected) in [
            ("a.csv", "*.csv", true),
            ("a.csv", "*", true),
            ("2026-é.parquet", "20*-*.parquet", true),
            ("a.csv.gz", "*.csv", false),
            ("ab", "a*b*c", false),
            ("abc", "a*b*c", true),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
    }
}
