//! Writes the files of a run that is being sealed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use super::by_series::Repeated;
use super::{Findings, Group};
use crate::archive::answers::answer_files::Files;
use crate::archive::answers::{Answer, AnswerBatches, AnswerRecord, RowKind};
use crate::archive::fold::cells::Cells;
use crate::archive::sealed::answers::{self, ANSWERS};
use crate::archive::sealed::rowfile::Rowfile;
use crate::columns::Rows;
use crate::disk::file::FileRecord;
use crate::error::Result;
use crate::process::trace::work;
use crate::tables::{Changes, Reject, RequestRecord, SeriesKey, Table};

/// Rows of answers that are written at once.
const ANSWERS_AT_ONCE: usize = 1 << 13;

/// The most rows to concatenate at once.
pub(super) const PIECE_ROWS: usize = 1 << 15;

/// The files that grow with every group.
pub(super) struct Writing {
    tables: Tables,
    answers: Rowfile,
    found: Findings,
}

impl Writing {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let tables = Tables::create(folder)?;
        let answers = Rowfile::create(&folder.join(ANSWERS), answers::schema(), 0)?.in_groups_of(ANSWERS_AT_ONCE);
        Ok(Self { tables, answers, found: Findings::default() })
    }

    pub(super) fn write(&mut self, group: Group) -> Result<()> {
        let _work = work!("write changes");
        self.found.repeated.extend(group.found.repeated);
        self.found.inexact.extend(group.found.inexact);
        self.found.counts += group.found.counts;
        self.found.known += group.found.known;
        if !group.answers.is_empty() {
            self.answers.write(answers::batch(&group.answers))?;
        }
        group.rows.into_iter().try_for_each(|(table, rows)| self.tables.write(table, &rows))
    }

    pub(super) fn finish(self) -> Result<(Vec<FileRecord>, Findings)> {
        let mut files = self.tables.finish()?;
        files.push(self.answers.finish()?);
        Ok((files, self.found))
    }
}

/// A file per table.
pub(in crate::archive) struct Tables(Vec<Rowfile>);

impl Tables {
    pub(in crate::archive) fn create(folder: &Path) -> Result<Self> {
        // Sorted by series, and within it by cell.
        let create =
            |table: Table| Rowfile::create(&folder.join(table.file()), table.file_schema(), table.key_columns());
        Ok(Self(Table::ALL.into_iter().map(create).collect::<Result<_>>()?))
    }

    /// Adds rows of a table, which come in order.
    pub(in crate::archive) fn write(&mut self, table: Table, rows: &Rows) -> Result<()> {
        self.0[table as usize].add(rows)
    }

    pub(in crate::archive) fn finish(self) -> Result<Vec<FileRecord>> {
        self.0.into_iter().map(Rowfile::finish).collect()
    }
}

/// Changes as rows of their tables, in the given order.
pub(in crate::archive) fn batches(changes: Vec<Changes>) -> Result<Vec<(Table, Rows)>, ArrowError> {
    let mut by_table: BTreeMap<Table, Vec<Changes>> = BTreeMap::new();
    for changes in changes {
        if let Some(table) = changes.key.table {
            by_table.entry(table).or_default().push(changes);
        }
    }
    let mut pieces: Vec<(Table, Vec<Changes>)> = Vec::new();
    for (table, changes) in by_table {
        let mut rows = PIECE_ROWS;
        let mut last: Option<SeriesKey> = None;
        for changes in changes {
            let is_continued = last.as_ref() == Some(&changes.key);
            if rows >= PIECE_ROWS && !is_continued {
                pieces.push((table, Vec::new()));
                rows = 0;
            }
            rows += changes.kinds.len();
            last = Some(changes.key.clone());
            pieces.last_mut().expect("the first changes begin a piece").1.push(changes);
        }
    }
    let rows = |(table, changes): (Table, Vec<Changes>)| {
        let rows = table.batch(&changes)?;
        // Several answers about a series are sorted by cell.
        let is_continued = |pair: &[Changes]| pair[0].key == pair[1].key;
        let rows = if changes.windows(2).any(is_continued) { Cells::as_stored(table, [&rows])?.rows } else { rows };
        Ok((table, rows.into()))
    };
    pieces.into_par_iter().map(rows).collect()
}

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
