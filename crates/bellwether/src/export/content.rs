//! The digest of a dataset's content: `content` in `dataset.json`.
//!
//! It depends only on the names, types, order and values of the columns and on the order of the rows, not on formats,
//! folders, compression, row groups, dictionaries, threads, or the version that wrote them. Datasets with the same
//! digest have the same rows. To compute it in another language:
//!
//! 1. Read all rows, sorted by `sort`, with the columns in the order of `columns`.
//! 2. Split the rows of each column into *runs*: maximal sequences of consecutive rows with the same value, or with
//!    null. Floats are the same if their bits are. Compute the BLAKE3 over the runs. Each run contributes:
//!    - its header: twice the number of its rows, plus one unless it is null, in unsigned LEB128 (seven bits per byte,
//!      low bits first, the high bit set in all bytes but the last);
//!    - the bytes of its value; null has none.
//!      A `text` is its number in LEB128: the distinct texts of a column are numbered from 0 by first occurrence.
//!      A `32-bit integer` is 4 bytes, two's complement. A `64-bit float` is the 8 bytes of IEEE 754.
//!      A `timestamp` is the microseconds since 1970-01-01T00:00:00 as a signed 64-bit integer.
//!      A `true or false` is one byte, 1 or 0.
//!
//!    If a column has any texts, its runs are followed by a zero byte and by the distinct texts in the order of their
//!    numbers, each as its length in UTF-8 bytes (an unsigned 32-bit integer) followed by the bytes.
//! 3. The digest is the BLAKE3 over the columns, in order. Each column contributes its name and its type as given in
//!    `columns`, both prefixed with their length like the texts above; a byte, 1 if `nullable` is true and 0 if not;
//!    and the 32-byte digest of its runs.
//!
//! Integers are little-endian. `content` is the digest in lower-case hexadecimal.
//!
//! In a wide dataset, each matrix has a digest by the rules above: its columns are `date` and then the tickers in the
//! order of the file, each with the type and nullability that `columns` gives the matrix's value. `content` is the
//! BLAKE3 over the matrices, sorted by the bytes of their paths. Each contributes its path without extension, such as
//! `15d-neutral/confidence`, prefixed with its length, and its 32-byte digest.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use arrow::array::{AnyDictionaryArray, Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, DataType, Field, Int8Type, Int32Type, Schema};
use arrow::error::ArrowError;
use blake3::{Hash, Hasher};
use rayon::prelude::*;

use crate::columns::{self, Rows};
use crate::disk::digest::Digest;
use crate::plan::describe;

const _: () = assert!(cfg!(target_endian = "little"), "numbers are hashed as they are in memory");

/// The digest of rows in sequence.
#[derive(Debug)]
pub(crate) struct Content {
    columns: Vec<ColumnDigest>,
}

#[derive(Debug)]
struct ColumnDigest {
    field: Arc<Field>,
    runs: RunDigest,
    texts: Texts,
}

/// The digest of a column's runs.
#[derive(Debug, Default)]
struct RunDigest {
    digest: Digest,
    /// The last run, which may continue: its number of rows, and the bytes of its value, none for null.
    open: Option<(u64, Option<Vec<u8>>)>,
}

/// The texts of a column, numbered.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<String, u64>,
    /// The hashed form of the texts, in the order of their numbers.
    bytes: Vec<u8>,
}

impl Texts {
    /// The number of a text; a new text gets the next one.
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.numbers.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        number
    }
}

impl Content {
    pub(crate) fn new(schema: &Schema) -> Self {
        let column = |field: &Arc<Field>| ColumnDigest {
            field: Arc::clone(field),
            runs: RunDigest::default(),
            texts: Texts::default(),
        };
        Self { columns: schema.fields().iter().map(column).collect() }
    }

    /// Adds the rows of some pieces.
    pub(crate) fn update(&mut self, pieces: &[Rows]) -> Result<(), ArrowError> {
        let columns = self.columns.par_iter_mut().enumerate();
        columns.try_for_each(|(index, column)| pieces.iter().try_for_each(|rows| column.update(&rows.columns()[index])))
    }

    pub(crate) fn digest(self) -> Hash {
        let mut hasher = Hasher::new();
        for ColumnDigest { field, mut runs, texts } in self.columns {
            hash_text(&mut hasher, field.name());
            hash_text(&mut hasher, &type_in_words(&field));
            hasher.update(&[u8::from(field.is_nullable())]);
            runs.close();
            if !texts.bytes.is_empty() {
                runs.digest.update(&[0]);
                runs.digest.update(&texts.bytes);
            }
            hasher.update(runs.digest.hash().as_bytes());
        }
        hasher.finalize()
    }
}

/// The digest of matrices, by their paths without extension.
pub(super) fn of_matrices<'a>(matrices: impl Iterator<Item = (&'a str, Hash)>) -> Hash {
    let mut matrices: Vec<(&str, Hash)> = matrices.collect();
    matrices.sort_unstable_by_key(|(path, _)| *path);
    let mut hasher = Hasher::new();
    for (path, digest) in matrices {
        hash_text(&mut hasher, path);
        hasher.update(digest.as_bytes());
    }
    hasher.finalize()
}

/// The name of a column's type, whatever its encoding and nullability.
pub(super) fn type_in_words(field: &Field) -> String {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    describe(&Field::new(field.name(), data_type.clone(), false))
}

impl ColumnDigest {
    fn update(&mut self, column: &columns::Column) -> Result<(), ArrowError> {
        let (values, texts) = (column.values(), &mut self.texts);
        match values.data_type() {
            DataType::Utf8 => {
                let values = values.as_string::<i32>();
                self.runs.add(column, |index, out| push_number(out, texts.number(values.value(index))));
            }
            DataType::Dictionary(key, _) if is_of_distinct_texts(values.as_any_dictionary()) => match **key {
                DataType::Int8 => self.add_texts::<Int8Type>(column),
                DataType::Int32 => self.add_texts::<Int32Type>(column),
                _ => self.update_texts(column)?,
            },
            DataType::Boolean => {
                let flags = values.as_boolean();
                self.runs.add(column, |index, out| out.push(u8::from(flags.value(index))));
            }
            other => match other.primitive_width() {
                Some(4) => self.add_numbers::<4>(column),
                Some(8) => self.add_numbers::<8>(column),
                _ => self.update_texts(column)?,
            },
        }
        Ok(())
    }

    /// Adds values of a less common type as text.
    fn update_texts(&mut self, column: &columns::Column) -> Result<(), ArrowError> {
        self.update(&cast(&column.flat()?, &DataType::Utf8)?.into())
    }

    /// Adds texts by dictionary key, looking up each text once.
    fn add_texts<K: ArrowDictionaryKeyType>(&mut self, column: &columns::Column) {
        let dictionary = column.values().as_dictionary::<K>();
        let (values, keys) = (dictionary.values().as_string::<i32>(), dictionary.keys().values());
        let mut numbers: Vec<Option<u64>> = vec![None; values.len()];
        self.runs.add(column, |index, out| {
            let key = keys[index].as_usize();
            push_number(out, *numbers[key].get_or_insert_with(|| self.texts.number(values.value(key))));
        });
    }

    /// Adds fixed-width numbers.
    fn add_numbers<const WIDTH: usize>(&mut self, column: &columns::Column) {
        let data = column.values().to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * WIDTH..];
        let (values, _) = bytes.as_chunks::<WIDTH>();
        self.runs.add(column, |index, out| out.extend_from_slice(&values[index]));
    }
}

impl RunDigest {
    /// Adds rows with exact boundaries; `push` appends the bytes of the value at an index.
    fn add(&mut self, column: &columns::Column, mut push: impl FnMut(usize, &mut Vec<u8>)) {
        let nulls = column.values().nulls();
        let is_value = |index| nulls.is_none_or(|nulls| nulls.is_valid(index));
        let mut runs = column.runs();
        let Some((index, rows)) = runs.next() else { return };
        let first = is_value(index).then(|| bytes_of(index, &mut push));
        // The first run may continue the open one.
        match &mut self.open {
            Some((open, value)) if *value == first => *open += rows as u64,
            _ => {
                self.close();
                self.open = Some((rows as u64, first));
            }
        }
        let Some(mut last) = runs.next() else { return };
        self.close();
        self.digest.append(|out| {
            // The last one stays open.
            for next in runs {
                let (index, rows) = mem::replace(&mut last, next);
                push_number(out, head(rows as u64, is_value(index)));
                if is_value(index) {
                    push(index, out);
                }
            }
        });
        let (index, rows) = last;
        self.open = Some((rows as u64, is_value(index).then(|| bytes_of(index, &mut push))));
    }

    /// Hashes the open run.
    fn close(&mut self) {
        if let Some((rows, value)) = self.open.take() {
            self.digest.append(|out| {
                push_number(out, head(rows, value.is_some()));
                out.extend_from_slice(&value.unwrap_or_default());
            });
        }
    }
}

fn bytes_of(index: usize, push: &mut impl FnMut(usize, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(index, &mut bytes);
    bytes
}

/// The header of a run: its number of rows, and whether it has a value.
fn head(rows: u64, is_value: bool) -> u64 {
    rows * 2 + u64::from(is_value)
}

/// Appends a number in LEB128.
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Whether dictionary keys identify values: no duplicates and no nulls among the entries.
fn is_of_distinct_texts(array: &dyn AnyDictionaryArray) -> bool {
    array.values().as_string_opt::<i32>().is_some_and(|texts| {
        let mut seen = HashSet::new();
        texts.iter().all(|text| text.is_some_and(|text| seen.insert(text)))
    })
}

fn hash_text(hasher: &mut Hasher, text: &str) {
    hasher.update(&(text.len() as u32).to_le_bytes());
    hasher.update(text.as_bytes());
}
