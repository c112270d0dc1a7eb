//! Observations as a view reads them.

use super::fold::histories::{FoldedObservations, Histories, StoredObservations};
use super::sealed::bound::{Bound, Cuts};
use super::view::View;
use crate::error::Result;
use crate::tables::{Slab, Table};

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

/// The observations of articles of some tickers.
pub enum ArticleObservations {
    /// Of whole tickers.
    Whole(StoredObservations),
    /// Of a ticker with too many articles to hold in memory.
    Giant(Giant),
}

/// A ticker with very many articles, which are read from the archive each time.
pub struct Giant {
    pub(super) view: View,
    pub(super) ticker: String,
}

impl Giant {
    /// The observations of its articles, in pieces of whole dates.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn pieces(&self) -> Result<impl Iterator<Item = Result<StoredObservations>> + use<>> {
        let mut merged = self.view.merge(Table::Articles)?;
        let (begin, end) = (Bound::before(&self.ticker), Bound::after(&self.ticker));
        merged.pass_over(&begin)?;
        let next = move || merged.next_until(&end, Cuts::Dates).transpose();
        Ok(std::iter::from_fn(next).map(|piece| Ok(StoredObservations::of(Table::Articles, piece?.batches))))
    }
}
