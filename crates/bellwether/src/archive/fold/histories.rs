//! The history of each cell of a table, from its first observation to its last.
//! And what is known of some cells as record batches: the known value of each, and every value over time.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;

use super::cells::{Cells, KnownCells, Revision, Spans};
use super::order::RowRanges;
use crate::archive::fold::order::Groups;
use crate::archive::merge_failed;
use crate::archive::sealed::rows::{self, observation_times};
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::{Change, SeriesKey, Slab, Table};

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
        let ranges = rows::ranges(cells.table, &rows).map_err(ArrowError::from_external_error)?;
        let of_series = |(key, range)| History { key, groups: groups.within(range).collect() };
        let series = ranges.into_iter().map(of_series).collect();
        Ok(Self { rows, changes, series })
    }
}

impl Cells {
    /// The known cells as of an instant, in the columns of [`Table::known_schema`](crate::tables::Table::known_schema): an
    /// observation of each, when the cell and its value were first seen, and how often it was revised.
    pub(in crate::archive) fn known_rows(
        &self,
        as_of: i64,
        revision: Revision,
        vintage: Vintage,
    ) -> Result<RecordBatch> {
        self.chosen_rows(self.known_cells(self.all(), as_of, revision), vintage).map_err(merge_failed)
    }

    fn chosen_rows(&self, known: Vec<KnownCells>, vintage: Vintage) -> Result<RecordBatch, ArrowError> {
        let (mut rows, mut first, mut seen) = (RowRanges::default(), RowRanges::default(), RowRanges::default());
        let mut revisions: Vec<i32> = Vec::with_capacity(self.rows.num_rows());
        for known in known {
            match (known, vintage) {
                (KnownCells::Once(once), _) => {
                    revisions.resize(revisions.len() + once.len(), 0);
                    [&mut rows, &mut first, &mut seen].into_iter().for_each(|chosen| chosen.push(once.clone()));
                }
                (KnownCells::Often(state), Vintage::First) => {
                    revisions.push(state.revisions as i32);
                    let of_first = state.first..state.first + 1;
                    [&mut rows, &mut first, &mut seen].into_iter().for_each(|chosen| chosen.push(of_first.clone()));
                }
                (KnownCells::Often(state), Vintage::Latest) => {
                    let Some(latest) = state.latest else { continue };
                    revisions.push(state.revisions as i32);
                    for (chosen, row) in [(&mut rows, latest), (&mut first, state.first), (&mut seen, state.revised)] {
                        chosen.push(row..row + 1);
                    }
                }
            }
        }
        let mut columns = rows.of_columns(&self.rows.columns()[..self.rows.num_columns() - 2])?;
        columns.extend([first, seen].map(|chosen| instants(chosen.values(observation_times(&self.rows).values()))));
        columns.push(Arc::new(Int32Array::from(revisions)));
        RecordBatch::try_new(self.table.known_schema(), columns)
    }

    /// Every value of the cells up to an instant, and from when to when it was current.
    pub(in crate::archive) fn spans_of(&self, as_of: i64) -> Result<RecordBatch> {
        let Spans { rows, from, until } = self.spans(as_of);
        let schema = Slab::news_schema(self.table);
        let batch = || {
            // The columns that a file has.
            let fields = schema.fields().iter();
            let values: Vec<ArrayRef> =
                fields.filter_map(|field| self.rows.column_by_name(field.name()).cloned()).collect();
            let mut columns = rows.of_columns(&values)?;
            columns.push(instants(from));
            columns.push(instants(until));
            RecordBatch::try_new(Arc::clone(&schema), columns)
        };
        batch().map_err(merge_failed)
    }
}

/// Instants in UTC.
fn instants<T>(micros: Vec<T>) -> ArrayRef
where
    TimestampMicrosecondArray: From<Vec<T>>,
{
    Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"))
}
