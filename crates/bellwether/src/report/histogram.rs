//! Histograms of values whose range is not known in advance.
//!
//! The interface gives no bounds for a confidence or a score. Each value is counted at the first scale that holds it.
//! Once all are counted, the plot uses the smallest scale that leaves out one value in a hundred at most, and the
//! values left out are counted too.

/// The scales: a histogram at scale `s` covers -`s` to `s`. Each is so many times the one before.
const SCALES: [f64; 3] = [1.0, 10.0, 100.0];
const RATIO: isize = 10;

/// Bins on either side of zero.
const HALF: isize = 50;

/// Bins of a scale, and in a tenth of it.
const BINS: usize = 2 * HALF as usize;
const TENTH: usize = BINS / 20;

/// Largest share of values that a plot may leave out.
const MOST_LEFT_OUT: f64 = 0.01;

/// Counts of values: in the bins of each scale, and last of values outside all of them.
#[derive(Clone, Debug)]
pub struct Histogram(Vec<u64>);

/// A histogram ready to plot: adjacent bins of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// Lower edge of the first bin.
    pub from: f64,
    /// Width of a bin.
    pub width: f64,
    /// Count per bin. A value on an edge belongs to the upper bin, except at the last edge.
    pub counts: Vec<u64>,
    /// Values outside all bins.
    pub left_out: u64,
}

impl Bins {
    /// The edges of a bin: `0.52 to 0.54`.
    pub fn edges(&self, bin: usize) -> String {
        let decimals = if self.width < 0.1 { 2 } else { 1 };
        let edge = |bin: usize| self.from + bin as f64 * self.width;
        format!("{:.decimals$} to {:.decimals$}", edge(bin), edge(bin + 1))
    }

    /// Lower edge of the first bin and upper edge of the last.
    pub fn range(&self) -> (f64, f64) {
        // Both are whole tenths of a scale; a sum of widths is so only nearly.
        let to = self.from + self.counts.len() as f64 * self.width;
        (self.from, (to * 1e6).round() / 1e6)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![0; SCALES.len() * BINS + 1])
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        let bin = SCALES.iter().position(|scale| value.abs() <= *scale).map_or(SCALES.len() * BINS, |scale| {
            let bin = (value / SCALES[scale] * HALF as f64).floor() as isize + HALF;
            scale * BINS + bin.clamp(0, BINS as isize - 1) as usize
        });
        self.0[bin] += 1;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Histograms to be plotted side by side, at one scale.
    pub fn bins<const N: usize>(histograms: [&Self; N]) -> [Bins; N] {
        let all: u64 = histograms.iter().map(|histogram| histogram.count()).sum();
        let left_out = |scale: usize| histograms.iter().map(|histogram| histogram.left_out(scale)).sum::<u64>();
        let is_enough = |scale: &usize| left_out(*scale) as f64 <= all as f64 * MOST_LEFT_OUT;
        let scale = (0..SCALES.len()).find(is_enough).unwrap_or(SCALES.len() - 1);
        let counts = histograms.map(|histogram| histogram.counts(scale));
        // From the lowest value to the highest, in whole tenths of the scale.
        let is_taken = |bin: &usize| counts.iter().any(|counts| counts[*bin] > 0);
        let (lowest, highest) = ((0..BINS).find(is_taken), (0..BINS).rev().find(is_taken));
        let first = lowest.map_or(BINS / 2, |bin| bin / TENTH * TENTH);
        let end = highest.map_or(BINS, |bin| (bin / TENTH + 1) * TENTH);
        let width = SCALES[scale] / HALF as f64;
        let from = (first as f64 - HALF as f64) / HALF as f64 * SCALES[scale];
        let mut counts = counts.into_iter();
        histograms.map(|histogram| Bins {
            from,
            width,
            counts: counts.next().expect("there are counts for each")[first..end].to_vec(),
            left_out: histogram.left_out(scale),
        })
    }

    fn left_out(&self, scale: usize) -> u64 {
        self.0[(scale + 1) * BINS..].iter().sum()
    }

    /// The bins of a scale, including what was counted at smaller scales.
    fn counts(&self, scale: usize) -> Vec<u64> {
        let mut counts = vec![0; BINS];
        for finer in 0..=scale {
            let ratio = RATIO.pow((scale - finer) as u32);
            for (bin, count) in self.0[finer * BINS..(finer + 1) * BINS].iter().enumerate() {
                counts[((bin as isize - HALF).div_euclid(ratio) + HALF) as usize] += count;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    fn of(values: impl IntoIterator<Item = f64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|value| histogram.add(value));
        histogram
    }

    #[test]
    fn shares_are_plotted_from_0_to_1_without_outliers() {
        let [bins] =
            Histogram::bins([&of((0..1000).map(|number| f64::from(number) / 1000.0).chain([1.0, 7.5, f64::NAN]))]);
        assert_eq!((bins.from, bins.width, bins.counts.len(), bins.left_out), (0.0, 0.02, 50, 2));
        assert_eq!((bins.counts[0], bins.counts[25], bins.counts[49]), (20, 20, 21));
    }

    #[test]
    fn percentages_are_plotted_from_0_to_100_even_if_some_are_small() {
        let [bins] = Histogram::bins([&of((0..100).map(|number| f64::from(number) + 0.5))]);
        assert_eq!((bins.from, bins.width, bins.counts.len(), bins.left_out), (0.0, 2.0, 50, 0));
        assert_eq!(bins.counts, vec![2; 50]);
    }

    #[test]
    fn only_the_range_of_the_values_is_plotted() {
        let [one, other] = Histogram::bins([&of([0.52, 0.61]), &of([0.79])]);
        assert_eq!((one.from, one.counts.len(), other.counts.len()), (0.5, 15, 15));
        assert_eq!((one.counts[1], one.counts[5], other.counts[14]), (1, 1, 1));
        assert_eq!(one.range(), (0.5, 0.8));
        let [bins] = Histogram::bins([&of([-0.35, -0.3])]);
        assert_eq!((bins.from, bins.counts.len(), bins.edges(0)), (-0.4, 10, "-0.40 to -0.38".to_owned()));
        let [none] = Histogram::bins([&Histogram::default()]);
        assert_eq!((none.from, none.counts.len()), (0.0, 50));
    }

    #[test]
    fn values_of_both_signs_are_plotted_around_zero() {
        let [one, other] = Histogram::bins([&of([-1.0, -0.01, 0.0]), &of([-0.5, 1.0])]);
        assert_eq!((one.from, one.counts.len()), (-1.0, 100));
        assert_eq!((one.counts[0], one.counts[49], one.counts[50]), (1, 1, 1));
        assert_eq!((other.counts[25], other.counts[99]), (1, 1));
    }
}
