//! Rows on their way to files.

use std::ops::Deref;

use arrow::array::{ArrayRef, RecordBatch};

use crate::turns::Turns;

/// Some rows, and where each of their columns turns: it is found once, for all who hash, encode or count them.
#[derive(Clone, Debug)]
pub struct Rows {
    batch: RecordBatch,
    turns: Vec<Turns>,
}

impl Rows {
    /// So many of the rows, from one on.
    #[must_use]
    pub fn slice(&self, from: usize, count: usize) -> Self {
        let turns = self.turns.iter().map(|turns| turns.slice(from, count)).collect();
        Self { batch: self.batch.slice(from, count), turns }
    }

    /// A column, and where it turns.
    pub(crate) fn turning(&self, place: usize) -> (&ArrayRef, &Turns) {
        (self.batch.column(place), &self.turns[place])
    }

    /// Where a column turns that the rows have.
    pub(crate) fn turns_of(&self, name: &str) -> Option<&Turns> {
        self.batch.schema_ref().index_of(name).ok().map(|place| &self.turns[place])
    }
}

impl From<RecordBatch> for Rows {
    fn from(batch: RecordBatch) -> Self {
        let turns = batch.columns().iter().map(|column| Turns::of(column)).collect();
        Self { batch, turns }
    }
}

impl Deref for Rows {
    type Target = RecordBatch;

    fn deref(&self) -> &RecordBatch {
        &self.batch
    }
}

/// Rows that say the same are the same, whether or not their dictionaries turn elsewhere.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.batch == other.batch
    }
}
