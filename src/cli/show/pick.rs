//! Some rows of a dataset: the first, the last, or a sample.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use bellwether::serve::draw::Draw;

/// The first rows; reading stops after them.
pub(super) fn head(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
    let (mut rows, mut missing) = (Vec::new(), count);
    for batch in batches {
        let batch = batch?;
        let taken = batch.slice(0, missing.min(batch.num_rows()));
        missing -= taken.num_rows();
        rows.push(taken);
        if missing == 0 {
            break;
        }
    }
    Ok(rows)
}

/// The last rows.
pub(super) fn tail(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
    let (mut rows, mut held) = (VecDeque::new(), 0);
    for batch in batches {
        let batch = batch?;
        held += batch.num_rows();
        rows.push_back(batch);
        while rows.front().is_some_and(|first| held - first.num_rows() >= count) {
            held -= rows.pop_front().map_or(0, |first: RecordBatch| first.num_rows());
        }
    }
    if let Some(first) = rows.front_mut() {
        let surplus = held.saturating_sub(count);
        *first = first.slice(surplus, first.num_rows() - surplus);
    }
    Ok(rows.into())
}

/// A uniform random sample of the rows, in order; the same for the same dataset.
pub(super) fn sample(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut sampled: Vec<(usize, RecordBatch)> = Vec::new();
    let random = Draw::from_seed(0);
    let mut seen = 0;
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let index = if sampled.len() < count { sampled.len() } else { place_below(random, seen + row) };
            if index >= count {
                continue;
            }
            // A copy, or the whole batch would be held.
            let copied = (seen + row, concat_batches(batch.schema_ref(), [&batch.slice(row, 1)])?);
            match sampled.get_mut(index) {
                Some(taken) => *taken = copied,
                None => sampled.push(copied),
            }
        }
        seen += batch.num_rows();
    }
    sampled.sort_unstable_by_key(|(index, _)| *index);
    Ok(sampled.into_iter().map(|(_, row)| row).collect())
}

/// A random index among the rows up to one, and that one.
fn place_below(random: Draw, row: usize) -> usize {
    random.at(row as u64).below(u32::try_from(row + 1).unwrap_or(u32::MAX)) as usize
}
