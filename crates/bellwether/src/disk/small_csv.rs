//! Small CSV files that a definition names: the first line names the columns, and each other line is an item.
//!
//! They are read whole, up to a size, and an error, which is a sentence, has the number of its line. Fields may be quoted, but
//! have no commas.

use std::io::{self, Read};
use std::path::Path;

use chrono::NaiveDate;

use crate::disk::file;

/// An item: the number of its line, from 1, and its fields.
pub(crate) type Item<'a, const N: usize> = (usize, [&'a str; N]);

/// The text of a file of at most 16 MB: hundreds of thousands of lines.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    const MAX_BYTES: u64 = 16 << 20;
    let mut bytes = Vec::new();
    let read = file::open_regular(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    if read.as_ref().is_ok_and(|bytes| *bytes as u64 > MAX_BYTES) {
        return Err(format!("it has more than {} MB", MAX_BYTES >> 20));
    }
    read.and_then(|_| io::read_to_string(&bytes[..])).map_err(|error| format!("cannot read it: {error}"))
}

/// The items of a text with these columns, in any order; others are passed over.
pub(crate) fn items<'a, const N: usize>(
    text: &'a str,
    name: &str,
    columns: [&str; N],
) -> Result<Vec<Item<'a, N>>, String> {
    let names = header(text);
    let mut indices = [0; N];
    for (index, column) in indices.iter_mut().zip(columns) {
        let missing = || format!("it has no column `{column}`: the first line names {}", in_words(&columns));
        *index = names.iter().position(|other| *other == column).ok_or_else(missing)?;
    }
    let mut items = Vec::new();
    for (text, line) in text.lines().zip(1..).skip(1).filter(|(text, _)| !text.trim().is_empty()) {
        let fields: Vec<&str> = fields(text).collect();
        if fields.len() > names.len() {
            let what = format!("it has {} fields, and the first line has {}", fields.len(), names.len());
            return Err(at(line)(what));
        }
        items.push((line, indices.map(|index| fields.get(index).copied().unwrap_or_default())));
    }
    if items.is_empty() { Err(format!("it lists no {name}")) } else { Ok(items) }
}

/// Refuses other columns than these.
pub(crate) fn refuse_others(text: &str, columns: &[&str]) -> Result<(), String> {
    match header(text).iter().find(|name| !columns.contains(name)) {
        Some(column) => Err(format!("it has a column `{column}`: the columns are {}", in_words(columns))),
        None => Ok(()),
    }
}

/// What is wrong with a line.
pub(crate) fn at(line: usize) -> impl Fn(String) -> String {
    move |what| format!("line {line}: {what}")
}

/// The names of the columns.
fn header(text: &str) -> Vec<&str> {
    text.trim_start_matches('\u{feff}').lines().next().map(|line| fields(line).collect()).unwrap_or_default()
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
