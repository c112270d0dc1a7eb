//! Shares of cases: whether two of them differ, although their cases come in clusters that may all repeat one another; and
//! how much more often two judges agree than chance would have it.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;

use crate::distributions::student_tails;

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
    pub fn new(cases: impl IntoIterator<Item = bool>) -> Self {
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
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.of += other.of;
    }
}

/// The share of the cases of some clusters. Only clusters are taken to be independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusteredShare {
    /// All cases.
    pub all: Share,
    /// The clusters that have cases.
    pub clusters: usize,
    /// The variance of the share; `None` with a single cluster.
    pub variance: Option<f64>,
}

/// The difference of two shares, judged by Welch's test (1947) of their clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareDifference {
    /// The second share less the first.
    pub difference: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Welch and Satterthwaite's degrees of freedom.
    pub degrees_of_freedom: f64,
    /// The comparisons that this one was chosen from.
    pub comparisons: u64,
    /// The two-sided p-value, times the comparisons (Bonferroni), at most 1.
    pub p: f64,
}

impl ClusteredShare {
    /// The share of the cases of some clusters; `None` without cases. The variance is that of a ratio of two sums over
    /// clusters, which for clusters of equal size is the sample variance of their shares over their number.
    #[must_use]
    pub fn new(clusters: impl IntoIterator<Item = Share>) -> Option<Self> {
        let clusters: Vec<Share> = clusters.into_iter().filter(|cluster| cluster.of > 0).collect();
        let mut all = Share::default();
        clusters.iter().for_each(|cluster| all += *cluster);
        let (rate, count) = (all.rate()?, clusters.len() as f64);
        let influence = |cluster: &Share| (cluster.hits as f64 - rate * cluster.of as f64) / all.of as f64;
        let squares: f64 = clusters.iter().map(|cluster| influence(cluster).powi(2)).sum();
        let variance = (clusters.len() > 1).then(|| squares * count / (count - 1.0));
        Some(Self { all, clusters: clusters.len(), variance })
    }

    /// Whether another share differs from this one. `comparisons` is the number of pairs that these two were chosen
    /// from: the lowest and the highest of many shares differ by luck alone. `None` if one has a single cluster, or if the
    /// clusters of each are all equal, so that nothing tells how far the shares may be off.
    ///
    /// ```
    /// # use bellwether_statistics::{ClusteredShare, Share};
    /// let share = |hits: &[u64]| ClusteredShare::new(hits.iter().map(|&hits| Share { hits, of: 100 }));
    /// let (one, other) = (share(&[48, 50, 55, 51]).expect("cases"), share(&[52, 60, 61]).expect("cases"));
    /// let found = one.difference(&other, 1).expect("several clusters");
    /// assert!((found.difference - 0.066_666_666_666_667).abs() < 1e-14);
    /// assert!((found.p - 0.127_123_441_384_97).abs() < 1e-12);
    /// ```
    #[must_use]
    pub fn difference(&self, other: &Self, comparisons: u64) -> Option<ShareDifference> {
        let difference = other.all.rate()? - self.all.rate()?;
        let [one, two] = [self.variance?, other.variance?];
        if one + two <= 0.0 {
            return None;
        }
        let standard_error = (one + two).sqrt();
        let freedom = |clusters: usize| (clusters - 1) as f64;
        let weights = one * one / freedom(self.clusters) + two * two / freedom(other.clusters);
        let degrees_of_freedom = (one + two).powi(2) / weights;
        let p = student_tails(difference / standard_error, degrees_of_freedom);
        let p = (p * comparisons as f64).min(1.0);
        Some(ShareDifference { difference, standard_error, degrees_of_freedom, comparisons, p })
    }
}

/// The answers of two judges, yes or no, to the same questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedAnswers {
    /// Questions that both answered.
    pub both: u64,
    /// Those of them with equal answers.
    pub same: u64,
    /// Those of them that each answered with yes.
    pub yes: [u64; 2],
}

impl PairedAnswers {
    /// The share of equal answers; `None` without questions.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self.both > 0).then(|| self.same as f64 / self.both as f64)
    }

    /// The share of equal answers if each judge said yes as often, but knew nothing of the other; `None` without
    /// questions.
    #[must_use]
    pub fn by_chance(self) -> Option<f64> {
        let [one, other] = self.yes.map(|yes| yes as f64 / self.both as f64);
        (self.both > 0).then_some(one * other + (1.0 - one) * (1.0 - other))
    }

    /// Cohen's kappa (1960): 0 if the two agree as often as by chance, 1 if always, and negative if less often. `None`
    /// without questions, and if each judge only ever gives one answer, so that chance explains everything.
    ///
    /// ```
    /// # use bellwether_statistics::PairedAnswers;
    /// // Two readers of 50 proposals: both say yes to 20 and no to 15, one says yes to 25, the other to 30.
    /// let readers = PairedAnswers { both: 50, same: 35, yes: [25, 30] };
    /// assert!((readers.kappa().expect("both answers occur") - 0.4).abs() < 1e-15);
    /// ```
    #[must_use]
    pub fn kappa(self) -> Option<f64> {
        let (rate, chance) = (self.rate()?, self.by_chance()?);
        (chance < 1.0).then(|| (rate - chance) / (1.0 - chance))
    }

    /// Cohen's standard error of kappa, where the answers are worth no more than `independent` of them. `None` if there
    /// is no kappa, or nothing independent.
    #[must_use]
    pub fn kappa_error(self, independent: u64) -> Option<f64> {
        let (rate, chance) = (self.rate()?, self.by_chance()?);
        let independent = independent.min(self.both) as f64;
        (chance < 1.0 && independent > 0.0).then(|| (rate * (1.0 - rate) / independent).sqrt() / (1.0 - chance))
    }
}
