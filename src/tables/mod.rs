//! The columns that travel: what decoding makes, the archive keeps and the dataset reads.
//!
//! Their schemas are declared here once. Three rules make them readable everywhere: timestamps are in microseconds,
//! a closed set is a dictionary of its spellings, and nothing is unsigned.

mod records;
mod rows;
mod series;
mod slab;
mod table;

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int8Array, Int32Array, StringArray};
use arrow::datatypes::{DataType, Int8Type, Int32Type, TimeUnit};

pub use records::{Drift, Reject, RequestRecord};
pub use rows::Rows;
pub use series::{Change, Changes, Series, SeriesKey};
pub(crate) use series::{joined, key_columns};
pub use slab::Slab;
pub use table::Table;

/// A naive instant: what the vendor says that a value is about.
pub fn date() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// An instant in UTC: when something was seen.
pub fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// One of a closed set of spellings, few enough to count with a byte.
pub fn choice() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

/// One of an open set of names that repeat.
pub fn symbol() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column of [`choice`]s, from the spellings and the place of each row's among them.
pub(crate) fn choices(codes: Int8Array, spellings: impl IntoIterator<Item = &'static str>) -> ArrayRef {
    let spellings = StringArray::from_iter_values(spellings);
    let column = DictionaryArray::<Int8Type>::try_new(codes, Arc::new(spellings));
    Arc::new(column.expect("every code is the place of a spelling"))
}

/// A column of [`symbol`]s that says the same in every row of a stretch: each name with the length of its stretch.
pub(crate) fn stretches<'a>(names: impl IntoIterator<Item = (&'a str, usize)>) -> ArrayRef {
    let mut spellings: Vec<&str> = Vec::new();
    let mut codes = Vec::new();
    for (name, length) in names {
        if spellings.last() != Some(&name) {
            spellings.push(name);
        }
        codes.extend(std::iter::repeat_n(spellings.len() as i32 - 1, length));
    }
    let column = DictionaryArray::<Int32Type>::try_new(
        Int32Array::from(codes),
        Arc::new(StringArray::from_iter_values(spellings)),
    );
    Arc::new(column.expect("every code is the place of a name"))
}
