//! The stored form of one answer, kept until its run is sealed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer_files::{ByteRange, Files, Section};
use super::row_codec::unpack;
use crate::disk::file::FileError;
use crate::error::{Reason, Result};
use crate::interface::Ticker;
use crate::tables::{Drift, Leniencies, Oversized, Reject, RequestRecord, SeriesKey, Table};

/// An answer without its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request, with the status, size and time of its answer.
    pub request: RequestRecord,
    /// The key of each series, in row order. A long series may come in pieces; a ticker that is only listed has no key.
    pub series: Vec<SeriesKey>,
    /// Signal histories without rows, which list no series.
    pub empty: Vec<SeriesKey>,
    /// Location of its rows, typed and rejected.
    pub rows: BTreeMap<RowKind, RowPieces>,
    /// Number of signal histories.
    pub histories: u64,
    /// Number of histories with records of which all were rejected.
    pub lost: u64,
    /// The tickers with rejected records; none for records that no ticker is known of.
    #[serde(default)]
    pub unread: BTreeSet<Option<String>>,
    /// Other findings in the answer.
    #[serde(flatten)]
    pub oddities: Oddities,
    /// If the service says that it is as before, the sealed run with the earlier answer, whose rows it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_before: Option<String>,
}

/// Findings in answers, besides their rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Oddities {
    /// Unknown fields.
    pub drift: Vec<Drift>,
    /// Confidences outside 0 to 1.
    pub unusual: u64,
    /// Latest signals without a date, which no dataset can have.
    #[serde(default)]
    pub undated: u64,
    /// Values accepted though they deviate from the interface's notation.
    #[serde(default)]
    pub lenient: Leniencies,
    /// The first record rejected for its size.
    #[serde(default)]
    pub oversized: Vec<Oversized>,
}

impl Oddities {
    /// Adds the findings of another answer, or of more of this one.
    pub fn add(&mut self, other: Self) {
        other.drift.into_iter().for_each(|field| field.add_to(&mut self.drift));
        self.unusual += other.unusual;
        self.undated += other.undated;
        self.lenient += other.lenient;
        self.oversized.extend(other.oversized);
        self.oversized.truncate(Oversized::MAX_LISTED);
    }
}

impl AnswerRecord {
    /// The series that the answer lists.
    pub fn listed_series(&self) -> impl Iterator<Item = &SeriesKey> {
        let empty: HashSet<&SeriesKey> = self.empty.iter().collect();
        self.series.iter().filter(move |key| !empty.contains(key))
    }

    /// Whether every record of a ticker could be read: only then does the answer say what there no longer is.
    pub(in crate::archive) fn is_read(&self, ticker: &Ticker) -> bool {
        self.unread.is_empty()
            || !self.unread.iter().any(|name| name.as_deref().is_none_or(|name| name == ticker.as_str()))
    }

    /// Tickers of the series that the answer lists.
    pub fn tickers(&self) -> impl Iterator<Item = &Ticker> {
        self.listed_series().map(|key| &key.ticker)
    }
}

/// The kinds of rows in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// Typed rows, a batch per piece of a series.
    Typed,
    /// Rejected records.
    Rejects,
}

/// Contiguous pieces of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowPieces {
    /// Their location.
    pub(in crate::archive) bytes: ByteRange,
    /// Bytes of each piece.
    pub(in crate::archive) lengths: Vec<u64>,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Answer {
    /// The folder of its files.
    pub(in crate::archive) folder: PathBuf,
    /// Shared, since an answer may list every ticker there is.
    pub(in crate::archive) record: Arc<AnswerRecord>,
}

impl Answer {
    /// Reads an answer that another process wrote; `None` if its rows do not match their checksums.
    pub(in crate::archive) fn read(folder: &Path, record: &str) -> Option<Self> {
        let record: AnswerRecord = serde_json::from_str(record).ok()?;
        record
            .rows
            .values()
            .all(|rows| rows.bytes.is_of_answers() && rows.bytes.check(folder).is_ok())
            .then(|| Self { folder: folder.to_owned(), record: Arc::new(record) })
    }
}

/// The batches of one kind of rows, readable in any order and from several threads.
pub(in crate::archive) struct AnswerBatches {
    path: PathBuf,
    section: Section,
    schema: SchemaRef,
    /// Byte range of each batch in the section.
    places: Vec<Range<u64>>,
}

impl AnswerBatches {
    /// Opens rows of an answer; `None` if it has none of this kind.
    pub(in crate::archive) fn open(answer: &Answer, rows: RowKind, files: &mut Files) -> Result<Option<Self>> {
        let Some(RowPieces { bytes, lengths }) = answer.record.rows.get(&rows) else { return Ok(None) };
        let schema = match rows {
            RowKind::Typed => Table::of(answer.record.request.endpoint).map(Table::listed_schema),
            RowKind::Rejects => Some(Reject::batch_schema()),
        };
        let Some(schema) = schema else { return Ok(None) };
        let mut end = 0_u64;
        let place = |length: &u64| {
            let start = end;
            end = end.saturating_add(*length);
            start..end
        };
        let places = lengths.iter().map(place).collect();
        let section = bytes.open(&answer.folder, files)?;
        Ok(Some(Self { path: bytes.path(&answer.folder), section, schema, places }))
    }

    pub(in crate::archive) fn count(&self) -> usize {
        self.places.len()
    }

    pub(in crate::archive) fn get(&self, index: usize) -> Result<RecordBatch> {
        let read = || -> Result<RecordBatch, Reason> {
            let place = self.places.get(index).ok_or("it ends early")?;
            unpack(&self.section.read(place.start, place.end - place.start)?, &self.schema)
        };
        read().map_err(|source| FileError::damage(&self.path, source))
    }
}
