//! How often something was right, and whether that is more than luck.

use std::ops::AddAssign;

use crate::distributions::{binomial_at_most, normal_tail_quantile};
use crate::{CONFIDENCE, Interval, Random};

/// Steps up to which the distribution of all flips is computed: a quarter of a second.
const EXACT_STEPS: u64 = 1 << 28;

/// Different sums up to which it is: eight megabytes.
const EXACT_SUMS: u64 = 1 << 20;

/// Random flips beyond that.
const SAMPLED_FLIPS: u32 = 20_000;

const SEED: u64 = 1;

/// A number of cases out of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of cases where it holds.
    pub hits: u64,
    /// Number of all cases.
    pub of: u64,
}

impl Share {
    /// The share of the cases that a condition holds for.
    pub fn of(cases: impl IntoIterator<Item = bool>) -> Self {
        let mut share = Self::default();
        for holds in cases {
            share.hits += u64::from(holds);
            share.of += 1;
        }
        share
    }

    /// The share as a number; `None` without cases.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// Wilson's interval (1927) for independent cases; `None` without cases. Signals of a date, and of dates whose
    /// horizons overlap, are not independent: see
    /// [`OverlappingSeries::of_shares`](crate::OverlappingSeries::of_shares).
    ///
    /// ```
    /// # use bellwether_statistics::counts::Share;
    /// let interval = Share { hits: 0, of: 10 }.interval().expect("ten cases");
    /// assert_eq!(interval.lower, 0.0);
    /// assert!((interval.upper - 0.277_532_799).abs() < 1e-8);
    /// ```
    #[must_use]
    pub fn interval(self) -> Option<Interval> {
        let rate = self.rate()?;
        let count = self.of as f64;
        let z = normal_tail_quantile((1.0 - CONFIDENCE) / 2.0);
        let center = rate + z * z / (2.0 * count);
        let reach = z * (rate * (1.0 - rate) / count + z * z / (4.0 * count * count)).sqrt();
        let whole = 1.0 + z * z / count;
        // At the ends center and reach are equal but for their last digits.
        let lower = if self.hits == 0 { 0.0 } else { (center - reach) / whole };
        let upper = if self.hits == self.of { 1.0 } else { (center + reach) / whole };
        Some(Interval { lower, upper })
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.of += other.of;
    }
}

/// The two-sided p-value of the exact sign test, which is McNemar's exact test of paired answers: `gained` of them
/// became right and `lost` became wrong, each way equally likely and independent of the others. `None` if neither
/// happened.
///
/// ```
/// # use bellwether_statistics::counts::sign_test;
/// let p = sign_test(1, 5).expect("six cases");
/// assert!((p - 0.21875).abs() < 1e-15);
/// ```
#[must_use]
pub fn sign_test(gained: u64, lost: u64) -> Option<f64> {
    let trials = gained.checked_add(lost).filter(|trials| *trials > 0)?;
    Some((2.0 * binomial_at_most(gained.min(lost), trials, 0.5)).min(1.0))
}

/// How the distribution of a [`ClusteredSignTest`] was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flips {
    /// Every flip of the clusters counts.
    All,
    /// As many random flips of a fixed seed.
    Sampled(u32),
}

/// The sign test whose cases come in clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusteredSignTest {
    /// Number of clusters with as many gained as lost cases; they say nothing.
    pub balanced: u64,
    /// Number of the other clusters.
    pub clusters: u64,
    /// Sum of what was gained less what was lost.
    pub net: i64,
    /// The share of flips whose sum is at least as far from zero.
    pub p: f64,
    /// Which flips were counted.
    pub flips: Flips,
}

/// Tests whether more was gained than lost, where the cases of a cluster may depend on each other in any way: under the
/// null hypothesis the net gain of a cluster is as likely to be lost, independently of other clusters. With one case a
/// cluster it is the exact [`sign_test`].
///
/// Dates are such clusters only if their horizons do not overlap. Otherwise windows of two horizons come near, of which
/// there must be many (five can never give a p-value of 5 %); the
/// [`cosine_test`](crate::OverlappingSeries::cosine_test) of the net gain by date, zero where there is none, holds with
/// fewer. `benches/calibration.rs` compares them.
///
/// `None` if no cluster has a net gain or loss, or if their sum is beyond 64 bits.
///
/// ```
/// # use bellwether_statistics::counts::clustered_sign_test;
/// let test = clustered_sign_test(&[3, 2, -1, 4, 0]).expect("four clusters");
/// // 8 is reached by +3 +2 -1 +4, +3 +2 +1 +4 and their opposites, of 16.
/// assert_eq!((test.clusters, test.net, test.p), (4, 8, 0.25));
/// ```
#[must_use]
pub fn clustered_sign_test(gains: &[i64]) -> Option<ClusteredSignTest> {
    let sizes: Vec<u64> = gains.iter().map(|gain| gain.unsigned_abs()).filter(|size| *size > 0).collect();
    let clusters = sizes.len() as u64;
    let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size)).filter(|total| *total > 0)?;
    let net = gains.iter().try_fold(0_i64, |sum, gain| sum.checked_add(*gain))?;
    let (p, flips) = if total <= EXACT_SUMS && total.saturating_mul(clusters) <= EXACT_STEPS {
        (share_of_all_flips(&sizes, total, net.unsigned_abs()), Flips::All)
    } else {
        (share_of_random_flips(&sizes, net.unsigned_abs()), Flips::Sampled(SAMPLED_FLIPS))
    };
    Some(ClusteredSignTest { balanced: gains.len() as u64 - clusters, clusters, net, p, flips })
}

/// The distribution of the sum of the sizes that stay positive, by adding one cluster after the other.
fn share_of_all_flips(sizes: &[u64], total: u64, net: u64) -> f64 {
    if net == 0 {
        return 1.0;
    }
    let mut probabilities = vec![0.0; total as usize + 1];
    probabilities[0] = 1.0;
    let mut reached = 0;
    for &size in sizes {
        let size = size as usize;
        reached += size;
        for sum in (0..=reached).rev() {
            let before = if sum >= size { probabilities[sum - size] } else { 0.0 };
            probabilities[sum] = (probabilities[sum] + before) / 2.0;
        }
    }
    // A sum of positive sizes W makes a net of 2W - total.
    let least = (total + net) / 2;
    (2.0 * probabilities[least as usize..].iter().sum::<f64>()).min(1.0)
}

/// The share of random flips, where the clusters as they are count as one of them.
fn share_of_random_flips(sizes: &[u64], net: u64) -> f64 {
    let mut random = Random::new(SEED);
    let mut extreme = 1;
    for _ in 0..SAMPLED_FLIPS {
        let mut sum = 0.0;
        for chunk in sizes.chunks(64) {
            let signs = random.bits();
            for (bit, &size) in chunk.iter().enumerate() {
                sum += if signs >> bit & 1 == 1 { size as f64 } else { -(size as f64) };
            }
        }
        extreme += u32::from(sum.abs() >= net as f64);
    }
    f64::from(extreme) / f64::from(SAMPLED_FLIPS + 1)
}
