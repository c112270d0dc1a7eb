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

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

pub use super::subject::Value;

use super::rows::RowValue::{self, Real, Text, Whole};
use super::rows::{Entry, RowWriter, always, optional, schema_of};
use super::subject::{ObservedColumns, Subject, instant_of};
use crate::archive::{Histories, History, SeriesAnswer};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Signal, Ticker};
use crate::plan::Reference;
use crate::tables::{Change, SeriesKey, Table, TypedRows, date, instant};
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

    fn confidence(&self, side: usize) -> RowValue<'_> {
        Real(self.sides[side].value.number.filter(|_| self.article.is_none()))
    }

    fn score(&self, side: usize) -> RowValue<'_> {
        Real(self.sides[side].value.number.filter(|_| self.article.is_some()))
    }
}

impl SourceValue {
    fn new(source: Endpoint, observed: &ObservedColumns<'_>, row: usize) -> Self {
        Self { source, value: observed.value(row), observed_at: instant_of(observed.seen.value(row)) }
    }
}

/// Compares operations and delivers a row for each disagreement in the columns of [`schema`].
pub(crate) fn sources(subject: &Subject, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    let (mut found, mut pairs) = (Sources::default(), BTreeMap::<_, (u64, u64)>::new());
    let mut rows = RowWriter::new(entries(), deliver);
    let mut take = |cells: Vec<Comparison>| {
        for cell in cells {
            let [one, other] = &cell.sides;
            let differs = u64::from(one.value != other.value);
            let of_pair = pairs.entry((one.source, other.source)).or_default();
            let of_ticker = found.tickers.entry(cell.ticker.clone()).or_default();
            *of_pair = (of_pair.0 + 1, of_pair.1 + differs);
            *of_ticker = (of_ticker.0 + 1, of_ticker.1 + differs);
            (found.cells, found.disagreements) = (found.cells + 1, found.disagreements + differs);
            if differs > 0 {
                rows.push(&cell)?;
                if found.first.len() < 10 {
                    found.first.push(cell);
                }
            }
        }
        Ok(())
    };
    compare_signals(subject, &mut take)?;
    compare_summaries(subject, &mut take)?;
    rows.flush()?;
    let pair = |((one, other), (cells, disagreements))| Pair { one, other, cells, disagreements };
    found.operations = pairs.into_iter().map(pair).collect();
    Ok(found)
}

/// The number of signals that operations give different values.
pub(crate) fn contradictions(subject: &Subject) -> Result<u64> {
    let mut disagreements = 0;
    compare_signals(subject, &mut |cells: Vec<Comparison>| {
        disagreements += cells.iter().filter(|cell| cell.sides[0].value != cell.sides[1].value).count();
        Ok(())
    })?;
    Ok(disagreements as u64)
}

/// The last answer of each operation about each series of signals that several operations gave.
fn last_answers(subject: &Subject) -> Result<HashMap<SeriesKey, BTreeMap<Endpoint, SeriesAnswer>>> {
    let mut answers: HashMap<SeriesKey, BTreeMap<Endpoint, SeriesAnswer>> = HashMap::new();
    if subject.view.operations().len() < 2 {
        return Ok(answers);
    }
    for run in subject.view.runs() {
        for answer in run.answers()? {
            if answer.key.table == Some(Table::Signals) && subject.has(&answer.key) {
                let of_series = answers.entry(answer.key.clone()).or_default();
                if of_series.get(&answer.source).is_none_or(|last| last.observed_at <= answer.observed_at) {
                    of_series.insert(answer.source, answer);
                }
            }
        }
    }
    answers.retain(|_, of_series| of_series.len() > 1);
    Ok(answers)
}

/// Compares signals, several pieces at once, and takes what was found in each, in order.
fn compare_signals(subject: &Subject, take: &mut impl FnMut(Vec<Comparison>) -> Result<()>) -> Result<()> {
    let answers = last_answers(subject)?;
    if answers.is_empty() {
        return Ok(());
    }
    let compare = |histories: &Histories, observed: &ObservedColumns<'_>| {
        let mut found = Vec::new();
        for history in subject.series(histories) {
            let of_series: Vec<&SeriesAnswer> =
                answers.get(&history.key).into_iter().flat_map(BTreeMap::values).collect();
            for (index, one) in of_series.iter().enumerate() {
                for other in &of_series[index + 1..] {
                    if is_of_older_model(one.source) == is_of_older_model(other.source) {
                        compare_answers(subject, history, [one, other], observed, &mut found);
                    }
                }
            }
        }
        Ok(found)
    };
    subject.each_piece(|view| view.observations(Table::Signals), compare, take)
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
    found: &mut Vec<Comparison>,
) {
    let is_by_day = answers.iter().any(|answer| answer.source.is_latest());
    let [ones, others] = answers.map(|answer| {
        let mut listed = BTreeMap::new();
        for cell in history.groups.cells() {
            // The value known by then, if the answer covers it.
            let row = cell.rev().find(|row| instant_of(observed.seen.value(*row)) <= answer.observed_at);
            let Some(row) = row.filter(|row| !observed.is_withdrawn(*row)) else { continue };
            let date = observed.dates.is_valid(row).then(|| observed.dates.value(row));
            if answer.covers.holds(Table::Signals, date)
                && subject.has_date(observed, row)
                && let Some(date) = observed.written_date(row)
            {
                let said = SourceValue::new(answer.source, observed, row);
                listed.insert(if is_by_day { date - date.rem_euclid(MICROS_PER_DAY) } else { date }, said);
            }
        }
        listed
    });
    for (date, one) in ones {
        if let Some(other) = others.get(&date) {
            let SeriesKey { ticker, period, regime, .. } = history.key.clone();
            found.push(Comparison { ticker, period, regime, date, article: None, sides: [one, *other] });
        }
    }
}

/// Compares every article that a summary refers to with the listed one. Summaries are held in memory, a few rows per
/// ticker; articles are not.
fn compare_summaries(subject: &Subject, take: &mut impl FnMut(Vec<Comparison>) -> Result<()>) -> Result<()> {
    let mut references: HashMap<Ticker, Vec<(Reference, String, SourceValue)>> = HashMap::new();
    for piece in subject.view.observations(Table::Summaries)? {
        let histories = piece?.histories()?;
        for History { key, groups } in subject.series(&histories) {
            for row in groups.cells().map(|cell| cell.end - 1) {
                if histories.changes[row] != Change::Withdrawn {
                    references.insert(key.ticker.clone(), references_of(&histories.rows, row));
                }
            }
        }
    }
    if references.is_empty() {
        return Ok(());
    }
    let compare = |histories: &Histories, observed: &ObservedColumns<'_>| {
        let mut found = Vec::new();
        for history in &histories.series {
            for (reference, link, summary) in references.get(&history.key.ticker).into_iter().flatten() {
                let links = observed.texts.expect("these are articles")[1];
                let listed = || observed.known_rows(history).filter(|row| links.value(*row) == link);
                // A link may be listed several times; one match is enough.
                let agrees = listed().find(|row| observed.value(*row) == summary.value);
                let Some(row) = agrees.or_else(|| listed().last()) else { continue };
                found.push(Comparison {
                    ticker: history.key.ticker.clone(),
                    period: None,
                    regime: None,
                    date: observed.dates.value(row),
                    article: Some((*reference, link.clone())),
                    sides: [*summary, SourceValue::new(Endpoint::NewsArticles, observed, row)],
                });
            }
        }
        Ok(found)
    };
    subject.each_piece(|view| view.whole_observations(Table::Articles), compare, take)
}

/// The articles that a summary refers to, with their links and scores.
fn references_of(summaries: &RecordBatch, row: usize) -> Vec<(Reference, String, SourceValue)> {
    let (rows, mut references) = (TypedRows(summaries), Vec::new());
    for reference in Reference::ALL {
        let [links, scores] = ["link", "score"].map(|what| format!("{}_{what}", reference.as_str()));
        let (links, scores) = (rows.texts(&links), rows.reals(&scores));
        if links.is_valid(row) {
            let value = Value { signal: None, number: scores.is_valid(row).then(|| scores.value(row)) };
            let observed_at = instant_of(rows.instants("observed_at").value(row));
            let summary = SourceValue { source: Endpoint::SocialSentiment, value, observed_at };
            references.push((reference, links.value(row).to_owned(), summary));
        }
    }
    references
}

/// The columns of disagreements: the cell, and the value in each of two operations.
pub fn schema() -> SchemaRef {
    schema_of(entries())
}

pub(super) fn entries() -> [Entry<Comparison>; 16] {
    use DataType::{Float64, Utf8};
    let about = "`signal`, or the article of a summary: `low_article`, `high_article` or `avg_article`";
    let direction = "the direction that one operation said last";
    let observed = "when what one operation says was said for the first time, by whichever operation";
    [
        always("ticker", Utf8, "", |it| Text(Some(it.ticker.as_str()))),
        optional("period", Utf8, "", |it| Text(it.period.map(Period::as_str))),
        optional("regime", Utf8, "", |it| Text(it.regime.map(Regime::as_str))),
        always("date", date(), "the date, as written in the answer", |it| Whole(Some(it.date))),
        always("about", Utf8, about, |it| Text(Some(it.about()))),
        optional("link", Utf8, "", |it| Text(it.article.as_ref().map(|(_, link)| link.as_str()))),
        always("source", Utf8, "one operation", |it| Text(Some(it.sides[0].source.as_str()))),
        optional("signal", Utf8, direction, |it| Text(it.sides[0].value.signal.map(Signal::as_str))),
        optional("confidence", Float64, "the confidence that one operation said last", |it| it.confidence(0)),
        optional("score", Float64, "the score that one operation said last", |it| it.score(0)),
        always("observed_at", instant(), observed, |it| Whole(Some(it.sides[0].observed_at.timestamp_micros()))),
        always("other_source", Utf8, "", |it| Text(Some(it.sides[1].source.as_str()))),
        optional("other_signal", Utf8, "", |it| Text(it.sides[1].value.signal.map(Signal::as_str))),
        optional("other_confidence", Float64, "", |it| it.confidence(1)),
        optional("other_score", Float64, "", |it| it.score(1)),
        always("other_observed_at", instant(), "", |it| Whole(Some(it.sides[1].observed_at.timestamp_micros()))),
    ]
}
