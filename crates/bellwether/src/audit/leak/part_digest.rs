//! The digest of the rows before a day.

use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use blake3::Hash;
use chrono::NaiveDate;

use crate::audit::cut::midnight;
use crate::columns::Rows;
use crate::dataset::join_failed;
use crate::error::Result;
use crate::export::Content;
use crate::plan::{Column, DatasetPlan};

/// Number and digest of some rows.
pub(super) type RowsDigest = (u64, Hash);

/// The digest of rows before a day, in sequence.
pub(super) struct PartDigest {
    before: Option<i64>,
    count: u64,
    content: Content,
}

impl PartDigest {
    pub(super) fn of(plan: &DatasetPlan, before: Option<NaiveDate>) -> Self {
        Self { before: before.map(midnight), count: 0, content: Content::new(&plan.schema) }
    }

    pub(super) fn add(&mut self, rows: &Rows) -> Result<()> {
        let pieces = match self.before {
            None => vec![rows.clone()],
            Some(end) => before(rows, end),
        };
        self.count += pieces.iter().map(|rows| rows.num_rows() as u64).sum::<u64>();
        self.content.update(&pieces).map_err(join_failed)
    }

    pub(super) fn finish(self) -> RowsDigest {
        (self.count, self.content.digest())
    }
}

/// The rows dated before an instant: adjacent ones together.
pub(super) fn before(rows: &Rows, end: i64) -> Vec<Rows> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    for (date, count) in dates(rows).chain([(end, 0)]) {
        if date >= end {
            if at > from {
                pieces.push(rows.slice(from, at - from));
            }
            from = at + count;
        }
        at += count;
    }
    pieces
}

/// The dates of some rows, each with the number of rows that have it in a row.
pub(super) fn dates(rows: &Rows) -> impl Iterator<Item = (i64, usize)> {
    let column = rows.column(Column::Date.name()).expect("every dataset has dates");
    let dates = column.values().as_primitive::<TimestampMicrosecondType>();
    column.runs().map(|(index, count)| (dates.value(index), count))
}
