//! How long a record must be to say something of its mean.

use crate::distributions::{normal_tail, normal_tail_quantile};
use crate::mean::mean;

/// The mean of independent values in standard deviations, with the shape of their distribution. Of disjoint windows it
/// is the information ratio of the correlations; of returns, the Sharpe ratio, which is not annualised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanRatio {
    /// Mean by standard deviation.
    pub ratio: f64,
    /// The third standardised moment; 0 for the normal distribution.
    pub skewness: f64,
    /// The fourth; 3 for the normal distribution.
    pub kurtosis: f64,
}

impl MeanRatio {
    /// The ratio and shape of values; `None` if there are not two different ones.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let center = mean(values)?;
        if values.iter().all(|value| *value == values[0]) {
            return None;
        }
        let count = values.len() as f64;
        let moment = |power| values.iter().map(|value| (value - center).powi(power)).sum::<f64>() / count;
        let variance = moment(2);
        Some(Self {
            ratio: center / (variance * count / (count - 1.0)).sqrt(),
            skewness: moment(3) / variance.powf(1.5),
            kurtosis: moment(4) / (variance * variance),
        })
    }

    /// The probability that the true ratio is above `threshold`, from as many observations: the probabilistic Sharpe
    /// ratio of Bailey and López de Prado, with the standard error at the threshold (López de Prado, Lipton and
    /// Zoonekynd, 2025).
    #[must_use]
    pub fn probability_above(self, threshold: f64, observations: usize) -> f64 {
        let z = (self.ratio - threshold) * (observations as f64 / self.variance_at(threshold)).sqrt();
        normal_tail(-z)
    }

    /// Number of observations from which on the ratio is above `threshold` with a confidence, if it stays as it is: the
    /// minimum track record length. `None` if it is not above.
    ///
    /// ```
    /// # use bellwether_statistics::track_record::MeanRatio;
    /// let normal = MeanRatio { ratio: 0.5, skewness: 0.0, kurtosis: 3.0 };
    /// assert_eq!(normal.minimum_observations(0.0, 0.95).map(f64::ceil), Some(11.0));
    /// ```
    #[must_use]
    pub fn minimum_observations(self, threshold: f64, confidence: f64) -> Option<f64> {
        let z = normal_tail_quantile(1.0 - confidence);
        (self.ratio > threshold).then(|| self.variance_at(threshold) * (z / (self.ratio - threshold)).powi(2))
    }

    /// The variance of the estimated ratio of one observation, if the true one is `ratio`.
    fn variance_at(self, ratio: f64) -> f64 {
        1.0 - self.skewness * ratio + (self.kurtosis - 1.0) / 4.0 * ratio * ratio
    }
}
