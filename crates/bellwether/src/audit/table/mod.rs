//! Had the values of a table been published by the time of decision? The table is somebody's own: a finished training set.
//!
//! Each row is of a ticker and a date, and was decided at some time. Its signal, confidence and score (or, if it has a title
//! and a link, the score of that article) are compared with all values that the archive ever saw there. A value is
//!
//! - *known* if it was the latest one by then, or *replaced* if it had been seen by then, but another one had followed;
//! - *late* if it was first seen after the decision, and an answer in between still lacked it: nobody could have had it;
//! - *unclear* if it was first seen by the first answer after the decision: it may have been published in time, unseen;
//! - *never* published if no answer had it, and *unknown* if the archive knows nothing of the series.
//!
//! Features of the news depend on a whole dataset as of each decision. If they are examined, the dataset is built as of the
//! last run before the decision (a value that it has is known), the first run after it (unclear), and today (late).

mod input;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::rows::RowValue::{Owned, Text, Whole};
use super::rows::{Entry, RowWriter, always, optional, schema_of};
use super::subject::{ObservedColumns, Subject, day, instant_of};
use crate::archive::{Coverage, Histories, History, merge_failed};
use crate::error::Result;
use crate::interface::{Period, Regime};
use crate::plan::{ColumnNames, DatasetPlan, Feature, Filter};
use crate::tables::{SeriesKey, date, instant};
use crate::text::human::{count_of, group_digits, portion};
use crate::time::{MICROS_PER_DAY, as_record, to_record};

use input::{ExaminedColumn, Rows, ValueKind};
pub use input::{TableInput, TableSource};

/// How many examples of each column are told.
const EXAMPLES: usize = 5;

/// Whether the values of a table had been published by the time of decision.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TableAudit {
    /// The table: its file, or `table`.
    pub table: String,
    /// The answer, in a few sentences.
    pub verdict: Vec<String>,
    /// The instant up to which the archive is compared with.
    #[serde(serialize_with = "as_record::serialize")]
    #[schemars(with = "String")]
    pub as_of: DateTime<Utc>,
    /// When a row was decided, in words.
    pub decided: String,
    /// The rows of the table.
    pub rows: u64,
    /// The rows with a date after their decision.
    pub dated_later: u64,
    /// The values of all columns.
    pub total: ValueCounts,
    /// Each column that was examined.
    pub columns: Vec<TableColumn>,
    /// The columns that were not examined.
    pub not_examined: Vec<String>,
}

/// The values of a column.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its values.
    #[serde(flatten)]
    pub counts: ValueCounts,
    /// Some of those that had not been published by then, or never were, the worst first.
    pub examples: Vec<Example>,
}

/// Values, by whether they had been published by the time of decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ValueCounts {
    /// All values; nulls are none.
    pub values: u64,
    /// Those that were the latest known by then.
    pub known: u64,
    /// Those that had been published by then, but were replaced by another value or withdrawn.
    pub replaced: u64,
    /// Those that had not been published by then: an answer after the decision still lacked them.
    pub late: u64,
    /// Those that the first answer after the decision had: when they were published is not known.
    pub unclear: u64,
    /// Those that were never published there.
    pub never: u64,
    /// Those of series that the archive does not know.
    pub unknown: u64,
}

/// A value that had not been published by the time of decision.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Example {
    /// The row, from 1 on.
    pub row: u64,
    /// The ticker.
    pub ticker: String,
    /// The period, for signals.
    pub period: Option<Period>,
    /// The regime, for signals.
    pub regime: Option<Regime>,
    /// The date.
    pub date: String,
    /// The time of decision.
    pub decided_at: String,
    /// `late`, `unclear` or `never`.
    pub outcome: Outcome,
    /// The value.
    pub value: String,
    /// When an answer had it for the first time; none if it never was published.
    pub first_known: Option<String>,
    /// The value that was known by then; none if there was none.
    pub known_then: Option<String>,
}

/// Whether a value had been published, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was the latest value.
    Known,
    /// It had been published, but another value followed.
    Replaced,
    /// It was first seen by the first answer after the decision.
    Unclear,
    /// An answer after the decision still lacked it.
    Late,
    /// No answer had it.
    Never,
    /// The archive does not know the series.
    Unknown,
}

impl Outcome {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Replaced => "replaced",
            Self::Unclear => "unclear",
            Self::Late => "late",
            Self::Never => "never",
            Self::Unknown => "unknown",
        }
    }
}

impl ValueCounts {
    fn add(&mut self, outcome: Outcome) {
        self.values += 1;
        *match outcome {
            Outcome::Known => &mut self.known,
            Outcome::Replaced => &mut self.replaced,
            Outcome::Unclear => &mut self.unclear,
            Outcome::Late => &mut self.late,
            Outcome::Never => &mut self.never,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// What became of a value.
#[derive(Clone, Copy, Debug)]
struct Judged {
    outcome: Outcome,
    /// When it was first seen, in microseconds.
    first_known: Option<i64>,
    known_then: Option<f64>,
}

const UNKNOWN: Judged = Judged { outcome: Outcome::Unknown, first_known: None, known_then: None };

/// Builds a dataset as of an instant, of the signals that a filter takes, and delivers its rows under their own names.
pub(crate) type Rebuild<'a> =
    &'a dyn Fn(DateTime<Utc>, Filter, &mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<()>;

/// Compares the values of a table with what an archive had seen by the time of decision, and delivers a row for each that
/// had not been known, in the columns of [`schema`].
pub(crate) fn audit_table(
    subject: &Subject,
    input: &TableInput,
    plan: Option<(&DatasetPlan, Rebuild<'_>)>,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<TableAudit> {
    let pairs = subject.pairs();
    let periods = Vec::from_iter(BTreeSet::from_iter(pairs.iter().map(|(period, _)| *period)));
    let regimes = Vec::from_iter(BTreeSet::from_iter(pairs.iter().map(|(_, regime)| *regime)));
    let features = plan.filter(|_| input.with_features).map(|(plan, _)| plan.features.iter()).into_iter().flatten();
    // Dates are no numbers.
    let features: Vec<String> =
        features.filter(|feature| **feature != Feature::LastDate).map(ToString::to_string).collect();
    let own = ColumnNames::default();
    let names = plan.map_or(&own, |(plan, _)| plan.written.names());
    let rows = &input::read(input, names, (&periods, &regimes), &features)?;
    let mut judged = judge(subject, rows)?;
    if let Some((_, rebuild)) = plan.filter(|_| !features.is_empty()) {
        judge_features(subject, rows, rebuild, &mut judged)?;
    }
    let value = |row: usize, column: usize| {
        let (judged, column) = (judged[column][row], &rows.columns[column]);
        Some(JudgedValue { rows, row, column, value: column.values[row]?, judged })
    };
    let mut writer = RowWriter::new(entries(), deliver);
    for row in 0..rows.keys.len() {
        let values = (0..rows.columns.len()).filter_map(|column| value(row, column));
        values.filter(|it| it.judged.outcome != Outcome::Known).try_for_each(|it| writer.push(&it))?;
    }
    writer.flush()?;
    let (mut total, mut columns) = (ValueCounts::default(), Vec::new());
    for (index, column) in rows.columns.iter().enumerate() {
        let mut counts = ValueCounts::default();
        // The first of each kind, the worst first.
        let mut worst = [Outcome::Late, Outcome::Never, Outcome::Unclear].map(|outcome| (outcome, Vec::new()));
        for it in (0..rows.keys.len()).filter_map(|row| value(row, index)) {
            counts.add(it.judged.outcome);
            total.add(it.judged.outcome);
            let of_kind =
                worst.iter_mut().find(|(outcome, kept)| *outcome == it.judged.outcome && kept.len() < EXAMPLES);
            if let Some((_, kept)) = of_kind {
                kept.push(it.example());
            }
        }
        let examples = worst.into_iter().flat_map(|(_, kept)| kept).take(EXAMPLES).collect();
        columns.push(TableColumn { name: column.name.clone(), counts, examples });
    }
    let mut found = TableAudit {
        table: rows.name.clone(),
        verdict: Vec::new(),
        as_of: subject.view.as_of(),
        decided: rows.rule.clone(),
        rows: rows.keys.len() as u64,
        dated_later: rows.dates.iter().zip(&rows.decided).filter(|(date, decided)| date > decided).count() as u64,
        total,
        columns,
        not_examined: rows.others.clone(),
    };
    found.verdict = found.verdict();
    Ok(found)
}

/// What became of the features of the news, by the dataset as of the runs around each decision.
fn judge_features(subject: &Subject, rows: &Rows, rebuild: Rebuild<'_>, judged: &mut [Vec<Judged>]) -> Result<()> {
    let instants: Vec<DateTime<Utc>> = subject.view.runs().map(|run| run.seal().sealed_at).collect();
    // The rows by the number of runs that were sealed by their decision.
    let mut groups: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for row in (0..rows.keys.len()).filter(|row| rows.keys[*row].is_some()) {
        let known = instants.partition_point(|sealed| sealed.timestamp_micros() <= rows.decided[row]);
        groups.entry(known).or_default().push(row as u32);
    }
    let features: Vec<usize> =
        (0..rows.columns.len()).filter(|column| rows.columns[*column].kind == ValueKind::Feature).collect();
    for (known, of_group) in groups {
        let built = |at: Option<usize>| match at.and_then(|at| instants.get(at)) {
            Some(as_of) => features_as_of(rows, &features, &of_group, |filter, take| rebuild(*as_of, filter, take)),
            None => Ok(HashMap::new()),
        };
        let (then, next, latest) =
            (built(known.checked_sub(1))?, built(Some(known))?, built(instants.len().checked_sub(1))?);
        for row in &of_group {
            for (place, index) in features.iter().enumerate() {
                let column = &rows.columns[*index];
                let Some(value) = column.values[*row as usize] else { continue };
                let of = |built: &HashMap<u32, Vec<Option<f64>>>| built.get(row).and_then(|values| values[place]);
                let has = |built| of(built).is_some_and(|other| column.are_equal(value, other));
                let outcome = match () {
                    () if has(&then) => Outcome::Known,
                    () if has(&next) => Outcome::Unclear,
                    () if has(&latest) => Outcome::Late,
                    () if latest.contains_key(row) => Outcome::Never,
                    () => Outcome::Unknown,
                };
                judged[*index][*row as usize] = Judged { outcome, first_known: None, known_then: of(&then) };
            }
        }
    }
    Ok(())
}

/// The features of some rows in a dataset that is built of their tickers and dates.
fn features_as_of(
    rows: &Rows,
    features: &[usize],
    of_group: &[u32],
    build: impl FnOnce(Filter, &mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<()>,
) -> Result<HashMap<u32, Vec<Option<f64>>>> {
    let places = rows.by_series(of_group.iter().copied());
    let mut found = HashMap::new();
    let dates = of_group.iter().map(|row| rows.dates[*row as usize]);
    let (Some(first), Some(last)) = (dates.clone().min(), dates.max()) else { return Ok(found) };
    let tickers = places.keys().map(|key| key.ticker.clone()).collect();
    let filter =
        Filter { tickers: Some(tickers), from: Some(day(first)), to: day(last).succ_opt(), ..Filter::default() };
    build(filter, &mut |batch| {
        let column = |name: &str| batch.column_by_name(name).expect("the dataset has its columns");
        let texts = |name: &str| cast(column(name), &DataType::Utf8).map_err(merge_failed);
        let [tickers, periods, regimes] = [texts("ticker")?, texts("period")?, texts("regime")?];
        let [tickers, periods, regimes] = [&tickers, &periods, &regimes].map(|texts| texts.as_string::<i32>());
        let dates = column("date").as_primitive::<TimestampMicrosecondType>();
        let mut numbers = Vec::new();
        for index in features {
            let values = cast(column(&rows.columns[*index].own), &DataType::Float64).map_err(merge_failed)?;
            numbers.push(values.as_primitive::<Float64Type>().clone());
        }
        for at in 0..batch.num_rows() {
            let Ok(ticker) = tickers.value(at).parse() else { continue };
            let (period, regime) = (periods.value(at).parse().ok(), regimes.value(at).parse().ok());
            let of_series = places.get(&SeriesKey { table: Some(rows.table), ticker, period, regime });
            let Some(wanted) = of_series.and_then(|dated| dated.get(&rows.place(dates.value(at)))) else { continue };
            let values = numbers.iter().map(|numbers| numbers.is_valid(at).then(|| numbers.value(at)));
            let values: Vec<Option<f64>> = values.collect();
            found.extend(wanted.iter().map(|row| (*row, values.clone())));
        }
        Ok(())
    })?;
    Ok(found)
}

/// The answers about a series: when each was given, and the dates that it covered.
type Answers = Vec<(i64, Coverage)>;

/// What became of each value of each column but features.
fn judge(subject: &Subject, rows: &Rows) -> Result<Vec<Vec<Judged>>> {
    let places = rows.by_series(0..rows.keys.len() as u32);
    let mut answers: HashMap<SeriesKey, Answers> = HashMap::new();
    for run in subject.view.runs() {
        for answer in run.answers()? {
            if answer.key.table == Some(rows.table) && places.contains_key(&answer.key) {
                let seen = answer.observed_at.timestamp_micros();
                answers.entry(answer.key).or_default().push((seen, answer.covers));
            }
        }
    }
    let work = |histories: &Histories, observed: &ObservedColumns<'_>| {
        let mut found = Vec::new();
        for history in &histories.series {
            if let Some(places) = places.get(&history.key) {
                let answers = answers.get(&history.key).map(Vec::as_slice).unwrap_or_default();
                judge_series(subject, rows, places, answers, history, observed, &mut found);
            }
        }
        Ok(found)
    };
    let mut judged = vec![vec![UNKNOWN; rows.keys.len()]; rows.columns.len()];
    let take = |found: Vec<(usize, u32, Judged)>| {
        for (column, row, value) in found {
            let known: &mut Judged = &mut judged[column][row as usize];
            // Of several signals of a day, the one that speaks best for the value counts.
            if value.outcome <= known.outcome {
                *known = value;
            }
        }
        Ok(())
    };
    subject.each_piece(|view| view.whole_observations(rows.table), work, take)?;
    Ok(judged)
}

/// What became of the values of a series, whose rows are given by date: the column, the row, and the value's fate there.
fn judge_series(
    subject: &Subject,
    rows: &Rows,
    places: &HashMap<i64, Vec<u32>>,
    answers: &[(i64, Coverage)],
    history: &History,
    observed: &ObservedColumns<'_>,
    found: &mut Vec<(usize, u32, Judged)>,
) {
    let columns = || rows.columns.iter().enumerate().filter(|(_, column)| column.kind != ValueKind::Feature);
    let never = Judged { outcome: Outcome::Never, ..UNKNOWN };
    for row in places.values().flatten() {
        found.extend(columns().map(|(column, _)| (column, *row, never)));
    }
    for cell in history.groups.cells() {
        let Some(date) = observed.naive_date(cell.start, subject.dates) else { continue };
        let written = observed.dates.value(cell.start);
        for row in places.get(&rows.place(date)).into_iter().flatten() {
            // Whether the observation is of the article of the row; that of a signal always is.
            if let (Some(wanted), Some(texts)) = (&rows.texts, &observed.texts)
                && !wanted.iter().zip(texts).all(|(one, other)| one.value(*row as usize) == other.value(cell.start))
            {
                continue;
            }
            let decided = rows.decided[*row as usize];
            for (index, column) in columns() {
                let Some(value) = column.values[*row as usize] else { continue };
                let is_equal = |other: f64| column.are_equal(value, other);
                let (mut first_known, mut known_then) = (None, None);
                for row in cell.clone() {
                    let (seen, observed) = (observed.seen.value(row), column.observed(observed, row));
                    if seen <= decided {
                        known_then = observed;
                    }
                    if first_known.is_none() && observed.is_some_and(is_equal) {
                        first_known = Some(seen);
                    }
                }
                // Whether an answer since the decision covered the date, before one had the value.
                let is_lacking = |(seen, covers): &(i64, Coverage), first: i64| {
                    decided <= *seen && *seen < first && covers.holds(rows.table, Some(written))
                };
                let outcome = match first_known {
                    None => Outcome::Never,
                    Some(first) if first <= decided => match known_then.is_some_and(is_equal) {
                        true => Outcome::Known,
                        false => Outcome::Replaced,
                    },
                    Some(first) if answers.iter().any(|answer| is_lacking(answer, first)) => Outcome::Late,
                    Some(_) => Outcome::Unclear,
                };
                found.push((index, *row, Judged { outcome, first_known, known_then }));
            }
        }
    }
}

impl Rows {
    /// What tells a date from others: the day, if the table has days.
    fn place(&self, date: i64) -> i64 {
        if self.are_days { date.div_euclid(MICROS_PER_DAY) } else { date }
    }

    /// Some rows by their series and dates.
    fn by_series(&self, rows: impl Iterator<Item = u32>) -> HashMap<&SeriesKey, HashMap<i64, Vec<u32>>> {
        let mut places: HashMap<&SeriesKey, HashMap<i64, Vec<u32>>> = HashMap::new();
        for row in rows {
            if let Some(key) = &self.keys[row as usize] {
                let place = self.place(self.dates[row as usize]);
                places.entry(key).or_default().entry(place).or_default().push(row);
            }
        }
        places
    }
}

impl TableAudit {
    fn verdict(&self) -> Vec<String> {
        let ValueCounts { values, known, replaced, late, unclear, never, unknown } = self.total;
        let of_values = |count: u64| {
            format!("{} of {} ({})", group_digits(count), count_of(values, "value", "values"), portion(count, values))
        };
        if values == 0 {
            return vec!["The table has no values to examine.".to_owned()];
        }
        let mut verdict = vec![match late {
            0 if known + replaced == values => {
                format!("All {} had been published by the time of decision.", count_of(values, "value", "values"))
            }
            0 => format!(
                "{} had been published by the time of decision, and none is known to be late.",
                of_values(known + replaced)
            ),
            _ => format!("{} had not been published by the time of decision: look-ahead.", of_values(late)),
        }];
        let mut say = |count: u64, text: &str| {
            if count > 0 {
                verdict.push(format!("{} {text}", of_values(count)));
            }
        };
        say(never, "were never published: the vendor gave another value there, or none.");
        say(
            unclear,
            "cannot be judged: the first answer after the decision had them, and no answer before it says when they came.",
        );
        say(unknown, "cannot be judged: the archive does not know their series.");
        say(replaced, "had been published, but were no longer the latest: stale, and no look-ahead.");
        if self.dated_later > 0 {
            let rows = count_of(self.dated_later, "row is", "rows are");
            verdict.push(format!("{rows} dated after the decision."));
        }
        verdict
    }
}

/// A value of the table, and what became of it.
pub(super) struct JudgedValue<'a> {
    rows: &'a Rows,
    row: usize,
    column: &'a ExaminedColumn,
    value: f64,
    judged: Judged,
}

impl JudgedValue<'_> {
    fn period(&self) -> Option<Period> {
        self.rows.keys[self.row].as_ref()?.period
    }

    fn regime(&self) -> Option<Regime> {
        self.rows.keys[self.row].as_ref()?.regime
    }

    fn known_then(&self) -> Option<String> {
        self.judged.known_then.map(|known| self.column.in_words(known))
    }

    fn example(&self) -> Example {
        let date = instant_of(self.rows.dates[self.row]).naive_utc();
        Example {
            row: self.row as u64 + 1,
            ticker: self.rows.tickers.value(self.row).to_owned(),
            period: self.period(),
            regime: self.regime(),
            date: if self.rows.are_days { date.date().to_string() } else { date.to_string() },
            decided_at: to_record(instant_of(self.rows.decided[self.row])),
            outcome: self.judged.outcome,
            value: self.column.in_words(self.value),
            first_known: self.judged.first_known.map(|first| to_record(instant_of(first))),
            known_then: self.known_then(),
        }
    }
}

/// The columns of the values that had not been known, one row each.
pub fn schema() -> SchemaRef {
    schema_of(entries())
}

pub(super) fn entries<'a>() -> [Entry<JudgedValue<'a>>; 11] {
    use DataType::{Int64, Utf8};
    let of_date = "the date of the signal or article, as the table has it";
    let (outcomes, then) =
        ("`late`, `unclear`, `never`, `replaced` or `unknown`", "the value that was known by the time of decision");
    let first = "when an answer had the value for the first time";
    [
        always("row", Int64, "the number of the row in the table, from 1 on", |it| Whole(Some(it.row as i64 + 1))),
        always("ticker", Utf8, "", |it| Text(Some(it.rows.tickers.value(it.row)))),
        optional("period", Utf8, "", |it| Text(it.period().map(Period::as_str))),
        optional("regime", Utf8, "", |it| Text(it.regime().map(Regime::as_str))),
        always("date", date(), of_date, |it| Whole(Some(it.rows.dates[it.row]))),
        always("decided_at", instant(), "the time of decision", |it| Whole(Some(it.rows.decided[it.row]))),
        always("column", Utf8, "the column of the value", |it| Text(Some(&it.column.name))),
        always("value", Utf8, "the value", |it| Owned(Some(it.column.in_words(it.value)))),
        always("outcome", Utf8, outcomes, |it| Text(Some(it.judged.outcome.as_str()))),
        optional("first_known", instant(), first, |it| Whole(it.judged.first_known)),
        optional("known_then", Utf8, then, |it| Owned(it.known_then())),
    ]
}
