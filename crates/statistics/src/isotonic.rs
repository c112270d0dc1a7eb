//! Isotonic regression.

/// Values of equal fit that lie side by side.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// The sum of their values, each times its weight.
    pub(crate) sum: f64,
    /// The sum of their weights.
    pub(crate) weight: f64,
    /// Their number.
    pub(crate) length: usize,
}

impl Block {
    /// The value that is fitted to all of them.
    pub(crate) fn fit(&self) -> f64 {
        self.sum / self.weight
    }
}

/// The non-decreasing sequence that is closest to the values by weighted squares, by pooling adjacent violators.
/// Weights are positive.
///
/// ```
/// # use bellwether_statistics::isotonic_regression;
/// assert_eq!(isotonic_regression(&[1.0, 3.0, 2.0, 4.0], &[1.0, 1.0, 3.0, 1.0]), [1.0, 2.25, 2.25, 4.0]);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn isotonic_regression(values: &[f64], weights: &[f64]) -> Vec<f64> {
    assert_eq!(values.len(), weights.len(), "a weight for every value");
    let mut blocks = Vec::with_capacity(values.len());
    pool(values.iter().zip(weights).map(|(value, weight)| (value * weight, *weight)), &mut blocks);
    blocks.iter().flat_map(|block| std::iter::repeat_n(block.fit(), block.length)).collect()
}

/// Pools values, each times its weight, with that weight, into blocks of ascending fits, which replace those given.
pub(crate) fn pool(values: impl Iterator<Item = (f64, f64)>, blocks: &mut Vec<Block>) {
    blocks.clear();
    for (sum, weight) in values {
        let mut block = Block { sum, weight, length: 1 };
        // Means are compared by their products, so that blocks of equal means are pooled exactly.
        while let Some(before) = blocks.pop_if(|before| before.sum * block.weight >= block.sum * before.weight) {
            block.sum += before.sum;
            block.weight += before.weight;
            block.length += before.length;
        }
        blocks.push(block);
    }
}
