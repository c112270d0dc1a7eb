//! Reads the bytes of a run's Parquet file as needed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::error::Result;

/// The bytes of a file. Many runs are read at once and most of their files are small: these are not kept open.
pub(in crate::archive) enum FileBytes {
    Held(Bytes),
    Open(File, u64),
}

/// The largest file that is held in memory.
const HELD_BYTES: u64 = 1 << 20;

impl FileBytes {
    /// Opens a file.
    pub(in crate::archive) fn open(path: &Path) -> Result<Self> {
        let failed = FileError::read(path);
        let mut file = links::open(path)?;
        let length = file.metadata().map_err(failed)?.len();
        if length > HELD_BYTES {
            return Ok(Self::Open(file, length));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self::Held(bytes.into()))
    }

    /// Reads the file's metadata.
    pub(in crate::archive) fn metadata(&self) -> Result<ParquetMetaData, ParquetError> {
        let reader = ParquetMetaDataReader::new();
        match self {
            Self::Held(bytes) => reader.parse_and_finish(bytes),
            Self::Open(file, _) => reader.parse_and_finish(file),
        }
    }

    /// Reads columns of a row group.
    pub(in crate::archive) fn columns(
        &self,
        group: &RowGroupMetaData,
        mask: &ProjectionMask,
    ) -> Result<GroupColumns, ParquetError> {
        let columns = group.columns().iter().enumerate().filter(|(index, _)| mask.leaf_included(*index));
        let bytes = |(_, column): (usize, &ColumnChunkMetaData)| {
            let (from, length) = column.byte_range();
            Ok((from, self.bytes(from, length)?))
        };
        columns.map(bytes).collect::<Result<Vec<_>, ParquetError>>().map(GroupColumns)
    }

    fn bytes(&self, from: u64, length: u64) -> Result<Bytes, ParquetError> {
        let whole = match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::Open(_, length) => *length,
        };
        if from.checked_add(length).is_none_or(|end| end > whole) {
            return Err(ParquetError::EOF(format!("a column of {length} bytes at {from} extends past its end")));
        }
        match self {
            Self::Held(bytes) => bytes.get_bytes(from, length as usize),
            Self::Open(file, _) => Ok(file::read_at(file, from, length as usize)?.into()),
        }
    }
}

/// Columns of a row group, by their offset in the file. Reading page by page would take several system calls per
/// column.
#[derive(Clone)]
pub(in crate::archive) struct GroupColumns(Vec<(u64, Bytes)>);

impl GroupColumns {
    /// The rest of the column that has the byte at an offset.
    fn from(&self, index: u64) -> Result<Bytes, ParquetError> {
        let found = self.0.iter().find_map(|(from, bytes)| {
            let start = usize::try_from(index.checked_sub(*from)?).ok()?;
            (start < bytes.len()).then(|| bytes.slice(start..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("no selected column has a page at {index}")))
    }
}

impl Length for GroupColumns {
    fn len(&self) -> u64 {
        self.0.iter().map(|(from, bytes)| from + bytes.len() as u64).max().unwrap_or(0)
    }
}

impl ChunkReader for GroupColumns {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("a page of {length} bytes at {start} extends past its column")));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}
