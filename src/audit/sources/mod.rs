//! Do the vendor's operations agree with one another?
//!
//! Two of them may speak of the same cell. Each is taken by what it said last, and both are held against one another:
//!
//! - *signals*: of one ticker, period and regime, the histories of every two operations date by date, and a latest signal
//!   and the entry of a history of the same day. Dates are compared as they were written, on the clock of their offset:
//!   the batched form writes none. The older model has signals of its own, and is compared with itself alone.
//! - *scores*: each article that a summary refers to, and the article with the same link in the list. Whether it is the
//!   lowest of all is not asked: lists end where the vendor wants them to, and nobody knows what a summary is of.
//!
//! A date that only one of them has is no disagreement. What an operation said long ago may have been revised by another
//! one since: every disagreement says when each was seen.

mod rows;
mod summaries;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

pub use super::observed::Value;
pub use rows::schema;

use super::gathered::Gathered;
use super::observed::Observed;
use super::subject::Subject;
use crate::archive::History;
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::plan::Reference;
use crate::tables::{SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// How many disagreements an answer keeps.
const KEPT: usize = 10;

/// Where operations speak of the same, and where they contradict one another.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What was compared, by the two operations.
    pub pairs: BTreeMap<(Endpoint, Endpoint), Compared>,
    /// The same by ticker.
    pub tickers: BTreeMap<Ticker, Compared>,
    /// The first disagreements.
    pub first: Vec<Disagreement>,
}

/// Cells of which two operations speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// How many there are.
    pub cells: u64,
    /// Of how many they say something else.
    pub disagreements: u64,
}

/// A cell of which two operations say something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// The symbol.
    pub ticker: Ticker,
    /// The horizon, of a signal.
    pub period: Option<Period>,
    /// The market regime, of a signal.
    pub regime: Option<Regime>,
    /// The date as it was written, in microseconds.
    pub date: i64,
    /// What they speak of.
    pub about: About,
    /// What both say.
    pub statements: [Statement; 2],
}

/// What two operations speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A signal.
    Signal,
    /// The score of an article that a summary refers to, and its address.
    Article(Reference, String),
}

impl About {
    /// Its spelling in files.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Article(Reference::Low, _) => "low_article",
            Self::Article(Reference::High, _) => "high_article",
            Self::Article(Reference::Avg, _) => "avg_article",
        }
    }
}

/// What one operation says of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statement {
    /// The operation.
    pub source: Endpoint,
    /// What it says.
    pub value: Value,
    /// When that was seen first.
    pub observed_at: DateTime<Utc>,
}

impl Sources {
    /// All that was compared.
    pub fn total(&self) -> Compared {
        self.pairs.values().fold(Compared::default(), |sum, pair| Compared {
            cells: sum.cells + pair.cells,
            disagreements: sum.disagreements + pair.disagreements,
        })
    }
}

/// Compares what the operations say, and delivers a row for each disagreement in the columns of [`schema`].
///
/// # Errors
///
/// When a run cannot be read, and what `deliver` fails with.
pub fn sources(subject: &Subject, mut deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    let mut comparing = Comparing { found: Sources::default(), rows: Gathered::new(schema()) };
    for histories in subject.view().histories(Table::Signals)? {
        let histories = histories?;
        let observed = Observed::of(&histories);
        let asked: Vec<&History> = histories.series.iter().filter(|one| subject.has_peer(&one.key)).collect();
        for peers in asked.chunk_by(|one, other| are_peers(&one.key, &other.key)) {
            comparing.signals(subject, peers, &observed);
        }
        comparing.rows.relieve(&mut deliver)?;
    }
    summaries::compare(subject, &mut comparing, &mut deliver)?;
    comparing.rows.flush(deliver)?;
    Ok(comparing.found)
}

/// Whether two series are of the same, whoever gives them; series of one ticker, period and regime stand together.
fn are_peers(one: &SeriesKey, other: &SeriesKey) -> bool {
    (&one.ticker, one.period, one.regime) == (&other.ticker, other.period, other.regime)
}

/// A comparison under way.
struct Comparing {
    found: Sources,
    rows: Gathered,
}

impl Comparing {
    fn signals(&mut self, subject: &Subject, peers: &[&History], observed: &Observed<'_>) {
        for (place, one) in peers.iter().enumerate() {
            for other in &peers[place + 1..] {
                let (sources, key) = ([one.key.source, other.key.source], &one.key);
                if is_of_older_model(sources[0]) != is_of_older_model(sources[1]) {
                    continue;
                }
                let is_by_day = sources.into_iter().any(is_latest);
                let [ones, others] = [one, other].map(|history| {
                    let date = |row: usize| {
                        let date = observed.written_date(row).filter(|date| subject.has_date(*date))?;
                        Some((if is_by_day { date - date.rem_euclid(MICROS_PER_DAY) } else { date }, row))
                    };
                    observed.known(history).filter_map(date).collect::<BTreeMap<i64, usize>>()
                });
                for (date, row) in ones {
                    let Some(&other) = others.get(&date) else { continue };
                    let said = [(sources[0], row), (sources[1], other)].map(|(source, row)| Statement {
                        source,
                        value: observed.value(row),
                        observed_at: observed.instant(row),
                    });
                    let (ticker, period, regime) = (key.ticker.clone(), key.period, key.regime);
                    self.add(Disagreement { ticker, period, regime, date, about: About::Signal, statements: said });
                }
            }
        }
    }

    /// Counts what was compared, which is a disagreement or is not.
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

fn is_latest(source: Endpoint) -> bool {
    matches!(source, Endpoint::Signals | Endpoint::LegacySignals)
}

fn is_of_older_model(source: Endpoint) -> bool {
    use Endpoint::{LegacyHistory, LegacyHistoryAll, LegacyHistoryBatched, LegacySignals};
    matches!(source, LegacyHistoryAll | LegacyHistoryBatched | LegacyHistory | LegacySignals)
}
