//! The pages of a column that stands in runs: its dictionary, then the places of its values in it.

use std::cell::RefCell;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page as Written, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::rle::{Hybrid, bits};
use super::runs::{NULL, Places, Runs};

/// The rows of a page.
const PAGE_ROWS: usize = 1 << 16;

/// The bytes of a column of a row group, and what the file's end says of them.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) closed: ColumnCloseResult,
}

impl Chunk {
    /// Encodes a column.
    pub(super) fn of(runs: &Runs, leaf: &ColumnDescPtr, compression: Compression) -> Result<Self> {
        let mut compressor = Compressor::new(compression)?;
        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let dictionary = CompressedPage::new(
            Written::DictionaryPage {
                buf: compressor.compressed(&runs.dictionary)?,
                num_values: runs.values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            runs.dictionary.len(),
        );
        let dictionary = pages.write_page(dictionary)?;
        let (mut compressed, mut plain) = (dictionary.compressed_size, dictionary.uncompressed_size);
        let mut index = OffsetIndexBuilder::new();
        let mut count = 0;
        for (bytes, rows) in pages_of(runs, leaf.max_def_level() > 0) {
            let page = Written::DataPage {
                buf: compressor.compressed(&bytes)?,
                num_values: rows as u32,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let written: PageWriteSpec = pages.write_page(CompressedPage::new(page, bytes.len()))?;
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
            .set_num_values(runs.rows() as i64)
            .set_total_compressed_size(compressed as i64)
            .set_total_uncompressed_size(plain as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(dictionary.bytes_written as i64)
            .set_statistics(runs.statistics.clone())
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: runs.rows() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        Ok(Self { bytes: sink.into_inner()?.into(), closed })
    }
}

/// The pages of a column, one after another, each with its rows.
fn pages_of(runs: &Runs, may_be_null: bool) -> Box<dyn Iterator<Item = (Vec<u8>, usize)> + '_> {
    let page = move || Page::new(bits(runs.values.saturating_sub(1)), may_be_null);
    match &runs.places {
        Places::OfRows(codes) => Box::new(codes.chunks(PAGE_ROWS).map(move |codes| {
            let mut page = page();
            if runs.nulls == 0 {
                page.extend(codes);
            } else {
                codes.chunk_by(|one, next| (*one == NULL) == (*next == NULL)).for_each(|codes| page.extend(codes));
            }
            page.finish()
        })),
        Places::OfRuns(codes, turns) => {
            let mut left = codes.iter().zip(turns.runs()).map(|(code, (start, end))| (*code, end - start));
            // The rest of a run that did not fit on the page before.
            let mut rest = None;
            Box::new(std::iter::from_fn(move || {
                let mut page = page();
                while page.rows < PAGE_ROWS
                    && let Some((code, count)) = rest.take().or_else(|| left.next())
                {
                    let taken = count.min(PAGE_ROWS - page.rows);
                    rest = (taken < count).then_some((code, count - taken));
                    page.push(code, taken);
                }
                (page.rows > 0).then(|| page.finish())
            }))
        }
    }
}

/// A page that is being written: which of its rows are null, where any may be, and the places of the values of the others.
struct Page {
    levels: Option<Hybrid>,
    /// The level of the last rows, and how many have it one after another.
    level: (u32, usize),
    width: u32,
    places: Hybrid,
    rows: usize,
}

impl Page {
    fn new(width: u32, may_be_null: bool) -> Self {
        let levels = may_be_null.then(|| Hybrid::new(1, vec![0; 4]));
        Self { levels, level: (1, 0), width, places: Hybrid::new(width, Vec::new()), rows: 0 }
    }

    /// Adds a run.
    fn push(&mut self, code: u32, count: usize) {
        self.add_level(code, count);
        if code != NULL {
            self.places.push(code, count);
        }
    }

    /// Adds rows of which none is null, or every one.
    fn extend(&mut self, codes: &[u32]) {
        self.add_level(codes[0], codes.len());
        if codes[0] != NULL {
            self.places.extend(codes);
        }
    }

    fn add_level(&mut self, code: u32, count: usize) {
        self.rows += count;
        let (level, alike) = self.level;
        if level == u32::from(code != NULL) {
            self.level.1 += count;
            return;
        }
        self.level = (1 - level, count);
        if let Some(levels) = &mut self.levels {
            levels.push(level, alike);
        }
    }

    /// Its bytes, and its rows.
    fn finish(self) -> (Vec<u8>, usize) {
        let mut page = Vec::new();
        if let Some(mut levels) = self.levels {
            let (level, alike) = self.level;
            levels.push(level, alike);
            page = levels.finish();
            let length = (page.len() - 4) as u32;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        page.push(self.width as u8);
        page.extend_from_slice(&self.places.finish());
        (page, self.rows)
    }
}

thread_local! {
    /// What makes pages small by zstd. Its tables are larger than most columns are.
    static ZSTD: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// What makes pages small.
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
            other => Err(ParquetError::NYI(format!("{other} is not among the codecs of this writer"))),
        }
    }

    fn compressed(&mut self, bytes: &[u8]) -> Result<Bytes> {
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
