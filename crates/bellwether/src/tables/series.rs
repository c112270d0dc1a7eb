//! A series, which holds the values of one key, and many series as a table.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::repeat_n;
use std::mem;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Leniencies, Table, TypedRows, choice_runs, symbol_runs};
use crate::columns::concat_arrays;
use crate::definition::NaiveRule;
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::tables::dates::{self, Date};

/// The key of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesKey {
    /// The ticker.
    pub ticker: Ticker,
    /// The period, for signals.
    pub period: Option<Period>,
    /// The market regime, for signals.
    pub regime: Option<Regime>,
    /// The table of its values; none for a ticker that is only listed.
    pub table: Option<Table>,
}

impl SeriesKey {
    /// The key of what an operation says of a ticker as a whole.
    pub fn of_ticker(source: Endpoint, ticker: Ticker) -> Self {
        Self { ticker, period: None, regime: None, table: Table::of(source) }
    }
}

/// A series, with the key stored once for all rows.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its key.
    pub key: SeriesKey,
    /// Its rows: signals oldest first, everything else in the order of the answer, in the columns of
    /// [`Table::listed_schema`].
    pub rows: RecordBatch,
}

/// What the answers of a service mean, where that does not follow from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conventions {
    /// The tables whose answers have all that there ever was.
    pub whole: Vec<Table>,
    /// Confidences that differ by less than this share of them are the same.
    pub tolerance: f64,
    /// Whether articles are listed from the oldest on; none if each list itself shows it.
    pub oldest_first: Option<bool>,
    /// The clock of the days of which each has one signal, the last; none if every date is a signal's own.
    pub day_clock: Option<NaiveRule>,
}

impl Default for Conventions {
    fn default() -> Self {
        Self { whole: Vec::new(), tolerance: 1e-9, oldest_first: None, day_clock: None }
    }
}

impl Table {
    /// Converts rows of an answer to the stored form, with cells identified and sorted.
    ///
    /// # Errors
    ///
    /// If the rows do not have the columns of [`Table::listed_schema`].
    pub fn arrange(self, rows: &RecordBatch, oldest_first: Option<bool>) -> Result<RecordBatch, ArrowError> {
        match self {
            Self::Signals | Self::Summaries => Ok(rows.clone()),
            Self::Articles => articles(rows, oldest_first),
            Self::SentimentHistory => records(rows),
        }
    }
}

/// Sorts articles from the first known to the last: by date, and within a date from the last listed to the first, or the
/// other way if the list begins with the oldest date.
fn articles(rows: &RecordBatch, oldest_first: Option<bool>) -> Result<RecordBatch, ArrowError> {
    let typed = TypedRows(rows);
    let (positions, dates) = (typed.whole("position").values(), typed.instants("date").values());
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    // Rows are in the order of the list.
    let is_reversed = oldest_first.unwrap_or_else(|| dates.is_sorted() && dates.first() < dates.last());
    let place = |row: u32| if is_reversed { positions[row as usize] } else { -positions[row as usize] };
    order.sort_unstable_by_key(|&row| (dates[row as usize], place(row)));
    let sorted = take_record_batch(rows, &UInt32Array::from(order))?;
    let typed = TypedRows(&sorted);
    let dates = typed.instants("date").values();
    let (titles, links, scores) = (typed.texts("title"), typed.texts("link"), typed.reals("score"));
    let counts = || Vec::with_capacity(dates.len());
    let (mut places, mut copies, mut repeats) = (counts(), counts(), counts());
    let mut end = 0;
    for of_date in dates.chunk_by(|date, next| date == next) {
        let first = end;
        end += of_date.len();
        places.extend(0..of_date.len() as i32);
        // Most dates have one.
        if of_date.len() == 1 {
            copies.push(0);
            repeats.push(0);
            continue;
        }
        let (mut alike, mut same): (HashMap<_, i32>, HashMap<_, i32>) = Default::default();
        for row in first..end {
            let article = (titles.value(row), links.value(row));
            let score = scores.is_valid(row).then(|| scores.value(row).to_bits());
            let counts = [alike.entry(article).or_default(), same.entry((article, score)).or_default()];
            let [copy, repeat] = counts.map(|count| mem::replace(count, *count + 1));
            copies.push(copy);
            repeats.push(repeat);
        }
    }
    let schema = Table::Articles.row_schema();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "copy" => Arc::new(Int32Array::from(mem::take(&mut copies))),
            "place" => Arc::new(Int32Array::from(mem::take(&mut places))),
            "repeats" => Arc::new(Int32Array::from(mem::take(&mut repeats))),
            listed => Arc::clone(typed.column(listed)),
        }
    });
    RecordBatch::try_new(Arc::clone(&schema), columns.collect())
}

/// Sorts records by their text, the only thing that every record has. Like articles, records are numbered within their
/// day, from the last listed to the first.
fn records(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let rows = TypedRows(rows);
    let (positions, texts) = (rows.whole("position").values(), rows.texts("record"));
    let mut listed: Vec<(i32, &str)> = positions.iter().copied().zip(texts.iter().flatten()).collect();
    listed.sort_unstable_by_key(|(position, _)| -position);
    let mut of_days: HashMap<Option<String>, i32> = HashMap::new();
    let place = |(_, text)| {
        let next = of_days.entry(written_day(text)).or_default();
        *next += 1;
        (text, *next - 1)
    };
    let mut placed: Vec<(&str, i32)> = listed.into_iter().map(place).collect();
    placed.sort_unstable();
    let mut copies: Vec<i32> = Vec::with_capacity(placed.len());
    for (row, (text, _)) in placed.iter().enumerate() {
        let is_same = row > 0 && placed[row - 1].0 == *text;
        copies.push(if is_same { copies[row - 1] + 1 } else { 0 });
    }
    let (texts, places): (Vec<&str>, Vec<i32>) = placed.into_iter().unzip();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(Int32Array::from(copies)),
        Arc::new(Int32Array::from(places)),
    ];
    RecordBatch::try_new(Table::SentimentHistory.row_schema(), columns)
}

/// The date of a record of historical sentiment, if it has one in a form of the interface.
pub(crate) fn written_date(record: &str) -> Option<Date> {
    dates::read(&written_text(record)?, &mut Leniencies::default()).ok()
}

/// The day of a record as written; `None` if it has no `date` that starts with one.
fn written_day(record: &str) -> Option<String> {
    written_text(record)?.get(..10).map(str::to_owned)
}

/// The text of a record's `date`.
fn written_text(record: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Dated<'a> {
        #[serde(borrow)]
        date: Cow<'a, str>,
    }
    // Other JSON than an object would also deserialize.
    let is_object = record.trim_start().starts_with('{');
    let dated: Dated<'_> = is_object.then(|| serde_json::from_str(record).ok())??;
    Some(dated.date)
}

/// How a cell changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// New, or back after a withdrawal.
    Added,
    /// The value changed.
    Revised,
    /// No longer listed, though the answer covers it.
    Withdrawn,
}

impl Change {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Added, Self::Revised, Self::Withdrawn];

    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Revised => "revised",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// The changes that an answer makes to a series.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The series.
    pub key: SeriesKey,
    /// The operation that answered.
    pub source: Endpoint,
    /// When the answer was complete.
    pub observed_at: DateTime<Utc>,
    /// When the run was sealed that these rows count from.
    pub sealed_at: DateTime<Utc>,
    /// The kind of change of each row.
    pub kinds: Vec<Change>,
    /// The rows, in cell order; withdrawn cells have no values.
    pub rows: RecordBatch,
}

impl Table {
    /// Changes as rows of the table's file, in the given order.
    ///
    /// # Errors
    ///
    /// If a key or the rows of a series do not belong to this table.
    pub fn batch(self, changes: &[Changes]) -> Result<RecordBatch, ArrowError> {
        if changes.is_empty() {
            return Ok(RecordBatch::new_empty(self.file_schema()));
        }
        let [ticker, period, regime] = key_columns(changes.iter().map(|one| (&one.key, one.kinds.len())));
        let mut columns = vec![ticker];
        if self == Self::Signals {
            columns.extend([period, regime]);
        }
        for index in 0..self.open_row_schema().fields().len() {
            columns.push(concat_arrays(changes.iter().map(|one| Arc::clone(one.rows.column(index))).collect())?);
        }
        let instants = |instant: fn(&Changes) -> DateTime<Utc>| -> ArrayRef {
            let mut instants = Vec::with_capacity(changes.iter().map(|one| one.kinds.len()).sum());
            for one in changes {
                instants.extend(repeat_n(instant(one).timestamp_micros(), one.kinds.len()));
            }
            Arc::new(TimestampMicrosecondArray::from(instants).with_timezone("UTC"))
        };
        columns.push(sources(changes.iter().map(|one| (one.source, one.kinds.len()))));
        let kinds = changes.iter().flat_map(|one| one.kinds.chunk_by(|kind, next| kind == next));
        let kinds = kinds.map(|alike| (Some(alike[0].as_str()), alike.len()));
        columns.push(choice_runs(Change::ALL.map(Change::as_str), kinds));
        columns.push(instants(|one| one.observed_at));
        columns.push(instants(|one| one.sealed_at));
        RecordBatch::try_new(self.file_schema(), columns)
    }
}

/// A column of operations, from runs of rows of one operation.
pub(crate) fn sources(runs: impl Iterator<Item = (Endpoint, usize)>) -> ArrayRef {
    choice_runs(Endpoint::ALL.map(Endpoint::as_str), runs.map(|(source, length)| (Some(source.as_str()), length)))
}

/// The key columns (ticker, period, regime) from runs of rows of one series.
pub(crate) fn key_columns<'a>(keys: impl Iterator<Item = (&'a SeriesKey, usize)> + Clone) -> [ArrayRef; 3] {
    let spelled = |spelling: fn(&SeriesKey) -> Option<&'static str>| {
        keys.clone().map(move |(key, length)| (spelling(key), length))
    };
    [
        symbol_runs(keys.clone().map(|(key, length)| (key.ticker.as_str(), length))),
        choice_runs(Period::all().map(Period::as_str), spelled(|key| key.period.map(Period::as_str))),
        choice_runs(Regime::ALL.map(Regime::as_str), spelled(|key| key.regime.map(Regime::as_str))),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::Int32Type;

    use super::Table;

    #[test]
    fn articles_are_ordered_from_the_oldest_and_copies_are_counted() {
        let listed: [(i64, &str); 6] = [(3, "new"), (2, "b"), (2, "a"), (2, "b"), (1, "b"), (2, "b")];
        let columns: [(&str, ArrayRef); 5] = [
            ("position", Arc::new(Int32Array::from_iter_values(0..6))),
            ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(listed.map(|(date, _)| date)))),
            ("title", Arc::new(StringArray::from_iter_values(listed.map(|(_, title)| title)))),
            ("score", Arc::new(Float64Array::from_iter_values((0..6).map(f64::from)))),
            ("link", Arc::new(StringArray::from_iter_values(listed.map(|_| "link")))),
        ];
        let listed = Table::Articles.list(&columns).unwrap();
        let rows = Table::Articles.arrange(&listed, None).unwrap();
        let titles: Vec<_> = rows.column(1).as_string::<i32>().iter().flatten().collect();
        assert_eq!(titles, ["b", "b", "b", "a", "b", "new"]);
        let numbers = |column: usize| rows.column(column).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!(numbers(3), [0, 0, 1, 0, 2, 0]);
        assert_eq!(numbers(4), [0, 0, 1, 2, 3, 0]);
        // No two copies have the same score.
        assert_eq!(numbers(7), [0; 6]);
    }
}
