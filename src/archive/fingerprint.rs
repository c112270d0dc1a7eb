//! The fingerprint of some rows: equal fingerprints say that the rows are the same.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType, ToByteSlice,
};

/// The first 16 bytes of a BLAKE3.
pub(super) type Digest = [u8; 16];

/// The fingerprint of rows in the columns of a table's rows.
pub(super) fn fingerprint(rows: &RecordBatch) -> Digest {
    Fingerprints::of(rows).of_stretch(0..rows.num_rows())
}

/// The fingerprints of stretches of some rows, in the columns of a table's rows.
///
/// A fingerprint is taken over the columns one after the other. Of a column that may be null: a byte for each row, 1
/// where there is a value. Then the values that there are: a number or a timestamp as its bytes, the lowest first; a text
/// as the number of its bytes in four bytes, the lowest first, and its bytes in UTF-8.
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
    /// The bytes of numbers, so many each.
    Numbers(&'a [u8], usize),
    Texts(&'a StringArray),
    /// Places in a list of texts.
    Choices(&'a [i8], Vec<Spelling>),
}

/// A text of a closed set, with its length before it.
struct Spelling {
    bytes: Vec<u8>,
    /// The first of the bytes; with zeros behind them where they are fewer.
    first: [u8; SHORT],
}

/// Spellings are seldom longer, their length with them.
const SHORT: usize = 8;

impl<'a> Fingerprints<'a> {
    pub(super) fn of(rows: &'a RecordBatch) -> Self {
        let fields = rows.schema_ref().fields().iter();
        let column = |(field, column): (&'a arrow::datatypes::FieldRef, &'a ArrayRef)| Column {
            may_be_null: field.is_nullable(),
            nulls: column.nulls().filter(|nulls| nulls.null_count() > 0),
            values: Values::of(column),
        };
        Self { columns: fields.zip(rows.columns()).map(column).collect(), bytes: Vec::new() }
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
        let has_none = self.nulls.is_some_and(|nulls| nulls.null_count() == nulls.len());
        if self.may_be_null {
            match self.nulls {
                Some(nulls) if !has_none => bytes.extend(rows.clone().map(|row| u8::from(nulls.is_valid(row)))),
                _ => bytes.resize(bytes.len() + rows.len(), u8::from(!has_none)),
            }
        }
        match self.nulls {
            None => self.values.add(rows.clone(), bytes),
            Some(_) if has_none => {}
            Some(nulls) => {
                let stretches = nulls.slice(rows.start, rows.len());
                for (from, to) in stretches.valid_slices() {
                    self.values.add(rows.start + from..rows.start + to, bytes);
                }
            }
        }
    }
}

impl<'a> Values<'a> {
    fn of(column: &'a ArrayRef) -> Self {
        match column.data_type() {
            DataType::Timestamp(..) => numbers(column.as_primitive::<TimestampMicrosecondType>()),
            DataType::Float64 => numbers(column.as_primitive::<Float64Type>()),
            DataType::Int16 => numbers(column.as_primitive::<Int16Type>()),
            DataType::Int32 => numbers(column.as_primitive::<Int32Type>()),
            DataType::Utf8 => Self::Texts(column.as_string()),
            DataType::Dictionary(..) => {
                let dictionary = column.as_dictionary::<Int8Type>();
                let spellings = dictionary.values().as_string::<i32>().iter();
                let spellings = spellings.map(|text| Spelling::of(text.unwrap_or_default())).collect();
                Self::Choices(dictionary.keys().values(), spellings)
            }
            other => unreachable!("no table has a column of type {other}"),
        }
    }

    /// Adds the values of rows that have one each.
    fn add(&self, rows: Range<usize>, bytes: &mut Vec<u8>) {
        match self {
            Self::Numbers(numbers, width) => bytes.extend_from_slice(&numbers[rows.start * width..rows.end * width]),
            Self::Texts(texts) => rows.for_each(|row| add_text(texts.value(row), bytes)),
            Self::Choices(codes, spellings) => choices(&codes[rows], spellings, bytes),
        }
    }
}

fn numbers<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Values<'_> {
    Values::Numbers(column.values().inner().as_slice(), size_of::<T::Native>())
}

fn add_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice((text.len() as u32).to_le_bytes().to_byte_slice());
    bytes.extend_from_slice(text.as_bytes());
}

fn choices(codes: &[i8], spellings: &[Spelling], bytes: &mut Vec<u8>) {
    if spellings.iter().any(|spelling| spelling.bytes.len() > SHORT) {
        codes.iter().for_each(|&code| bytes.extend_from_slice(&spellings[code as usize].bytes));
        return;
    }
    // Of one length each, which is quickly copied; the next one covers what is too much.
    let mut at = bytes.len();
    bytes.resize(at + codes.len() * SHORT, 0);
    for &code in codes {
        let spelling = &spellings[code as usize];
        bytes[at..at + SHORT].copy_from_slice(&spelling.first);
        at += spelling.bytes.len();
    }
    bytes.truncate(at);
}

impl Spelling {
    fn of(text: &str) -> Self {
        let (mut bytes, mut first) = (Vec::new(), [0; SHORT]);
        add_text(text, &mut bytes);
        let length = bytes.len().min(SHORT);
        first[..length].copy_from_slice(&bytes[..length]);
        Self { bytes, first }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Fingerprints, fingerprint};
    use crate::tables::{Table, choices};
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
            Arc::new(Float64Array::from(vec![0.5, 0.25])),
            Arc::new(StringArray::from(vec![None, Some("é")])),
        ];
        let rows = RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap();
        let mut bytes: Vec<u8> = vec![1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0, 1, 0xd4, 0xfe]);
        bytes.extend(b"\x03\0\0\0buy\x04\0\0\0sell");
        bytes.extend([0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0xd0, 0x3f]);
        bytes.extend(b"\0\x01\x02\0\0\0\xc3\xa9");
        assert_eq!(fingerprint(&rows), blake3::hash(&bytes).as_bytes()[..16]);
        // A slice is its rows alone.
        assert_eq!(
            fingerprint(&rows.slice(1, 1)),
            fingerprint(&RecordBatch::from(arrow::array::StructArray::from(rows.slice(1, 1))))
        );
        assert_ne!(fingerprint(&rows.slice(1, 1)), fingerprint(&rows.slice(0, 1)));
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
