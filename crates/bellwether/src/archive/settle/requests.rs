//! The files of a run that say what was asked, and what was rejected.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::by_series::Repeated;
use crate::archive::answers::answer::{Answer, AnswerBatches, AnswerRecord, RowKind};
use crate::archive::answers::answer_files::Files;
use crate::archive::sealed::rowfile::Rowfile;
use crate::disk::file::FileRecord;
use crate::error::Result;
use crate::tables::{Reject, RequestRecord, Table};

/// Writes the rejected records of some answers, and the series that they repeat.
pub(super) fn write_rejects(path: &Path, answers: &[Answer], repeated: &[Repeated]) -> Result<FileRecord> {
    let mut out = Rowfile::create(path, Reject::schema(), 0)?;
    for answer in answers {
        let Some(batches) = AnswerBatches::open(answer, RowKind::Rejects, &mut Files::default())? else { continue };
        for index in 0..batches.count() {
            out.write(with_observation_time(&batches.get(index)?, answer.record.request.observed_at))?;
        }
    }
    for Repeated { reject, observed_at, .. } in repeated {
        out.write(
            Reject::batch(std::slice::from_ref(reject)).and_then(|rows| with_observation_time(&rows, *observed_at)),
        )?;
    }
    out.finish()
}

/// Rows with the instant of their observation.
fn with_observation_time(rows: &RecordBatch, observed_at: DateTime<Utc>) -> Result<RecordBatch, ArrowError> {
    let seen = std::iter::repeat_n(observed_at.timestamp_micros(), rows.num_rows());
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")));
    RecordBatch::try_new(Reject::schema(), columns)
}

/// Writes the requests. Series repeated with other values count as rejected. Answers have their validators if all of their
/// records could be read, and the archive holds them whole.
pub(super) fn write_requests(
    path: &Path,
    answers: &[Answer],
    repeated: &[Repeated],
    is_fit: impl Fn(&str) -> bool,
) -> Result<FileRecord> {
    let mut repeating: HashMap<&str, u64> = HashMap::new();
    for Repeated { reject, records, .. } in repeated {
        *repeating.entry(&reject.request).or_default() += records;
    }
    let record = |AnswerRecord { request, oddities, .. }: &AnswerRecord| {
        let repeated = repeating.get(request.request.as_str()).copied().unwrap_or_default();
        let rejects = request.rejects + repeated;
        let is_known = rejects == 0 && Table::of(request.endpoint).is_some() && is_fit(&request.request);
        RequestRecord {
            rows: request.rows.saturating_sub(repeated),
            rejects,
            validator: request.validator.clone().filter(|_| is_known),
            unknown_fields: oddities.drift.clone(),
            ..request.clone()
        }
    };
    let records: Vec<RequestRecord> = answers.iter().map(|answer| record(&answer.record)).collect();
    let mut out = Rowfile::create(path, RequestRecord::schema(), 0)?;
    out.write(RequestRecord::batch(&records))?;
    out.finish()
}
