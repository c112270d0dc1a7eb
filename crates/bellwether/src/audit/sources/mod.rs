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

mod rows;
mod summaries;

use std::collections::{BTreeMap, HashMap};
use std::ops::{AddAssign, Range};

use arrow::array::{Array, RecordBatch};
use chrono::{DateTime, Utc};

pub use super::observed::Value;
pub use rows::schema;

use super::observed::ObservedColumns;
use super::row_builder::{RowBuilder, RowQueue};
use super::subject::Subject;
use crate::archive::{History, SeriesAnswer, StoredObservations};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::plan::Reference;
use crate::process::in_order::in_order;
use crate::tables::{SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// The most disagreements kept in the result.
const KEPT: usize = 10;

/// Cells that two operations share, and their disagreements.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Comparisons by pair of operations.
    pub pairs: BTreeMap<(Endpoint, Endpoint), ComparisonCounts>,
    /// Comparisons by ticker.
    pub tickers: BTreeMap<Ticker, ComparisonCounts>,
    /// The first disagreements.
    pub first: Vec<Disagreement>,
}

/// Cells that two operations share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonCounts {
    /// Number of cells.
    pub cells: u64,
    /// Number of cells with different values.
    pub disagreements: u64,
}

impl AddAssign for ComparisonCounts {
    fn add_assign(&mut self, other: Self) {
        self.cells += other.cells;
        self.disagreements += other.disagreements;
    }
}

/// A cell with different values in two operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// The ticker.
    pub ticker: Ticker,
    /// The period, for a signal.
    pub period: Option<Period>,
    /// The market regime, for a signal.
    pub regime: Option<Regime>,
    /// The date as written, in microseconds.
    pub date: i64,
    /// What kind of cell it is.
    pub about: SharedCell,
    /// Both values.
    pub statements: [SourceValue; 2],
}

/// A kind of shared cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedCell {
    /// A signal.
    Signal,
    /// The score of an article that a summary refers to, with its link.
    Article(Reference, String),
}

impl SharedCell {
    /// Its name in files.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Article(Reference::Low, _) => "low_article",
            Self::Article(Reference::High, _) => "high_article",
            Self::Article(Reference::Avg, _) => "avg_article",
        }
    }
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

impl Sources {
    /// Adds what was found in some more cells.
    fn add(&mut self, more: Self) {
        more.pairs.into_iter().for_each(|(pair, counts)| *self.pairs.entry(pair).or_default() += counts);
        more.tickers.into_iter().for_each(|(ticker, counts)| *self.tickers.entry(ticker).or_default() += counts);
        let room = KEPT - self.first.len();
        self.first.extend(more.first.into_iter().take(room));
    }

    /// Total over all pairs.
    pub fn total(&self) -> ComparisonCounts {
        let mut total = ComparisonCounts::default();
        self.pairs.values().for_each(|pair| total += *pair);
        total
    }
}

/// Compares operations and delivers a row for each disagreement in the columns of [`schema`].
pub(crate) fn sources(subject: &Subject, mut deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    let (mut found, mut queue) = (Sources::default(), RowQueue::default());
    let mut take = |piece: (Sources, Option<RecordBatch>)| {
        found.add(piece.0);
        queue.add(piece.1, &mut deliver)
    };
    compare_signals(subject, &mut take)?;
    summaries::compare(subject, &mut take)?;
    queue.flush(deliver)?;
    Ok(found)
}

/// Counts the signals that operations give different values.
pub(crate) fn contradictions(subject: &Subject) -> Result<ComparisonCounts> {
    let mut found = Sources::default();
    compare_signals(subject, &mut |(piece, _)| {
        found.add(piece);
        Ok(())
    })?;
    Ok(found.total())
}

/// The last answer of each operation about a series of signals.
type LastAnswers = BTreeMap<Endpoint, SeriesAnswer>;

/// The last answers about each series of signals that several operations gave.
fn last_answers(subject: &Subject) -> Result<HashMap<SeriesKey, LastAnswers>> {
    let mut answers: HashMap<SeriesKey, LastAnswers> = HashMap::new();
    if subject.view().operations().len() < 2 {
        return Ok(answers);
    }
    for run in subject.view().runs() {
        for answer in run.answers()?.into_iter().filter(|answer| answer.key.table == Some(Table::Signals)) {
            if !subject.has(&answer.key) {
                continue;
            }
            let of_series = answers.entry(answer.key.clone()).or_default();
            let is_later = of_series.get(&answer.source).is_none_or(|last| last.observed_at <= answer.observed_at);
            if is_later {
                of_series.insert(answer.source, answer);
            }
        }
    }
    answers.retain(|_, of_series| of_series.len() > 1);
    Ok(answers)
}

/// Compares signals, several pieces at once, and takes what was found in each, in order.
fn compare_signals(
    subject: &Subject,
    take: &mut impl FnMut((Sources, Option<RecordBatch>)) -> Result<()>,
) -> Result<()> {
    let answers = last_answers(subject)?;
    if answers.is_empty() {
        return Ok(());
    }
    let of_piece = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::of(&histories);
        let mut comparing = Comparing::new();
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            if let Some(answers) = answers.get(&history.key) {
                comparing.signals(subject, history, answers, &observed);
            }
        }
        comparing.finish()
    };
    in_order(|| subject.view().observations(Table::Signals), of_piece, take)
}

/// A comparison of some series in progress.
struct Comparing {
    found: Sources,
    rows: RowBuilder,
}

impl Comparing {
    fn new() -> Self {
        Self { found: Sources::default(), rows: RowBuilder::new(schema()) }
    }

    /// What was found, and a row for each disagreement.
    fn finish(self) -> Result<(Sources, Option<RecordBatch>)> {
        Ok((self.found, self.rows.finish()?))
    }

    fn signals(&mut self, subject: &Subject, history: &History, answers: &LastAnswers, observed: &ObservedColumns<'_>) {
        let answers: Vec<&SeriesAnswer> = answers.values().collect();
        for (index, one) in answers.iter().enumerate() {
            for other in &answers[index + 1..] {
                let (sources, key) = ([one.source, other.source], &history.key);
                if is_of_older_model(sources[0]) != is_of_older_model(sources[1]) {
                    continue;
                }
                let is_by_day = sources.into_iter().any(Endpoint::is_latest);
                let [ones, others] = [one, other].map(|answer| {
                    let date = |row: usize| {
                        let date = observed.written_date(row).filter(|_| subject.has_date(observed, row))?;
                        Some((if is_by_day { date - date.rem_euclid(MICROS_PER_DAY) } else { date }, row))
                    };
                    listed_rows(history, answer, observed).filter_map(date).collect::<BTreeMap<i64, usize>>()
                });
                for (date, row) in ones {
                    let Some(&other) = others.get(&date) else { continue };
                    let said = [(sources[0], row), (sources[1], other)].map(|(source, row)| SourceValue {
                        source,
                        value: observed.value(row),
                        observed_at: observed.instant(row),
                    });
                    let (ticker, period, regime) = (key.ticker.clone(), key.period, key.regime);
                    self.add(Disagreement {
                        ticker,
                        period,
                        regime,
                        date,
                        about: SharedCell::Signal,
                        statements: said,
                    });
                }
            }
        }
    }

    /// Counts a comparison, and records it if the values differ.
    fn add(&mut self, compared: Disagreement) {
        let [one, other] = compared.statements;
        let is_so = one.value != other.value;
        let pair = self.found.pairs.entry((one.source, other.source)).or_default();
        let ticker = self.found.tickers.entry(compared.ticker.clone()).or_default();
        for counted in [pair, ticker] {
            counted.cells += 1;
            counted.disagreements += u64::from(is_so);
        }
        if is_so {
            rows::push(&mut self.rows, &compared);
            if self.found.first.len() < KEPT {
                self.found.first.push(compared);
            }
        }
    }
}

/// The rows that an answer listed: the values known by then of the cells that it covers.
fn listed_rows<'a>(
    history: &'a History,
    answer: &'a SeriesAnswer,
    observed: &'a ObservedColumns<'_>,
) -> impl Iterator<Item = usize> + 'a {
    let by_then = |row: &usize| observed.instant(*row) <= answer.observed_at;
    let last = move |cell: Range<usize>| cell.rev().find(by_then).filter(|&row| !observed.is_withdrawn(row));
    let date = |row: usize| observed.dates.is_valid(row).then(|| observed.dates.value(row));
    history.groups.cells().filter_map(last).filter(move |&row| answer.covers.holds(Table::Signals, date(row)))
}

fn is_of_older_model(source: Endpoint) -> bool {
    use Endpoint::{LegacyHistory, LegacyHistoryAll, LegacyHistoryBatched, LegacySignals};
    matches!(source, LegacyHistoryAll | LegacyHistoryBatched | LegacyHistory | LegacySignals)
}
