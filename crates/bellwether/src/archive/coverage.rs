//! The dates that an answer covers: what it does not list there, the service no longer says.
//!
//! The edge of a list of articles are those of its oldest date. A list may be cut off within its oldest date, so it does not cover that date: articles that it lacks there are not
//! withdrawn. Which ones it did list can therefore not be told from what was known after it, and neither can their places,
//! which continue the known ones. So it is stored.
//!
//! Articles of one date, title and link are copies, numbered from the oldest that an answer lists. A list that was cut off
//! within its oldest date lacks the oldest of them, not the newest, so there the numbers continue the known ones: copies are
//! told apart by their scores. A merge leaves the numbers as each machine knew them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::disk::digest;
use crate::interface::Endpoint;
use crate::tables::{Table, written_date};

/// The first date that there is, 0001-01-01, in microseconds since 1970.
const FIRST_DATE: i64 = -62_135_596_800_000_000;

/// How far back the answers about a table go, by what the definition of a run says of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// They may begin at some date, and say nothing of what was before.
    FromOldest,
    /// They have all that there ever was.
    Whole,
}

impl Extent {
    /// The extent of a table's answers, given the tables whose answers are whole.
    pub(super) fn of(table: Table, whole: &[Table]) -> Self {
        if whole.contains(&table) { Self::Whole } else { Self::FromOldest }
    }
}

/// The dates that an answer about a series covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// An empty history, or a latest signal without a date.
    Nothing,
    /// All cells that have no dates.
    Everything,
    /// From the oldest date of the answer up to another date, which is not covered. Lists may be cut off within their
    /// oldest date, so of articles that date is not covered either.
    Dates {
        /// The oldest date.
        from: i64,
        /// The end; `i64::MAX` if there is none.
        until: i64,
    },
}

impl Coverage {
    /// What the answer of an operation covers, by its rows: from the oldest date on or, if it is said to have all that there
    /// ever was, every date. A latest signal covers its own date alone.
    pub(super) fn of(source: Endpoint, table: Table, rows: &RecordBatch, extent: Extent) -> Self {
        match oldest(table, rows) {
            None if table.is_dated() || rows.num_rows() == 0 => Self::Nothing,
            None => Self::Everything,
            Some(from) => Self::from(source, from, extent),
        }
    }

    /// What the answer of an operation with an oldest date covers.
    pub(super) fn from(source: Endpoint, from: i64, extent: Extent) -> Self {
        match extent {
            _ if source.is_latest() => Self::Dates { from, until: from.saturating_add(1) },
            Extent::FromOldest => Self::Dates { from, until: i64::MAX },
            Extent::Whole => Self::Dates { from: FIRST_DATE, until: i64::MAX },
        }
    }

    /// Nothing, of an answer with rows: it could not be read whole, so what it lacks may be in what was rejected.
    pub(super) fn unread(self) -> Self {
        match self.oldest() {
            Some(from) => Self::Dates { from, until: from },
            None if self == Self::Nothing => Self::Nothing,
            None => Self::Dates { from: FIRST_DATE, until: FIRST_DATE },
        }
    }

    /// Whether no cell is covered.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Nothing) || matches!(self, Self::Dates { from, until } if until <= from)
    }

    /// The oldest date of the answer.
    pub(crate) fn oldest(self) -> Option<i64> {
        match self {
            Self::Dates { from, .. } => Some(from),
            Self::Nothing | Self::Everything => None,
        }
    }

    /// Whether the answer covers a cell of a table by its date.
    pub(crate) fn holds(self, table: Table, date: Option<i64>) -> bool {
        match (self, date) {
            (Self::Everything, date) => date.is_none(),
            (Self::Dates { from, until }, Some(date)) => {
                let begins = if table == Table::Articles { date > from } else { date >= from };
                begins && date < until
            }
            // A record without a date is in every answer that has any. Signals without one are covered by answers with such.
            (Self::Dates { .. }, None) => table == Table::SentimentHistory && !self.is_empty(),
            (Self::Nothing, _) => false,
        }
    }
}

/// The oldest date of some rows of a table, which are sorted.
fn oldest(table: Table, rows: &RecordBatch) -> Option<i64> {
    let date = date_of(table, rows);
    let mut dates = (0..rows.num_rows()).filter_map(date);
    if table.is_dated() { dates.next() } else { dates.min() }
}

/// The date of each row of a table; none where it has none. Records say theirs in their text.
pub(super) fn date_of(table: Table, rows: &RecordBatch) -> impl Fn(usize) -> Option<i64> {
    let dates = rows.column_by_name("date").filter(|_| table.is_dated()).cloned();
    let records = rows.column_by_name("record").filter(|_| table == Table::SentimentHistory).cloned();
    move |row| {
        if let Some(records) = &records {
            return written_date(records.as_string::<i32>().value(row)).map(|date| date.micros);
        }
        let dates = dates.as_ref()?.as_primitive::<TimestampMicrosecondType>();
        dates.is_valid(row).then(|| dates.value(row))
    }
}

/// Digits of an article's digest: enough to tell those of one date apart.
const DIGITS: usize = 8;

/// The columns of articles in [`Table::row_schema`].
const DATE: usize = 0;
const TITLE: usize = 1;
const LINK: usize = 2;
const COPY: usize = 3;
const PLACE: usize = 4;
const SCORE: usize = 5;
const REPEATS: usize = 7;

/// Which articles of its oldest date an answer listed, from the oldest; none for other answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edge(Vec<String>);

impl Edge {
    /// The edge of answered articles, in the order of their table's rows.
    pub(super) fn of(rows: &RecordBatch) -> Self {
        if rows.num_rows() == 0 {
            return Self::default();
        }
        let count = dates(rows).partition_point(|date| *date <= dates(rows)[0]);
        let places = rows.column(PLACE).as_primitive::<Int32Type>().values();
        let mut of_oldest: Vec<usize> = (0..count).collect();
        of_oldest.sort_by_key(|&row| places[row]);
        Self(of_oldest.into_iter().map(|row| digest_of(rows, row)).collect())
    }

    /// The edge as it is stored.
    pub(super) fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.concat())
    }

    /// Reads what [`Self::text`] gave.
    pub(super) fn of_text(text: &str) -> Self {
        let digests = text.as_bytes().chunks(DIGITS);
        Self(digests.map(|digest| String::from_utf8_lossy(digest).into_owned()).collect())
    }

    /// The rows of some articles as the answer had them: of its oldest date those that it listed, at its places.
    pub(super) fn as_answered(&self, articles: &RecordBatch, oldest: i64) -> Result<RecordBatch, ArrowError> {
        let listed: HashMap<&str, usize> =
            self.0.iter().enumerate().map(|(index, one)| (one.as_str(), index)).collect();
        let start = dates(articles).partition_point(|date| *date < oldest);
        let end = dates(articles).partition_point(|date| *date <= oldest);
        let place = |row: usize| Some((*listed.get(digest_of(articles, row).as_str())?, row));
        let mut of_oldest: Vec<(usize, usize)> = (start..end).filter_map(place).collect();
        of_oldest.sort_unstable();
        let rows = of_oldest.iter().map(|(_, row)| *row).chain(end..articles.num_rows());
        let rows = UInt32Array::from_iter_values(rows.map(|row| row as u32));
        let answered = take_record_batch(articles, &rows)?;
        let known = answered.column(PLACE).as_primitive::<Int32Type>().values();
        let places = of_oldest.iter().map(|(index, _)| *index as i32);
        let places: ArrayRef =
            Arc::new(Int32Array::from_iter_values(places.chain(known[of_oldest.len()..].iter().copied())));
        let mut columns = answered.columns().to_vec();
        columns[PLACE] = places;
        RecordBatch::try_new(answered.schema(), columns)
    }
}

fn dates(rows: &RecordBatch) -> &[i64] {
    rows.column(DATE).as_primitive::<TimestampMicrosecondType>().values()
}

/// The digest of what identifies an article within its date.
fn digest_of(rows: &RecordBatch, row: usize) -> String {
    let text = |column: usize| rows.column(column).as_string::<i32>().value(row);
    let (title, link) = (text(TITLE), text(LINK));
    let copy = rows.column(COPY).as_primitive::<Int32Type>().value(row);
    let mut digest = digest::of(format!("{title}\n{link}\n{copy}").as_bytes());
    digest.truncate(DIGITS);
    digest
}

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
