//! States an answer again among observations that it was not compared with.
//!
//! A run stores what its answers changed of what it knew. Beside observations that it did not know, that may say too
//! little: an unchanged value, or the absence of a cell, was told by storing nothing. So the answer is told again, as the
//! difference from what is known with those observations.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::difference::{continue_places, difference};
use crate::archive::coverage;
use crate::archive::fold::cells::Cells;
use crate::archive::sealed::answers::SeriesAnswer;
use crate::tables::{Changes, Table};

/// What an answer changes of what is known with other observations, the cells. `own` is what was known after it without
/// them. The changes count from an instant on.
pub(in crate::archive) fn restate(
    answer: &SeriesAnswer,
    own: &RecordBatch,
    merged: &Cells,
    sealed_at: DateTime<Utc>,
) -> Result<Option<Changes>, ArrowError> {
    let table = answer.table();
    let (key, source, observed_at) = (answer.key.clone(), answer.source, answer.observed_at);
    let as_of = observed_at.timestamp_micros();
    let mut told = rows_of_answer(answer, own)?;
    if table == Table::Articles {
        told = continue_places(told, answer.covers, (&merged.rows, as_of))?;
    }
    let found = difference(table, &merged.values(merged.all(), as_of)?, &told, answer.covers)?;
    Ok(found.map(|(kinds, rows)| Changes { key, source, observed_at, sealed_at, kinds, rows }))
}

/// The rows that an answer listed, of what was known after it.
pub(in crate::archive) fn rows_of_answer(
    answer: &SeriesAnswer,
    known: &RecordBatch,
) -> Result<RecordBatch, ArrowError> {
    let (table, covers) = (answer.table(), answer.covers);
    if covers.is_empty() {
        return Ok(known.slice(0, 0));
    }
    if let (Table::Articles, Some(oldest)) = (table, covers.oldest()) {
        return answer.edge.as_answered(known, oldest);
    }
    let date = coverage::dates(table, known);
    let are_covered: BooleanArray = (0..known.num_rows()).map(|row| Some(covers.holds(table, date(row)))).collect();
    filter_record_batch(known, &are_covered)
}
