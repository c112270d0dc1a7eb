//! Observations of some cells: the known value of each, every value over time, and their history.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, TimestampMicrosecondArray, UInt32Array, new_null_array};
use arrow::compute::{take, take_arrays, take_record_batch};
use arrow::error::ArrowError;

use super::cells::{CellState, Cells, Revision};
use super::histories::Histories;
use crate::archive::ArchiveError;
use crate::archive::sealed::rows::observed;
use crate::archive::suspect::SuspectFilter;
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::{Slab, Table, instant};

/// Observations of some whole cells.
pub(in crate::archive) enum Observed {
    /// Single observations of each cell.
    Plain(Table, RecordBatch),
    Cells(Box<Cells>),
}

impl Observed {
    /// The known cells as of an instant, in the columns of [`Table::known_schema`].
    pub(in crate::archive) fn known(&self, as_of: i64, revision: Revision, vintage: Vintage) -> Result<RecordBatch> {
        let known = match self {
            Self::Plain(table, rows) => {
                let revisions = Arc::new(Int32Array::from(vec![0; rows.num_rows()]));
                let [first, revised] = [observed_at(rows); 2].map(Arc::clone);
                with_details(*table, rows, [first, revised, revisions])
            }
            Self::Cells(cells) => chosen(cells, cells.known(0..cells.count(), as_of, revision), vintage),
        };
        known.map_err(ArchiveError::merge)
    }

    /// Every value of the cells up to an instant, and from when to when it was current. Those of suspect articles are left
    /// out, or end when these were contradicted.
    pub(in crate::archive) fn spans(&self, as_of: i64, suspects: &SuspectFilter) -> Result<RecordBatch> {
        if let Self::Plain(table, rows) = self
            && suspects.concerns(*table)
        {
            let cells = Cells::of(*table, [rows]).map_err(ArchiveError::merge)?;
            return Self::Cells(Box::new(cells)).spans(as_of, suspects);
        }
        let schema = Slab::news_schema(match self {
            Self::Plain(table, _) => *table,
            Self::Cells(cells) => cells.table,
        });
        // The columns that a file has.
        let values = |rows: &RecordBatch| -> Vec<ArrayRef> {
            schema.fields().iter().filter_map(|field| rows.column_by_name(field.name()).cloned()).collect()
        };
        let spans = || {
            let columns = match self {
                Self::Plain(_, rows) => {
                    let mut columns = values(rows);
                    columns.push(Arc::clone(observed_at(rows)));
                    columns.push(new_null_array(&instant(), rows.num_rows()));
                    columns
                }
                Self::Cells(cells) => {
                    let (rows, from, until) = suspects.of_spans(cells.table, &cells.rows, cells.spans(as_of));
                    let mut columns = take_arrays(&values(&cells.rows), &UInt32Array::from(rows), None)?;
                    columns.push(Arc::new(TimestampMicrosecondArray::from(from).with_timezone("UTC")));
                    columns.push(Arc::new(TimestampMicrosecondArray::from(until).with_timezone("UTC")));
                    columns
                }
            };
            RecordBatch::try_new(Arc::clone(&schema), columns)
        };
        spans().map_err(ArchiveError::merge)
    }

    /// The history of each cell up to an instant.
    pub(in crate::archive) fn histories(&self, as_of: i64) -> Result<Histories> {
        let histories = match self {
            Self::Plain(table, rows) => Cells::of(*table, [rows]).and_then(|cells| Histories::of(&cells, as_of)),
            Self::Cells(cells) => Histories::of(cells, as_of),
        };
        histories.map_err(ArchiveError::merge)
    }
}

/// When each row was observed.
fn observed_at(rows: &RecordBatch) -> &ArrayRef {
    rows.column_by_name("observed_at").expect("every table has the column")
}

/// The chosen observation of each cell.
fn chosen(cells: &Cells, mut known: Vec<CellState>, vintage: Vintage) -> Result<RecordBatch, ArrowError> {
    if vintage == Vintage::Latest {
        known.retain(|known| known.latest.is_some());
    }
    let row = |known: &CellState| match vintage {
        Vintage::Latest => known.latest.expect("the others were left out"),
        Vintage::First => known.first,
    };
    let rows = &cells.rows;
    let is_whole =
        known.len() == rows.num_rows() && known.iter().enumerate().all(|(at, known)| row(known) == at as u32);
    let taken =
        if is_whole { rows.clone() } else { take_record_batch(rows, &known.iter().map(row).collect::<UInt32Array>())? };
    let instants =
        |row: &dyn Fn(&CellState) -> u32| take(observed(rows), &known.iter().map(row).collect::<UInt32Array>(), None);
    let first = instants(&|known| known.first)?;
    let seen = match vintage {
        Vintage::Latest => instants(&|known| known.revised)?,
        Vintage::First => Arc::clone(&first),
    };
    let revisions = Arc::new(known.iter().map(|known| known.revisions as i32).collect::<Int32Array>());
    with_details(cells.table, &taken, [first, seen, revisions])
}

/// Builds cells from the chosen observation of each: when the cell and its value were first seen, and how often it was
/// revised.
fn with_details(table: Table, taken: &RecordBatch, details: [ArrayRef; 3]) -> Result<RecordBatch, ArrowError> {
    let own = &taken.columns()[..taken.num_columns() - 2];
    let columns = [own, &details].concat();
    RecordBatch::try_new(table.known_schema(), columns)
}
