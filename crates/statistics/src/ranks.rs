//! Ranks, and the correlation of ranks.

/// Spearman's rank correlation: Pearson's correlation of the average ranks. Exactly 1 or -1 where the orders are equal
/// or opposite.
///
/// `None` for fewer than two pairs, for a side without two different values, which has no order, and for a value that
/// is not a number.
///
/// ```
/// # use bellwether_statistics::rank_correlation;
/// assert_eq!(rank_correlation(&[1.0, 2.0, 3.0, 4.0], &[40.0, 30.0, 20.0, 10.0]), Some(-1.0));
/// assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[3.0, 1.0, 2.0]), None);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn rank_correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "a value on either side");
    if x.len() < 2 {
        return None;
    }
    cosine_similarity(&centered_ranks(x)?, &centered_ranks(y)?)
}

/// Pearson's correlation. `None` as for [`rank_correlation`], and for values that are not finite.
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "a value on either side");
    if x.len() < 2 {
        return None;
    }
    cosine_similarity(&deviations(x)?, &deviations(y)?)
}

/// Twice the distance of each average rank from the middle: whole numbers, so that sums of their products are exact.
fn centered_ranks(values: &[f64]) -> Option<Vec<f64>> {
    let mut order = Vec::with_capacity(values.len());
    for (index, &value) in values.iter().enumerate() {
        if value.is_nan() {
            return None;
        }
        order.push((ascending_bits(value), index));
    }
    order.sort_unstable();
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for ties in order.chunk_by(|(a, _), (b, _)| a == b) {
        // The first of them is the (below + 1)-th, the last the (below + ties)-th; the middle is (n + 1) / 2.
        let doubled = (2 * below + ties.len()) as f64 - values.len() as f64;
        for &(_, index) in ties {
            ranks[index] = doubled;
        }
        below += ties.len();
    }
    Some(ranks)
}

/// Bits that order as the numbers do. Both zeros are one number.
pub(crate) fn ascending_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The distances of finite values from their mean; `None` without two different values.
fn deviations(values: &[f64]) -> Option<Vec<f64>> {
    let (first, rest) = values.split_first()?;
    if !values.iter().all(|value| value.is_finite()) || rest.iter().all(|value| value == first) {
        return None;
    }
    let mean = crate::mean::mean(values)?;
    Some(values.iter().map(|value| value - mean).collect())
}

fn cosine_similarity(x: &[f64], y: &[f64]) -> Option<f64> {
    let scale = (product(x, x) * product(y, y)).sqrt();
    (scale > 0.0).then(|| (product(x, y) / scale).clamp(-1.0, 1.0))
}

fn product(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}
