//! The fingerprint of some rows: equal fingerprints say that the rows are the same.

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType, ToByteSlice,
};
use sha2::{Digest as _, Sha256};

/// What a row of signals takes, about.
const ROW_BYTES: usize = 32;

/// The first 16 bytes of a SHA-256.
pub(super) type Digest = [u8; 16];

/// The fingerprint of rows in the columns of a table's rows.
///
/// It is taken over the columns one after the other. Of a column that may be null: a byte for each row, 1 where there is
/// a value. Then the values that there are: a number or a timestamp as its bytes, the lowest first; a text as the
/// number of its bytes in four bytes, the lowest first, and its bytes in UTF-8.
pub(super) fn fingerprint(rows: &RecordBatch) -> Digest {
    let mut bytes = Vec::with_capacity(rows.num_rows() * ROW_BYTES);
    let schema = rows.schema_ref();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if field.is_nullable() {
            match column.nulls() {
                Some(nulls) => bytes.extend(nulls.iter().map(u8::from)),
                None => bytes.resize(bytes.len() + column.len(), 1),
            }
        }
        match field.data_type() {
            DataType::Timestamp(..) => numbers::<TimestampMicrosecondType>(&mut bytes, column.as_primitive()),
            DataType::Float64 => numbers::<Float64Type>(&mut bytes, column.as_primitive()),
            DataType::Int16 => numbers::<Int16Type>(&mut bytes, column.as_primitive()),
            DataType::Int32 => numbers::<Int32Type>(&mut bytes, column.as_primitive()),
            DataType::Utf8 => texts(&mut bytes, column.as_string::<i32>().iter().flatten()),
            DataType::Dictionary(..) => {
                let dictionary = column.as_dictionary::<Int8Type>();
                let spellings = dictionary.values().as_string::<i32>();
                texts(&mut bytes, dictionary.keys().iter().flatten().map(|key| spellings.value(key as usize)));
            }
            other => unreachable!("no table has a column of type {other}"),
        }
    }
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    *digest.first_chunk().expect("32 bytes begin with 16")
}

fn numbers<T: ArrowPrimitiveType>(bytes: &mut Vec<u8>, column: &PrimitiveArray<T>) {
    if column.null_count() == 0 {
        bytes.extend_from_slice(column.values().to_byte_slice());
    } else {
        column.iter().flatten().for_each(|value| bytes.extend_from_slice([value].to_byte_slice()));
    }
}

fn texts<'a>(bytes: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    };
    use sha2::{Digest as _, Sha256};

    use super::fingerprint;
    use crate::tables::{Table, choices};

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
        assert_eq!(fingerprint(&rows), Sha256::digest(&bytes)[..16]);
        // A slice is its rows alone.
        assert_eq!(
            fingerprint(&rows.slice(1, 1)),
            fingerprint(&RecordBatch::from(arrow::array::StructArray::from(rows.slice(1, 1))))
        );
        assert_ne!(fingerprint(&rows.slice(1, 1)), fingerprint(&rows.slice(0, 1)));
    }
}
