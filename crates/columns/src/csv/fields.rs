//! The fields of a column as text.

use std::ops::Range;

use arrow::array::{
    Array, AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray, downcast_integer_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{ArrowNativeType, DataType, Float64Type, Int32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::numbers::{self, REAL, WHOLE, ahead, put};
use crate::Column;
use crate::timestamps::{self, TIMESTAMP};

/// What CSV hides from spreadsheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormulaGuard {
    /// Nothing.
    None,
    /// Text that would be read as a formula.
    Formulas,
}

/// A column of values to write.
pub(super) struct Field<'a> {
    column: &'a Column,
    nulls: Option<NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Texts(StringArray, FormulaGuard),
    /// The key of each value, and the text of each key.
    Choices(Vec<u32>, StringArray, FormulaGuard),
    /// With the suffix of each: `Z` for an instant.
    Timestamps(&'a TimestampMicrosecondArray, &'static str),
    Reals(&'a Float64Array),
    Integers(&'a Int32Array),
}

impl<'a> Field<'a> {
    pub(super) fn new(column: &'a Column, guard: FormulaGuard) -> Result<Self, ArrowError> {
        let array = column.values();
        let texts = |array: &dyn Array| Ok::<_, ArrowError>(cast(array, &DataType::Utf8)?.as_string::<i32>().clone());
        let values = match array.data_type() {
            DataType::Dictionary(..) => {
                let array = array.as_any_dictionary();
                let keys = array.keys();
                let keys = downcast_integer_array!(
                    keys => keys.values().iter().map(|key| key.as_usize() as u32).collect(),
                    _ => unreachable!("the keys of a dictionary are integers")
                );
                Values::Choices(keys, texts(array.values())?, guard)
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let suffix = if zone.is_some() { "Z" } else { "" };
                Values::Timestamps(array.as_primitive::<TimestampMicrosecondType>(), suffix)
            }
            DataType::Float64 => Values::Reals(array.as_primitive::<Float64Type>()),
            DataType::Int32 => Values::Integers(array.as_primitive::<Int32Type>()),
            // No number is a formula, whatever its sign.
            other => Values::Texts(texts(array)?, if other.is_numeric() { FormulaGuard::None } else { guard }),
        };
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(Self { column, nulls, values })
    }

    /// Maximum length of a field, with its comma.
    pub(super) fn longest(&self) -> usize {
        1 + match &self.values {
            // The values of shared rows are in the order of the rows.
            Values::Texts(texts, _) => match self.column.len().checked_sub(1) {
                Some(last) => longest_of(texts, self.column.index(0)..self.column.index(last) + 1),
                None => 0,
            },
            Values::Choices(_, texts, _) => longest_of(texts, 0..texts.len()),
            Values::Timestamps(_, suffix) => TIMESTAMP + suffix.len(),
            Values::Reals(_) => REAL,
            Values::Integers(_) => WHOLE,
        }
    }

    /// The key of each row and the number of keys, if the column is a closed set with a value for each row.
    pub(super) fn keys(&self) -> Option<(Vec<u32>, usize)> {
        let Values::Choices(keys, texts, _) = &self.values else { return None };
        if self.column.is_shared() {
            return None;
        }
        let mut keys = keys.clone();
        if let Some(nulls) = &self.nulls {
            let null = texts.len() as u32;
            keys.iter_mut().zip(nulls).filter(|(_, is_valid)| !is_valid).for_each(|(key, _)| *key = null);
        }
        Some((keys, texts.len() + 1))
    }

    /// Writes the field of a row and a comma at `end`, and returns the new end.
    #[inline(always)]
    pub(super) fn write(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        let index = self.column.index(row);
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index));
        let end = if is_null { end } else { self.write_value(out, end, index) };
        out[end] = b',';
        end + 1
    }

    #[inline(always)]
    fn write_value(&self, out: &mut [u8], end: usize, index: usize) -> usize {
        match &self.values {
            Values::Texts(texts, guard) => write_text(out, end, texts.value(index), *guard),
            Values::Choices(keys, texts, guard) => write_text(out, end, texts.value(keys[index] as usize), *guard),
            Values::Timestamps(values, suffix) => {
                let end = end + timestamps::write(ahead(out, end), values.value(index));
                put(out, end, suffix.as_bytes())
            }
            Values::Reals(values) => end + numbers::write_real(ahead(out, end), values.value(index)),
            Values::Integers(values) => end + numbers::write_whole(ahead(out, end), values.value(index)),
        }
    }
}

/// Maximum length of the field of any of these texts.
fn longest_of(texts: &StringArray, range: Range<usize>) -> usize {
    let ends = &texts.value_offsets()[range.start..=range.end];
    longest(ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or_default() as usize)
}

/// Maximum length of a text as a field: each byte may be a quote, which is doubled.
fn longest(length: usize) -> usize {
    2 * length + 3
}

/// A text as a field.
pub(super) fn quote(text: &str, guard: FormulaGuard) -> Vec<u8> {
    let mut out = vec![0; longest(text.len())];
    let end = write_text(&mut out, 0, text, guard);
    out.truncate(end);
    out
}

/// Whether a spreadsheet may take a text for a formula: it begins with a sign of one, in ASCII or full width, after what a
/// spreadsheet skips, or with a character that ends a field in some.
fn may_be_formula(text: &str) -> bool {
    let is_skipped = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '\u{feff}';
    text.starts_with(['\t', '\r', '\n'])
        || text.trim_start_matches(is_skipped).starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
}

/// Whether a text gets a `'`: a formula, or what would read like one that has got it.
fn is_guarded(text: &str) -> bool {
    may_be_formula(text.trim_start_matches('\''))
}

/// The text that was written with a guard.
///
/// ```
/// # use bellwether_columns::csv::unguarded;
/// assert_eq!(["'+5 %", "''+5 %", "'tis", "a"].map(unguarded), ["+5 %", "'+5 %", "'tis", "a"]);
/// ```
#[must_use]
pub fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| is_guarded(rest)).unwrap_or(text)
}

/// Writes a text at `end`, in quotes if it needs them, and returns the new end.
fn write_text(out: &mut [u8], end: usize, text: &str, guard: FormulaGuard) -> usize {
    let is_formula = guard == FormulaGuard::Formulas && is_guarded(text);
    let prefix: &[u8] = if is_formula { b"'" } else { b"" };
    if !text.is_empty() && !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        let end = put(out, end, prefix);
        return put(out, end, text.as_bytes());
    }
    let end = put(out, end, b"\"");
    let mut end = put(out, end, prefix);
    for (at, part) in text.split('"').enumerate() {
        end = put(out, end, if at == 0 { b"" } else { b"\"\"" });
        end = put(out, end, part.as_bytes());
    }
    put(out, end, b"\"")
}
