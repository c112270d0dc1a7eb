//! What changed between two versions of a dataset?
//!
//! Rows are told apart by ticker, date, period and regime. Both versions are read at once, in the order that both were
//! written in, and merged: no more of them is held than is read at a time. Where the orders differ, the rows are gone
//! through in as many rounds as keep a round small, each with the rows of some of the keys, sorted.
//!
//! Versions whose columns differ are refused: what is not there in one of them did not change.

mod merge;
mod rounds;
mod rows;

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

pub use rows::schema;

use crate::error::{Error, Result};
use crate::export::Reading;
use crate::plan::Column;
use merge::{Merge, Side};

/// What changed from one version to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The rows of the one.
    pub before: u64,
    /// The rows of the other.
    pub after: u64,
    /// Rows that the other has and the one has not.
    pub added: u64,
    /// Rows that the one has and the other has not.
    pub removed: u64,
    /// Rows that both have, with other values.
    pub changed: u64,
    /// In how many of these each column changed, in the order of the columns.
    pub columns: Vec<(String, u64)>,
}

impl Difference {
    /// Whether both say the same.
    pub fn is_none(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// Compares two versions, and delivers a row for each that was added, removed or changed, in the columns of [`schema`].
///
/// # Errors
///
/// When their columns differ, when a file cannot be read, and what `deliver` fails with.
pub fn diff(
    before: &Reading,
    after: &Reading,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Difference> {
    check_columns(before, after)?;
    let values = values(before.schema());
    let mut found = Difference {
        before: before.row_count(),
        after: after.row_count(),
        columns: values.iter().map(|name| (name.clone(), 0)).collect(),
        ..Difference::default()
    };
    // The digest is of all rows in their order: with the same one there is nothing to look for.
    if before.content() == after.content() {
        return Ok(found);
    }
    match (key_order(before), key_order(after)) {
        (Some(order), Some(other)) if order == other => {
            let merge = Merge { values: &values };
            let sides = [Side::open(before, &order, before.rows()?)?, Side::open(after, &order, after.rows()?)?];
            merge.run(sides, &mut found, &mut deliver)?;
        }
        _ => rounds::run([before, after], &values, &mut found, &mut deliver)?,
    }
    Ok(found)
}

/// The columns that are compared: all but those of the key.
fn values(schema: &Schema) -> Vec<String> {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.filter(|name| !is_key(name)).map(str::to_owned).collect()
}

fn is_key(name: &str) -> bool {
    Column::KEY.iter().any(|column| column.name() == name)
}

/// The order of the keys in which the rows of a version stand; none where they stand in another order.
fn key_order(version: &Reading) -> Option<Vec<String>> {
    let order: Vec<String> = version.order().into_iter().take(Column::KEY.len()).map(str::to_owned).collect();
    (order.len() == Column::KEY.len() && order.iter().all(|name| is_key(name))).then_some(order)
}

fn check_columns(before: &Reading, after: &Reading) -> Result<()> {
    let described = |schema: &SchemaRef| -> BTreeSet<(String, String)> {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    };
    let (ones, others) = (described(before.schema()), described(after.schema()));
    if ones == others {
        return Ok(());
    }
    let only = |some: &BTreeSet<(String, String)>, others: &BTreeSet<(String, String)>| {
        let names: Vec<&str> = some.difference(others).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
    };
    Err(Error::OtherColumns {
        before: before.name(),
        after: after.name(),
        only_before: only(&ones, &others),
        only_after: only(&others, &ones),
    })
}

fn failed(error: ArrowError) -> Error {
    Error::Compare { source: error.into() }
}
