//! Small CSV files that a definition names: the first line names the columns, and each other line is an item.
//!
//! They are read whole, up to a size, and an error has the number of its line. Fields may be quoted, but have no commas.

use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;

use chrono::NaiveDate;

use crate::disk::file;

/// Why a file cannot be used, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CsvError(String);

impl CsvError {
    /// A line that is no item; lines count from 1.
    pub(crate) fn line(line: usize, what: impl Display) -> Self {
        Self(format!("line {line}: {what}"))
    }

    /// No line after the first.
    pub(crate) fn empty(items: &str) -> Self {
        Self(format!("it lists no {items}"))
    }
}

impl From<io::Error> for CsvError {
    fn from(error: io::Error) -> Self {
        Self(format!("cannot read it: {error}"))
    }
}

/// The items of a file, each with the number of its line and its fields.
pub(crate) struct Items<'a, const N: usize> {
    /// The names of all columns.
    names: Vec<&'a str>,
    pub(crate) items: Vec<(usize, [&'a str; N])>,
}

/// The text of a file of at most so many bytes.
pub(crate) fn read(path: &Path, most: u64) -> Result<String, CsvError> {
    let mut bytes = Vec::new();
    file::open_regular(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(CsvError(format!("it has more than {} MB", most >> 20)));
    }
    Ok(io::read_to_string(&bytes[..])?)
}

impl<'a, const N: usize> Items<'a, N> {
    /// The items of a text with these columns, in any order; others are passed over.
    pub(crate) fn of(text: &'a str, columns: &'static [&'static str; N]) -> Result<Self, CsvError> {
        let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
        let names: Vec<&str> = lines.next().map(|(line, _)| fields(line).collect()).unwrap_or_default();
        let mut indices = [0; N];
        for (index, column) in indices.iter_mut().zip(columns) {
            let found = names.iter().position(|other| other == column);
            let missing = || format!("it has no column `{column}`: the first line names {}", in_words(columns));
            *index = found.ok_or_else(|| CsvError(missing()))?;
        }
        let mut items = Vec::new();
        for (text, line) in lines.filter(|(text, _)| !text.trim().is_empty()) {
            let fields: Vec<&str> = fields(text).collect();
            if fields.len() > names.len() {
                let what = format!("it has {} fields, and the first line has {}", fields.len(), names.len());
                return Err(CsvError::line(line, what));
            }
            items.push((line, indices.map(|index| fields.get(index).copied().unwrap_or_default())));
        }
        Ok(Self { names, items })
    }

    /// Refuses other columns.
    pub(crate) fn only(self, columns: &'static [&'static str; N]) -> Result<Self, CsvError> {
        match self.names.iter().find(|name| !columns.contains(name)) {
            Some(column) => Err(CsvError(format!("it has a column `{column}`: the columns are {}", in_words(columns)))),
            None => Ok(self),
        }
    }
}

/// The fields of a line, without quotes.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| field.trim().trim_matches('"'))
}

/// A date. A time of midnight may follow, as pandas writes it.
pub(crate) fn date(text: &str) -> Result<NaiveDate, String> {
    let day = text.get(.."2026-11-20".len()).unwrap_or(text);
    let rest = text.strip_prefix(day).unwrap_or_default();
    let is_whole = rest.is_empty() || rest.get(1..).is_some_and(|time| time.starts_with("00:00:00"));
    let parsed = day.parse::<NaiveDate>().ok().filter(|_| is_whole);
    parsed.ok_or_else(|| format!("`{text}` is not a date: write `2026-11-20`"))
}

/// Names in words: `a`, `b` and `c`.
fn in_words(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
