//! How many rows of a Parquet file may be decoded at once.
//!
//! A dictionary holds a long value once, however many rows point to it, so the size of a file and of its pages says nothing
//! about what its rows take. The dictionaries are read first, and a batch has as few rows as their longest value asks for.

use std::sync::Arc;

use parquet::arrow::ProjectionMask;
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

/// The most bytes that the values of one column take in a batch, unless one row has more.
const MAX_BATCH_BYTES: u64 = 32 << 20;

/// The number of rows for a batch of some row groups: at most `rows`, and at least one.
pub(crate) fn batch_rows<R: ChunkReader + 'static>(
    file: &Arc<R>,
    metadata: &ParquetMetaData,
    groups: impl IntoIterator<Item = usize>,
    mask: &ProjectionMask,
    rows: usize,
) -> Result<usize, ParquetError> {
    let mut longest = 1;
    for group in groups {
        longest = longest.max(longest_repeated(file, metadata.row_group(group), mask, rows as u64)?);
    }
    Ok(rows.min((MAX_BATCH_BYTES / longest) as usize).max(1))
}

/// The length of the longest text in the dictionaries of a row group, if a batch of so many rows may not be able to repeat it.
fn longest_repeated<R: ChunkReader + 'static>(
    file: &Arc<R>,
    group: &RowGroupMetaData,
    mask: &ProjectionMask,
    rows: u64,
) -> Result<u64, ParquetError> {
    let mut longest = 1;
    for (index, column) in group.columns().iter().enumerate() {
        // No value is longer than its column.
        let is_small = column.uncompressed_size().unsigned_abs().saturating_mul(rows) <= MAX_BATCH_BYTES;
        if is_small || column.column_type() != Type::BYTE_ARRAY || !mask.leaf_included(index) {
            continue;
        }
        let mut pages = SerializedPageReader::new(Arc::clone(file), column, rows as usize, None)?;
        let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()? else { continue };
        let mut rest: &[u8] = &buf;
        for _ in 0..num_values {
            let cut_off = || ParquetError::EOF("a dictionary ends within a value".to_owned());
            let (length, values) = rest.split_first_chunk().ok_or_else(cut_off)?;
            let length = u32::from_le_bytes(*length);
            rest = values.get(length as usize..).ok_or_else(cut_off)?;
            longest = longest.max(u64::from(length));
        }
    }
    Ok(longest)
}
