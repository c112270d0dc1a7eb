//! The pages of a column with a dictionary: the dictionary page, then data pages of indices.

use std::cell::RefCell;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{self, CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::dictionary::{DictionaryColumn, Indices, NULL};
use super::rle::{RleEncoder, bit_width};

/// Rows per page.
const PAGE_ROWS: usize = 1 << 16;

/// An encoded column of a row group, and its metadata for the footer.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) closed: ColumnCloseResult,
}

impl Chunk {
    /// Encodes a column.
    pub(super) fn new(column: &DictionaryColumn, leaf: &ColumnDescPtr, compression: Compression) -> Result<Self> {
        let mut compressor = Compressor::new(compression)?;
        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let dictionary = CompressedPage::new(
            page::Page::DictionaryPage {
                buf: compressor.compress(&column.dictionary)?,
                num_values: column.values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            column.dictionary.len(),
        );
        let dictionary = pages.write_page(dictionary)?;
        let (mut compressed, mut plain) = (dictionary.compressed_size, dictionary.uncompressed_size);
        let mut index = OffsetIndexBuilder::new();
        let mut count = 0;
        for (bytes, rows) in data_pages(column, leaf.max_def_level() > 0) {
            let data = page::Page::DataPage {
                buf: compressor.compress(&bytes)?,
                num_values: rows as u32,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let written: PageWriteSpec = pages.write_page(CompressedPage::new(data, bytes.len()))?;
            index.append_row_count(rows as i64);
            index.append_offset_and_size(written.offset as i64, written.compressed_size as i32);
            compressed += written.compressed_size;
            plain += written.uncompressed_size;
            count += 1;
        }
        pages.close()?;
        let metadata = ColumnChunkMetaData::builder(leaf.clone())
            .set_compression(compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding: Encoding::PLAIN, count: 1 },
                PageEncodingStats { page_type: PageType::DATA_PAGE, encoding: Encoding::RLE_DICTIONARY, count },
            ])
            .set_num_values(column.rows() as i64)
            .set_total_compressed_size(compressed as i64)
            .set_total_uncompressed_size(plain as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(dictionary.bytes_written as i64)
            .set_statistics(column.statistics.clone())
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: column.rows() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        Ok(Self { bytes: sink.into_inner()?.into(), closed })
    }
}

/// The data pages of a column, each with its number of rows.
fn data_pages(column: &DictionaryColumn, is_nullable: bool) -> Box<dyn Iterator<Item = (Vec<u8>, usize)> + '_> {
    let page = move || PageBuilder::new(bit_width(column.values.saturating_sub(1)), is_nullable);
    match &column.indices {
        Indices::PerRow(indices) => Box::new(indices.chunks(PAGE_ROWS).map(move |indices| {
            let mut page = page();
            if column.nulls == 0 {
                page.extend(indices);
            } else {
                indices.chunk_by(|one, next| (*one == NULL) == (*next == NULL)).for_each(|some| page.extend(some));
            }
            page.finish()
        })),
        Indices::PerRun(indices, boundaries) => {
            let mut runs = indices.iter().zip(boundaries.runs()).map(|(index, (start, end))| (*index, end - start));
            // The rest of a run that did not fit on the last page.
            let mut rest = None;
            Box::new(std::iter::from_fn(move || {
                let mut page = page();
                while page.rows < PAGE_ROWS
                    && let Some((index, count)) = rest.take().or_else(|| runs.next())
                {
                    let taken = count.min(PAGE_ROWS - page.rows);
                    rest = (taken < count).then_some((index, count - taken));
                    page.push(index, taken);
                }
                (page.rows > 0).then(|| page.finish())
            }))
        }
    }
}

/// Builds a data page: definition levels if the column is nullable, and the indices of rows that are not null.
struct PageBuilder {
    levels: Option<RleEncoder>,
    /// The level of the last rows, and how many of them have it.
    level: (u32, usize),
    bit_width: u32,
    indices: RleEncoder,
    rows: usize,
}

impl PageBuilder {
    fn new(bit_width: u32, is_nullable: bool) -> Self {
        // The levels follow their length in bytes.
        let levels = is_nullable.then(|| RleEncoder::new(1, vec![0; 4]));
        Self { levels, level: (1, 0), bit_width, indices: RleEncoder::new(bit_width, Vec::new()), rows: 0 }
    }

    /// Adds a run.
    fn push(&mut self, index: u32, count: usize) {
        self.add_level(index, count);
        if index != NULL {
            self.indices.push(index, count);
        }
    }

    /// Adds rows, of which either all or none are null.
    fn extend(&mut self, indices: &[u32]) {
        self.add_level(indices[0], indices.len());
        if indices[0] != NULL {
            self.indices.extend(indices);
        }
    }

    fn add_level(&mut self, index: u32, count: usize) {
        self.rows += count;
        let (level, repeats) = self.level;
        if level == u32::from(index != NULL) {
            self.level.1 += count;
            return;
        }
        self.level = (1 - level, count);
        if let Some(levels) = &mut self.levels {
            levels.push(level, repeats);
        }
    }

    /// The bytes of the page, and its number of rows.
    fn finish(self) -> (Vec<u8>, usize) {
        let mut page = Vec::new();
        if let Some(mut levels) = self.levels {
            let (level, repeats) = self.level;
            levels.push(level, repeats);
            page = levels.finish();
            let length = (page.len() - 4) as u32;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        page.push(self.bit_width as u8);
        page.extend_from_slice(&self.indices.finish());
        (page, self.rows)
    }
}

thread_local! {
    /// Kept for the next column: the tables of zstd are larger than most columns.
    static ZSTD: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses pages.
enum Compressor {
    Zstd(i32),
    Snappy(Box<snap::raw::Encoder>),
    None,
}

impl Compressor {
    fn new(compression: Compression) -> Result<Self> {
        match compression {
            Compression::ZSTD(level) => Ok(Self::Zstd(level.compression_level())),
            Compression::SNAPPY => Ok(Self::Snappy(Box::new(snap::raw::Encoder::new()))),
            Compression::UNCOMPRESSED => Ok(Self::None),
            other => Err(ParquetError::NYI(format!("this writer has no codec {other}"))),
        }
    }

    fn compress(&mut self, bytes: &[u8]) -> Result<Bytes> {
        match self {
            Self::Zstd(level) => {
                let compress = |known: &mut Option<zstd::bulk::Compressor<'static>>| {
                    let mut zstd = known.take().map_or_else(|| zstd::bulk::Compressor::new(*level), Ok)?;
                    zstd.set_compression_level(*level)?;
                    known.insert(zstd).compress(bytes)
                };
                ZSTD.with_borrow_mut(compress).map(Bytes::from).map_err(external)
            }
            Self::Snappy(snappy) => snappy.compress_vec(bytes).map(Bytes::from).map_err(external),
            Self::None => Ok(Bytes::copy_from_slice(bytes)),
        }
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}
