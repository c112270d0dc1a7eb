//! What is known of some cells as record batches: the known value of each, and every value over time.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;

use super::cells::{Cells, KnownCells, Revision, Spans};
use super::row_ranges::RowRanges;
use crate::archive::merge_failed;
use crate::archive::sealed::rows::observation_times;
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::Slab;

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
