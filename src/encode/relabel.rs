//! A file of which something else is said: its rows stay as they are, byte for byte.

use std::io::{self, Read, Seek, SeekFrom, Write};

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, FooterTail, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetMetaDataWriter,
};

/// The bytes at the end of a file that tell how long its metadata is.
const TAIL: usize = 8;

/// Copies a Parquet file, with other values for some of what it says of itself.
pub(crate) fn relabel(file: &mut (impl Read + Seek), out: &mut impl Write, labels: &[KeyValue]) -> Result<()> {
    let mut tail = [0; TAIL];
    let end = file.seek(SeekFrom::End(-(TAIL as i64)))?;
    file.read_exact(&mut tail)?;
    let length = FooterTail::try_new(&tail)?.metadata_length();
    let too_long = || ParquetError::General("its metadata is longer than the file".to_owned());
    let start = end.checked_sub(length as u64).ok_or_else(too_long)?;
    let mut metadata = vec![0; length];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut metadata)?;
    let whole = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let metadata = ParquetMetaDataReader::decode_metadata_with_options(&metadata, Some(&whole))?;
    let metadata = labelled(&metadata, labels);
    file.rewind()?;
    io::copy(&mut file.take(start), out)?;
    // Where the pages begin stands before the metadata, and is still where the metadata says.
    ParquetMetaDataWriter::new(out, &metadata).finish()
}

fn labelled(metadata: &ParquetMetaData, labels: &[KeyValue]) -> ParquetMetaData {
    let file = metadata.file_metadata();
    let mut known = file.key_value_metadata().cloned().unwrap_or_default();
    for label in labels {
        match known.iter_mut().find(|known| known.key == label.key) {
            Some(known) => known.value.clone_from(&label.value),
            None => known.push(label.clone()),
        }
    }
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(known),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    ParquetMetaDataBuilder::new(file).set_row_groups(metadata.row_groups().to_vec()).build()
}
