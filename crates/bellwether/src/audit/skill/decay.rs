//! How long a signal tells something: the return over its horizon, over the horizon after that, and so on.
//!
//! The return of each lag begins at the close that ended the one before, so that no two of them share a session.

use bellwether_statistics::rank_correlation;

use super::answer::DateMeasure;
use super::horizon::Exits;
use super::measures::{DatedCell, LEAST_NAMES};
use super::prices::Prices;
use super::series::Series;
use crate::interface::Period;

/// The number of lags.
pub(super) const LAGS: usize = 5;

/// The returns of the cells of a date, by lag from 1 on; none where a close is missing, or the return is not complete.
pub(super) struct LaggedReturns([Vec<Option<f64>>; LAGS - 1]);

impl LaggedReturns {
    pub(super) fn of(cells: &[DatedCell], period: Period, exits: &Exits, prices: &Prices) -> Self {
        let mut ends: Vec<Option<usize>> = cells.iter().map(|cell| Some(cell.exit)).collect();
        Self(std::array::from_fn(|_| {
            let next = |(end, cell): (&mut Option<usize>, &DatedCell)| {
                let from = (*end)?;
                *end = exits.exit(period, from);
                prices.between(cell.cell.ticker, from, (*end)?)
            };
            ends.iter_mut().zip(cells).map(next).collect()
        }))
    }
}

/// Rank correlations by lag.
#[derive(Clone, Debug, Default)]
pub(super) struct Decay(pub(super) [Series; LAGS]);

impl Decay {
    /// Adds a date, whose correlation at lag 0 is known: signed confidences, and the places of their cells among those of
    /// the date.
    pub(super) fn add(&mut self, of: &DateMeasure, confidences: &[f64], places: &[usize], returns: &LaggedReturns) {
        let DateMeasure { day, names, correlation, .. } = *of;
        self.0[0].add(day, names, correlation);
        for (series, returns) in self.0[1..].iter_mut().zip(&returns.0) {
            let both =
                confidences.iter().zip(places).filter_map(|(confidence, place)| Some((*confidence, returns[*place]?)));
            let (confidences, returns): (Vec<f64>, Vec<f64>) = both.unzip();
            if returns.len() >= LEAST_NAMES {
                series.add(day, returns.len() as u64, rank_correlation(&confidences, &returns));
            }
        }
    }
}
