//! Do the vendor's operations agree with one another?
//!
//! A cell is the same whichever operation gives it, and the latest answer counts. Where two operations cover the same
//! cell, what each of them said last is compared:
//!
//! - *signals*: histories of every two operations, date by date per ticker, period and regime; and a latest signal with
//!   the history entry of the same day. Dates are compared as written, on the clock of their offset: the batched form
//!   has no offset. The legacy model has its own signals and is compared only with itself.
//! - *scores*: each article that a summary refers to, with the article of the same link in the list. Whether it is
//!   really the lowest score is not checked: lists are cut off, and the interface does not define what a summary
//!   covers.
//!
//! A date that only one operation has is not a disagreement. An operation's older value may have been revised by
//! another one since, so every disagreement includes when each value was seen.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

pub use super::observed::Value;

use super::observed::{ObservedColumns, column, instant_of};
use super::row_builder::{RowValue, RowWriter};
use super::subject::Subject;
use crate::archive::{Histories, History, SeriesAnswer, StoredObservations};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Signal, Ticker};
use crate::plan::Reference;
use crate::process::in_order::in_order;
use crate::tables::{Change, SeriesKey, Table, date, instant};
use crate::time::MICROS_PER_DAY;

/// Whether the vendor's operations agree.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Sources {
    /// The cells that two operations share.
    pub cells: u64,
    /// Those with different values.
    pub disagreements: u64,
    /// By pair of operations.
    pub operations: Vec<Pair>,
    /// By ticker, those with disagreements.
    // All cells, and those with different values: a document has these alone.
    #[serde(serialize_with = "with_disagreements")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub tickers: BTreeMap<Ticker, (u64, u64)>,
    /// The first disagreements.
    #[serde(skip)]
    pub first: Vec<Comparison>,
}

/// Two operations.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pair {
    /// One of them.
    #[schemars(with = "String")]
    pub one: Endpoint,
    /// The other one.
    #[schemars(with = "String")]
    pub other: Endpoint,
    /// The cells that both have.
    pub cells: u64,
    /// Those with different values.
    pub disagreements: u64,
}

/// A cell in two operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The ticker.
    pub ticker: Ticker,
    /// The period, for a signal.
    pub period: Option<Period>,
    /// The market regime, for a signal.
    pub regime: Option<Regime>,
    /// The date as written, in microseconds.
    pub date: i64,
    /// The article of a summary, with its link; none for a signal.
    pub article: Option<(Reference, String)>,
    /// Both values.
    pub sides: [SourceValue; 2],
}

/// The value of a cell in one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceValue {
    /// The operation.
    pub source: Endpoint,
    /// The value.
    pub value: Value,
    /// When the value was first seen.
    pub observed_at: DateTime<Utc>,
}

fn with_disagreements<S: Serializer>(tickers: &BTreeMap<Ticker, (u64, u64)>, serializer: S) -> Result<S::Ok, S::Error> {
    let found = tickers.iter().filter(|(_, (_, disagreements))| *disagreements > 0);
    serializer.collect_map(found.map(|(ticker, (_, disagreements))| (ticker.as_str(), disagreements)))
}

impl Comparison {
    /// What the cell is, by its name in files.
    pub fn about(&self) -> &'static str {
        match self.article {
            None => "signal",
            Some((Reference::Low, _)) => "low_article",
            Some((Reference::High, _)) => "high_article",
            Some((Reference::Avg, _)) => "avg_article",
        }
    }
}

/// Compares operations and delivers a row for each disagreement in the columns of [`schema`].
pub(crate) fn sources(subject: &Subject, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    let mut found = Sources::default();
    let mut rows = RowWriter::new(&schema(), deliver);
    let mut take = |piece: Sources| {
        piece.first.iter().try_for_each(|cell| write(cell, &mut rows))?;
        found.add(piece);
        Ok(())
    };
    compare_signals(subject, &mut take)?;
    compare_summaries(subject, &mut take)?;
    rows.flush()?;
    Ok(found)
}

/// The number of signals that operations give different values.
pub(crate) fn contradictions(subject: &Subject) -> Result<u64> {
    let mut disagreements = 0;
    compare_signals(subject, &mut |piece: Sources| {
        disagreements += piece.disagreements;
        Ok(())
    })?;
    Ok(disagreements)
}

impl Sources {
    /// Counts a comparison, and keeps it if the values differ.
    fn compare(&mut self, cell: Comparison) {
        let [one, other] = cell.sides;
        let differs = u64::from(one.value != other.value);
        self.count(Pair { one: one.source, other: other.source, cells: 1, disagreements: differs });
        let ticker = self.tickers.entry(cell.ticker.clone()).or_default();
        *ticker = (ticker.0 + 1, ticker.1 + differs);
        if differs > 0 {
            self.first.push(cell);
        }
    }

    fn count(&mut self, counted: Pair) {
        self.cells += counted.cells;
        self.disagreements += counted.disagreements;
        let order = |pair: &Pair| (pair.one, pair.other);
        match self.operations.binary_search_by_key(&order(&counted), order) {
            Ok(index) => {
                self.operations[index].cells += counted.cells;
                self.operations[index].disagreements += counted.disagreements;
            }
            Err(index) => self.operations.insert(index, counted),
        }
    }

    /// Adds what was found in some more cells, but for all disagreements after the first.
    fn add(&mut self, more: Self) {
        more.operations.into_iter().for_each(|pair| self.count(pair));
        for (ticker, (cells, disagreements)) in more.tickers {
            let known = self.tickers.entry(ticker).or_default();
            *known = (known.0 + cells, known.1 + disagreements);
        }
        let room = 10 - self.first.len();
        self.first.extend(more.first.into_iter().take(room));
    }
}

/// The last answer of each operation about a series of signals.
type LastAnswers = BTreeMap<Endpoint, SeriesAnswer>;

/// The last answers about each series of signals that several operations gave.
fn last_answers(subject: &Subject) -> Result<HashMap<SeriesKey, LastAnswers>> {
    let mut answers: HashMap<SeriesKey, LastAnswers> = HashMap::new();
    if subject.view.operations().len() < 2 {
        return Ok(answers);
    }
    for run in subject.view.runs() {
        for answer in run.answers()?.into_iter().filter(|answer| answer.key.table == Some(Table::Signals)) {
            if !subject.has(&answer.key) {
                continue;
            }
            let of_series = answers.entry(answer.key.clone()).or_default();
            if of_series.get(&answer.source).is_none_or(|last| last.observed_at <= answer.observed_at) {
                of_series.insert(answer.source, answer);
            }
        }
    }
    answers.retain(|_, of_series| of_series.len() > 1);
    Ok(answers)
}

/// Compares signals, several pieces at once, and takes what was found in each, in order.
fn compare_signals(subject: &Subject, take: &mut impl FnMut(Sources) -> Result<()>) -> Result<()> {
    let answers = last_answers(subject)?;
    if answers.is_empty() {
        return Ok(());
    }
    let of_piece = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::new(&histories);
        let mut found = Sources::default();
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            let of_series: Vec<&SeriesAnswer> =
                answers.get(&history.key).into_iter().flatten().map(|it| it.1).collect();
            for (index, one) in of_series.iter().enumerate() {
                for other in &of_series[index + 1..] {
                    if is_of_older_model(one.source) == is_of_older_model(other.source) {
                        compare_answers(subject, history, [one, other], &observed, &mut found);
                    }
                }
            }
        }
        Ok(found)
    };
    in_order(|| subject.view.observations(Table::Signals), of_piece, take)
}

fn is_of_older_model(source: Endpoint) -> bool {
    use Endpoint::{LegacyHistory, LegacyHistoryAll, LegacyHistoryBatched, LegacySignals};
    matches!(source, LegacyHistoryAll | LegacyHistoryBatched | LegacyHistory | LegacySignals)
}

/// Compares the dates of a series that two answers listed.
fn compare_answers(
    subject: &Subject,
    history: &History,
    answers: [&SeriesAnswer; 2],
    observed: &ObservedColumns<'_>,
    found: &mut Sources,
) {
    let is_by_day = answers.iter().any(|answer| answer.source.is_latest());
    let [ones, others] = answers.map(|answer| {
        let mut listed = BTreeMap::new();
        for cell in history.groups.cells() {
            // The value known by then, if the answer covers it.
            let row = cell.rev().find(|row| observed.instant(*row) <= answer.observed_at);
            let Some(row) = row.filter(|row| !observed.is_withdrawn(*row)) else { continue };
            let date = observed.dates.is_valid(row).then(|| observed.dates.value(row));
            if answer.covers.holds(Table::Signals, date)
                && subject.has_date(observed, row)
                && let Some(date) = observed.written_date(row)
            {
                listed.insert(if is_by_day { date - date.rem_euclid(MICROS_PER_DAY) } else { date }, row);
            }
        }
        listed
    });
    for (date, row) in ones {
        let Some(&other) = others.get(&date) else { continue };
        let side = |answer: &SeriesAnswer, row: usize| SourceValue {
            source: answer.source,
            value: observed.value(row),
            observed_at: observed.instant(row),
        };
        let SeriesKey { ticker, period, regime, .. } = history.key.clone();
        let sides = [side(answers[0], row), side(answers[1], other)];
        found.compare(Comparison { ticker, period, regime, date, article: None, sides });
    }
}

/// Compares every article that a summary refers to with the listed one. Summaries are held in memory, a few rows per
/// ticker; articles are not.
fn compare_summaries(subject: &Subject, take: &mut impl FnMut(Sources) -> Result<()>) -> Result<()> {
    let mut references: HashMap<Ticker, Vec<(Reference, String, SourceValue)>> = HashMap::new();
    for piece in subject.view.observations(Table::Summaries)? {
        let histories = piece?.histories()?;
        for History { key, groups } in histories.series.iter().filter(|history| subject.has(&history.key)) {
            for row in groups.cells().map(|cell| cell.end - 1) {
                if histories.changes[row] != Change::Withdrawn {
                    references.insert(key.ticker.clone(), references_of(&histories, row));
                }
            }
        }
    }
    if references.is_empty() {
        return Ok(());
    }
    let of_piece = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::new(&histories);
        let mut found = Sources::default();
        for history in &histories.series {
            for (reference, link, summary) in references.get(&history.key.ticker).into_iter().flatten() {
                let links = observed.texts.expect("these are articles")[1];
                let listed = || observed.known_rows(history).filter(|row| links.value(*row) == link);
                // A link may be listed several times; one match is enough.
                let agrees = listed().find(|row| observed.value(*row) == summary.value);
                let Some(row) = agrees.or_else(|| listed().last()) else { continue };
                let source = Endpoint::NewsArticles;
                let listed = SourceValue { source, value: observed.value(row), observed_at: observed.instant(row) };
                found.compare(Comparison {
                    ticker: history.key.ticker.clone(),
                    period: None,
                    regime: None,
                    date: observed.dates.value(row),
                    article: Some((*reference, link.clone())),
                    sides: [*summary, listed],
                });
            }
        }
        Ok(found)
    };
    in_order(|| subject.view.whole_observations(Table::Articles), of_piece, take)
}

/// The articles that a summary refers to, with their links and scores.
fn references_of(histories: &Histories, row: usize) -> Vec<(Reference, String, SourceValue)> {
    let mut references = Vec::new();
    for reference in Reference::ALL {
        let column = |what: &str| column(&histories.rows, &format!("{}_{what}", reference.as_str()));
        let (links, scores) = (column("link").as_string::<i32>(), column("score").as_primitive::<Float64Type>());
        if links.is_valid(row) {
            let value = Value { signal: None, number: scores.is_valid(row).then(|| scores.value(row)) };
            let observed_at = instant_of(&histories.rows, row);
            let summary = SourceValue { source: Endpoint::SocialSentiment, value, observed_at };
            references.push((reference, links.value(row).to_owned(), summary));
        }
    }
    references
}

/// The columns of disagreements: the cell, and the value in each of two operations.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let mut fields = vec![
            text("ticker", false),
            text("period", true),
            text("regime", true),
            // As written.
            Field::new("date", date(), false),
            text("about", false),
            text("link", true),
        ];
        for side in ["", "other_"] {
            fields.push(text(&format!("{side}source"), false));
            fields.push(text(&format!("{side}signal"), true));
            fields.push(Field::new(format!("{side}confidence"), DataType::Float64, true));
            fields.push(Field::new(format!("{side}score"), DataType::Float64, true));
            fields.push(Field::new(format!("{side}observed_at"), instant(), false));
        }
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

/// Writes a disagreement as a row.
fn write(cell: &Comparison, rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>) -> Result<()> {
    let mut row = vec![
        RowValue::Text(Some(cell.ticker.as_str())),
        RowValue::Text(cell.period.map(Period::as_str)),
        RowValue::Text(cell.regime.map(Regime::as_str)),
        RowValue::Moment(Some(cell.date)),
        RowValue::Text(Some(cell.about())),
        RowValue::Text(cell.article.as_ref().map(|(_, link)| link.as_str())),
    ];
    for SourceValue { source, value, observed_at } in &cell.sides {
        row.extend([
            RowValue::Text(Some(source.as_str())),
            RowValue::Text(value.signal.map(Signal::as_str)),
            RowValue::Real(value.number.filter(|_| cell.article.is_none())),
            RowValue::Real(value.number.filter(|_| cell.article.is_some())),
            RowValue::Moment(Some(observed_at.timestamp_micros())),
        ]);
    }
    rows.push(&row)
}
