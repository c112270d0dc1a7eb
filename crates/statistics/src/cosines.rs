//! The long-run variance from the slowest cosines of a series.

use std::f64::consts::PI;

use crate::windows::Windows;

/// The fewest cosines: with fewer, an interval is too wide to be of use.
const MINIMUM: usize = 4;

/// The first type-II cosines over a number of values, √(2/T) cos(πj(t + 1/2)/T): what a series of overlapping horizons
/// is projected on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cosines {
    /// How many there are.
    pub(crate) count: usize,
    /// The share of the long-run variance that they see.
    seen: f64,
}

impl Cosines {
    /// The cosines for values that look over some windows.
    pub(crate) fn of(values: usize, windows: &Windows) -> Self {
        let optimal = (0.41 * (values as f64).powf(2.0 / 3.0)).floor() as usize;
        let slow = windows.whole() / 2;
        if slow < MINIMUM {
            return Self { count: MINIMUM, seen: seen_of_overlap(MINIMUM, values, windows.horizon().get()) };
        }
        Self { count: optimal.min(slow).max(MINIMUM), seen: 1.0 }
    }

    /// The mean square of the projections of values with this mean, by the share that the cosines see.
    pub(crate) fn variance(self, values: &[f64], mean: f64) -> f64 {
        let mut projections = vec![0.0; self.count];
        for (index, value) in values.iter().enumerate() {
            let deviation = value - mean;
            for (projection, cosine) in projections.iter_mut().zip(multiples(index, values.len())) {
                *projection += deviation * cosine;
            }
        }
        let squares: f64 = projections.iter().map(|projection| projection * projection).sum();
        squares * 2.0 / values.len() as f64 / self.count as f64 / self.seen
    }
}

/// The cosines at a place, without their scale. By rotation: one sine for all of them.
fn multiples(index: usize, values: usize) -> impl Iterator<Item = f64> {
    let (sine, cosine) = (PI * (index as f64 + 0.5) / values as f64).sin_cos();
    let rotate = move |(x, y): &(f64, f64)| Some((x * cosine - y * sine, x * sine + y * cosine));
    std::iter::successors(Some((cosine, sine)), rotate).map(|(cosine, _)| cosine)
}

/// The expected mean square of the projections, by the variance of the mean, of sums of `horizon` independent numbers
/// in a row: what the forward returns of a signal that never changes are. A number counts by the sum of the cosines
/// over the horizons that hold it.
fn seen_of_overlap(count: usize, values: usize, horizon: usize) -> f64 {
    let mut sums = vec![0.0; count];
    let mut length = 0.0;
    let (mut projected, mut whole) = (0.0, 0.0);
    for number in 0..values + horizon - 1 {
        if number < values {
            length += 1.0;
            sums.iter_mut().zip(multiples(number, values)).for_each(|(sum, cosine)| *sum += cosine);
        }
        if let Some(past) = number.checked_sub(horizon) {
            length -= 1.0;
            sums.iter_mut().zip(multiples(past, values)).for_each(|(sum, cosine)| *sum -= cosine);
        }
        projected += sums.iter().map(|sum| sum * sum).sum::<f64>() * 2.0 / count as f64;
        whole += length * length;
    }
    projected / whole
}
