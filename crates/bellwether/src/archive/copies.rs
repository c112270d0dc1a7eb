//! The numbers of articles of one date, title and link at the edge of a list.
//!
//! Such copies are numbered from the oldest that an answer lists. A list that was cut off within its oldest date lacks the
//! oldest of them, not the newest, so there the numbers continue the known ones: copies are told apart by their scores. A
//! merge leaves the numbers as each machine knew them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::edge::{COPY, DATE, LINK, TITLE};

/// More columns of articles.
const SCORE: usize = 5;
const REPEATS: usize = 7;

/// A copy: its row, its number and its score.
#[derive(Clone, Copy)]
struct ArticleCopy {
    row: usize,
    number: i32,
    score: Option<u64>,
}

/// The copies of each title and link, by their numbers.
type Copies<'a> = HashMap<(&'a str, &'a str), Vec<ArticleCopy>>;

/// Numbers the copies on the oldest date of answered articles, so that they continue those that were known.
pub(super) fn continue_copies(answered: RecordBatch, known: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some(&oldest) = dates(&answered).first() else { return Ok(answered) };
    let known = copies(known, &|row| dates(known)[row] == oldest);
    // Nearly always no article has copies.
    if known.values().flatten().all(|copy| copy.number == 0) {
        return Ok(answered);
    }
    let listed = copies(&answered, &|row| dates(&answered)[row] == oldest);
    let renumbered = listed.iter().filter_map(|(article, listed)| {
        let known = known.get(article)?;
        let first = overlap(known, listed);
        let next = |index: usize| match known.get(first + index) {
            Some(copy) => copy.number,
            None => known[known.len() - 1].number + 1 + (first + index - known.len()) as i32,
        };
        Some(with_repeats(&known[..first], listed, next))
    });
    let renumbered = renumbered.flatten().collect::<Vec<_>>();
    renumber(&answered, &renumbered)
}

/// The first known copy that is listed: from there on, the known copies have the scores of the listed ones, as far as both
/// go. If no score fits, as many as are listed are the last.
fn overlap(known: &[ArticleCopy], listed: &[ArticleCopy]) -> usize {
    let fits = |first: &usize| {
        let rest = &known[*first..];
        rest.len() <= listed.len() && rest.iter().zip(listed).all(|(known, listed)| known.score == listed.score)
    };
    (0..known.len()).find(fits).unwrap_or(known.len().saturating_sub(listed.len()))
}

/// The row, the number and the repetitions of each listed copy, after those before.
fn with_repeats(
    before: &[ArticleCopy],
    listed: &[ArticleCopy],
    number: impl Fn(usize) -> i32,
) -> Vec<(usize, i32, i32)> {
    let mut same: HashMap<Option<u64>, i32> = HashMap::new();
    before.iter().for_each(|copy| *same.entry(copy.score).or_default() += 1);
    let numbered = listed.iter().enumerate().map(|(index, copy)| {
        let repeats = same.entry(copy.score).or_default();
        *repeats += 1;
        (copy.row, number(index), *repeats - 1)
    });
    numbered.collect()
}

/// The copies among some rows.
fn copies<'a>(rows: &'a RecordBatch, is_wanted: &dyn Fn(usize) -> bool) -> Copies<'a> {
    let text = |column: usize| rows.column(column).as_string::<i32>();
    let (titles, links) = (text(TITLE), text(LINK));
    let numbers = rows.column(COPY).as_primitive::<Int32Type>().values();
    let scores = rows.column(SCORE).as_primitive::<Float64Type>();
    let mut found: Copies<'_> = HashMap::new();
    for row in (0..rows.num_rows()).filter(|row| is_wanted(*row)) {
        let score = scores.is_valid(row).then(|| scores.value(row).to_bits());
        let copy = ArticleCopy { row, number: numbers[row], score };
        found.entry((titles.value(row), links.value(row))).or_default().push(copy);
    }
    found.values_mut().for_each(|copies| copies.sort_by_key(|copy| copy.number));
    found
}

/// Articles with other numbers and repetitions in some rows.
fn renumber(articles: &RecordBatch, rows: &[(usize, i32, i32)]) -> Result<RecordBatch, ArrowError> {
    let mut columns = articles.columns().to_vec();
    let values = |column: usize| articles.column(column).as_primitive::<Int32Type>().values().to_vec();
    let (mut numbers, mut repeats) = (values(COPY), values(REPEATS));
    for &(row, number, repeat) in rows {
        (numbers[row], repeats[row]) = (number, repeat);
    }
    for (column, values) in [(COPY, numbers), (REPEATS, repeats)] {
        let values: ArrayRef = Arc::new(Int32Array::from(values));
        columns[column] = values;
    }
    RecordBatch::try_new(articles.schema(), columns)
}

fn dates(rows: &RecordBatch) -> &[i64] {
    rows.column(DATE).as_primitive::<TimestampMicrosecondType>().values()
}
