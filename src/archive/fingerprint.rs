//! The fingerprint of some rows: equal fingerprints say that the rows are the same.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType,
};

use crate::parts;
use crate::time::MICROS_PER_DAY;

/// Room for the bytes of a quarter of signals.
const ROOM: usize = 1 << 10;

/// How many days a timestamp may be after the first, to have a bit.
const DAYS: i64 = 128;

/// The first 16 bytes of a BLAKE3.
pub(super) type Digest = [u8; 16];

/// The fingerprint of rows in the columns of a table's rows.
pub(super) fn fingerprint(rows: &RecordBatch) -> Digest {
    Fingerprints::of(rows).of_stretch(0..rows.num_rows())
}

/// The fingerprints of stretches of some rows, in the columns of a table's rows.
///
/// What is hashed is said in the text on the archive. It is short, for hashing is what takes the time: a day of a quarter
/// and one signal of two take a bit each, a number of four decimals two bytes.
pub(super) struct Fingerprints<'a> {
    columns: Vec<Column<'a>>,
    /// The bytes of one stretch; a quarter has few, and there are very many quarters.
    bytes: Vec<u8>,
}

struct Column<'a> {
    may_be_null: bool,
    /// Where there are values; none where there are everywhere.
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Timestamps(&'a [i64]),
    Reals(&'a [f64]),
    /// The bytes of integers, so many each.
    Numbers(&'a [u8], usize),
    Texts(&'a StringArray),
    /// Places in a list of texts.
    Choices(&'a [i8], &'a StringArray),
}

impl<'a> Fingerprints<'a> {
    pub(super) fn of(rows: &'a RecordBatch) -> Self {
        let fields = rows.schema_ref().fields().iter();
        let column = |(field, column): (&'a arrow::datatypes::FieldRef, &'a ArrayRef)| Column {
            may_be_null: field.is_nullable(),
            nulls: column.nulls().filter(|nulls| nulls.null_count() > 0),
            values: Values::of(column),
        };
        Self { columns: fields.zip(rows.columns()).map(column).collect(), bytes: Vec::with_capacity(ROOM) }
    }

    /// The fingerprint of some of the rows.
    pub(super) fn of_stretch(&mut self, rows: Range<usize>) -> Digest {
        let Self { columns, bytes } = self;
        bytes.clear();
        columns.iter().for_each(|column| column.add(&rows, bytes));
        let digest: [u8; 32] = blake3::hash(bytes).into();
        *digest.first_chunk().expect("32 bytes begin with 16")
    }
}

impl Column<'_> {
    fn add(&self, rows: &Range<usize>, bytes: &mut Vec<u8>) {
        if rows.is_empty() {
            bytes.extend(self.may_be_null.then_some(0));
            return;
        }
        let Some(nulls) = self.nulls.map(|nulls| nulls.slice(rows.start, rows.len())) else {
            bytes.extend(self.may_be_null.then_some(1));
            return self.values.add(std::slice::from_ref(rows), bytes);
        };
        let values = nulls.len() - nulls.null_count();
        bytes.push(if values == 0 { 0 } else { 1 + u8::from(values < nulls.len()) });
        if values == 0 {
            return;
        }
        if values < nulls.len() {
            bytes.extend(nulls.iter().map(u8::from));
        }
        let stretches: Vec<_> = nulls.valid_slices().map(|(from, to)| rows.start + from..rows.start + to).collect();
        self.values.add(&stretches, bytes);
    }
}

impl<'a> Values<'a> {
    fn of(column: &'a ArrayRef) -> Self {
        match column.data_type() {
            DataType::Timestamp(..) => Self::Timestamps(column.as_primitive::<TimestampMicrosecondType>().values()),
            DataType::Float64 => Self::Reals(column.as_primitive::<Float64Type>().values()),
            DataType::Int16 => numbers(column.as_primitive::<Int16Type>()),
            DataType::Int32 => numbers(column.as_primitive::<Int32Type>()),
            DataType::Utf8 => Self::Texts(column.as_string()),
            DataType::Dictionary(..) => {
                let dictionary = column.as_dictionary::<Int8Type>();
                Self::Choices(dictionary.keys().values(), dictionary.values().as_string())
            }
            other => unreachable!("no table has a column of type {other}"),
        }
    }

    /// Adds the values of stretches of rows that have one each.
    fn add(&self, stretches: &[Range<usize>], bytes: &mut Vec<u8>) {
        let rows = || stretches.iter().cloned().flatten();
        match self {
            Self::Timestamps(all) => {
                if !shortened(bytes, |bytes| add_days(all, stretches, bytes)) {
                    rows().for_each(|row| bytes.extend_from_slice(&all[row].to_le_bytes()));
                }
            }
            Self::Reals(all) => {
                let all = |rows: &Range<usize>| &all[rows.clone()];
                if !shortened(bytes, |bytes| stretches.iter().all(|rows| add_parts(all(rows), bytes))) {
                    stretches.iter().flat_map(all).for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
                }
            }
            Self::Numbers(all, width) => add_numbers(all, *width, stretches, bytes),
            Self::Texts(texts) => rows().for_each(|row| add_text(texts.value(row), bytes)),
            Self::Choices(codes, spellings) => add_choices(rows().map(|row| codes[row]), spellings, bytes),
        }
    }
}

/// Adds a 1 and a short form of values, or a 0 where they have none: that is found out on the way.
fn shortened(bytes: &mut Vec<u8>, add: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    let start = bytes.len();
    bytes.push(1);
    let is_short = add(bytes);
    if !is_short {
        bytes.truncate(start);
        bytes.push(0);
    }
    is_short
}

/// Adds the day of the first timestamp, and a bit for each day from it on; not all, where one is no such day, or not
/// after the one before it.
fn add_days(all: &[i64], stretches: &[Range<usize>], bytes: &mut Vec<u8>) -> bool {
    let first = stretches.first().map_or(0, |rows| all[rows.start]);
    let (mut are_days, mut last) = (first % MICROS_PER_DAY == 0, -1);
    // Two words, and no place in memory that each day would wait for.
    let (mut low, mut high) = (0_u64, 0_u64);
    for at in stretches.iter().flat_map(|rows| &all[rows.clone()]) {
        let days = at.wrapping_sub(first) / MICROS_PER_DAY;
        are_days &= days > last && days < DAYS && first.wrapping_add(days.wrapping_mul(MICROS_PER_DAY)) == *at;
        last = days;
        let bit = 1 << (days & 63);
        low |= if days < 64 { bit } else { 0 };
        high |= if days < 64 { 0 } else { bit };
    }
    bytes.extend_from_slice(&((first / MICROS_PER_DAY) as i32).to_le_bytes());
    bytes.extend_from_slice(&low.to_le_bytes());
    bytes.extend_from_slice(&high.to_le_bytes());
    are_days
}

/// Adds a 1 and the integer that all are, or a 0 and each.
fn add_numbers(all: &[u8], width: usize, stretches: &[Range<usize>], bytes: &mut Vec<u8>) {
    let mut pieces = stretches.iter().map(|rows| &all[rows.start * width..rows.end * width]);
    let first = stretches.first().map_or(&[][..], |rows| &all[rows.start * width..][..width]);
    // Where each is the one after it, all are the first.
    if pieces.all(|piece| piece.starts_with(first) && piece[first.len()..] == piece[..piece.len() - first.len()]) {
        bytes.push(1);
        bytes.extend_from_slice(first);
    } else {
        bytes.push(0);
        stretches.iter().for_each(|rows| bytes.extend_from_slice(&all[rows.start * width..rows.end * width]));
    }
}

/// Adds real numbers by how many ten-thousandths they are; not all, where one is none of these.
fn add_parts(values: &[f64], bytes: &mut Vec<u8>) -> bool {
    let start = bytes.len();
    bytes.resize(start + 2 * values.len(), 0);
    let mut are_parts = true;
    for (out, value) in bytes[start..].as_chunks_mut().0.iter_mut().zip(values) {
        let (parts, is_all) = parts::of(*value);
        are_parts &= is_all;
        *out = parts.to_le_bytes();
    }
    are_parts
}

fn numbers<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Values<'_> {
    Values::Numbers(column.values().inner().as_slice(), size_of::<T::Native>())
}

fn add_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn add_choices(codes: impl Iterator<Item = i8> + Clone, spellings: &StringArray, bytes: &mut Vec<u8>) {
    const NEW: u8 = u8::MAX;
    let (mut places, mut met) = ([NEW; 1 << 7], Vec::new());
    for code in codes.clone() {
        if places[code as usize] == NEW {
            let text = spellings.value(code as usize);
            // One text may stand under two codes.
            let place = met.iter().position(|known| *known == text).unwrap_or_else(|| {
                met.push(text);
                met.len() - 1
            });
            places[code as usize] = place as u8;
        }
    }
    bytes.push(met.len() as u8);
    met.iter().for_each(|text| add_text(text, bytes));
    let mut places = codes.map(|code| places[code as usize]);
    if met.len() > 2 {
        return bytes.extend(places);
    }
    while let Some(first) = places.next() {
        let bits = places.by_ref().take(7).zip(1..).fold(first, |bits, (place, at)| bits | (place << at));
        bytes.push(bits);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Fingerprints, add_choices, add_days, add_numbers, add_parts, fingerprint};
    use crate::tables::{Table, choices};
    use crate::time::MICROS_PER_DAY;
    use arrow::array::{
        ArrayRef, Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    };

    #[test]
    fn it_is_the_digest_of_the_bytes_that_the_documentation_names() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1), Some(2)])),
            Arc::new(Int16Array::from(vec![None, Some(-300)])),
            // The codes are another writer's: only the spelling counts.
            choices(Int8Array::from(vec![1, 0]), ["sell", "buy"]),
            // No number of ten-thousandths.
            Arc::new(Float64Array::from(vec![0.5, 1.0 / 32_768.0])),
            Arc::new(StringArray::from(vec![None, Some("é")])),
        ];
        let rows = RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap();
        let mut bytes: Vec<u8> = vec![1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([2, 0, 1, 1, 0xd4, 0xfe]);
        bytes.extend(b"\x02\x03\0\0\0buy\x04\0\0\0sell\x02");
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x3f]);
        bytes.extend(b"\x02\0\x01\x02\0\0\0\xc3\xa9");
        assert_eq!(fingerprint(&rows), blake3::hash(&bytes).as_bytes()[..16]);
        // A slice is its rows alone.
        assert_eq!(
            fingerprint(&rows.slice(1, 1)),
            fingerprint(&RecordBatch::from(arrow::array::StructArray::from(rows.slice(1, 1))))
        );
        assert_ne!(fingerprint(&rows.slice(1, 1)), fingerprint(&rows.slice(0, 1)));
    }

    #[test]
    fn days_decimals_and_what_is_everywhere_or_nowhere_take_few_bytes() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(vec![-86_400_000_000, 86_400_000_000])),
            Arc::new(Int16Array::from(vec![None, None])),
            choices(Int8Array::from(vec![1, 2]), ["sell", "buy", "buy"]),
            Arc::new(Float64Array::from(vec![0.5, -0.0003])),
            Arc::new(StringArray::from(vec!["", "é"])),
        ];
        let rows = RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap();
        let mut bytes: Vec<u8> = vec![1, 1, 0xff, 0xff, 0xff, 0xff, 0b101];
        bytes.extend([0; 16]);
        bytes.extend(b"\x01\x03\0\0\0buy\0");
        bytes.extend([1, 0x88, 0x13, 0xfd, 0xff]);
        bytes.extend(b"\x01\0\0\0\0\x02\0\0\0\xc3\xa9");
        assert_eq!(fingerprint(&rows), blake3::hash(&bytes).as_bytes()[..16]);
    }

    #[test]
    fn what_is_said_again_and_again_takes_few_bytes() {
        let mut bytes = Vec::new();
        let numbers: Vec<u8> = [5_i16, 5, 5, 261].into_iter().flat_map(i16::to_le_bytes).collect();
        add_numbers(&numbers, 2, std::slice::from_ref(&(0..3)), &mut bytes);
        assert_eq!(bytes.split_off(0), [1, 5, 0]);
        add_numbers(&numbers, 2, &[0..1, 2..3], &mut bytes);
        assert_eq!(bytes.split_off(0), [1, 5, 0]);
        for stretches in [&[0..2, 2..4][..], &[0..2, 2..3, 3..4]] {
            add_numbers(&numbers, 2, stretches, &mut bytes);
            assert_eq!(bytes.split_off(0), [0, 5, 0, 5, 0, 5, 0, 5, 1], "{stretches:?}");
        }
        let spellings = StringArray::from(vec!["s", "b", "?"]);
        add_choices([1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0].into_iter(), &spellings, &mut bytes);
        assert_eq!(bytes.split_off(0), *b"\x02\x01\0\0\0b\x01\0\0\0s\x06\x05");
        add_choices([1, 0, 2, 2].into_iter(), &spellings, &mut bytes);
        assert_eq!(bytes, *b"\x03\x01\0\0\0b\x01\0\0\0s\x01\0\0\0?\x00\x01\x02\x02");
    }

    #[test]
    fn a_short_form_says_which_numbers_and_which_days_they_are() {
        let mut bytes = Vec::new();
        for parts in i16::MIN..=i16::MAX {
            let text = format!("{parts}e-4");
            let is_short = add_parts(&[text.parse().unwrap()], &mut bytes);
            assert_eq!((is_short, bytes.split_off(0)), (true, parts.to_le_bytes().to_vec()), "{text}");
        }
        let large = [1e9, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for value in [-0.0, 3.2768, -3.2769, 6.5536, 0.12345, 0.1 + 0.2, 1e-300].into_iter().chain(large) {
            assert!(!add_parts(&[0.5, value, 0.5], &mut bytes), "{value}");
        }
        let day = |days: i64| days * MICROS_PER_DAY;
        for (days, is_short) in [
            (vec![day(-3), day(-2), day(60), day(61), day(124)], true),
            (vec![day(-3), day(125)], false),
            (vec![day(1), day(1)], false),
            (vec![day(1), day(0)], false),
            (vec![day(1), day(3), day(2)], false),
            (vec![day(1) + 1, day(2) + 1], false),
            (vec![day(1), day(2) + 1], false),
            (vec![0, i64::MAX], false),
            (vec![i64::MIN, i64::MAX], false),
        ] {
            assert_eq!(add_days(&days, std::slice::from_ref(&(0..days.len())), &mut bytes), is_short, "{days:?}");
        }
    }

    #[test]
    fn a_stretch_of_rows_has_the_fingerprint_of_these_rows_alone() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(0..40)),
            Arc::new(Int16Array::from_iter((0..40).map(|row| (row % 3 > 0).then_some(row)))),
            choices(Int8Array::from_iter_values((0..40).map(|row| row % 2)), ["sell", "a long spelling"]),
            Arc::new(Float64Array::from_iter_values((0..40).map(f64::from))),
            Arc::new(StringArray::from_iter((0..40).map(|row| (row < 20).then(|| row.to_string())))),
        ];
        let rows = RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap();
        let mut fingerprints = Fingerprints::of(&rows);
        for (from, length) in [(0, 40), (5, 20), (0, 0), (39, 1), (20, 20)] {
            let alone = arrow::array::StructArray::from(rows.slice(from, length));
            let alone = arrow::compute::concat(&[&alone]).unwrap();
            let alone = RecordBatch::from(alone.as_any().downcast_ref::<arrow::array::StructArray>().unwrap());
            let expected = fingerprint(&alone.with_schema(rows.schema()).unwrap());
            assert_eq!(fingerprints.of_stretch(from..from + length), expected, "{length} from {from}");
        }
    }
}
