//! Parquet: zstd, statistics, the order declared, the provenance in the metadata.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;

use super::Provenance;
use crate::error::{Error, Result};
use crate::file;
use crate::plan::Column;

const ROW_GROUP_ROWS: usize = 1 << 18;

/// A Parquet file that is being written.
pub(super) struct Writer {
    path: PathBuf,
    inner: ArrowWriter<File>,
}

impl Writer {
    pub(super) fn create(path: &Path, schema: SchemaRef, sort: &[Column], provenance: &Provenance) -> Result<Self> {
        let place = |column: &Column| {
            let index = schema.index_of(column.name()).expect("rows are ordered by columns that they have");
            SortingColumn { column_idx: index as i32, descending: false, nulls_first: false }
        };
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_sorting_columns(Some(sort.iter().map(place).collect()))
            .set_key_value_metadata(Some(metadata(provenance)))
            .build();
        let inner =
            ArrowWriter::try_new(file::create(path)?, schema, Some(properties)).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), inner })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.inner.write(rows).map_err(|error| failed(&self.path, error))
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.inner.finish().map_err(|error| failed(&self.path, error))?;
        file::sync(self.inner.inner(), &self.path)
    }
}

fn metadata(provenance: &Provenance) -> Vec<KeyValue> {
    let pairs = [
        ("bellwether.version", env!("CARGO_PKG_VERSION")),
        ("bellwether.dataset", &provenance.name),
        ("bellwether.definition", &provenance.definition),
        ("bellwether.run", &provenance.run),
    ];
    pairs.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned())).collect()
}

fn failed(path: &Path, error: ParquetError) -> Error {
    file::encoding_failed(path, error.into())
}
