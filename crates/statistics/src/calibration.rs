//! Whether a confidence of 70 % comes true in 70 % of the cases.
//!
//! The method is CORP of Dimitriadis, Gneiting and Jordan (PNAS 2021): the frequency at each confidence is estimated by
//! isotonic regression, which needs no choice of bins, and splits Brier's score in three.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{CONFIDENCE, Interval, Random};

/// Resamples behind a consistency band.
const RESAMPLES: usize = 400;

/// Forecast probabilities with what came true.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Number of forecasts.
    pub observations: u64,
    /// The mean square of the distance between forecast and outcome (Brier):
    /// `miscalibration - discrimination + uncertainty`.
    pub brier: f64,
    /// What would be gained if each forecast were the frequency at it; 0 is best.
    pub miscalibration: f64,
    /// What the calibrated forecasts gain over the same forecast for all; 0 is worthless.
    pub discrimination: f64,
    /// The score of the same forecast for all, the base rate.
    pub uncertainty: f64,
    /// The different forecasts, ascending.
    pub levels: Vec<Level>,
}

/// All cases with the same forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The forecast probability.
    pub forecast: f64,
    /// Number of cases.
    pub cases: u64,
    /// Number of cases that came true.
    pub hits: u64,
    /// The frequency at this forecast, by isotonic regression.
    pub calibrated: f64,
}

/// The frequency at a forecast, and the frequencies that are likely there if it is calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BandPoint {
    /// The confidence.
    #[serde(rename = "confidence")]
    pub forecast: f64,
    /// The share of hits at it, by isotonic regression.
    #[serde(rename = "frequency")]
    pub calibrated: f64,
    /// Where that would be in 95 % of the cases if confidences were probabilities: the consistency band.
    #[serde(flatten)]
    pub interval: Interval,
}

/// Neighbouring forecasts, about as many in each: the usual table, which changes with the number of bins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bin {
    /// The smallest forecast.
    pub lowest: f64,
    /// The largest forecast.
    pub highest: f64,
    /// The mean forecast.
    pub mean_forecast: f64,
    /// Number of cases.
    pub cases: u64,
    /// Number of cases that came true.
    pub hits: u64,
}

impl Calibration {
    /// Compares forecasts with outcomes. `None` without forecasts, or if one is not a probability.
    ///
    /// ```
    /// # use bellwether_statistics::calibration::Calibration;
    /// let calibration = Calibration::new(&[0.2, 0.2, 0.8, 0.8], &[false, true, true, true]).expect("probabilities");
    /// assert_eq!(calibration.levels.iter().map(|level| level.calibrated).collect::<Vec<_>>(), [0.5, 1.0]);
    /// assert_eq!(calibration.uncertainty, 0.1875);
    /// ```
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[must_use]
    pub fn new(forecasts: &[f64], outcomes: &[bool]) -> Option<Self> {
        assert_eq!(forecasts.len(), outcomes.len(), "an outcome for every forecast");
        if forecasts.is_empty() || !forecasts.iter().all(|forecast| (0.0..=1.0).contains(forecast)) {
            return None;
        }
        let mut levels = levels(forecasts, outcomes);
        let weights: Vec<f64> = levels.iter().map(|level| level.cases as f64).collect();
        let rates: Vec<f64> = levels.iter().map(|level| level.hits as f64 / level.cases as f64).collect();
        for (level, fitted) in levels.iter_mut().zip(isotonic_regression(&rates, &weights)) {
            level.calibrated = fitted;
        }
        let observations = forecasts.len() as u64;
        let base = levels.iter().map(|level| level.hits).sum::<u64>() as f64 / observations as f64;
        let score = |forecast: &dyn Fn(&Level) -> f64| {
            let squares = levels.iter().map(|level| {
                let (forecast, misses) = (forecast(level), level.cases - level.hits);
                level.hits as f64 * (1.0 - forecast).powi(2) + misses as f64 * forecast.powi(2)
            });
            squares.sum::<f64>() / observations as f64
        };
        let (brier, calibrated) = (score(&|level| level.forecast), score(&|level| level.calibrated));
        let uncertainty = score(&|_| base);
        let (miscalibration, discrimination) = (brier - calibrated, uncertainty - calibrated);
        Some(Self { observations, brier, miscalibration, discrimination, uncertainty, levels })
    }

    /// The consistency band, at 95 % for each forecast by itself: what isotonic regression would show if every case
    /// came true with the probability that was forecast, independently of the others. Cases that share a date or whose
    /// horizons overlap are not independent, and make the band too narrow: give it one date a horizon.
    ///
    /// It is drawn at every forecast, or at a hundred of them, from 400 resamples of a fixed seed.
    #[must_use]
    pub fn consistency_band(&self) -> Vec<BandPoint> {
        let last = self.levels.len() - 1;
        let points = self.levels.len().min(100);
        let shown: Vec<usize> = (0..points).map(|point| point * last / (points - 1).max(1)).collect();
        let mut random = Random::new(1);
        let mut seen = vec![Vec::with_capacity(RESAMPLES); points];
        for _ in 0..RESAMPLES {
            let fits = fits(self.levels.iter().map(|level| {
                let hits = (0..level.cases).filter(|_| random.uniform() < level.forecast).count();
                (hits as f64, level.cases as f64)
            }));
            seen.iter_mut().zip(&shown).for_each(|(values, level)| values.push(fits[*level]));
        }
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let band = shown.iter().zip(&mut seen).filter_map(|(&level, values)| {
            values.sort_unstable_by(f64::total_cmp);
            let interval = Interval { lower: quantile(values, tail)?, upper: quantile(values, 1.0 - tail)? };
            let Level { forecast, calibrated, .. } = self.levels[level];
            Some(BandPoint { forecast, calibrated, interval })
        });
        band.collect()
    }

    /// Ten bins of about equally many cases; equal forecasts share a bin, so that there may be fewer.
    #[must_use]
    pub fn deciles(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        let (mut before, mut last) = (0, None);
        for Level { forecast, cases, hits, .. } in self.levels.iter().copied() {
            // The bin of the case in the middle of the level.
            let bin = (10 * (2 * before + cases) / (2 * self.observations)).min(9);
            before += cases;
            if last.replace(bin) != Some(bin) {
                bins.push(Bin { lowest: forecast, highest: forecast, mean_forecast: 0.0, cases: 0, hits: 0 });
            }
            let open = bins.last_mut().expect("one was just added");
            open.highest = forecast;
            open.mean_forecast += forecast * cases as f64;
            (open.cases, open.hits) = (open.cases + cases, open.hits + hits);
        }
        bins.into_iter().map(|bin| Bin { mean_forecast: bin.mean_forecast / bin.cases as f64, ..bin }).collect()
    }
}

/// The different forecasts, ascending, with their cases.
fn levels(forecasts: &[f64], outcomes: &[bool]) -> Vec<Level> {
    // Probabilities order as their bits do, and leave the highest bit free for the outcome.
    let key = |(forecast, outcome): (&f64, &bool)| (forecast + 0.0).to_bits() << 1 | u64::from(*outcome);
    let mut cases: Vec<u64> = forecasts.iter().zip(outcomes).map(key).collect();
    cases.sort_unstable();
    let level = |ties: &[u64]| Level {
        forecast: f64::from_bits(ties[0] >> 1),
        cases: ties.len() as u64,
        hits: ties.iter().map(|case| case & 1).sum(),
        calibrated: 0.0,
    };
    cases.chunk_by(|one, next| one >> 1 == next >> 1).map(level).collect()
}

/// The quantile of ascending values, interpolated linearly; `None` without values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len().checked_sub(1)?) as f64;
    let (lower, upper) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(lower + (upper - lower) * position.fract())
}

/// The non-decreasing sequence that is closest to the values by weighted squares, by pooling adjacent violators.
/// Weights are positive.
///
/// ```
/// # use bellwether_statistics::isotonic_regression;
/// assert_eq!(isotonic_regression(&[1.0, 3.0, 2.0, 4.0], &[1.0, 1.0, 3.0, 1.0]), [1.0, 2.25, 2.25, 4.0]);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn isotonic_regression(values: &[f64], weights: &[f64]) -> Vec<f64> {
    assert_eq!(values.len(), weights.len(), "a weight for every value");
    fits(values.iter().zip(weights).map(|(value, weight)| (value * weight, *weight)))
}

/// The fits of values, each times its weight, with that weight.
fn fits(values: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    // Values of equal fit that lie side by side: the sum of them, each times its weight, that of their weights, and their number.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (mut sum, mut weight) in values {
        let mut length = 1;
        // Means are compared by their products, so that blocks of equal means are pooled exactly.
        while let Some(before) = blocks.pop_if(|before| before.0 * weight >= sum * before.1) {
            (sum, weight, length) = (sum + before.0, weight + before.1, length + before.2);
        }
        blocks.push((sum, weight, length));
    }
    blocks.into_iter().flat_map(|(sum, weight, length)| std::iter::repeat_n(sum / weight, length)).collect()
}
