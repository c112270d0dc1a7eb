//! A digest of rows in any order, computed by Spark and by the reader of its files.
//!
//! The hash of a row is Spark's `xxhash64` of its columns: XXH64 of each non-null value, seeded with the hash of the previous
//! columns, starting at 42. Integers of up to 32 bits and booleans are hashed as 4 bytes, floats (negative zero as zero) and
//! timestamps as 8, text as UTF-8. The digest is the number of rows and the sum of their hashes.
//!
//! Lost, repeated or changed rows change it, except with a chance of 2^-64; their order does not. It shows that files
//! hold the rows that Spark computed, not that the statement is right.

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use twox_hash::XxHash64;

/// The digest of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowDigest {
    /// Number of rows.
    pub rows: u64,
    /// The sum of their hashes, which are signed.
    sum: i128,
}

/// The seed that Spark uses.
const SEED: u64 = 42;

impl RowDigest {
    /// The expression that computes the digest of rows with these columns, as text.
    pub(crate) fn expression(columns: &[&str]) -> String {
        let columns: Vec<String> = columns.iter().map(|column| format!("`{}`", column.replace('`', "``"))).collect();
        format!("concat(count(1), ' ', coalesce(sum(cast(xxhash64({}) as decimal(38))), 0))", columns.join(", "))
    }

    /// The result of that expression.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (rows, sum) = text.split_once(' ')?;
        Some(Self { rows: rows.parse().ok()?, sum: sum.parse().ok()? })
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// If a column has a type without a digest, such as a list.
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let mut hashes = vec![SEED; rows.num_rows()];
        rows.columns().iter().try_for_each(|column| add_column(&mut hashes, column))?;
        self.rows += rows.num_rows() as u64;
        self.sum += hashes.into_iter().map(|hash| i128::from(hash.cast_signed())).sum::<i128>();
        Ok(())
    }
}

fn add_column(hashes: &mut [u64], column: &ArrayRef) -> Result<(), ArrowError> {
    let as_type = |data_type: &DataType| cast(column, data_type);
    match column.data_type() {
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            let values = as_type(&DataType::Int32)?;
            add_values(hashes, values.as_primitive::<Int32Type>().iter(), |value| value.to_le_bytes());
        }
        DataType::Float64 => {
            let bits = |value: f64| (if value == 0.0 { 0.0 } else { value }).to_bits().to_le_bytes();
            add_values(hashes, column.as_primitive::<Float64Type>().iter(), bits);
        }
        DataType::Timestamp(..) => {
            let values = as_type(&DataType::Int64)?;
            add_values(hashes, values.as_primitive::<Int64Type>().iter(), |value| value.to_le_bytes());
        }
        DataType::Utf8 | DataType::Dictionary(..) => {
            let values = as_type(&DataType::Utf8)?;
            add_values(hashes, values.as_string::<i32>().iter(), str::as_bytes);
        }
        other => return Err(ArrowError::NotYetImplemented(format!("a digest of columns of type {other}"))),
    }
    Ok(())
}

fn add_values<V, B: AsRef<[u8]>>(hashes: &mut [u64], values: impl Iterator<Item = Option<V>>, bytes: impl Fn(V) -> B) {
    for (hash, value) in hashes.iter_mut().zip(values) {
        if let Some(value) = value {
            *hash = XxHash64::oneshot(*hash, bytes(value).as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, TimestampMicrosecondArray};
    use arrow::compute::cast;
    use arrow::datatypes::DataType;

    use super::RowDigest;

    /// The expected digest was computed by Spark 4.2.1.
    #[test]
    fn a_digest_is_the_one_of_spark() {
        let texts = [Some("XOM"), Some("NEE"), None, Some("a text that has more than thirty-two bytes")];
        let texts: ArrayRef = Arc::new(arrow::array::StringArray::from_iter(texts));
        let values = Float64Array::from_iter([Some(0.25), Some(-0.0), None, Some(1e300)]);
        let flags = BooleanArray::from_iter([Some(true), None, Some(false), Some(true)]);
        let numbers = Int32Array::from_iter([Some(7), Some(-1), None, Some(i32::MAX)]);
        let dates = TimestampMicrosecondArray::from_iter([Some(1_795_210_200_000_000), None, Some(-1), Some(0)]);
        for texts in [
            Arc::clone(&texts),
            cast(&texts, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))).unwrap(),
        ] {
            let columns: [(&str, ArrayRef); 5] = [
                ("t", texts),
                ("v", Arc::new(values.clone())),
                ("b", Arc::new(flags.clone())),
                ("n", Arc::new(numbers.clone())),
                ("at", Arc::new(dates.clone())),
            ];
            let rows =
                RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
            let mut digest = RowDigest::default();
            digest.add(&rows).unwrap();
            assert_eq!(Some(digest), RowDigest::parse("4 21772504021141321831"));
        }
    }
}
