//! The history of each cell of a table, from its first observation to its last.

use std::ops::Range;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;

use super::cells::Cells;
use crate::archive::ArchiveError;
use crate::archive::sealed::keys;
use crate::error::Result;
use crate::tables::{Change, SeriesKey, Table};

/// Observations of some whole tickers, leaving out those that repeat the one before.
#[derive(Clone, Debug)]
pub struct Histories {
    /// In the columns of the table, sorted by series, cell and observation time.
    pub rows: RecordBatch,
    /// The kind of change of each row.
    pub changes: Vec<Change>,
    /// The series, in order.
    pub series: Vec<History>,
}

/// The cells of one series.
#[derive(Clone, Debug)]
pub struct History {
    /// The series.
    pub key: SeriesKey,
    /// The rows of each cell, in cell order.
    pub cells: Vec<Range<usize>>,
}

/// Observations of some whole tickers, or of some whole dates of one, as they are stored.
pub struct StoredObservations {
    table: Table,
    batches: Vec<RecordBatch>,
}

impl StoredObservations {
    pub(in crate::archive) fn of(table: Table, batches: Vec<RecordBatch>) -> Self {
        Self { table, batches }
    }

    /// The histories of their cells.
    ///
    /// # Errors
    ///
    /// If the observations have other columns than their table.
    pub fn histories(&self) -> Result<Histories> {
        // Whatever was observed by a run that counts is known.
        let histories = || Histories::of(&Cells::of(self.table, &self.batches)?, i64::MAX);
        histories().map_err(ArchiveError::merge)
    }
}

impl Histories {
    /// The history of some cells up to an instant.
    pub(in crate::archive) fn of(cells: &Cells, as_of_micros: i64) -> Result<Self, ArrowError> {
        let (turns, bounds) = cells.turns(as_of_micros);
        let (rows, changes) = if turns.len() == cells.rows.num_rows() {
            (cells.rows.clone(), cells.changes.clone())
        } else {
            let changes = turns.iter().map(|&row| cells.changes[row as usize]).collect();
            (take_record_batch(&cells.rows, &UInt32Array::from(turns))?, changes)
        };
        let ranges = keys::ranges(cells.table, &rows).map_err(ArrowError::from_external_error)?;
        let mut rest = &bounds[..];
        let of_series = |(key, range): (SeriesKey, Range<usize>)| {
            let (of_series, others) = rest.split_at(rest.partition_point(|cell| cell.end <= range.end));
            rest = others;
            History { key, cells: of_series.to_vec() }
        };
        let series = ranges.into_iter().map(of_series).collect();
        Ok(Self { rows, changes, series })
    }
}
