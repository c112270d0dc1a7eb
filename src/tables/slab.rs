//! What the archive hands to the dataset: some whole tickers at a time.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::{Table, instant};

/// Some whole tickers, in the order of their symbols.
///
/// A dataset is built slab by slab, so its memory follows the size of a slab and not of the archive, and no row of one
/// ticker can ever meet a row of another.
#[derive(Clone, Debug)]
pub struct Slab {
    /// Their signals, in the columns of the archive's view of them, ordered by series and date.
    pub signals: RecordBatch,
    /// What was said of their news: articles, summaries and historical sentiment, in the columns of
    /// [`Slab::news_schema`].
    pub news: [RecordBatch; 3],
}

impl Slab {
    /// The tables of news, in their order in a slab.
    pub const NEWS: [Table; 3] = [Table::Articles, Table::Summaries, Table::SentimentHistory];

    /// The columns of a table of news: those of its file that name a cell and say what it is, but for texts that no
    /// feature is made of, and from when to when the service was known to say so; a null end says that it still does.
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
