//! What there is to know of a dataset, as numbers.
//!
//! Each number of a report is computed here, once. [`Tally`] counts the rows of a long dataset while they pass by on their
//! way to the files, before they are put into matrices and in whatever order; [`Facts`] is what came of it, with [`News`],
//! which counts the articles about the tickers of a dataset. [`Work`] is what the runs did that it is built from.
//!
//! Memory follows days by pairs of period and regime, and tickers by how often the pairs that they have change from day to
//! day; never rows.

mod calendar;
mod histogram;
mod news;
mod record;
mod steps;
mod tally;
mod tickers;
mod work;

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};

pub use calendar::{Axis, Step};
pub use histogram::{Bins, Histogram};
pub use news::{Headline, News};
pub use tally::Tally;
pub use work::{Answers, Work};

use crate::interface::{Period, Regime};
use crate::plan::Days;

/// What the rows of a dataset say, and the news about its tickers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// How many rows there are.
    pub rows: u64,
    /// The first date and the last, in microseconds of the naive clock.
    pub dates: Option<(i64, i64)>,
    /// The rows whose dates are not of 1900 to 2099, and so have no place in a plot over time. They count everywhere else.
    pub undrawn: u64,
    /// The days of these.
    pub undrawn_days: u64,
    /// Signals that were left out because an earlier signal of their series has the same naive date.
    pub repeated: u64,
    /// The articles that features were made of.
    pub articles: Articles,
    /// The tickers, by name.
    pub tickers: Vec<OfTicker>,
    /// The pairs of period and regime, shortest period first.
    pub pairs: Vec<OfPair>,
    /// The days of 1900 to 2099 that have rows, in order.
    #[serde(with = "record::days")]
    pub days: Vec<NaiveDate>,
    /// The confidences of the signals that say buy, and of those that say sell.
    pub confidences: [Histogram; 2],
    /// The windows of news.
    pub windows: Vec<InWindow>,
    /// The articles about the tickers; none where the dataset takes no news, or nobody has counted them yet.
    pub news: Option<News>,
}

/// Articles that features were made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Articles {
    /// All of them.
    pub all: u64,
    /// Those without a score.
    pub unscored: u64,
    /// Those that repeat another one exactly, and so count in no window.
    pub repeated: u64,
}

/// What there is of a ticker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfTicker {
    /// Its symbol.
    pub name: String,
    /// How many pairs of period and regime it has.
    pub pairs: u32,
    /// How many of its pairs have a signal, added up over days, by the first day of each month that has any. Of several
    /// signals of a pair on a day one counts.
    #[serde(with = "record::rows_by_day")]
    pub months: Vec<(NaiveDate, u32)>,
}

/// What there is of a pair of period and regime.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfPair {
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// What its signals say on each of [`Facts::days`].
    pub days: Vec<Said>,
    /// What those of other days say.
    pub undrawn: Said,
}

/// What some signals say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "(u64, u64, f64)", from = "(u64, u64, f64)")]
pub struct Said {
    /// How many there are.
    pub rows: u64,
    /// How many of them say buy.
    pub buys: u64,
    /// The sum of their confidences.
    pub confidence: f64,
}

/// How many signals have news in a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InWindow {
    /// How long it is.
    pub days: Days,
    /// The column that counts its articles.
    pub column: String,
    /// How many rows have at least one.
    pub with_news: u64,
}

/// How much of what could be there is there, for the tickers of a dataset.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The stretches of time.
    pub axis: Axis,
    /// By stretch, how many days have rows of any ticker.
    pub days: Vec<u64>,
    /// By stretch, how many tickers have rows.
    pub tickers: Vec<u64>,
    /// The tickers with the most gaps first, as many as any page has room for.
    pub rows: Vec<Covered>,
    /// How many tickers there are.
    pub all: usize,
    /// How many of them lack something.
    pub incomplete: usize,
}

/// How much of what could be there is there, for one ticker.
#[derive(Clone, Debug)]
pub struct Covered {
    /// Its symbol.
    pub ticker: String,
    /// By stretch, the days on which each of its pairs has a signal, added up.
    pub days: Vec<u64>,
    /// By stretch, what they would be if each of its pairs had a signal on every day on which any ticker has one.
    pub full: Vec<u64>,
}

impl Covered {
    /// Its days, and what they would be if none were missing.
    pub fn total(&self) -> (u64, u64) {
        (self.days.iter().sum(), self.full.iter().sum())
    }
}

impl Coverage {
    /// How many tickers are listed; what is said of one takes a kilobyte.
    pub const LISTED: usize = 64;
}

impl Facts {
    /// The first day and the last, drawn or not.
    pub fn bounds(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |micros: i64| DateTime::from_timestamp_micros(micros).map(|moment| moment.date_naive());
        let (first, last) = self.dates?;
        Some((day(first)?, day(last)?))
    }

    /// How many days have rows, drawn or not.
    pub fn day_count(&self) -> u64 {
        self.days.len() as u64 + self.undrawn_days
    }

    /// What is covered, in no more than so many stretches of a month or longer.
    pub fn coverage(&self, most: usize) -> Coverage {
        let axis = Axis::of(&self.days, Step::Month, most);
        let days = axis.sums(self.days.iter().map(|day| (*day, 1)));
        let covered = |ticker: &OfTicker| {
            let own = axis.sums(ticker.months.iter().map(|(month, days)| (*month, u64::from(*days))));
            let full = days.iter().map(|days| days * u64::from(ticker.pairs)).collect();
            Covered { ticker: ticker.name.clone(), days: own, full }
        };
        let mut tickers = vec![0; axis.len()];
        let missing = |ticker: &OfTicker| {
            let covered = covered(ticker);
            tickers.iter_mut().zip(&covered.days).for_each(|(tickers, days)| *tickers += u64::from(*days > 0));
            let (days, full) = covered.total();
            (full - days.min(full), full)
        };
        let missing: Vec<(u64, u64)> = self.tickers.iter().map(missing).collect();
        let mut order: Vec<usize> = (0..missing.len()).collect();
        // By how much of all is missing, as whole numbers: the order is the same everywhere. Ties stay by name.
        order.sort_by(|one, other| {
            let ((lacks, of), (other_lacks, of_other)) = (missing[*one], missing[*other]);
            (u128::from(other_lacks) * u128::from(of)).cmp(&(u128::from(lacks) * u128::from(of_other)))
        });
        let rows = order.iter().take(Coverage::LISTED).map(|place| covered(&self.tickers[*place])).collect();
        let incomplete = missing.iter().filter(|(lacks, _)| *lacks > 0).count();
        Coverage { rows, all: missing.len(), incomplete, tickers, days, axis }
    }

    /// What all signals say, whatever their dates.
    pub fn said(&self) -> Said {
        self.pairs.iter().fold(Said::default(), |sum, pair| sum + pair.total())
    }
}

impl OfPair {
    /// What its signals say in each stretch of time.
    pub fn over(&self, days: &[NaiveDate], axis: &Axis) -> Vec<Said> {
        let mut sums = vec![Said::default(); axis.len()];
        for (day, said) in days.iter().zip(&self.days) {
            if let Some(place) = axis.place(*day) {
                sums[place] = sums[place] + *said;
            }
        }
        sums
    }

    /// What all its signals say, whatever their dates.
    pub fn total(&self) -> Said {
        self.days.iter().fold(self.undrawn, |sum, said| sum + *said)
    }
}

impl std::ops::Add for Said {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            buys: self.buys + other.buys,
            confidence: self.confidence + other.confidence,
        }
    }
}

impl Said {
    /// The share that says buy; none where nothing is said.
    pub fn buy_share(self) -> Option<f64> {
        (self.rows > 0).then(|| self.buys as f64 / self.rows as f64)
    }

    /// The mean confidence; none where nothing is said.
    pub fn mean_confidence(self) -> Option<f64> {
        (self.rows > 0).then(|| self.confidence / self.rows as f64)
    }
}
