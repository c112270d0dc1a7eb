//! Parquet: compressed, with statistics, declared sort order, and provenance in the metadata.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

use super::Encoding;
use crate::columns::{ParquetOptions, ParquetWriter};
use crate::plan::Codec;

/// Creates a Parquet file; each write is a row group.
pub(super) fn create<W: Write + Send>(
    out: W,
    schema: SchemaRef,
    encoding: &Encoding,
) -> Result<ParquetWriter<W>, ParquetError> {
    let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let of_schema = schema.metadata().iter().map(|(key, value)| pair(key, value));
    let options = ParquetOptions {
        compression: compression(encoding.codec),
        uncompressed_below: 0,
        sorted_by: encoding.sort.iter().filter_map(|name| schema.index_of(name).ok()).collect(),
        metadata: encoding.metadata.iter().map(|(key, value)| pair(key, value)).chain(of_schema).collect(),
    };
    ParquetWriter::create(out, schema, options)
}

fn compression(codec: Codec) -> Compression {
    match codec {
        Codec::Zstd(level) => {
            Compression::ZSTD(ZstdLevel::try_new(level.into()).expect("a plan has levels that zstd has"))
        }
        Codec::Snappy => Compression::SNAPPY,
        Codec::None => Compression::UNCOMPRESSED,
    }
}
