//! The numbers of a report.
//!
//! Each number is computed here, once. `Tally` counts the rows of a long dataset as they are written, before any
//! pivot to matrices and in any order. [`Facts`] is its result, together with [`News`], the articles about the
//! dataset's tickers. [`Activity`] covers the runs that the dataset is built from.
//!
//! Memory grows with the number of days times pairs of period and regime, with two bytes for each series, and per ticker
//! with how often its set of pairs changes from one day to the next; never with rows.

mod agreement;
mod calendar;
mod columns;
mod histogram;
mod news;
mod record;
mod sectors;
mod steps;
mod succession;
mod tally;
mod ticker_numbers;
mod work;

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};

pub use agreement::Agreement;
pub use bellwether_statistics::ShareDifference;
pub use calendar::{Axis, Step};
pub use columns::ColumnFacts;
pub use histogram::{Bins, Histogram};
pub use news::{Headline, News, NewsTally};
pub use sectors::{SectorExtremes, SectorFacts};
pub use succession::{Flips, Persistence};
pub(crate) use tally::Tally;
pub use work::{Activity, OperationAnswers};

use crate::interface::{Period, Regime};
use crate::plan::Days;
use crate::split_days::SplitDays;
pub use crate::tables::ArticleCounts;

/// The numbers of a dataset, and of the news about its tickers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Number of rows.
    pub rows: u64,
    /// Earliest and latest date, in naive microseconds.
    pub dates: Option<(i64, i64)>,
    /// Rows dated outside 1900 to 2099. They are not plotted over time but count everywhere else.
    pub undrawn: u64,
    /// Number of days that those rows are on.
    pub undrawn_days: u64,
    /// Rows that rest on claims; none if claims do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<u64>,
    /// Rows that were first seen while their date was fresh, as the dataset's `live_within` says; none in the facts of
    /// earlier programs.
    #[serde(default)]
    pub seen_live: Option<u64>,
    /// Signals left out because an earlier signal of their series has the same naive date.
    pub repeated: u64,
    /// Signals that an operation of the service gives another value than the dataset has; the latest answer counts.
    #[serde(default)]
    pub contradictions: u64,
    /// Tickers whose signals are dated at other times of day than those of most others; none if there are none.
    pub split_days: Option<SplitDays>,
    /// The tickers whose signals are dated at many times of day.
    #[serde(default)]
    pub many_times: u64,
    /// Whether there are signals of Sundays, and none of Fridays.
    #[serde(default)]
    pub are_early: bool,
    /// The articles that features were computed from.
    pub articles: ArticleCounts,
    /// All columns that are built, under their own names; empty in the facts of earlier programs, whose `columns` have
    /// ranges of some of the values.
    #[serde(default, rename = "columns_in_full")]
    pub columns: Vec<ColumnFacts>,
    /// The tickers, by name.
    pub tickers: Vec<TickerFacts>,
    /// Pairs of period and regime, shortest period first.
    pub pairs: Vec<PairFacts>,
    /// Days from 1900 to 2099 that have rows, in order.
    pub days: Vec<NaiveDate>,
    /// Confidences of buys and of sells.
    pub confidences: [Histogram; 2],
    /// Whether signals persist, by confidence; `None` if the sort order of the dataset does not keep the dates of a series
    /// in order, and then no flips are counted either.
    pub persistence: Option<Persistence>,
    /// How often any two pairs agree, in order; `None` if there are too many, or if the sort order of the dataset does not
    /// keep the signals of a ticker and date together.
    pub agreements: Option<Vec<Agreement>>,
    /// The news windows.
    pub windows: Vec<WindowFacts>,
    /// Articles about the tickers; `None` if the dataset has no news, or they have not been counted yet.
    pub news: Option<News>,
}

/// The rows of a ticker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TickerFacts {
    /// Its symbol.
    pub name: String,
    /// Number of pairs of period and regime it has.
    pub pairs: u32,
    /// Which of [`Facts::pairs`]; empty in the facts of earlier programs.
    #[serde(default)]
    pub pair_places: Vec<u8>,
    /// Totals of its signals, whatever their dates.
    pub totals: SignalTotals,
    /// How often they flip.
    pub flips: Flips,
    /// For each month that has signals, by its first day: the number of pairs with a signal, summed over days. Several
    /// signals of a pair on one day count once.
    pub months: Vec<(NaiveDate, u32)>,
}

/// The rows of a pair of period and regime.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PairFacts {
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// Totals for each of [`Facts::days`].
    pub days: Vec<SignalTotals>,
    /// Totals for all other days.
    pub undrawn: SignalTotals,
    /// How often its signals flip.
    pub flips: Flips,
}

/// Totals of some signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "(u64, u64, f64)", from = "(u64, u64, f64)")]
pub struct SignalTotals {
    /// Number of signals.
    pub rows: u64,
    /// Number of buys.
    pub buys: u64,
    /// Sum of confidences.
    pub confidence: f64,
}

/// How many signals have news in a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowFacts {
    /// Length of the window.
    pub length: Days,
    /// The column with the number of its articles.
    pub column: String,
    /// Rows with at least one article.
    pub with_news: u64,
    /// Rows for which it is unknown what was in the window.
    pub unknown: u64,
    /// Rows with at least one article, for each of [`Facts::days`].
    pub days: Vec<u64>,
    /// Rows for which it is unknown what was in the window, for each of [`Facts::days`].
    pub unknown_days: Vec<u64>,
}

/// Coverage of a dataset: the signals present out of those possible.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The time axis.
    pub axis: Axis,
    /// Per bucket, days with rows of any ticker.
    pub days: Vec<u64>,
    /// Per bucket, tickers with rows.
    pub tickers: Vec<u64>,
    /// The tickers with the most gaps first, as many as a page can show.
    pub rows: Vec<TickerCoverage>,
    /// Number of tickers.
    pub all: usize,
    /// Number of tickers with gaps.
    pub incomplete: usize,
}

/// Coverage of one ticker.
#[derive(Clone, Debug)]
pub struct TickerCoverage {
    /// Its symbol.
    pub ticker: String,
    /// Per bucket, days with a signal, summed over its pairs.
    pub days: Vec<u64>,
    /// The same if each of its pairs had a signal on every day that any ticker has one for it.
    pub full: Vec<u64>,
}

impl TickerCoverage {
    /// Pair days present, and pair days possible.
    pub fn total(&self) -> (u64, u64) {
        (self.days.iter().sum(), self.full.iter().sum())
    }
}

impl Coverage {
    /// The most tickers listed; each takes a kilobyte.
    pub const LISTED: usize = 64;
}

impl Facts {
    /// First and last day, plotted or not.
    pub fn bounds(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |micros: i64| DateTime::from_timestamp_micros(micros).map(|moment| moment.date_naive());
        let (first, last) = self.dates?;
        Some((day(first)?, day(last)?))
    }

    /// The newest day that is not after another one; the first day if there is none.
    pub fn newest_by(&self, day: NaiveDate) -> Option<NaiveDate> {
        let (first, last) = self.bounds()?;
        let plotted = self.days.partition_point(|other| *other <= day).checked_sub(1).map(|index| self.days[index]);
        if last <= day { Some(last) } else { plotted.or(Some(first)) }
    }

    /// Number of days with rows, plotted or not.
    pub fn day_count(&self) -> u64 {
        self.days.len() as u64 + self.undrawn_days
    }

    /// Coverage in at most `most` buckets of a month or longer.
    pub fn coverage(&self, most: usize) -> Coverage {
        let axis = Axis::of(&self.days, Step::Month, most);
        let days = axis.sums(self.days.iter().map(|day| (*day, 1)));
        // A pair of monthly signals is due once a month, whatever days the others have.
        let of_pair = |pair: &PairFacts| {
            axis.sums(self.days.iter().zip(&pair.days).map(|(day, totals)| (*day, u64::from(totals.rows > 0))))
        };
        let of_pairs: Vec<Vec<u64>> = self.pairs.iter().map(of_pair).collect();
        let covered = |ticker: &TickerFacts| {
            let own = axis.sums(ticker.months.iter().map(|(month, days)| (*month, u64::from(*days))));
            let due = |bucket: usize| match &ticker.pair_places[..] {
                [] => days[bucket] * u64::from(ticker.pairs),
                indices => indices.iter().map(|index| of_pairs[usize::from(*index)][bucket]).sum(),
            };
            let full = (0..axis.len()).map(due).collect();
            TickerCoverage { ticker: ticker.name.clone(), days: own, full }
        };
        let mut tickers = vec![0; axis.len()];
        let missing = |ticker: &TickerFacts| {
            let covered = covered(ticker);
            tickers.iter_mut().zip(&covered.days).for_each(|(tickers, days)| *tickers += u64::from(*days > 0));
            let (days, full) = covered.total();
            (full - days.min(full), full)
        };
        let missing: Vec<(u64, u64)> = self.tickers.iter().map(missing).collect();
        let mut order: Vec<usize> = (0..missing.len()).collect();
        // Sorted by the missing share, in integers so that the order is the same on every machine. Ties stay in name
        // order.
        order.sort_by(|one, other| {
            let ((lacks, of), (other_lacks, of_other)) = (missing[*one], missing[*other]);
            (u128::from(other_lacks) * u128::from(of)).cmp(&(u128::from(lacks) * u128::from(of_other)))
        });
        let rows = order.iter().take(Coverage::LISTED).map(|index| covered(&self.tickers[*index])).collect();
        let incomplete = missing.iter().filter(|(lacks, _)| *lacks > 0).count();
        Coverage { rows, all: missing.len(), incomplete, tickers, days, axis }
    }

    /// Rows with news in a window, and all rows for which it is known what was in it.
    pub fn with_news(&self, window: &WindowFacts) -> (u64, u64) {
        (window.with_news, self.rows - window.unknown)
    }

    /// How often signals flip.
    pub fn flips(&self) -> Flips {
        self.pairs.iter().map(|pair| pair.flips).sum()
    }

    /// Number of rows on each of its days.
    pub fn rows_by_day(&self) -> Vec<u64> {
        let of_day = |day: usize| self.pairs.iter().map(|pair| pair.days[day].rows).sum();
        (0..self.days.len()).map(of_day).collect()
    }

    /// Totals of all signals, whatever their dates.
    pub fn totals(&self) -> SignalTotals {
        self.pairs.iter().fold(SignalTotals::default(), |sum, pair| sum + pair.total())
    }
}

impl PairFacts {
    /// Totals per bucket.
    pub fn over(&self, days: &[NaiveDate], axis: &Axis) -> Vec<SignalTotals> {
        let mut sums = vec![SignalTotals::default(); axis.len()];
        for (day, totals) in days.iter().zip(&self.days) {
            if let Some(index) = axis.index_of(*day) {
                sums[index] = sums[index] + *totals;
            }
        }
        sums
    }

    /// Totals of all its signals, whatever their dates.
    pub fn total(&self) -> SignalTotals {
        self.days.iter().fold(self.undrawn, |sum, totals| sum + *totals)
    }
}

impl std::ops::Add for SignalTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            buys: self.buys + other.buys,
            confidence: self.confidence + other.confidence,
        }
    }
}

impl SignalTotals {
    /// Share of buys; `None` without signals.
    pub fn buy_share(self) -> Option<f64> {
        (self.rows > 0).then(|| self.buys as f64 / self.rows as f64)
    }

    /// Mean confidence; `None` without signals.
    pub fn mean_confidence(self) -> Option<f64> {
        (self.rows > 0).then(|| self.confidence / self.rows as f64)
    }
}
