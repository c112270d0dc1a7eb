//! Whether two shares differ, although their cases come in clusters: those of a cluster may all repeat one another.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Share;
use crate::distributions::student_tails;

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
    pub fn of(clusters: impl IntoIterator<Item = Share>) -> Option<Self> {
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
    /// let share = |hits: &[u64]| ClusteredShare::of(hits.iter().map(|&hits| Share { hits, of: 100 }));
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
