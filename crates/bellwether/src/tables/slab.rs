//! Slabs, which the archive hands to the dataset: a few whole tickers at a time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::{Table, Watched, instant};
use crate::error::Result;
use crate::interface::Ticker;

/// A few whole tickers, in ticker order.
///
/// A dataset is built slab by slab, so memory follows the size of a slab and not of the archive, and rows of different
/// tickers never mix.
#[derive(Clone)]
pub struct Slab {
    /// Their signals, in the columns of the archive's view, sorted by series and date.
    pub signals: RecordBatch,
    /// The values of their articles over time, in the columns of [`Slab::news_schema`].
    pub articles: ArticlePieces,
    /// The values of their summaries over time, likewise.
    pub summaries: RecordBatch,
    /// The values of their historical sentiment over time, likewise.
    pub records: RecordBatch,
    /// When the lists of articles were watched, by ticker; of a ticker without an entry, no list is known.
    pub watched: Arc<HashMap<Ticker, Watched>>,
}

/// Articles in pieces of whole dates, in order of ticker and date. If there are very many, they are read from the
/// archive each time.
#[derive(Clone)]
pub struct ArticlePieces(Arc<dyn Fn() -> Result<Pieces> + Send + Sync>);

/// The pieces of some articles.
pub type Pieces = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl ArticlePieces {
    /// Articles in memory.
    pub fn in_memory(pieces: Vec<RecordBatch>) -> Self {
        Self(Arc::new(move || Ok(Box::new(pieces.clone().into_iter().map(Ok)))))
    }

    /// Articles that are read each time.
    pub fn on_disk(open: impl Fn() -> Result<Pieces> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// The pieces.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn pieces(&self) -> Result<Pieces> {
        (self.0)()
    }

    /// These articles with each piece changed.
    pub fn map(self, change: impl Fn(RecordBatch) -> Result<RecordBatch> + Clone + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || {
            let change = change.clone();
            Ok(Box::new(self.pieces()?.map(move |piece| piece.and_then(&change))))
        }))
    }
}

impl Slab {
    /// The columns of a table of news: the cell and its value, without texts that no feature uses, and from when to
    /// when the value was current; a null end means it still is.
    pub fn news_schema(table: Table) -> SchemaRef {
        let all = table.schema();
        let said = &all.fields()[..all.fields().len() - 3];
        let is_of_use = |field: &&FieldRef| *field.data_type() != DataType::Utf8 || field.name() == "record";
        let mut fields: Vec<Field> = said.iter().filter(is_of_use).map(|field| field.as_ref().clone()).collect();
        fields.push(Field::new("seen_from", instant(), false));
        fields.push(Field::new("seen_until", instant(), true));
        Arc::new(Schema::new(fields))
    }
}
