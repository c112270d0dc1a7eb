//! What many tests at once show by luck.

use crate::distributions::normal_tail;
use crate::ranks::correlation;

/// Holm's p-values (1979), in the order of the given ones: rejecting those up to 5 % makes a single wrong rejection
/// among all of them at most 5 % likely, whatever their dependence.
///
/// ```
/// # use bellwether_statistics::multiple::holm;
/// assert_eq!(holm(&[0.04, 0.01]), [0.04, 0.02]);
/// ```
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = p_values.to_vec();
    let mut largest: f64 = 0.0;
    for (rank, index) in ascending(p_values).into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Benjamini and Hochberg's p-values (1995), in the order of the given ones: of those up to 5 %, at most 5 % are
/// expected to be wrong, if the tests are independent or positively dependent.
///
/// ```
/// # use bellwether_statistics::multiple::benjamini_hochberg;
/// assert_eq!(benjamini_hochberg(&[0.04, 0.01]), [0.04, 0.02]);
/// ```
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = p_values.to_vec();
    let mut smallest: f64 = 1.0;
    for (rank, index) in ascending(p_values).into_iter().enumerate().rev() {
        smallest = smallest.min(p_values[index] * p_values.len() as f64 / (rank as f64 + 1.0));
        adjusted[index] = smallest;
    }
    adjusted
}

/// The positions of p-values, from the smallest.
fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    order
}

/// The largest size expected of `tests` independent normal numbers: what the best of as many measures without skill shows,
/// whatever its sign. The effective number of tests need not be whole.
///
/// ```
/// # use bellwether_statistics::multiple::expected_best;
/// assert_eq!(format!("{:.3}", expected_best(2.0)), "1.128");
/// assert_eq!(format!("{:.2}", expected_best(48.0)), "2.50");
/// ```
#[must_use]
pub fn expected_best(tests: f64) -> f64 {
    // Beyond 12 there is nothing that a float could hold. Simpson's rule.
    const STEPS: u32 = 1_200;
    let above = |step: u32| {
        let tail = 2.0 * normal_tail(f64::from(step) / 100.0);
        // 1 - (1 - tail)^tests, also of small tails.
        -(tests * (-tail).ln_1p()).exp_m1()
    };
    let weight = |step: u32| if step == 0 || step == STEPS { 1.0 } else { f64::from(2 + 2 * (step % 2)) };
    let sum: f64 = (0..=STEPS).map(|step| weight(step) * if tests > 0.0 { above(step) } else { 0.0 }).sum();
    sum / 300.0
}

/// The effective number of series: as many independent ones have correlations with as much entropy (the effective rank
/// of Roy and Vetterli, 2007, of their correlation matrix). Two series are correlated over the dates that both have.
///
/// `None` without series, and if two of them have no correlation, for they share fewer than two dates or one is
/// constant there.
///
/// # Panics
///
/// If the series differ in their number of dates.
#[must_use]
pub fn effective_number(series: &[&[Option<f64>]]) -> Option<f64> {
    let size = series.len();
    let mut matrix = vec![1.0; size * size];
    for row in 0..size {
        for column in 0..row {
            assert_eq!(series[row].len(), series[column].len(), "a value or none by date");
            let both = series[row].iter().zip(series[column]).filter_map(|(x, y)| x.zip(*y));
            let (x, y): (Vec<f64>, Vec<f64>) = both.unzip();
            let value = correlation(&x, &y)?;
            matrix[row * size + column] = value;
            matrix[column * size + row] = value;
        }
    }
    (size > 0).then(|| effective_rank(matrix, size))
}

/// The exponential of the entropy of the positive eigenvalues.
fn effective_rank(matrix: Vec<f64>, size: usize) -> f64 {
    let positive: Vec<f64> = symmetric_eigenvalues(matrix, size).into_iter().filter(|value| *value > 0.0).collect();
    let sum: f64 = positive.iter().sum();
    let entropy: f64 = positive.iter().map(|value| -(value / sum) * (value / sum).ln()).sum();
    entropy.exp()
}

/// The eigenvalues of a symmetric matrix given row by row, in ascending order, by Jacobi's rotations.
fn symmetric_eigenvalues(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    // Eight sweeps are enough in practice; after many more, the rest is taken for rounding.
    for _ in 0..50 {
        let squares = |chosen: fn(usize, usize) -> bool| {
            let cells = (0..size * size).filter(|cell| chosen(cell / size, cell % size));
            cells.map(|cell| matrix[cell] * matrix[cell]).sum::<f64>()
        };
        if squares(|row, column| row != column) <= f64::EPSILON.powi(2) * squares(|row, column| row == column) {
            break;
        }
        for row in 0..size {
            for column in row + 1..size {
                rotate(&mut matrix, size, row, column);
            }
        }
    }
    let mut values: Vec<f64> = (0..size).map(|index| matrix[index * (size + 1)]).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Makes the cells at (p, q) and (q, p) zero.
fn rotate(matrix: &mut [f64], size: usize, p: usize, q: usize) {
    let target = matrix[p * size + q];
    if target == 0.0 {
        return;
    }
    let half = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * target);
    let tangent = half.signum() / (half.abs() + half.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    let mut turn = |one: usize, other: usize| {
        let (x, y) = (matrix[one], matrix[other]);
        (matrix[one], matrix[other]) = (cosine * x - sine * y, sine * x + cosine * y);
    };
    (0..size).for_each(|other| turn(p * size + other, q * size + other));
    (0..size).for_each(|other| turn(other * size + p, other * size + q));
    matrix[p * size + q] = 0.0;
    matrix[q * size + p] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// zoonek/2025-sharpe-ratio, functions.py, `test_effective_rank`. The matrix has a negative eigenvalue, as one of
    /// pairwise correlations may have.
    #[test]
    fn the_effective_rank_is_that_of_zoonek() {
        let three = vec![1.0, 0.1, 0.7, 0.1, 1.0, 0.8, 0.7, 0.8, 1.0];
        assert!((effective_rank(three, 3) - 1.84).abs() < 0.01);
        assert!((effective_rank(vec![1.0, 0.1, 0.1, 1.0], 2) - 2.0).abs() < 0.02);
        let identity = vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        assert!((effective_rank(identity, 3) - 3.0).abs() < 1e-12);
    }
}
