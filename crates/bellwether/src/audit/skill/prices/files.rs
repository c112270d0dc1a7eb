//! Prices from files or from rows in memory: which files, and all their rows in one grid.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::table::{self, PriceRow};
use super::{Day, MOST, PriceColumns, PriceFile, PriceRows, Prices, Row, date, path_text, too_many};
use crate::disk::digest;
use crate::disk::file::{self, FileError};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::Ticker;
use crate::process::cancel::{self, CancellationToken};
use crate::text::human::{count_of, group_digits};

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
            return Err(Error::new(ErrorKind::NotFound, format!("no file matches `{}`", path_text(name))));
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

/// The name of rows in memory.
const IN_MEMORY: &str = "prices";

/// Files that are being read.
#[derive(Default)]
pub(super) struct Reading {
    tickers: HashMap<Ticker, u32>,
    names: Vec<Ticker>,
    rows: Vec<Row>,
    files: Vec<ReadFile>,
}

/// A file that was read.
struct ReadFile {
    path: PathBuf,
    digest: String,
    /// The rows of all files up to this one, and the number of each in its own file.
    end: usize,
    numbers: RowNumbers,
}

/// The numbers of the rows that were kept: all of them, or some.
#[derive(Default)]
struct RowNumbers {
    /// After how many kept rows one or more were passed over, and how many in all by then.
    skips: Vec<(u32, u32)>,
}

impl RowNumbers {
    fn skip(&mut self, kept: usize) {
        let skipped = self.skips.last().map_or(0, |(_, skipped)| *skipped) + 1;
        match self.skips.last_mut() {
            Some(last) if last.0 == kept as u32 => last.1 = skipped,
            _ => self.skips.push((kept as u32, skipped)),
        }
    }

    /// The number of a kept row, from 1.
    fn of(&self, kept: usize) -> u64 {
        let before = self.skips.partition_point(|(after, _)| *after as usize <= kept);
        let skipped = before.checked_sub(1).map_or(0, |last| self.skips[last].1);
        kept as u64 + u64::from(skipped) + 1
    }
}

impl Reading {
    /// Reads a file.
    pub(super) fn add_file(&mut self, path: &Path, columns: &PriceColumns, stop: &CancellationToken) -> Result<()> {
        let mut file = file::open(path)?;
        let digest = digest::of_reader(&file, || stop.is_cancelled()).map_err(FileError::read(path))?;
        let (digest, _) = digest.ok_or_else(Error::interruption)?;
        file.seek(SeekFrom::Start(0)).map_err(FileError::read(path))?;
        let numbers = self.add(table::rows_of_file(path, file, columns)?, stop)?;
        let digest = digest::hex(&digest);
        self.files.push(ReadFile { path: path.to_owned(), digest, end: self.rows.len(), numbers });
        Ok(())
    }

    /// Takes rows in memory.
    pub(super) fn add_rows(
        &mut self,
        rows: &PriceRows,
        columns: &PriceColumns,
        stop: &CancellationToken,
    ) -> Result<()> {
        let path = PathBuf::from(IN_MEMORY);
        let begin = self.rows.len();
        let numbers = self.add(table::rows_in_memory(&path, rows, columns)?, stop)?;
        let mut content = Vec::new();
        for row in &self.rows[begin..] {
            content.extend_from_slice(self.names[row.ticker as usize].as_str().as_bytes());
            content.push(0);
            content.extend_from_slice(&row.day.to_le_bytes());
            content.extend_from_slice(&row.close.to_le_bytes());
        }
        let digest = digest::of(&content);
        self.files.push(ReadFile { path, digest, end: self.rows.len(), numbers });
        Ok(())
    }

    /// Adds rows, and returns the numbers of those that are kept.
    fn add(
        &mut self,
        pieces: impl Iterator<Item = Result<Vec<PriceRow>>>,
        stop: &CancellationToken,
    ) -> Result<RowNumbers> {
        let begin = self.rows.len();
        let mut numbers = RowNumbers::default();
        for rows in pieces {
            cancel::check(stop)?;
            for row in rows? {
                match row {
                    PriceRow::Close { ticker, day, close } => {
                        let next = self.names.len() as u32;
                        let number = *self.tickers.entry(ticker.clone()).or_insert(next);
                        if number == next {
                            self.names.push(ticker);
                        }
                        self.rows.push(Row { day, ticker: number, close });
                    }
                    PriceRow::Nothing => numbers.skip(self.rows.len() - begin),
                }
            }
        }
        Ok(numbers)
    }

    /// The prices of all files.
    pub(super) fn finish(self) -> Result<Prices> {
        let mut sessions: Vec<Day> = self.rows.iter().map(|row| row.day).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let (Some(first), Some(last)) = (sessions.first(), sessions.last()) else {
            let files = count_of(self.files.len() as u64, "file", "files");
            return Err(Error::new(ErrorKind::Data, format!("no prices in {files}")));
        };
        let mut counts = [("tickers", self.names.len()), ("days", (last - first) as usize)].into_iter();
        if let Some((what, found)) = counts.find(|(_, found)| *found >= MOST) {
            return Err(too_many(what, found));
        }
        let mut place_of_day = vec![0_u32; (last - first) as usize + 1];
        sessions.iter().enumerate().for_each(|(index, day)| place_of_day[(day - first) as usize] = index as u32);
        let place_of_ticker = self.places_by_name();
        let mut closes = vec![f64::NAN; sessions.len() * self.names.len()];
        let index_of = |row: &Row| {
            let session = place_of_day[(row.day - first) as usize] as usize;
            place_of_ticker[row.ticker as usize] * sessions.len() + session
        };
        for (number, row) in self.rows.iter().enumerate() {
            let close = &mut closes[index_of(row)];
            if !close.is_nan() {
                return Err(self.duplicate(number, row));
            }
            *close = row.close;
        }
        let file = |file: &ReadFile| PriceFile { path: path_text(&file.path), blake3: file.digest.clone() };
        let files = self.files.iter().map(file).collect();
        let places = place_of_ticker.into_iter().map(|index| index as u16);
        let tickers = self.names.into_iter().zip(places).collect();
        Ok(Prices::of(sessions, tickers, closes, files))
    }

    /// The index of each ticker in the order of their names, so that sums over tickers have the same last digits whatever the
    /// order of the rows.
    fn places_by_name(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_unstable_by_key(|number| &self.names[*number]);
        let mut indices = vec![0; order.len()];
        order.into_iter().enumerate().for_each(|(index, number)| indices[number] = index);
        indices
    }

    fn duplicate(&self, number: usize, row: &Row) -> Error {
        let is_same = |other: &Row| (other.day, other.ticker) == (row.day, row.ticker);
        let first = self.rows.iter().position(is_same).unwrap_or(number);
        let [(path, row_number), (first_path, first_row)] = [number, first].map(|number| self.place(number));
        let what = format!(
            "row {} of `{}` is a second close of {} on {}, after row {} of `{}`",
            group_digits(row_number),
            path.display(),
            self.names[row.ticker as usize],
            date(row.day),
            group_digits(first_row),
            first_path.display()
        );
        Error::new(ErrorKind::Data, what)
    }

    /// The file of a row, and its number there.
    fn place(&self, number: usize) -> (PathBuf, u64) {
        let file = self.files.partition_point(|file| file.end <= number);
        let begin = file.checked_sub(1).map_or(0, |before| self.files[before].end);
        (self.files[file].path.clone(), self.files[file].numbers.of(number - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::{RowNumbers, is_like};

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

    #[test]
    fn a_kept_row_has_its_number_in_the_file() {
        let mut numbers = RowNumbers::default();
        // Rows 1, 3 and 4 are passed over; 2, 5 and 6 are kept.
        [0, 1, 1].into_iter().for_each(|kept| numbers.skip(kept));
        assert_eq!([0, 1, 2].map(|kept| numbers.of(kept)), [2, 5, 6]);
    }
}
