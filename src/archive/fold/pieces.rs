//! Joins what was read piece by piece.

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;

use super::histories::Histories;
use crate::archive::sealed::bound::Bound;

/// Passes the histories of whole series to an observer.
pub(in crate::archive) struct Watch<W> {
    show: W,
    /// Pieces so far of a series that continues in the next one.
    held: Vec<Histories>,
}

impl<W: FnMut(&Histories)> Watch<W> {
    pub(in crate::archive) fn of(show: W) -> Self {
        Self { show, held: Vec::new() }
    }

    /// Passes a piece on once its last series is complete. Only articles come in several pieces; of these, only dates
    /// and scores are passed on.
    pub(in crate::archive) fn show(&mut self, piece: Histories, end: &Bound) -> Result<(), ArrowError> {
        if self.held.is_empty() && !end.is_within_ticker() {
            (self.show)(&piece);
            return Ok(());
        }
        self.held.push(piece.scores()?);
        if !end.is_within_ticker()
            && let Some(whole) = Histories::joined(std::mem::take(&mut self.held))?
        {
            (self.show)(&whole);
        }
        Ok(())
    }
}

/// Concatenates batches column by column, so that only one column is in memory twice.
pub(in crate::archive) fn concatenated(
    schema: &SchemaRef,
    mut batches: Vec<RecordBatch>,
) -> Result<RecordBatch, ArrowError> {
    if batches.len() == 1 {
        return Ok(batches.remove(0));
    }
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); schema.fields().len()];
    for batch in batches {
        let (_, columns, _) = batch.into_parts();
        pieces.iter_mut().zip(columns).for_each(|(pieces, column)| pieces.push(column));
    }
    let column = |(field, pieces): (&FieldRef, Vec<ArrayRef>)| match &pieces[..] {
        [] => Ok(new_empty_array(field.data_type())),
        pieces => concat(&pieces.iter().map(|piece| &**piece as &dyn Array).collect::<Vec<_>>()),
    };
    let columns = schema.fields().iter().zip(pieces).map(column).collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new(SchemaRef::clone(schema), columns)
}
