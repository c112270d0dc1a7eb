//! The digest of what a dataset says: `content` in `dataset.json`.
//!
//! It depends on the names, types, order and values of the columns and on the order of the rows, and on nothing else: not
//! on formats, folders, compression, row groups, dictionaries, threads, or the version that wrote them. Two datasets with
//! the same digest hold the same rows. To compute it in another language:
//!
//! 1. Read all rows in the order of `sort`, and the columns of `columns` in their order.
//! 2. For each column compute two SHA-256 digests over all its rows, from the first to the last:
//!    - of its *validity*: where `nullable` is true a byte for each row, 1 for a value and 0 for null; where it is false
//!      no bytes at all;
//!    - of its *values*: the bytes of each value, one after another; a null has none.
//!      A `text` is the length of its UTF-8 in bytes as an unsigned 32-bit integer, then the UTF-8.
//!      A `32-bit integer` is 4 bytes, two's complement. A `64-bit float` is the 8 bytes of IEEE 754.
//!      A `timestamp` is the microseconds since 1970-01-01T00:00:00 as a signed 64-bit integer.
//!      A `true or false` is one byte, 1 or 0.
//! 3. The digest is the SHA-256 over the columns in their order, for each: the name as a `text` above, the type as it
//!    stands in `columns` as a `text`, the 32 bytes of the digest of its validity, the 32 bytes of that of its values.
//!
//! Every number is little-endian. `content` is the digest in lower-case hexadecimal.
//!
//! Of a wide dataset each matrix has a digest by the rules above: its columns are `date`, then the tickers as they stand
//! in the file, each with the type and the nullability that `columns` gives the matrix's value. `content` is the SHA-256 over
//! the matrices in the order of the bytes of their paths, for each: the path without its ending, such as
//! `15d-neutral/confidence`, as a `text`, and the 32 bytes of its digest.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::buffer::Buffer;
use arrow::compute::{cast, filter, is_not_null};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::plan::describe;

const _: () = assert!(cfg!(target_endian = "little"), "numbers are hashed as they stand in memory");

/// The digest of some rows that come one after another.
#[derive(Debug)]
pub(super) struct Content {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    name: String,
    type_in_words: String,
    is_nullable: bool,
    validity: Sha256,
    values: Sha256,
}

impl Content {
    pub(super) fn new(schema: &Schema) -> Self {
        let column = |field: &std::sync::Arc<Field>| Column {
            name: field.name().clone(),
            type_in_words: type_in_words(field),
            is_nullable: field.is_nullable(),
            validity: Sha256::new(),
            values: Sha256::new(),
        };
        Self { columns: schema.fields().iter().map(column).collect() }
    }

    pub(super) fn update(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        self.columns.par_iter_mut().zip(rows.columns()).try_for_each(|(column, array)| column.update(array))
    }

    pub(super) fn digest(self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for Column { name, type_in_words, validity, values, .. } in self.columns {
            hash_text(&mut hasher, &name);
            hash_text(&mut hasher, &type_in_words);
            hasher.update(validity.finalize());
            hasher.update(values.finalize());
        }
        hasher.finalize().into()
    }
}

/// The digest of matrices, with their paths without endings.
pub(super) fn of_matrices<'a>(matrices: impl Iterator<Item = (&'a str, [u8; 32])>) -> [u8; 32] {
    let mut matrices: Vec<(&str, [u8; 32])> = matrices.collect();
    matrices.sort_unstable();
    let mut hasher = Sha256::new();
    for (path, digest) in matrices {
        hash_text(&mut hasher, path);
        hasher.update(digest);
    }
    hasher.finalize().into()
}

/// The type of a column in words: of its values, however they are encoded, and whether or not they may be null.
pub(super) fn type_in_words(field: &Field) -> String {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    describe(&Field::new(field.name(), data_type.clone(), false))
}

impl Column {
    fn update(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        let array = match array.data_type() {
            DataType::Dictionary(_, values) => &cast(array, values)?,
            _ => array,
        };
        if self.is_nullable {
            match array.nulls() {
                Some(nulls) => self.validity.update(nulls.iter().map(u8::from).collect::<Vec<u8>>()),
                None => self.validity.update(vec![1; array.len()]),
            }
        }
        if array.null_count() > 0 {
            let mask = is_not_null(array)?;
            self.hash_values(&filter(array, &mask)?)
        } else {
            self.hash_values(array)
        }
    }

    /// Adds the values of an array without nulls.
    fn hash_values(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        match array.data_type() {
            DataType::Boolean => {
                self.values.update(array.as_boolean().values().iter().map(u8::from).collect::<Vec<u8>>());
            }
            DataType::Utf8 => self.hash_texts(array.as_string::<i32>()),
            other => match other.primitive_width() {
                Some(width) => {
                    let data = array.to_data();
                    let values: Buffer = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
                    self.values.update(values.as_slice());
                }
                None => self.hash_texts(cast(array, &DataType::Utf8)?.as_string::<i32>()),
            },
        }
        Ok(())
    }

    fn hash_texts(&mut self, texts: &StringArray) {
        let mut bytes = Vec::with_capacity(texts.len() * 8 + texts.value_data().len());
        for text in texts.iter().flatten() {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        self.values.update(bytes);
    }
}

fn hash_text(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u32).to_le_bytes());
    hasher.update(text);
}
