//! States an answer again among observations that it was not compared with.
//!
//! A run stores what its answers changed of what it knew. Beside observations that it did not know, that may say too
//! little: an unchanged value, or the absence of a cell, was told by storing nothing. So the answer is told again, as the
//! difference from what is known with those observations.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::difference::difference;
use crate::archive::coverage::{self, Coverage};
use crate::archive::sealed::answers::SeriesAnswer;
use crate::tables::{Changes, Table};

/// What an answer changes of what is known with other observations. `own` is what was known after it without them. The
/// changes count from an instant on.
pub(in crate::archive) fn restate(
    answer: &SeriesAnswer,
    own: &RecordBatch,
    merged: &RecordBatch,
    sealed_at: DateTime<Utc>,
) -> Result<Option<Changes>, ArrowError> {
    let table = answer.table();
    let found = difference(table, merged, &covered(table, own, answer.covers)?, answer.covers)?;
    let (key, source, observed_at) = (answer.key.clone(), answer.source, answer.observed_at);
    Ok(found.map(|(kinds, rows)| Changes { key, source, observed_at, sealed_at, kinds, rows }))
}

/// The rows that an answer covers: those that it listed.
fn covered(table: Table, rows: &RecordBatch, covers: Coverage) -> Result<RecordBatch, ArrowError> {
    let date = coverage::dates(table, rows);
    let are_covered: BooleanArray = (0..rows.num_rows()).map(|row| Some(covers.holds(table, date(row)))).collect();
    filter_record_batch(rows, &are_covered)
}
