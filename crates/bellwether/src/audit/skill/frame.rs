//! The signals of a date beside what followed: their returns, and the betas of their names.

use std::collections::{BTreeSet, HashSet};

use bellwether_statistics::{Ranks, Windows};

use super::cells::Cell;
use super::news::SignalNews;
use crate::interface::Period;
use crate::prices::horizon::{EntrySpan, Exits};
use crate::prices::{Day, Prices};

/// The number of lags.
pub(super) const LAGS: usize = 5;

/// What pairs are measured with.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    pub(super) prices: &'a Prices,
    pub(super) exits: &'a Exits,
    pub(super) betas: &'a Betas,
    /// The names of the sectors, and the index of that of each name.
    pub(super) sectors: &'a (Vec<String>, Vec<usize>),
    /// The names of which nothing is listed any more.
    pub(super) delisted: &'a HashSet<u16>,
    /// None if the dataset has none.
    pub(super) news: Option<&'a SignalNews>,
}

/// The signals of a date with what followed.
pub(super) struct DateFrame<'a> {
    pub(super) day: Day,
    pub(super) cells: &'a [Cell],
    /// The sessions of their exits, and their returns.
    pub(super) exits: Vec<usize>,
    pub(super) returns: Vec<f64>,
    /// The returns over one horizon after the other.
    pub(super) by_lag: [Ranks; LAGS],
    pub(super) sectors: Vec<usize>,
    pub(super) betas: Ranks,
}

impl DateFrame<'_> {
    /// Scores of the signals that are taken; not a number for the others.
    pub(super) fn scores(&self, score: impl Fn(&Cell) -> Option<f64>) -> Ranks {
        Ranks::new(self.cells.iter().map(|cell| score(cell).unwrap_or(f64::NAN)).collect())
    }

    /// The entries of the signals that have a number.
    pub(super) fn entries(&self, values: &Ranks) -> EntrySpan {
        let mut entries = EntrySpan::NONE;
        let known = self.cells.iter().zip(values.values()).filter(|(_, value)| !value.is_nan());
        known.for_each(|(cell, _)| entries.add(cell.entry));
        entries
    }
}

impl Measuring<'_> {
    pub(super) fn date_frame<'a>(&self, period: Period, cells: &'a [Cell]) -> DateFrame<'a> {
        let mut begins: Vec<Option<usize>> = cells.iter().map(|cell| Some(cell.entry.into())).collect();
        let exits: Vec<usize> = begins.iter().filter_map(|begin| self.exits.exit(period, (*begin)?)).collect();
        let by_lag: [Ranks; LAGS] = std::array::from_fn(|_| {
            let values = begins.iter_mut().zip(cells).map(|(begin, cell)| {
                let from = begin.take()?;
                *begin = self.exits.exit(period, from);
                self.exits.held(self.prices, cell.ticker, from, (*begin)?).map(|(value, _)| value)
            });
            Ranks::new(values.map(|value| value.unwrap_or(f64::NAN)).collect())
        });
        DateFrame {
            day: self.prices.sessions()[0] + Day::from(cells[0].day),
            cells,
            exits,
            returns: by_lag[0].values().to_vec(),
            by_lag,
            sectors: cells.iter().map(|cell| self.sectors.1[usize::from(cell.ticker)]).collect(),
            betas: Ranks::new(cells.iter().map(|cell| self.betas.beta(cell.ticker, cell.entry)).collect()),
        }
    }

    /// The return of a name between two sessions; not a number if it has none.
    pub(super) fn value(&self, ticker: u16, from: u16, to: u16) -> f64 {
        let value = self.exits.held(self.prices, ticker, from.into(), to.into());
        value.map_or(f64::NAN, |(value, _)| value)
    }

    /// The windows of the returns of some dates, some horizons after their entry.
    pub(super) fn windows(&self, period: Period, lag: usize, dates: impl Iterator<Item = EntrySpan>) -> Windows {
        Windows::new(dates.map(|entries| entries.window(self.exits, period, lag)))
    }
}

/// The middle of the returns of a date.
#[derive(Clone, Copy)]
pub(super) struct Center {
    pub(super) mean: f64,
    median: f64,
    /// The share of those above the median among those that are not the median.
    above: f64,
}

impl Center {
    /// Of some returns; those that are not a number do not count.
    pub(super) fn new(returns: &[f64]) -> Self {
        let mut sorted: Vec<f64> = returns.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        if count == 0 {
            return Self { mean: f64::NAN, median: f64::NAN, above: f64::NAN };
        }
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        let above = sorted.iter().filter(|value| **value > median).count() as f64;
        let below = sorted.iter().filter(|value| **value < median).count() as f64;
        Self { mean: sorted.iter().sum::<f64>() / count as f64, median, above: above / (above + below) }
    }

    /// Whether a return went the way of a signal; none if it is the median.
    pub(super) fn agrees(&self, is_sell: bool, value: f64) -> Option<bool> {
        (value != self.median).then_some((value < self.median) == is_sell)
    }

    /// The chance of that if the signal knows nothing.
    pub(super) fn luck(&self, is_sell: bool) -> f64 {
        if is_sell { 1.0 - self.above } else { self.above }
    }
}

/// The mean of some numbers; none without any.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Sessions between estimates.
const STEP: usize = 21;

/// Steps that an estimate rests on, about half a year, and the fewest daily returns in them.
const STEPS: usize = 6;
const MIN_RETURNS: f64 = 60.0;

/// The beta of each name over time.
pub(super) struct Betas {
    /// By ticker, then by step; not a number where there are too few returns.
    betas: Vec<f32>,
    steps: usize,
}

impl Betas {
    /// Those of some names, by their numbers.
    pub(super) fn new(prices: &Prices, names: &BTreeSet<u16>) -> Self {
        let (sessions, tickers) = (prices.sessions().len(), prices.tickers().len());
        let daily = |ticker: u16, session: usize| prices.between(ticker, session - 1, session);
        let mut market = vec![(0.0, 0.0); sessions];
        for ticker in names.iter().copied() {
            for (session, (sum, count)) in market.iter_mut().enumerate().skip(1) {
                if let Some(value) = daily(ticker, session) {
                    (*sum, *count) = (*sum + value, *count + 1.0);
                }
            }
        }
        let steps = sessions / STEP + 1;
        let mut betas = vec![f32::NAN; tickers * steps];
        for ticker in names.iter().copied() {
            // Of each step: the returns, their sum, that of the market, of its squares, and of the products.
            let mut sums = vec![[0.0; 5]; steps];
            for session in 1..sessions {
                if let Some(own) = daily(ticker, session) {
                    let all = market[session].0 / market[session].1;
                    let terms = [1.0, own, all, all * all, own * all];
                    sums[session / STEP].iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                }
            }
            for step in 0..steps {
                let mut of = [0.0; 5];
                for before in &sums[step.saturating_sub(STEPS)..step] {
                    of.iter_mut().zip(before).for_each(|(sum, term)| *sum += term);
                }
                let [count, own, all, squares, products] = of;
                let beta = (products - own * all / count) / (squares - all * all / count);
                if count >= MIN_RETURNS {
                    betas[usize::from(ticker) * steps + step] = beta as f32;
                }
            }
        }
        Self { betas, steps }
    }

    /// The beta of a name as it was known at a session, from the returns of steps before; not a number if it was not.
    pub(super) fn beta(&self, ticker: u16, session: u16) -> f64 {
        f64::from(self.betas[usize::from(ticker) * self.steps + usize::from(session) / STEP])
    }
}
