//! Observations as a view reads them.

use super::fold::histories::{FoldedObservations, Histories};
use crate::error::Result;
use crate::tables::Slab;

/// A slab, and the observations of its signals.
pub struct ObservedSlab {
    /// The slab.
    pub slab: Slab,
    pub(super) signals: FoldedObservations,
}

impl ObservedSlab {
    /// The histories of its signals, of all series of its tickers.
    ///
    /// # Errors
    ///
    /// If the observations cannot be grouped.
    pub fn histories(&self) -> Result<Histories> {
        self.signals.histories()
    }
}
