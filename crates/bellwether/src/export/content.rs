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
    name: String,
    type_in_words: String,
    is_nullable: bool,
    runs: RunDigest,
}

/// The digest of a column's runs.
#[derive(Debug, Default)]
struct RunDigest {
    digest: Digest,
    /// The last run, which may continue.
    open: Option<Run>,
    texts: Texts,
}

/// Consecutive rows with the same value, given by its bytes, or null.
#[derive(Debug)]
struct Run {
    rows: u64,
    value: Option<Vec<u8>>,
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
        let column = |field: &std::sync::Arc<Field>| ColumnDigest {
            name: field.name().clone(),
            type_in_words: type_in_words(field),
            is_nullable: field.is_nullable(),
            runs: RunDigest::default(),
        };
        Self { columns: schema.fields().iter().map(column).collect() }
    }

    /// Adds the rows of some pieces.
    pub(crate) fn update(&mut self, pieces: &[Rows]) -> Result<(), ArrowError> {
        let columns = self.columns.par_iter_mut().enumerate();
        columns.try_for_each(|(index, column)| {
            pieces.iter().try_for_each(|rows| column.runs.update(&rows.columns()[index]))
        })
    }

    pub(crate) fn digest(self) -> Hash {
        let mut hasher = Hasher::new();
        for ColumnDigest { name, type_in_words, is_nullable, runs } in self.columns {
            hash_text(&mut hasher, &name);
            hash_text(&mut hasher, &type_in_words);
            hasher.update(&[u8::from(is_nullable)]);
            hasher.update(runs.digest().as_bytes());
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

impl RunDigest {
    fn update(&mut self, column: &columns::Column) -> Result<(), ArrowError> {
        let values = column.values();
        match values.data_type() {
            DataType::Utf8 => {
                let (values, mut texts) = (values.as_string::<i32>(), mem::take(&mut self.texts));
                self.add(column, |index| Number(texts.number(values.value(index))));
                self.texts = texts;
            }
            DataType::Dictionary(key, _) if is_of_distinct_texts(values.as_any_dictionary()) => match **key {
                DataType::Int8 => self.add_texts::<Int8Type>(column),
                DataType::Int32 => self.add_texts::<Int32Type>(column),
                _ => self.update_texts(column)?,
            },
            DataType::Boolean => {
                let flags = values.as_boolean();
                self.add(column, |index| [u8::from(flags.value(index))]);
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
        let mut texts = mem::take(&mut self.texts);
        let mut numbers: Vec<Option<Number>> = vec![None; values.len()];
        self.add(column, |index| {
            let key = keys[index].as_usize();
            *numbers[key].get_or_insert_with(|| Number(texts.number(values.value(key))))
        });
        self.texts = texts;
    }

    /// Adds fixed-width numbers.
    fn add_numbers<const WIDTH: usize>(&mut self, column: &columns::Column) {
        let data = column.values().to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * WIDTH..];
        let (values, _) = bytes.as_chunks::<WIDTH>();
        self.add(column, |index| values[index]);
    }

    /// Adds rows with exact boundaries; `value` gives the value at an index.
    fn add<V: Value>(&mut self, column: &columns::Column, mut value: impl FnMut(usize) -> V) {
        let nulls = column.values().nulls();
        let mut value = |index| nulls.is_none_or(|nulls| nulls.is_valid(index)).then(|| value(index));
        let mut runs = column.runs();
        let Some((index, rows)) = runs.next() else { return };
        let first = Run::of(rows as u64, value(index));
        // The first run may continue the open one.
        match &mut self.open {
            Some(open) if open.value == first.value => open.rows += first.rows,
            _ => {
                self.close();
                self.open = Some(first);
            }
        }
        let Some(mut last) = runs.next() else { return };
        self.close();
        self.digest.append(|out| {
            // The last one stays open.
            runs.for_each(|next| {
                let (index, rows) = mem::replace(&mut last, next);
                push_run(out, rows as u64, value(index));
            });
        });
        let (index, rows) = last;
        self.open = Some(Run::of(rows as u64, value(index)));
    }

    /// Hashes the open run.
    fn close(&mut self) {
        if let Some(Run { rows, value }) = self.open.take() {
            self.digest.append(|out| {
                push_number(out, head(rows, value.is_some()));
                out.extend_from_slice(&value.unwrap_or_default());
            });
        }
    }

    fn digest(mut self) -> Hash {
        self.close();
        if !self.texts.bytes.is_empty() {
            self.digest.update(&[0]);
            self.digest.update(&self.texts.bytes);
        }
        self.digest.hash()
    }
}

impl Run {
    fn of(rows: u64, value: Option<impl Value>) -> Self {
        let bytes = |value| {
            let mut bytes = Vec::new();
            Value::push(value, &mut bytes);
            bytes
        };
        Self { rows, value: value.map(bytes) }
    }
}

/// A value in its hashed form.
trait Value: Copy {
    /// Appends its bytes.
    fn push(self, out: &mut Vec<u8>);

    /// Appends a byte, then the bytes of the value.
    fn push_behind(self, byte: u8, out: &mut Vec<u8>);
}

impl<const WIDTH: usize> Value for [u8; WIDTH] {
    #[inline(always)]
    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self);
    }

    #[inline(always)]
    fn push_behind(self, byte: u8, out: &mut Vec<u8>) {
        // One append is faster than two.
        let mut bytes = [byte; 9];
        bytes[1..=WIDTH].copy_from_slice(&self);
        out.extend_from_slice(&bytes[..=WIDTH]);
    }
}

/// The number of a text.
#[derive(Clone, Copy, Debug)]
struct Number(u64);

impl Value for Number {
    #[inline(always)]
    fn push(self, out: &mut Vec<u8>) {
        push_number(out, self.0);
    }

    #[inline(always)]
    fn push_behind(self, byte: u8, out: &mut Vec<u8>) {
        if self.0 < 0x80 {
            return out.extend_from_slice(&[byte, self.0 as u8]);
        }
        out.push(byte);
        push_number(out, self.0);
    }
}

/// Appends a run of a value, or of null.
#[inline(always)]
fn push_run(out: &mut Vec<u8>, rows: u64, value: Option<impl Value>) {
    let head = head(rows, value.is_some());
    match value {
        None => push_number(out, head),
        // Most runs are short.
        Some(value) if head < 0x80 => value.push_behind(head as u8, out),
        Some(value) => {
            push_number(out, head);
            value.push(out);
        }
    }
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
