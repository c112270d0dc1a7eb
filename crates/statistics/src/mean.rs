//! Whether the mean of a series differs from zero, although the horizons of its values overlap.
//!
//! The return over the next 126 dates is almost the same today and tomorrow. A test that takes the values for
//! independent finds skill in noise four times out of five. The test of this module projects the series on its slowest
//! cosines and compares with Student's distribution of as many degrees of freedom; beside it stands the test of values
//! whose windows do not overlap, which needs no theory and has less power. The bench `skill` of the product measures how often
//! they reject where there is nothing.

use std::f64::consts::PI;
use std::num::NonZeroUsize;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::distributions::{normal_tail_quantile, student_tails, student_tails_quantile};
use crate::{CONFIDENCE, Interval, Share};

/// A test is refused with fewer independent windows.
const MINIMUM_WINDOWS: usize = 5;

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
    /// assert!((test.interval.lower..=test.interval.upper).contains(&0.02));
    /// ```
    pub fn cosine_test(&self) -> Result<MeanTest, Refusal> {
        let mean = self.require_windows()?;
        let (values, (cosines, seen)) = (self.values.len(), cosines(self.values.len(), &self.windows));
        let mut projections = vec![0.0; cosines];
        for (index, value) in self.values.iter().enumerate() {
            let deviation = value - mean;
            projections.iter_mut().zip(multiples(index, values)).for_each(|(sum, cosine)| *sum += deviation * cosine);
        }
        let squares: f64 = projections.iter().map(|projection| projection * projection).sum();
        let variance = squares * 2.0 / values as f64 / cosines as f64 / seen;
        self.judge(&self.values, Estimator::Cosine { cosines }, variance, cosines as f64)
    }

    /// The test of values whose windows do not overlap, from the first on: no use is made of what lies between.
    ///
    /// # Errors
    ///
    /// If the series is too short or constant.
    pub fn disjoint_test(&self) -> Result<MeanTest, Refusal> {
        self.require_windows()?;
        let values: Vec<f64> = self.windows.apart.iter().map(|date| self.values[*date]).collect();
        self.judge(&values, Estimator::Disjoint, sample_variance(&values), values.len() as f64 - 1.0)
    }

    /// The mean of a series that is long enough.
    fn require_windows(&self) -> Result<f64, Refusal> {
        let enough = Some(&self.values).filter(|_| self.windows.whole >= MINIMUM_WINDOWS);
        enough.and_then(|values| mean(values)).ok_or_else(|| {
            let observations = self.values.len();
            let needed = self.windows.horizon.get().saturating_mul(MINIMUM_WINDOWS).max(observations.saturating_add(1));
            Refusal::TooShort { observations, needed }
        })
    }

    /// The test from the long-run variance of the values that it uses.
    fn judge(&self, values: &[f64], estimator: Estimator, variance: f64, freedom: f64) -> Result<MeanTest, Refusal> {
        let mean = mean(values).ok_or(Refusal::Constant)?;
        if values.iter().all(|value| *value == values[0]) || variance <= 0.0 {
            return Err(Refusal::Constant);
        }
        let standard_error = (variance / values.len() as f64).sqrt();
        let t = mean / standard_error;
        let reach = standard_error * student_tails_quantile(1.0 - CONFIDENCE, freedom);
        Ok(MeanTest {
            estimator,
            observations: values.len(),
            horizon: self.windows.horizon.get(),
            windows: self.windows.whole,
            mean,
            standard_error,
            degrees_of_freedom: freedom,
            t,
            p: student_tails(t, freedom),
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

/// The fewest cosines: with fewer, an interval is too wide to be of use.
const MINIMUM_COSINES: usize = 4;

/// How many of the first type-II cosines over a number of values, √(2/T) cos(πj(t + 1/2)/T), a series of overlapping horizons
/// is projected on, and the share of the long-run variance that they see.
fn cosines(values: usize, windows: &Windows) -> (usize, f64) {
    let optimal = (0.41 * (values as f64).powf(2.0 / 3.0)).floor() as usize;
    match windows.whole / 2 {
        slow if slow >= MINIMUM_COSINES => (optimal.min(slow).max(MINIMUM_COSINES), 1.0),
        _ => (MINIMUM_COSINES, seen_of_overlap(MINIMUM_COSINES, values, windows.horizon.get())),
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
    let (mut sums, mut length) = (vec![0.0; count], 0.0);
    let (mut projected, mut whole) = (0.0, 0.0);
    for number in 0..values + horizon - 1 {
        let ends = [(Some(number).filter(|number| *number < values), 1.0), (number.checked_sub(horizon), -1.0)];
        for (place, sign) in ends.into_iter().filter_map(|(place, sign)| Some((place?, sign))) {
            length += sign;
            sums.iter_mut().zip(multiples(place, values)).for_each(|(sum, cosine)| *sum += sign * cosine);
        }
        projected += sums.iter().map(|sum| sum * sum).sum::<f64>() * 2.0 / count as f64;
        whole += length * length;
    }
    projected / whole
}

/// The windows that the values of some dates look over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The dates of the window of a date, on average: as many values share most of what they look at.
    pub horizon: NonZeroUsize,
    /// The number of whole windows that do not overlap: what the dates are worth, however many they are.
    pub whole: usize,
    /// The first date, and each whose window begins when that of the one before has ended.
    pub apart: Vec<usize>,
}

impl Windows {
    /// Those of dates that follow each other, each of which looks `horizon` dates ahead.
    #[must_use]
    pub fn of_horizon(dates: usize, horizon: NonZeroUsize) -> Self {
        Self { horizon, whole: dates / horizon, apart: (0..dates).step_by(horizon.get()).collect() }
    }

    /// Those of dates whose windows begin and end at these places. Dates that were seen at once may have the same window, and
    /// count as one then. Where some windows hold many dates and others few, there are as many as would be of equal size for
    /// a mean over dates to vary as much: (Σn)² / Σn².
    ///
    /// ```
    /// # use bellwether_statistics::Windows;
    /// // The five dates of each of four weeks were seen at its end.
    /// let windows = Windows::new((0..20).map(|date| date / 5 * 5 + 5).map(|begin| begin..begin + 1));
    /// assert_eq!((windows.horizon.get(), windows.whole), (5, 4));
    /// ```
    #[must_use]
    pub fn new(dates: impl IntoIterator<Item = Range<usize>>) -> Self {
        let (mut apart, mut end, mut count, mut last) = (Vec::new(), 0, 0, 0);
        for (date, window) in dates.into_iter().enumerate() {
            (count, last) = (date + 1, window.start.max(last));
            if date == 0 || window.start >= end {
                apart.push(date);
                end = window.end;
            }
        }
        // The last one is whole if it ends where that of a next date would begin.
        let mut ends = apart.clone();
        ends.extend((end <= last + 1).then_some(count));
        let sizes = || ends.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let (dates, squares): (usize, usize) = (sizes().sum(), sizes().map(|size| size * size).sum());
        let (horizon, whole) = match dates {
            0 => (count, count.min(1)),
            dates => ((squares + dates / 2) / dates, dates * dates / squares),
        };
        Self { horizon: NonZeroUsize::new(horizon).unwrap_or(NonZeroUsize::MIN), whole, apart }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::Windows;

    #[test]
    fn dates_that_follow_each_other_have_the_windows_of_their_horizon() {
        for (dates, horizon) in [(20, 5), (22, 5), (24, 5), (20, 1), (7, 7), (8, 7), (13, 7)] {
            let of_places = Windows::new((0..dates).map(|entry| entry..entry + horizon));
            assert_eq!(
                of_places,
                Windows::of_horizon(dates, NonZeroUsize::new(horizon).unwrap()),
                "{dates}, {horizon}"
            );
        }
    }

    #[test]
    fn windows_that_are_the_same_count_once() {
        let of = |windows: &[(usize, usize)]| {
            let windows = Windows::new(windows.iter().map(|(begin, end)| *begin..*end));
            (windows.horizon.get(), windows.whole, windows.apart)
        };
        assert_eq!(of(&[(4, 5); 5]), (5, 1, vec![0]));
        // Two dates were seen at once, of twenty.
        let late: Vec<(usize, usize)> = (0..20_usize).map(|entry| (entry.max(1), entry.max(1) + 1)).collect();
        assert_eq!((of(&late).0, of(&late).1), (1, 18));
        // One name of the second date was entered late.
        assert_eq!(of(&[(0, 1), (1, 4), (2, 3), (3, 4), (4, 5), (5, 6)]), (2, 3, vec![0, 1, 4, 5]));
        // Later dates may be entered earlier.
        assert_eq!(of(&[(3, 5), (1, 3), (5, 7), (7, 9)]), (2, 1, vec![0, 2, 3]));
        assert_eq!(of(&[(0, 20), (1, 21)]), (2, 1, vec![0]), "there is none that is whole but its own");
        assert_eq!(of(&[]), (1, 0, vec![]));
        // Three dates that were seen at once outweigh four others: fewer than five windows.
        let first_run: Vec<(usize, usize)> =
            [2, 2, 2, 3, 4, 5, 6].into_iter().map(|entry| (entry, entry + 1)).collect();
        assert_eq!(of(&first_run), (2, 3, vec![0, 3, 4, 5, 6]));
    }
}
