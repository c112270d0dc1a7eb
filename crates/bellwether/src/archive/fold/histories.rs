//! The history of each cell of a table, from its first observation to its last.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::cells::{Cells, Revision};
use super::groups::Groups;
use crate::archive::merge_failed;
use crate::archive::sealed::keys;
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::{Change, SeriesKey, Table};

/// Whatever was observed by a run that counts is known.
pub(in crate::archive) const EVER: i64 = i64::MAX;

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
    /// Its rows by cell, in cell order.
    pub groups: Groups,
}

/// Observations of some whole tickers, or of some whole dates of one, as they are stored.
pub struct StoredObservations {
    table: Table,
    batches: Vec<RecordBatch>,
}

impl StoredObservations {
    pub(crate) fn of(table: Table, batches: Vec<RecordBatch>) -> Self {
        Self { table, batches }
    }

    /// Groups them by cell.
    ///
    /// # Errors
    ///
    /// If they have other columns than their table.
    pub fn fold(&self) -> Result<FoldedObservations> {
        Cells::of(self.table, &self.batches).map(FoldedObservations).map_err(merge_failed)
    }

    /// The histories of their cells.
    ///
    /// # Errors
    ///
    /// As [`StoredObservations::fold`].
    pub fn histories(&self) -> Result<Histories> {
        self.fold()?.histories()
    }
}

/// Observations by cell.
pub struct FoldedObservations(pub(in crate::archive) Cells);

impl FoldedObservations {
    /// All of them, by series, cell and observation time.
    #[cfg(feature = "harness")]
    pub(crate) fn rows(self) -> RecordBatch {
        self.0.rows
    }

    /// The history of each cell.
    ///
    /// # Errors
    ///
    /// If they have other columns than their table.
    pub fn histories(&self) -> Result<Histories> {
        Histories::of(&self.0, EVER).map_err(merge_failed)
    }

    /// The latest known articles, as [`View::known_articles`](crate::archive::View::known_articles) gives them.
    ///
    /// # Errors
    ///
    /// If they have other columns than their table.
    pub fn latest_articles(&self) -> Result<RecordBatch> {
        self.0.known_rows(EVER, Revision::OfContent, Vintage::Latest)
    }
}

impl Histories {
    /// The history of some cells up to an instant.
    pub(in crate::archive) fn of(cells: &Cells, as_of_micros: i64) -> Result<Self, ArrowError> {
        let (turns, groups) = cells.turns(as_of_micros);
        let (rows, changes) = (turns.of(&cells.rows)?, turns.values(&cells.changes));
        let ranges = keys::ranges(cells.table, &rows).map_err(ArrowError::from_external_error)?;
        let of_series = |(key, range)| History { key, groups: groups.within(range).collect() };
        let series = ranges.into_iter().map(of_series).collect();
        Ok(Self { rows, changes, series })
    }
}
