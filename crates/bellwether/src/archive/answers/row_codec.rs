//! A compact row codec for answers: column after column, without redundancy.
//!
//! All rows of a run are written and read once in this form. An Arrow file of a history takes twice the space: null
//! columns still store values, and each batch has a kilobyte of metadata.
//!
//! First the number of rows, in four bytes. Then for each column of the schema a byte: no row, every row or some rows
//! have a value. If some, a bitmap follows. Unless none, the values of all rows follow.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, DictionaryArray, Int8Array, PrimitiveArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, Field, Float64Type, Int8Type, Int16Type, Int32Type, SchemaRef, TimestampMicrosecondType,
};

use crate::error::Reason;
use crate::time::MICROS_PER_DAY;

/// Which rows of a column have a value.
const NONE: u8 = 0;
const ALL: u8 = 1;
const SOME: u8 = 2;

/// The encodings of timestamps.
const DAYS: u8 = 0;
const MICROS: u8 = 1;

/// Appends rows of a table, or rejected records.
pub(super) fn pack(rows: &RecordBatch, out: &mut Vec<u8>) {
    out.extend_from_slice(&(rows.num_rows() as u32).to_le_bytes());
    rows.columns().iter().for_each(|column| pack_column(column, out));
}

fn pack_column(column: &ArrayRef, out: &mut Vec<u8>) {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => out.push(ALL),
        Some(nulls) if nulls.null_count() == nulls.len() => return out.push(NONE),
        Some(nulls) => {
            out.push(SOME);
            let words: Vec<u64> = nulls.inner().bit_chunks().iter_padded().collect();
            let bits = words.iter().flat_map(|word| word.to_le_bytes());
            out.extend(bits.take(nulls.len().div_ceil(8)));
        }
    }
    match column.data_type() {
        DataType::Timestamp(..) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().values();
            let is_days = micros.iter().all(|micros| micros % MICROS_PER_DAY == 0);
            out.push(if is_days { DAYS } else { MICROS });
            if is_days {
                out.extend(micros.iter().flat_map(|micros| ((micros / MICROS_PER_DAY) as i32).to_le_bytes()));
            } else {
                out.extend_from_slice(micros.inner());
            }
        }
        DataType::Float64 => pack_numbers(column.as_primitive::<Float64Type>(), out),
        DataType::Int16 => pack_numbers(column.as_primitive::<Int16Type>(), out),
        DataType::Int32 => pack_numbers(column.as_primitive::<Int32Type>(), out),
        DataType::Utf8 => pack_texts(column.as_string(), out),
        DataType::Dictionary(..) => {
            let choices = column.as_dictionary::<Int8Type>();
            out.push(choices.values().len() as u8);
            pack_texts(choices.values().as_string(), out);
            pack_numbers(choices.keys(), out);
        }
        other => unreachable!("no table has a column of type {other}"),
    }
}

fn pack_numbers<T: ArrowPrimitiveType>(numbers: &PrimitiveArray<T>, out: &mut Vec<u8>) {
    out.extend_from_slice(numbers.values().inner());
}

/// Appends the end offset of each text, then the texts.
fn pack_texts(texts: &StringArray, out: &mut Vec<u8>) {
    let (first, offsets) = texts.offsets().split_first().expect("there is one offset more than there are texts");
    out.extend(offsets.iter().flat_map(|offset| (offset - first).to_le_bytes()));
    let (from, to) = (first.as_usize(), offsets.last().unwrap_or(first).as_usize());
    out.extend_from_slice(&texts.value_data()[from..to]);
}

/// Decodes rows in the columns of a schema.
pub(super) fn unpack(bytes: &[u8], schema: &SchemaRef) -> Result<RecordBatch, Reason> {
    let mut packed = Packed(bytes);
    let rows = packed.number::<4>().map(u32::from_le_bytes)? as usize;
    let columns = schema.fields().iter().map(|field| packed.column(field, rows)).collect::<Result<_, Reason>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The bytes left to read.
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("its rows end early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number<const WIDTH: usize>(&mut self) -> Result<[u8; WIDTH], Reason> {
        Ok(*self.take(WIDTH)?.first_chunk().expect("`take` returns `WIDTH` bytes"))
    }

    fn column(&mut self, field: &Field, rows: usize) -> Result<ArrayRef, Reason> {
        let [have_values] = self.number()?;
        let nulls = match have_values {
            NONE => return Ok(new_null_array(field.data_type(), rows)),
            ALL => None,
            _ => {
                let bits = Buffer::from(self.take(rows.div_ceil(8))?);
                Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
            }
        };
        Ok(match field.data_type() {
            data_type @ DataType::Timestamp(..) => {
                let values = match self.number()? {
                    [DAYS] => {
                        let days = self.take(rows * size_of::<i32>())?.as_chunks().0.iter();
                        days.map(|days| i64::from(i32::from_le_bytes(*days)) * MICROS_PER_DAY).collect()
                    }
                    _ => self.values(rows)?,
                };
                let instants = PrimitiveArray::<TimestampMicrosecondType>::try_new(values, nulls)?;
                Arc::new(instants.with_data_type(data_type.clone()))
            }
            DataType::Float64 => Arc::new(PrimitiveArray::<Float64Type>::try_new(self.values(rows)?, nulls)?),
            DataType::Int16 => Arc::new(PrimitiveArray::<Int16Type>::try_new(self.values(rows)?, nulls)?),
            DataType::Int32 => Arc::new(PrimitiveArray::<Int32Type>::try_new(self.values(rows)?, nulls)?),
            DataType::Utf8 => Arc::new(self.texts(rows, nulls)?),
            DataType::Dictionary(..) => {
                let [count] = self.number()?;
                let texts = self.texts(usize::from(count), None)?;
                let keys = Int8Array::try_new(self.values(rows)?, nulls)?;
                Arc::new(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(texts))?)
            }
            other => unreachable!("no table has a column of type {other}"),
        })
    }

    fn values<T: ArrowNativeType>(&mut self, rows: usize) -> Result<ScalarBuffer<T>, Reason> {
        // Copied, because numbers must be aligned.
        Ok(ScalarBuffer::new(Buffer::from(self.take(rows * size_of::<T>())?), 0, rows))
    }

    fn texts(&mut self, count: usize, nulls: Option<NullBuffer>) -> Result<StringArray, Reason> {
        let ends = self.take(count * size_of::<i32>())?.as_chunks().0.iter().map(|end| i32::from_le_bytes(*end));
        let offsets: Vec<i32> = repeat_n(0, 1).chain(ends).collect();
        if !offsets.is_sorted() {
            return Err("a string in its rows ends before it starts".into());
        }
        let bytes = self.take(offsets[count].as_usize())?;
        Ok(StringArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from(bytes), nulls)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    };

    use super::{pack, unpack};
    use crate::tables::{Reject, Table, choices};
    use crate::time::MICROS_PER_DAY;

    fn signals(rows: i16) -> RecordBatch {
        let nullable = |row: i16| (row % 3 > 0).then_some(row);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from_iter((0..rows).map(|row| nullable(row).map(i64::from)))),
            Arc::new(Int16Array::from_iter((0..rows).map(nullable))),
            choices(Int8Array::from_iter_values((0..rows).map(|row| (row % 2) as i8)), ["sell", "buy", "größer"]),
            Arc::new(Float64Array::from_iter_values((0..rows).map(|row| f64::from(row) / 4.0))),
            Arc::new(StringArray::from_iter(
                (0..rows).map(|row| nullable(row).map(|row| "é".repeat(row as usize % 5))),
            )),
        ];
        RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap()
    }

    fn pack_rows(rows: &RecordBatch) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(rows, &mut bytes);
        bytes
    }

    #[test]
    fn rows_round_trip_however_they_are_split() {
        let rows = signals(100);
        for (from, count) in [(0, 100), (0, 0), (1, 1), (3, 70), (8, 9), (99, 1)] {
            let rows = rows.slice(from, count);
            assert_eq!(unpack(&pack_rows(&rows), &rows.schema()).unwrap(), rows, "{count} from {from}");
        }
        let reject =
            Reject { request: "a".into(), ticker: None, pointer: String::new(), reason: "r".into(), raw: "\"".into() };
        let rows = Reject::batch(&[reject.clone(), Reject { ticker: Some("XOM".into()), ..reject }]).unwrap();
        assert_eq!(unpack(&pack_rows(&rows), &rows.schema()).unwrap(), rows);
    }

    #[test]
    fn days_take_four_bytes_and_nulls_take_none() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(vec![-MICROS_PER_DAY, 20_000 * MICROS_PER_DAY])),
            Arc::new(Int16Array::new_null(2)),
            choices(Int8Array::from(vec![1, 0]), ["sell", "buy"]),
            Arc::new(Float64Array::from(vec![0.5, -0.0])),
            Arc::new(StringArray::new_null(2)),
        ];
        let rows = RecordBatch::try_new(Table::Signals.row_schema(), columns).unwrap();
        let bytes = pack_rows(&rows);
        assert_eq!(bytes.len(), 4 + (2 + 2 * 4) + 1 + (2 + 2 * 4 + 7 + 2) + (1 + 2 * 8) + 1);
        assert_eq!(unpack(&bytes, &rows.schema()).unwrap(), rows);
    }

    #[test]
    fn corrupt_input_never_panics() {
        let rows = signals(20);
        let bytes = pack_rows(&rows);
        for length in 0..bytes.len() {
            assert!(unpack(&bytes[..length], &rows.schema()).is_err(), "the first {length} bytes");
        }
        for at in 4..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = unpack(&damaged, &rows.schema());
        }
    }
}
