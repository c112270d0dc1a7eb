//! What follows the strongest fifth of the names, and how long they stay there.

use std::num::NonZeroUsize;

use crate::counts::Share;
use crate::mean::mean;

/// The bucket of each value, from 0, if the values are divided at their quantiles, interpolated linearly; a value at an
/// edge belongs to the lower bucket, and equal values always share one (as `pandas.qcut` and alphalens do it). With
/// many equal values buckets differ in size or remain empty. `None` if a value is not a number.
///
/// ```
/// # use bellwether_statistics::buckets::quantile_buckets;
/// # use std::num::NonZeroUsize;
/// let halves = NonZeroUsize::new(2).expect("not zero");
/// assert_eq!(quantile_buckets(&[4.0, 1.0, 3.0, 2.0], halves), Some(vec![1, 0, 1, 0]));
/// ```
#[must_use]
pub fn quantile_buckets(values: &[f64], buckets: NonZeroUsize) -> Option<Vec<usize>> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let edges: Vec<f64> =
        (1..buckets.get()).filter_map(|edge| quantile(&sorted, edge as f64 / buckets.get() as f64)).collect();
    Some(values.iter().map(|value| edges.partition_point(|edge| edge < value)).collect())
}

/// The quantile of ascending values, interpolated linearly; `None` without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len().checked_sub(1)?) as f64;
    let (before, rest) = (position.floor(), position.fract());
    let (lower, upper) = (sorted[before as usize], sorted[position.ceil() as usize]);
    Some(between(lower, upper, rest))
}

/// The number that lies a share of the way from one to another.
fn between(lower: f64, upper: f64, share: f64) -> f64 {
    if share < 0.5 { lower + (upper - lower) * share } else { upper - (upper - lower) * (1.0 - share) }
}

/// The quantile of some values, interpolated linearly as in [`quantile_buckets`]; `None` without values, or if one is not a
/// number.
///
/// ```
/// # use bellwether_statistics::buckets::quantile_of;
/// assert_eq!(quantile_of(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
/// ```
#[must_use]
pub fn quantile_of(values: &[f64], share: f64) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let position = share * (values.len().checked_sub(1)?) as f64;
    let mut values = values.to_vec();
    let (_, lower, above) = values.select_nth_unstable_by(position.floor() as usize, f64::total_cmp);
    let upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*lower);
    Some(between(*lower, upper, position.fract()))
}

/// The mean of the values in each bucket; `None` for an empty one.
///
/// # Panics
///
/// If the slices differ in length, or a bucket is not below `buckets`.
#[must_use]
pub fn bucket_means(assigned: &[usize], values: &[f64], buckets: NonZeroUsize) -> Vec<Option<f64>> {
    assert_eq!(assigned.len(), values.len(), "a bucket for every value");
    let mut sums = vec![(0.0, 0_u32); buckets.get()];
    for (&bucket, value) in assigned.iter().zip(values) {
        sums[bucket].0 += value;
        sums[bucket].1 += 1;
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// The values of a date, relative to their mean.
#[must_use]
pub fn relative_to_mean(values: &[f64]) -> Vec<f64> {
    let center = mean(values).unwrap_or_default();
    values.iter().map(|value| value - center).collect()
}

/// The share of values whose sign is the opposite of what it was: turnover of signals that buy or sell. A value of zero
/// takes no side and is not counted.
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn flips(before: &[f64], now: &[f64]) -> Share {
    assert_eq!(before.len(), now.len(), "the same names on either date");
    Share::of(before.iter().zip(now).filter(|(x, y)| **x * **y != 0.0).map(|(x, y)| (*x > 0.0) != (*y > 0.0)))
}

/// The share of a bucket's names that were not in it before: turnover as in alphalens.
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn newcomers(before: &[bool], now: &[bool]) -> Share {
    assert_eq!(before.len(), now.len(), "the same names on either date");
    Share::of(before.iter().zip(now).filter(|(_, now)| **now).map(|(before, _)| !before))
}
