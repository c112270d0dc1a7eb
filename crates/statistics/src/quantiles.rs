//! Where values lie among those of their date.

use crate::mean::mean;

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

/// The quantile of some values, interpolated linearly; `None` without values, or if one is not a
/// number.
///
/// ```
/// # use bellwether_statistics::quantiles::quantile_of;
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

/// The values of a date, relative to their mean.
#[must_use]
pub fn relative_to_mean(values: &[f64]) -> Vec<f64> {
    let center = mean(values).unwrap_or_default();
    values.iter().map(|value| value - center).collect()
}
