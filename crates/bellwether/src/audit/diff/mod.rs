//! The differences between two versions of a dataset.
//!
//! Rows are identified by their key: ticker, date, period and regime for signals. Two versions in the same order are
//! merged in one streaming pass. Otherwise the rows are compared in rounds, each with a share of the keys that is small
//! enough to sort in memory.
//!
//! Versions with different columns are refused.

mod merge;
mod rounds;
mod rows;

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

pub use rows::schema;

use crate::error::{Error, ErrorKind, Result};
use crate::export::PublishedReader;
use merge::{Merge, VersionRows};

/// The differences between two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Rows in the first.
    pub before: u64,
    /// Rows in the second.
    pub after: u64,
    /// Rows only in the second.
    pub added: u64,
    /// Rows only in the first.
    pub removed: u64,
    /// Rows in both, with different values.
    pub changed: u64,
    /// Per column, rows in which it changed, in column order.
    pub columns: Vec<(String, u64)>,
}

impl Difference {
    /// Whether the versions are equal.
    pub fn is_none(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// Compares two versions and delivers a row for each one added, removed or changed, in the columns of [`schema`].
///
/// # Errors
///
/// If the columns differ, if a file cannot be read, or if `deliver` fails.
pub fn diff(
    before: &PublishedReader,
    after: &PublishedReader,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Difference> {
    check_columns(before, after)?;
    let key = key(before, after)?;
    let values = values(before.schema(), &key);
    let mut found = Difference {
        before: before.row_count(),
        after: after.row_count(),
        columns: values.iter().map(|name| (name.clone(), 0)).collect(),
        ..Difference::default()
    };
    // The digest covers all rows in order, so equal digests mean equal versions.
    if before.content() == after.content() {
        return Ok(found);
    }
    let compared = ComparedColumns { key: &key, values: &values };
    match (key_order(before, &key), key_order(after, &key)) {
        (Some(order), Some(other)) if order == other => {
            let merge = Merge { compared };
            let sides =
                [VersionRows::open(before, &order, before.rows()?)?, VersionRows::open(after, &order, after.rows()?)?];
            merge.run(sides, &mut found, &mut deliver)?;
        }
        _ => rounds::run([before, after], compared, &mut found, &mut deliver)?,
    }
    Ok(found)
}

/// The columns to compare.
#[derive(Clone, Copy)]
struct ComparedColumns<'a> {
    /// The columns that identify a row.
    key: &'a [String],
    /// The others.
    values: &'a [String],
}

/// The key of two versions.
fn key(before: &PublishedReader, after: &PublishedReader) -> Result<Vec<String>> {
    let of = |version: &PublishedReader| match version.key() {
        Some(key) => Ok(key.to_vec()),
        None => {
            let what = format!(
                "the rows of `{}` have no key: `columns` in its definition leaves out one of its columns",
                version.name()
            );
            Err(Error::new(ErrorKind::Data, what).with_hint(
                "add the key to `columns`: `ticker`, `date`, `period` and `regime` for signals, `ticker`, `date`, `title`, \
                 `link` and `copy` for news",
            ))
        }
    };
    let (key, other) = (of(before)?, of(after)?);
    if key == other {
        return Ok(key);
    }
    let names = |key: &[String]| format!("`{}`", key.join("`, `"));
    let (only_before, only_after) = (names(&key), names(&other));
    Err(other_columns(before, after, &only_before, &only_after))
}

/// The columns to compare: all but the key.
fn values(schema: &Schema, key: &[String]) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).filter(|name| !key.contains(name)).collect()
}

/// The key columns in the order that a version is sorted by; `None` if it is not sorted by its key.
fn key_order(version: &PublishedReader, key: &[String]) -> Option<Vec<String>> {
    let order: Vec<String> = version.order().into_iter().take(key.len()).map(str::to_owned).collect();
    (order.len() == key.len() && order.iter().all(|name| key.contains(name))).then_some(order)
}

fn check_columns(before: &PublishedReader, after: &PublishedReader) -> Result<()> {
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
    Err(other_columns(before, after, &only(&ones, &others), &only(&others, &ones)))
}

fn other_columns(before: &PublishedReader, after: &PublishedReader, only_before: &str, only_after: &str) -> Error {
    let (before, after) = (before.name(), after.name());
    let what = format!(
        "`{before}` and `{after}` have different columns: {only_before} only in the first, {only_after} only in the second"
    );
    Error::new(ErrorKind::Data, what).with_hint(
        "build both from the same definition: `bellwether build NAME --as-of INSTANT` rebuilds the earlier state with its \
         columns",
    )
}

fn failure(error: ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "cannot compare the rows of two versions").with_source(error)
}
