//! Writes a Parquet file of a run.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::basic::{Compression, ZstdLevel};

use super::folder::{MAX_GROUP_BYTES, MAX_GROUP_ROWS};
use crate::columns::{ParquetOptions, ParquetWriter, RowBuffer, Rows};
use crate::disk::file::{self, DigestWriter, FileError, FileRecord};
use crate::error::{Error, Reason, Result};

/// Rows per row group: few enough to skip tickers that are not wanted, enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// The most bytes of a row group, unless one row has more: rows of articles are long and held in memory.
const ROW_GROUP_BYTES: usize = 6 << 20;

// What is written is read.
const _: () = assert!(ROW_GROUP_ROWS as i64 <= MAX_GROUP_ROWS && (ROW_GROUP_BYTES as i64) < MAX_GROUP_BYTES);

/// Columns up to this size are not compressed. Runs with few changes have only such columns, and many of them are read
/// at once.
const UNCOMPRESSED_BYTES: usize = 1 << 12;

/// A Parquet file being written.
pub(in crate::archive) struct Rowfile {
    path: PathBuf,
    writer: ParquetWriter<DigestWriter<File>>,
    buffer: RowBuffer,
    rows: u64,
}

impl Rowfile {
    /// Creates a file whose rows are sorted by its first `ordered_by` columns.
    pub(in crate::archive) fn create(path: &Path, schema: SchemaRef, ordered_by: usize) -> Result<Self> {
        let options = ParquetOptions {
            compression: Compression::ZSTD(ZstdLevel::default()),
            uncompressed_below: UNCOMPRESSED_BYTES,
            sorted_by: (0..ordered_by).collect(),
            metadata: Vec::new(),
        };
        let writer = ParquetWriter::create(DigestWriter::new(file::create(path)?), SchemaRef::clone(&schema), options)
            .map_err(|error| FileError::encode(path, error))?;
        Ok(Self { path: path.to_owned(), writer, buffer: RowBuffer::bounded(ROW_GROUP_ROWS, ROW_GROUP_BYTES), rows: 0 })
    }

    /// The same with smaller row groups, for a file that is written beside others and read as a whole.
    pub(in crate::archive) fn in_groups_of(self, rows: usize) -> Self {
        Self { buffer: RowBuffer::bounded(rows, ROW_GROUP_BYTES), ..self }
    }

    pub(in crate::archive) fn write(&mut self, batch: Result<RecordBatch, ArrowError>) -> Result<()> {
        let batch = batch.map_err(|error| FileError::encode(&self.path, error))?;
        self.add(&batch.into())
    }

    /// Writes rows.
    pub(in crate::archive) fn add(&mut self, rows: &Rows) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        let groups = self.buffer.push(rows);
        groups.iter().try_for_each(|group| self.writer.write(group)).map_err(|error| self.failure(error))
    }

    /// Completes the file. It becomes durable when it is sealed.
    pub(in crate::archive) fn finish(mut self) -> Result<FileRecord> {
        let rest = self.buffer.take();
        rest.map_or(Ok(()), |rows| self.writer.write(&rows)).map_err(|error| self.failure(error))?;
        self.writer.finish().map_err(|error| self.failure(error))?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(self.writer.out().record(&name, self.rows))
    }

    fn failure(&self, error: impl Into<Reason>) -> Error {
        FileError::encode(&self.path, error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, RecordBatch, StringArray};
    use arrow::compute::concat_batches;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{ROW_GROUP_BYTES, Rowfile};
    use crate::disk::file;

    #[test]
    fn long_rows_make_smaller_row_groups_whatever_batches_they_arrive_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.parquet");
        let texts = Arc::new(StringArray::from_iter_values((0..100).map(|row| format!("{row:09999}"))));
        let batch = RecordBatch::try_from_iter([("text", texts as Arc<dyn Array>)]).unwrap();
        let mut out = Rowfile::create(&path, batch.schema(), 1).unwrap();
        (0..20).for_each(|_| out.write(Ok(batch.clone())).unwrap());
        // All at once, as a merge of many runs hands them out.
        let schema = batch.schema();
        let all = concat_batches(&schema, &vec![batch; 20]).unwrap();
        out.write(Ok(all)).unwrap();
        // A row that is larger than a row group has one of its own.
        let texts =
            Arc::new(StringArray::from(vec!["short".to_owned(), "x".repeat(2 * ROW_GROUP_BYTES), "short".to_owned()]));
        out.write(RecordBatch::try_from_iter([("text", texts as Arc<dyn Array>)])).unwrap();
        assert_eq!(out.finish().unwrap().rows, 4_003);
        let read = ParquetRecordBatchReaderBuilder::try_new(file::open(&path).unwrap()).unwrap();
        let groups: Vec<i64> = read.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups.iter().sum::<i64>(), 4_003);
        assert!(groups.iter().all(|rows| rows * 10_003 <= ROW_GROUP_BYTES as i64), "{groups:?}");
        assert!(groups.len() <= 10, "{groups:?}");
        assert!(groups.contains(&1), "{groups:?}");
    }
}
