//! The normal, Student's and the binomial distribution, to about fourteen digits.
//!
//! Tails are computed as tails and not as one minus the rest, so that small probabilities keep their digits.

use std::f64::consts::{LN_2, PI};

/// Smallest relative change that a continued fraction or a series goes on for.
const PRECISION: f64 = 1e-16;

/// The probability that a standard normal number exceeds `z`.
///
/// ```
/// # use bellwether_statistics::distributions::normal_tail;
/// assert!((normal_tail(1.959963984540054) - 0.025).abs() < 1e-15);
/// ```
#[must_use]
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let density = normal_density(z);
    if z < 2.0 {
        // 1/2 less the integral from 0, whose series is z + z³/3 + z⁵/15 + …
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > sum * PRECISION {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // Mills' ratio as a continued fraction: 1/(z + 1/(z + 2/(z + 3/(z + …)))), from the inside out.
    let depth = 12 + (400.0 / (z * z)) as u32;
    let denominator = (1..=depth).rev().fold(z, |rest, level| z + f64::from(level) / rest);
    density / denominator
}

/// The standard normal number that is exceeded with a probability: the inverse of [`normal_tail`].
///
/// ```
/// # use bellwether_statistics::distributions::normal_tail_quantile;
/// assert!((normal_tail_quantile(0.025) - 1.959963984540054).abs() < 1e-14);
/// ```
#[must_use]
pub fn normal_tail_quantile(probability: f64) -> f64 {
    if probability > 0.5 {
        return -normal_tail_quantile(1.0 - probability);
    }
    if probability <= 0.0 {
        return if probability == 0.0 { f64::INFINITY } else { f64::NAN };
    }
    // Hastings' approximation (Abramowitz and Stegun, 26.2.23), made exact by three of Halley's steps.
    let w = (-2.0 * probability.ln()).sqrt();
    let numerator = 2.515_517 + w * (0.802_853 + w * 0.010_328);
    let mut z = w - numerator / (1.0 + w * (1.432_788 + w * (0.189_269 + w * 0.001_308)));
    for _ in 0..3 {
        let step = (normal_tail(z) - probability) / normal_density(z);
        z += step / (1.0 - step * z / 2.0);
    }
    z
}

fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// The probability that the size of a number of Student's distribution exceeds that of `t`: the two-sided p-value.
/// Infinitely many degrees of freedom make it the normal distribution.
///
/// ```
/// # use bellwether_statistics::distributions::student_tails;
/// assert!((student_tails(2.7764451051977987, 4.0) - 0.05).abs() < 1e-14);
/// ```
#[must_use]
pub fn student_tails(t: f64, degrees_of_freedom: f64) -> f64 {
    if degrees_of_freedom.is_infinite() {
        return 2.0 * normal_tail(t.abs());
    }
    if t.is_infinite() {
        return 0.0;
    }
    let square = t * t;
    let whole = degrees_of_freedom + square;
    incomplete_beta(degrees_of_freedom / 2.0, 0.5, degrees_of_freedom / whole, square / whole)
}

/// The size that a number of Student's distribution exceeds with a probability: the inverse of [`student_tails`].
#[must_use]
pub fn student_tails_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    let normal = normal_tail_quantile(probability / 2.0);
    if degrees_of_freedom.is_infinite() || normal <= 0.0 {
        return normal;
    }
    let (mut lower, mut upper) = (normal, 2.0 * normal);
    while student_tails(upper, degrees_of_freedom) > probability {
        (lower, upper) = (upper, 2.0 * upper);
    }
    // Newton's steps, or halves where they leave the bracket.
    let scale = student_scale(degrees_of_freedom);
    let mut t = lower;
    for _ in 0..200 {
        let excess = student_tails(t, degrees_of_freedom) - probability;
        (lower, upper) = if excess > 0.0 { (t, upper) } else { (lower, t) };
        let density = scale * (1.0 + t * t / degrees_of_freedom).powf(-(degrees_of_freedom + 1.0) / 2.0);
        let newton = t + excess / (2.0 * density);
        let next = if (lower..=upper).contains(&newton) { newton } else { (lower + upper) / 2.0 };
        if (next - t).abs() <= 4.0 * f64::EPSILON * t {
            return next;
        }
        t = next;
    }
    t
}

/// The density of Student's distribution at 0.
fn student_scale(degrees_of_freedom: f64) -> f64 {
    let half = degrees_of_freedom / 2.0;
    (ln_gamma(half + 0.5) - ln_gamma(half)).exp() / (degrees_of_freedom * PI).sqrt()
}

/// The probability of exactly `successes` of `trials`, neither none nor all of them, by Loader's expansion (2000).
fn binomial_density(successes: f64, trials: f64, probability: f64, complement: f64) -> f64 {
    let failures = trials - successes;
    let exponent = stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(failures)
        - deviance(successes, trials * probability)
        - deviance(failures, trials * complement);
    exponent.exp() * (trials / (2.0 * PI * successes * failures)).sqrt()
}

/// The regularised incomplete beta function at `x`, where `complement` is 1 - x with all its digits.
fn incomplete_beta(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    if x <= 0.0 || complement <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta_fraction(b, a, complement, x);
    }
    incomplete_beta_fraction(a, b, x, complement)
}

/// Its continued fraction by Lentz's method, which converges fast while x is below (a + 1) / (a + b + 2).
fn incomplete_beta_fraction(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for level in 1..100_000 {
        let m = f64::from(level);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= d * c;
        }
        if (d * c - 1.0).abs() < 2.0 * PRECISION {
            break;
        }
    }
    // xᵃ (1 - x)ᵇ / (a B(a, b)), from the binomial density of a in a + b.
    fraction * binomial_density(a, a + b, x, complement) * b / (a + b)
}

/// What Stirling's formula for ln n! leaves out.
fn stirling_error(n: f64) -> f64 {
    if n < 15.0 {
        return ln_gamma(n + 1.0) - (n + 0.5) * n.ln() + n - (2.0 * PI).ln() / 2.0;
    }
    let square = n * n;
    let series = 1.0 / 1260.0 - (1.0 / 1680.0 - (1.0 / 1188.0 - 691.0 / 360_360.0 / square) / square) / square;
    (1.0 / 12.0 - (1.0 / 360.0 - series / square) / square) / n
}

/// x ln(x / mean) + mean - x, without loss of digits where both are close.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - difference;
    }
    let ratio = difference / (x + mean);
    let mut sum = difference * ratio;
    let mut term = 2.0 * x * ratio;
    let mut odd = 1.0;
    loop {
        term *= ratio * ratio;
        odd += 2.0;
        let next = sum + term / odd;
        if next == sum {
            return next;
        }
        sum = next;
    }
}

/// The logarithm of the gamma function of a positive number, by Lanczos' approximation (g = 7).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series = COEFFICIENTS
        .iter()
        .zip(1_u8..)
        .fold(0.999_999_999_999_809_9, |sum, (coefficient, index)| sum + coefficient / (x + f64::from(index)));
    let shifted = x + 7.5;
    (LN_2 + PI.ln()) / 2.0 + (x + 0.5) * shifted.ln() - shifted + series.ln()
}
