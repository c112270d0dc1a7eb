//! Where values lie among those of their date.

use crate::mean::mean;

/// The quantile of ascending values, interpolated linearly; `None` without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len().checked_sub(1)?) as f64;
    let (before, rest) = (position.floor(), position.fract());
    let (lower, upper) = (sorted[before as usize], sorted[position.ceil() as usize]);
    Some(if rest < 0.5 { lower + (upper - lower) * rest } else { upper - (upper - lower) * (1.0 - rest) })
}

/// The least value of the highest fifth of some values. Equal values stay together, so it has as many as come closest to a
/// fifth. `None` if all are equal, if there are none, or if one is not a number.
///
/// ```
/// # use bellwether_statistics::quantiles::highest_fifth;
/// assert_eq!(highest_fifth(&[4.0, 1.0, 3.0, 2.0]), Some(4.0));
/// assert_eq!(highest_fifth(&[3.0, 1.0, 3.0, 2.0]), Some(3.0));
/// assert_eq!(highest_fifth(&[1.0, 1.0]), None);
/// ```
#[must_use]
pub fn highest_fifth(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let first = values.len().checked_sub(1)? * 4 / 5 + 1;
    let mut sorted = values.to_vec();
    let value = *sorted.select_nth_unstable_by(first.min(values.len() - 1), f64::total_cmp).1;
    let (below, up_to) = values.iter().fold((0, 0), |(below, up_to), other| {
        (below + usize::from(*other < value), up_to + usize::from(*other <= value))
    });
    let next = || values.iter().copied().filter(|other| *other > value).min_by(f64::total_cmp);
    match (below > 0, up_to < values.len()) {
        (true, true) if first - below > up_to - first => next(),
        (true, _) => Some(value),
        (false, _) => next(),
    }
}

/// The values of a date, relative to their mean.
#[must_use]
pub fn relative_to_mean(values: &[f64]) -> Vec<f64> {
    let center = mean(values).unwrap_or_default();
    values.iter().map(|value| value - center).collect()
}
