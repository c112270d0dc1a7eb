//! Isotonic regression.

/// Values of equal fit that lie side by side.
struct Block {
    sum: f64,
    weight: f64,
    length: usize,
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
    let mut blocks: Vec<Block> = Vec::with_capacity(values.len());
    for (&value, &weight) in values.iter().zip(weights) {
        let mut block = Block { sum: value * weight, weight, length: 1 };
        // Means are compared by their products, so that blocks of equal means are pooled exactly.
        while let Some(before) = blocks.pop_if(|before| before.sum * block.weight >= block.sum * before.weight) {
            block.sum += before.sum;
            block.weight += before.weight;
            block.length += before.length;
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.weight, block.length)).collect()
}
