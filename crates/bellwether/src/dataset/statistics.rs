//! Statistics of the articles in a window: what is summed, and what each statistic makes of it.
//!
//! Means and deviations do not depend on the order of the articles, and other engines can reproduce them bit for bit,
//! because they are computed in integers. A score counts as `x`, its billionths, rounded half away from zero. For the
//! `n` articles with a score:
//!
//! ```text
//! mean = sum(x) / (n * 1e9), but at least the minimum and at most the maximum score
//! std  = sqrt((n * sum(x * x) - sum(x) * sum(x)) / (n * (n - 1))) / 1e9
//! ```
//!
//! Sums and products are exact. Numerator and denominator are each converted to the nearest 64-bit float; then follow one
//! division, one square root and one division. So a score counts to nine decimals in a mean and a deviation, and a mean
//! differs from the exact one by at most half a billionth, and by the rounding of a float; that of one score, or of equal
//! scores, is the score. The minimum and maximum score are exact.
//!
//! A sum is `sum(x) / 1e9`; that of one score is the score. A mean that decays is `sum(w * x) / (sum(w) * 1e9)`, within the
//! minimum and maximum score, with the weight `w` of each article's age, a whole number of trillionths, or none if it is older
//! than 20 half-lives. A median is exact: the score in the middle, or the sum of the halves of the two that are.
//!
//! Scores that are too large for integers of every engine (38 decimal digits) have no mean or deviation: with `m` the
//! largest magnitude of a score, the mean, the sum and a mean that decays are null from `m = 9e9` on, and the deviation from `m = 1e6` or `n * m = 9e9` on.

use super::naive::day;
use super::news::{Cutoff, ExactScore, NewsItem, SCALE, SUMMED_BELOW};
use crate::plan::{Days, Decay, Feature, Statistic};

/// Scores below this, in billionths and squared, can be added a hundred million times within 38 digits.
const SQUARED_BELOW: f64 = 1e6;

/// The windows of one length, one for each key.
pub(super) struct Windows {
    pub(super) days: Days,
    list: Vec<WindowSums>,
    /// The medians; empty if no feature needs them.
    medians: Vec<Median>,
    /// The sums of each mean that decays, and its weights.
    decays: Vec<(Decay, Vec<i64>, Vec<DecaySums>)>,
}

/// The median of a window. Its scores are held only while articles may follow.
#[derive(Clone)]
enum Median {
    Pending(Vec<f64>),
    Known(Option<f64>),
}

impl Windows {
    /// Windows without articles, for so many keys.
    pub(super) fn new(days: Days, features: &[Feature], count: usize) -> Self {
        let has_median = features.contains(&Feature::Window(Statistic::Median, days));
        let decays = features.iter().filter_map(|feature| match feature {
            Feature::Decay(decay) if decay.window == days => {
                Some((*decay, decay.weights(), vec![DecaySums::default(); count]))
            }
            _ => None,
        });
        Self {
            days,
            list: vec![WindowSums::default(); count],
            medians: vec![Median::Pending(Vec::new()); if has_median { count } else { 0 }],
            decays: decays.collect(),
        }
    }

    /// Adds articles to the window of a key. Of a window that is closed no more follow.
    pub(super) fn add(&mut self, key: usize, articles: &[NewsItem], cut: Cutoff, is_closed: bool) {
        self.list[key].add(known_articles(articles, cut).map(|article| article.score));
        for (_, weights, sums) in &mut self.decays {
            sums[key].add(articles, cut, weights);
        }
        if let Some(median) = self.medians.get_mut(key) {
            if let Median::Pending(scores) = median {
                scores.extend(known_articles(articles, cut).filter_map(|article| Some(article.score?.value)));
            }
            if is_closed {
                *median = Median::Known(median.value());
            }
        }
    }

    /// The number of articles in the window of a key.
    pub(super) fn articles(&self, key: usize) -> i32 {
        self.list[key].articles
    }

    /// A statistic of the scores in the window of a key.
    pub(super) fn statistic(&self, statistic: Statistic, key: usize) -> Option<f64> {
        let window = &self.list[key];
        match statistic {
            Statistic::Mean => window.mean(),
            Statistic::Min => (window.scores > 0).then_some(window.min),
            Statistic::Max => (window.scores > 0).then_some(window.max),
            Statistic::Std => window.deviation(),
            Statistic::Sum => window.sum(),
            Statistic::Median => self.medians[key].value(),
            // These are no features of the scores in one window.
            Statistic::Count | Statistic::Decay | Statistic::Last | Statistic::DaysSince => None,
        }
    }

    /// A mean that decays, of the window of a key.
    pub(super) fn decaying_mean(&self, decay: Decay, key: usize) -> Option<f64> {
        let (.., sums) = self.decays.iter().find(|(known, ..)| *known == decay)?;
        sums[key].mean(&self.list[key])
    }
}

impl Median {
    fn value(&self) -> Option<f64> {
        match self {
            Self::Pending(scores) => median(&mut scores.clone()),
            Self::Known(value) => *value,
        }
    }
}

/// What is summed of a window.
#[derive(Clone, Debug)]
struct WindowSums {
    articles: i32,
    /// Number of articles with a score.
    scores: u32,
    /// Sum of the billionths of the scores that are small enough.
    sum: i128,
    /// Sum of the squares of the billionths of the scores that are small enough.
    squares: i128,
    min: f64,
    max: f64,
}

impl Default for WindowSums {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { articles: 0, scores: 0, sum: 0, squares: 0, min, max }
    }
}

/// The articles of some that are known to a key, and count.
fn known_articles(articles: &[NewsItem], cut: Cutoff) -> impl Iterator<Item = &NewsItem> {
    articles.iter().filter(move |article| article.is_counted && article.is_known(cut))
}

/// The sums of a mean that decays.
#[derive(Clone, Copy, Debug, Default)]
struct DecaySums {
    /// Sum of the weights of articles with a score.
    weights: i128,
    /// Sum of the billionths of the scores that are small enough, times the weights.
    sum: i128,
}

impl DecaySums {
    /// Adds the articles known to a key, with a weight by age in days.
    fn add(&mut self, articles: &[NewsItem], cut: Cutoff, weights: &[i64]) {
        for article in known_articles(articles, cut) {
            let age = usize::try_from(cut.day - day(article.date)).unwrap_or_default();
            if let (Some(score), Some(&weight)) = (article.score, weights.get(age)) {
                self.weights += i128::from(weight);
                self.sum += i128::from(score.billionths) * i128::from(weight);
            }
        }
    }

    /// The mean of the scores of a window.
    fn mean(self, window: &WindowSums) -> Option<f64> {
        let is_exact = self.weights > 0 && window.largest() < SUMMED_BELOW;
        is_exact.then(|| (self.sum as f64 / (self.weights as f64 * SCALE)).clamp(window.min, window.max))
    }
}

/// The median of some scores.
fn median(scores: &mut [f64]) -> Option<f64> {
    let middle = scores.len() / 2;
    let is_odd = scores.len() % 2 == 1;
    if scores.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = scores.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = if is_odd { upper } else { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
    Some(if lower == upper { lower } else { lower / 2.0 + upper / 2.0 })
}

impl WindowSums {
    /// Adds articles with these scores.
    fn add(&mut self, scores: impl IntoIterator<Item = Option<ExactScore>>) {
        for score in scores {
            self.articles += 1;
            let Some(ExactScore { value, billionths }) = score else { continue };
            self.scores += 1;
            self.sum += i128::from(billionths);
            if value.abs() < SQUARED_BELOW {
                // With so many scores that this overflows there is no deviation.
                self.squares = self.squares.saturating_add(i128::from(billionths) * i128::from(billionths));
            }
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    /// The largest magnitude of a score.
    fn largest(&self) -> f64 {
        self.min.abs().max(self.max.abs())
    }

    fn mean(&self) -> Option<f64> {
        let is_exact = self.scores > 0 && self.largest() < SUMMED_BELOW;
        is_exact.then(|| (self.sum as f64 / (f64::from(self.scores) * SCALE)).clamp(self.min, self.max))
    }

    fn sum(&self) -> Option<f64> {
        let is_exact = self.scores > 0 && self.largest() < SUMMED_BELOW;
        is_exact.then(|| if self.scores == 1 { self.min } else { self.sum as f64 / SCALE })
    }

    /// Sample standard deviation; `None` for fewer than two scores.
    fn deviation(&self) -> Option<f64> {
        let largest = self.largest();
        let is_exact = largest < SQUARED_BELOW && f64::from(self.scores) * largest < SUMMED_BELOW;
        if self.scores < 2 || !is_exact {
            return None;
        }
        let count = i128::from(self.scores);
        let spread = count * self.squares - self.sum * self.sum;
        Some((spread as f64 / (count * (count - 1)) as f64).sqrt() / SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::{ExactScore, WindowSums};

    fn of(scores: &[f64]) -> WindowSums {
        let mut window = WindowSums::default();
        window.add(scores.iter().map(|score| Some(ExactScore::new(*score))));
        window
    }

    fn bits(window: &WindowSums) -> [Option<u64>; 4] {
        [window.mean(), window.deviation(), Some(window.min), Some(window.max)].map(|value| value.map(f64::to_bits))
    }

    #[test]
    fn statistics_do_not_depend_on_the_order_of_articles() {
        let mut scores: Vec<f64> = vec![0.1, 0.2, 0.3, -0.7, 1e-9, 123_456.789, 0.0, 0.0, 5e-10, 1.0 / 3.0];
        let expected = bits(&of(&scores));
        assert_eq!(expected[2..], [Some((-0.7_f64).to_bits()), Some(123_456.789_f64.to_bits())]);
        let mut state: u64 = 7;
        for _ in 0..1_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let indices = [state >> 33, state >> 13].map(|random| random as usize % scores.len());
            scores.swap(indices[0], indices[1]);
            assert_eq!(bits(&of(&scores)), expected, "{scores:?}");
        }
    }

    #[test]
    fn a_mean_is_within_half_a_billionth_of_the_exact_one_and_between_its_scores() {
        let mut state: u64 = 11;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        for _ in 0..2_000 {
            let count = 1 + (next() >> 33) as usize % 40;
            let scores: Vec<f64> = (0..count).map(|_| (next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0).collect();
            // Of fractions of two to the 52nd, sums are exact.
            let exact = scores.iter().map(|score| (score * (1_u64 << 52) as f64) as i128).sum::<i128>() as f64
                / (1_u64 << 52) as f64
                / count as f64;
            let window = of(&scores);
            let mean = window.mean().unwrap();
            assert!((mean - exact).abs() <= 0.5e-9 + f64::EPSILON, "{mean} {exact} {scores:?}");
            assert!(window.min <= mean && mean <= window.max, "{mean} {scores:?}");
        }
    }

    #[test]
    fn equal_scores_have_that_mean_and_zero_deviation() {
        for score in [0.1, -0.3, 0.123_456_789, 1.0, -0.99, 0.0] {
            for count in 1..40 {
                let window = of(&vec![score; count]);
                assert_eq!(window.mean(), Some(score), "{count}");
                assert_eq!(window.deviation(), (count > 1).then_some(0.0), "{count}");
            }
        }
        // More than nine decimals.
        for score in [0.123_456_789_4, 1.0 / 3.0, -2.0 / 3.0, 4e-10, 1e-300] {
            for count in 1..40 {
                assert_eq!(of(&vec![score; count]).mean(), Some(score), "{count}");
            }
        }
        assert_eq!(of(&[0.1, 0.2]).mean(), Some(0.15));
        assert_eq!(of(&[0.25, 0.75]).deviation(), Some(0.125_f64.sqrt()));
        // The textbook's eight numbers, with a sum of squares of 32 around their mean.
        let textbook = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).deviation().unwrap();
        assert!((textbook - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12, "{textbook}");
    }

    #[test]
    fn scores_that_overflow_have_no_mean_and_no_deviation() {
        let of_largest = |largest: f64, others: usize| {
            let window = of(&[vec![largest], vec![0.5; others]].concat());
            (window.mean().is_some(), window.deviation().is_some())
        };
        assert_eq!(of_largest(999_999.0, 1), (true, true));
        assert_eq!(of_largest(-1e6, 1), (true, false));
        assert_eq!(of_largest(900_000.0, 9_998), (true, true));
        assert_eq!(of_largest(-900_000.0, 9_999), (true, false));
        assert_eq!(of_largest(8.9e9, 1), (true, false));
        assert_eq!(of_largest(-9e9, 1), (false, false));
        assert_eq!(of(&[8e9, 0.5]).mean(), Some(8_000_000_000.5 / 2.0));
        let huge = of(&[1e300, -1e300, 0.5]);
        assert_eq!((huge.mean(), huge.deviation()), (None, None));
        assert_eq!((huge.min, huge.max), (-1e300, 1e300));
        let mut none = WindowSums::default();
        none.add([None, None]);
        assert_eq!((none.articles, none.mean(), none.deviation()), (2, None, None));
    }
}
