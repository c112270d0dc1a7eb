//! Slabs, which the archive hands to the dataset: a few whole tickers at a time.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::{Table, instant};

/// A few whole tickers, in ticker order.
///
/// A dataset is built slab by slab, so memory follows the size of a slab and not of the archive, and rows of different
/// tickers never mix.
#[derive(Clone, Debug)]
pub struct Slab {
    /// Their signals, in the columns of the archive's view, sorted by series and date.
    pub signals: RecordBatch,
    /// The values of their news over time: articles, summaries and historical sentiment, in the columns of
    /// [`Slab::news_schema`].
    pub news: [RecordBatch; 3],
}

impl Slab {
    /// The tables of news, in their order in a slab.
    pub const NEWS: [Table; 3] = [Table::Articles, Table::Summaries, Table::SentimentHistory];

    /// The columns of a table of news: the cell and its value, without texts that no feature uses, and from when to
    /// when the value was current; a null end means it still is.
    pub fn news_schema(table: Table) -> SchemaRef {
        let all = table.schema();
        let said = &all.fields()[..all.fields().len() - 2];
        let is_of_use = |field: &&FieldRef| *field.data_type() != DataType::Utf8 || field.name() == "record";
        let mut fields: Vec<Field> = said.iter().filter(is_of_use).map(|field| field.as_ref().clone()).collect();
        fields.push(Field::new("seen_from", instant(), false));
        fields.push(Field::new("seen_until", instant(), true));
        Arc::new(Schema::new(fields))
    }
}
