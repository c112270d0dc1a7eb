//! Whether the mean of a series differs from zero, although the horizons of its values overlap.
//!
//! The return over the next 126 dates is almost the same today and tomorrow. A test that takes the values for
//! independent finds skill in noise four times out of five. The test of this module projects the series on its slowest
//! cosines and compares with Student's distribution of as many degrees of freedom; beside it stands the test of values
//! whose windows do not overlap, which needs no theory and has less power. The bench `skill` of the product measures how often
//! they reject where there is nothing.

use std::fmt;
use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cosines::Cosines;
use crate::distributions::{normal_tail_quantile, student_tails, student_tails_quantile};
use crate::windows::Windows;
use crate::{CONFIDENCE, Interval, Share};

/// A test is refused with fewer independent windows.
pub const MINIMUM_WINDOWS: usize = 5;

/// Values in the order of their dates, each of which looks over a window. All are finite. Dates without a value are left out:
/// the values on either side of a gap are farther apart than neighbours, so that no more of them overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlappingSeries {
    values: Vec<f64>,
    windows: Windows,
}

/// How the standard error of a mean was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "estimator", rename_all = "snake_case")]
pub enum Estimator {
    /// The mean square of the projections on the slowest cosines (equal-weighted cosine, type II; Lazarus, Lewis, Stock
    /// and Watson, JBES 2018).
    Cosine {
        /// Number of cosines.
        cosines: usize,
    },
    /// The variance of values whose windows do not overlap: of every `horizon`-th one, if dates follow each other.
    Disjoint,
}

/// The test of a mean against zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanTest {
    /// How the standard error was estimated.
    #[serde(flatten)]
    pub estimator: Estimator,
    /// Number of values that the test uses.
    pub observations: usize,
    /// Number of dates that a value looks ahead, on average.
    pub horizon: usize,
    /// Number of whole windows that do not overlap.
    pub windows: usize,
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// Degrees of freedom of Student's distribution; infinitely many for the normal distribution.
    pub degrees_of_freedom: f64,
    /// The mean in standard errors.
    pub t: f64,
    /// The probability of a mean at least so far from zero if the true mean is zero.
    pub p: f64,
    /// The means that the series does not rule out.
    #[serde(flatten)]
    pub interval: Interval,
}

/// Why a series is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// It is too short for its horizon.
    TooShort {
        /// Number of values.
        observations: usize,
        /// Number of values that a test needs.
        needed: usize,
    },
    /// All its values are equal, so that nothing tells how far the mean may be off.
    Constant,
}

impl OverlappingSeries {
    /// A series of values, one for each window.
    #[must_use]
    pub fn new(values: Vec<f64>, windows: Windows) -> Self {
        debug_assert!(values.iter().all(|value| value.is_finite()), "values are finite");
        Self { values, windows }
    }

    /// The series whose mean is the share of all cases of all dates, less what luck would make of it, and whose test is that
    /// of the difference: a date counts by its cases, and a date without any says nothing. Each date has the share of its
    /// cases that luck would hit. `None` without cases.
    ///
    /// The cases of a date share its return, and those of neighbouring dates most of it, so that an interval for independent
    /// cases would be far too narrow for them. The value of a date is the influence of its cases on the difference (the
    /// linear part of the ratio of two sums).
    ///
    /// ```
    /// # use bellwether_statistics::{OverlappingSeries, Share, Windows};
    /// # use std::num::NonZeroUsize;
    /// let hits = (0..100_u64).map(|date| (Share { hits: 40 + date % 25, of: 100 }, 0.5));
    /// let windows = Windows::of_horizon(100, NonZeroUsize::new(5).expect("not zero"));
    /// let series = OverlappingSeries::of_shares(hits, windows).expect("hits");
    /// let test = series.cosine_test().expect("twenty windows are enough");
    /// assert!((test.mean - 0.02).abs() < 1e-15);
    /// assert!((test.interval.lower, test.interval.upper) < (0.02, 0.05));
    /// ```
    #[must_use]
    pub fn of_shares(dates: impl IntoIterator<Item = (Share, f64)>, windows: Windows) -> Option<Self> {
        let net = |(share, luck): (Share, f64)| (share.hits as f64 - luck * share.of as f64, share.of as f64);
        let dates: Vec<(f64, f64)> = dates.into_iter().map(net).collect();
        let (sum, cases) = dates.iter().fold((0.0, 0.0), |(sum, cases), date| (sum + date.0, cases + date.1));
        if cases == 0.0 {
            return None;
        }
        let (rate, of_date) = (sum / cases, cases / dates.len() as f64);
        let values = dates.iter().map(|(net, cases)| rate + (net - rate * cases) / of_date).collect();
        Some(Self { values, windows })
    }

    /// The test to judge by: equal-weighted cosines.
    ///
    /// There are ν = min(0.41 T^(2/3), T / 2h) of them for T values of horizon h. The first bound is that of Lazarus
    /// and others; the second keeps to the cosines that are slower than what overlapping horizons smooth away. There
    /// are at least four, though, since fewer make an interval too wide to be of use. Where that is more than T / 2h,
    /// the variance is divided by what the smoothing leaves of it if the signal never changes: without this, the test
    /// would reject up to 8 % at the fewest dates instead of 5 %. With less persistent signals it then rejects less
    /// than 5 %.
    ///
    /// # Errors
    ///
    /// If the series is too short or constant.
    ///
    /// ```
    /// # use bellwether_statistics::{Estimator, OverlappingSeries, Windows};
    /// # use std::num::NonZeroUsize;
    /// let by_date = (0..750).map(|date| 0.02 + 0.1 * (f64::from(date) * 1.3).sin()).collect();
    /// let windows = Windows::of_horizon(750, NonZeroUsize::new(21).expect("not zero"));
    /// let series = OverlappingSeries::new(by_date, windows);
    /// let test = series.cosine_test().expect("35 windows are enough");
    /// assert_eq!((test.estimator, test.windows), (Estimator::Cosine { cosines: 17 }, 35));
    /// assert!(test.interval.contains(0.02));
    /// ```
    pub fn cosine_test(&self) -> Result<MeanTest, Refusal> {
        let mean = self.require_windows()?;
        let cosines = Cosines::of(self.values.len(), &self.windows);
        let variance = cosines.variance(&self.values, mean);
        let estimator = Estimator::Cosine { cosines: cosines.count };
        self.judge(&self.values, estimator, variance, cosines.count as f64)
    }

    /// The test of values whose windows do not overlap, from the first on: no use is made of what lies between.
    ///
    /// # Errors
    ///
    /// If the series is too short or constant.
    pub fn disjoint_test(&self) -> Result<MeanTest, Refusal> {
        self.require_windows()?;
        let values: Vec<f64> = self.windows.apart().iter().map(|date| self.values[*date]).collect();
        self.judge(&values, Estimator::Disjoint, sample_variance(&values), values.len() as f64 - 1.0)
    }

    /// The mean of a series that is long enough.
    fn require_windows(&self) -> Result<f64, Refusal> {
        match mean(&self.values) {
            Some(mean) if self.windows.whole() >= MINIMUM_WINDOWS => Ok(mean),
            _ => {
                let observations = self.values.len();
                let needed = values_needed(self.windows.horizon()).max(observations.saturating_add(1));
                Err(Refusal::TooShort { observations, needed })
            }
        }
    }

    /// The test from the long-run variance of the values that it uses.
    fn judge(
        &self,
        values: &[f64],
        estimator: Estimator,
        variance: f64,
        degrees_of_freedom: f64,
    ) -> Result<MeanTest, Refusal> {
        let mean = mean(values).ok_or(Refusal::Constant)?;
        if values.iter().all(|value| *value == values[0]) || variance <= 0.0 {
            return Err(Refusal::Constant);
        }
        let standard_error = (variance / values.len() as f64).sqrt();
        let t = mean / standard_error;
        let reach = standard_error * student_tails_quantile(1.0 - CONFIDENCE, degrees_of_freedom);
        Ok(MeanTest {
            estimator,
            observations: values.len(),
            horizon: self.windows.horizon().get(),
            windows: self.windows.whole(),
            mean,
            standard_error,
            degrees_of_freedom,
            t,
            p: student_tails(t, degrees_of_freedom),
            interval: Interval { lower: mean - reach, upper: mean + reach },
        })
    }
}

impl MeanTest {
    /// The normal number with the same p-value and the sign of the mean: what tests with different degrees of freedom
    /// are compared by, and with [`expected_best`](crate::multiple::expected_best).
    #[must_use]
    pub fn z(&self) -> f64 {
        normal_tail_quantile(self.p / 2.0).copysign(self.t)
    }
}

/// Number of values that a test needs at a horizon.
#[must_use]
pub fn values_needed(horizon: NonZeroUsize) -> usize {
    horizon.get().saturating_mul(MINIMUM_WINDOWS)
}

/// The mean of values; `None` without any.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The unbiased variance.
fn sample_variance(values: &[f64]) -> f64 {
    let Some(mean) = mean(values) else { return 0.0 };
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { observations, needed } => {
                write!(formatter, "{observations} dates are too few: a test needs {needed} at this horizon")
            }
            Self::Constant => write!(formatter, "every date has the same value"),
        }
    }
}

impl std::error::Error for Refusal {}
