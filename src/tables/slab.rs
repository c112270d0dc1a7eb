//! What the archive hands to the dataset: some whole tickers at a time.

use arrow::array::RecordBatch;

/// Some whole tickers, in the order of their symbols.
///
/// A dataset is built slab by slab, so its memory follows the size of a slab and not of the archive, and no row of one
/// ticker can ever meet a row of another.
#[derive(Clone, Debug)]
pub struct Slab {
    /// Their signals, in the columns of [`Slab::SIGNALS`], ordered by ticker.
    pub signals: RecordBatch,
    /// Their articles, in the columns of [`Slab::ARTICLES`], ordered by ticker.
    pub articles: RecordBatch,
}

impl Slab {
    /// The columns of the signals.
    pub const SIGNALS: [&str; 7] = ["ticker", "period", "regime", "date", "utc_offset_minutes", "signal", "confidence"];

    /// The columns of the articles.
    pub const ARTICLES: [&str; 4] = ["ticker", "date", "place", "score"];
}
