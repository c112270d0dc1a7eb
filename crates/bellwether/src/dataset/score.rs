//! The score of an article, as a number and as an integer that sums are exact in.

/// Scores are counted in billionths.
pub(super) const SCALE: f64 = 1e9;

/// Scores below this, in billionths, fit into 64 bits, and so does a sum if the number of scores times the largest is below.
pub(super) const SUMMED_BELOW: f64 = 9e9;

/// The score of an article.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExactScore {
    pub(super) value: f64,
    /// Its billionths, counted once for all windows that it is in; none of one that is too large.
    pub(super) billionths: i64,
}

impl ExactScore {
    pub(super) fn of(value: f64) -> Self {
        let billionths = if value.abs() < SUMMED_BELOW { (value * SCALE).round() as i64 } else { 0 };
        Self { value, billionths }
    }
}
