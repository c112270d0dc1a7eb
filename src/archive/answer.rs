//! What is kept of one answer until its run is sealed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, root_as_footer};
use serde::{Deserialize, Serialize};

use super::lanes::{Files, Section, Stretch};
use crate::error::{Error, Reason, Result};
use crate::interface::Ticker;
use crate::tables::{Drift, RequestRecord, SeriesKey};

/// What an answer said, but for its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request, and how it was answered.
    pub request: RequestRecord,
    /// The key of each series, in the order of their rows. A long one may come in pieces, and a ticker that is only
    /// listed has none.
    pub series: Vec<SeriesKey>,
    /// Where its rows stand, those that could be typed and those that could not.
    pub rows: BTreeMap<Rows, Stretch>,
    /// Fields that the interface does not know.
    pub drift: Vec<Drift>,
    /// Confidences outside 0 to 1.
    pub unusual: u64,
}

impl AnswerRecord {
    /// The tickers that it speaks of.
    pub fn named(&self) -> impl Iterator<Item = &Ticker> {
        self.series.iter().map(|key| &key.ticker)
    }
}

/// The kinds of an answer's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    /// What could be typed, a batch for each piece of a series.
    Typed,
    /// What could not.
    Rejects,
}

/// An answer that is complete.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Where the files are.
    pub(super) folder: PathBuf,
    pub(super) record: AnswerRecord,
}

impl Answer {
    /// An answer that another process wrote down; none when its rows are not what was written.
    pub(super) fn read(folder: &Path, record: &str) -> Option<Self> {
        let record: AnswerRecord = serde_json::from_str(record).ok()?;
        record.rows.values().all(|rows| rows.check(folder).is_ok()).then(|| Self { folder: folder.to_owned(), record })
    }
}

/// The batches of one kind of an answer's rows, an Arrow file, read in any order and by many at once.
pub(super) struct Batches {
    path: PathBuf,
    section: Section,
    decoder: FileDecoder,
    blocks: Vec<Block>,
}

impl Batches {
    /// Opens the rows of an answer; none when it has none of the kind.
    pub(super) fn open(answer: &Answer, rows: Rows, files: &mut Files) -> Result<Option<Self>> {
        let Some(stretch) = answer.record.rows.get(&rows) else { return Ok(None) };
        let path = stretch.path(&answer.folder);
        let section = stretch.open(&answer.folder, files)?;
        let (decoder, blocks) = directory(&section).map_err(|source| Error::Damaged { path: path.clone(), source })?;
        Ok(Some(Self { path, section, decoder, blocks }))
    }

    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn get(&self, index: usize) -> Result<RecordBatch> {
        let read = || -> Result<RecordBatch, Reason> {
            let block = self.blocks.get(index).ok_or("it ends too soon")?;
            let rows = self.decoder.read_record_batch(block, &read(&self.section, block)?)?;
            Ok(rows.ok_or("a batch of it has no rows")?)
        };
        read().map_err(|source| Error::Damaged { path: self.path.clone(), source })
    }
}

/// What the end of an Arrow file says: where its batches stand, and how they are read.
fn directory(section: &Section) -> Result<(FileDecoder, Vec<Block>), Reason> {
    const END: u64 = 10;
    let end = section.bytes.checked_sub(END).ok_or("it ends too soon")?;
    let length = read_footer_length(section.read(end, END)?.try_into().map_err(|_| "it ends too soon")?)? as u64;
    let footer = section.read(end.checked_sub(length).ok_or("it ends too soon")?, length)?;
    let footer = root_as_footer(&footer).map_err(|error| error.to_string())?;
    let schema = try_fb_to_schema(footer.schema().ok_or("it has no schema")?)?;
    let mut decoder = FileDecoder::new(Arc::new(schema), footer.version());
    for block in footer.dictionaries().iter().flatten() {
        decoder.read_dictionary(block, &read(section, block)?)?;
    }
    Ok((decoder, footer.recordBatches().iter().flatten().copied().collect()))
}

fn read(section: &Section, block: &Block) -> Result<Buffer, Reason> {
    let (from, head, body) = (block.offset(), i64::from(block.metaDataLength()), block.bodyLength());
    let length = u64::try_from(head)?.checked_add(u64::try_from(body)?).ok_or("a block of it has no end")?;
    Ok(section.read(u64::try_from(from)?, length)?.into())
}
