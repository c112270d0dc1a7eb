//! The schemas that stages share: what decoding produces, the archive stores and the dataset reads.
//!
//! Each is declared here once. Three rules make files readable everywhere: timestamps are in microseconds, a closed set
//! is a dictionary of its spellings, and nothing is unsigned.

pub(crate) mod dates;
mod past;
mod records;
mod series;
mod slab;
mod table;

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Float64Array, Int8Array, Int8Builder, Int16Array, Int32Array, RecordBatch,
    StringArray, StringDictionaryBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int8Type, Int32Type, TimeUnit};

pub use past::{ClaimedUntil, Past, SeriesWatch, Watch, Watched};
pub use records::{ArticleCounts, Drift, Leniencies, Oversized, Reject, RequestRecord, Validator};
pub use series::{Change, Changes, Conventions, Series, SeriesKey};
pub(crate) use series::{key_columns, sources, written_date};
pub use slab::{ArticlePieces, Pieces, Slab};
pub use table::Table;

/// A naive timestamp: the date that a value is about.
pub fn date() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// A timestamp in UTC: when something was observed.
pub fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A closed set of spellings, few enough for one-byte codes.
pub fn choice() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

/// An open set of names that repeat.
pub fn symbol() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Rows whose columns are read by name, with the types that the tables declare.
#[derive(Clone, Copy)]
pub(crate) struct TypedRows<'a>(pub(crate) &'a RecordBatch);

impl<'a> TypedRows<'a> {
    pub(crate) fn column(self, name: &str) -> &'a ArrayRef {
        self.0.column_by_name(name).expect("the rows have the columns that are declared")
    }

    pub(crate) fn instants(self, name: &str) -> &'a TimestampMicrosecondArray {
        self.column(name).as_primitive()
    }

    pub(crate) fn offsets(self) -> &'a Int16Array {
        self.column("utc_offset_minutes").as_primitive()
    }

    pub(crate) fn whole(self, name: &str) -> &'a Int32Array {
        self.column(name).as_primitive()
    }

    pub(crate) fn reals(self, name: &str) -> &'a Float64Array {
        self.column(name).as_primitive()
    }

    pub(crate) fn texts(self, name: &str) -> &'a StringArray {
        self.column(name).as_string()
    }

    /// The values of a column of a closed set; none for a spelling that is not known.
    pub(crate) fn choices<T: FromStr + Copy>(self, name: &str) -> Vec<Option<T>> {
        let column = self.column(name).as_dictionary::<Int8Type>();
        let spellings = column.values().as_string::<i32>().iter();
        let spelled: Vec<Option<T>> = spellings.map(|spelling| spelling?.parse().ok()).collect();
        column.keys().iter().map(|key| spelled[key? as usize]).collect()
    }

    pub(crate) fn symbols(self, name: &str) -> &'a DictionaryArray<Int32Type> {
        self.column(name).as_dictionary()
    }
}

/// A column of [`choice`]s, from each row's code and the spellings.
pub(crate) fn choices(codes: Int8Array, spellings: impl IntoIterator<Item = &'static str>) -> ArrayRef {
    let spellings = StringArray::from_iter_values(spellings);
    let column = DictionaryArray::<Int8Type>::try_new(codes, Arc::new(spellings));
    Arc::new(column.expect("every code is the index of a spelling"))
}

/// A column of [`symbol`]s from runs of equal names, each with its length.
pub(crate) fn symbol_runs<'a>(names: impl Iterator<Item = (&'a str, usize)>) -> ArrayRef {
    let mut column = StringDictionaryBuilder::<Int32Type>::new();
    for (name, length) in names {
        column.append_n(name, length).expect("there are fewer names than rows");
    }
    Arc::new(column.finish())
}

/// A column of [`choice`]s from runs of equal spellings or nulls, each with its length.
pub(crate) fn choice_runs(
    spellings: impl IntoIterator<Item = &'static str>,
    runs: impl Iterator<Item = (Option<&'static str>, usize)>,
) -> ArrayRef {
    let spellings: Vec<&'static str> = spellings.into_iter().collect();
    let mut codes = Int8Builder::new();
    for (spelling, length) in runs {
        let code = spelling.map(|spelling| spellings.iter().position(|known| *known == spelling));
        match code {
            Some(code) => codes.append_value_n(code.expect("the spelling is in the set") as i8, length),
            None => codes.append_nulls(length),
        }
    }
    choices(codes.finish(), spellings)
}
