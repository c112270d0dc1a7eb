//! What is kept of one answer until its run is sealed.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use super::lanes::{Files, Section, Stretch};
use super::packed::unpack;
use crate::error::{Error, Reason, Result};
use crate::interface::Ticker;
use crate::tables::{Drift, Leniencies, Oversized, Reject, RequestRecord, SeriesKey, Table};

/// What an answer said, but for its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request, and how it was answered.
    pub request: RequestRecord,
    /// The key of each series, in the order of their rows. A long one may come in pieces, and a ticker that is only
    /// listed has none.
    pub series: Vec<SeriesKey>,
    /// The histories of signals without rows: they list no series.
    pub empty: Vec<SeriesKey>,
    /// Where its rows stand, those that could be typed and those that could not.
    pub rows: BTreeMap<Rows, Pieces>,
    /// Histories of signals.
    pub histories: u64,
    /// Those of them that had records and kept none.
    pub lost: u64,
    /// What was noticed beside its rows.
    #[serde(flatten)]
    pub oddities: Oddities,
}

/// What was noticed in answers beside their rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Oddities {
    /// Fields that the interface does not know.
    pub drift: Vec<Drift>,
    /// Confidences outside 0 to 1.
    pub unusual: u64,
    /// Values that were accepted although the interface spells them otherwise.
    #[serde(default)]
    pub lenient: Leniencies,
    /// What was rejected for its size alone; the first of it.
    #[serde(default)]
    pub oversized: Vec<Oversized>,
}

impl Oddities {
    /// Adds those of another answer, or of more of this one.
    pub fn add(&mut self, other: Self) {
        other.drift.into_iter().for_each(|field| field.add_to(&mut self.drift));
        self.unusual += other.unusual;
        self.lenient += other.lenient;
        self.oversized.extend(other.oversized);
        self.oversized.truncate(Oversized::MAX_LISTED);
    }
}

impl AnswerRecord {
    /// The series that it lists.
    pub fn listed(&self) -> impl Iterator<Item = &SeriesKey> {
        let empty: HashSet<&SeriesKey> = self.empty.iter().collect();
        self.series.iter().filter(move |key| !empty.contains(key))
    }

    /// The tickers of the series that it lists.
    pub fn named(&self) -> impl Iterator<Item = &Ticker> {
        self.listed().map(|key| &key.ticker)
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

/// Rows that stand one piece after another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pieces {
    /// Where they stand.
    pub(in crate::archive) stretch: Stretch,
    /// The bytes of each.
    pub(in crate::archive) lengths: Vec<u64>,
}

/// An answer that is complete.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Answer {
    /// Where the files are.
    pub(in crate::archive) folder: PathBuf,
    /// Shared, for an answer may name every ticker that there is.
    pub(in crate::archive) record: Arc<AnswerRecord>,
}

impl Answer {
    /// An answer that another process wrote down; none when its rows are not what was written.
    pub(in crate::archive) fn read(folder: &Path, record: &str) -> Option<Self> {
        let record: AnswerRecord = serde_json::from_str(record).ok()?;
        record
            .rows
            .values()
            .all(|rows| rows.stretch.is_of_answers() && rows.stretch.check(folder).is_ok())
            .then(|| Self { folder: folder.to_owned(), record: Arc::new(record) })
    }
}

/// The batches of one kind of an answer's rows, read in any order and by many at once.
pub(in crate::archive) struct Batches {
    path: PathBuf,
    section: Section,
    schema: SchemaRef,
    /// Where each stands in the section.
    places: Vec<Range<u64>>,
}

impl Batches {
    /// Opens the rows of an answer; none when it has none of the kind.
    pub(in crate::archive) fn open(answer: &Answer, rows: Rows, files: &mut Files) -> Result<Option<Self>> {
        let Some(Pieces { stretch, lengths }) = answer.record.rows.get(&rows) else { return Ok(None) };
        let schema = match rows {
            Rows::Typed => Table::of(answer.record.request.endpoint).map(Table::listed_schema),
            Rows::Rejects => Some(Reject::batch_schema()),
        };
        let Some(schema) = schema else { return Ok(None) };
        let mut end = 0_u64;
        let place = |length: &u64| {
            let start = end;
            end = end.saturating_add(*length);
            start..end
        };
        let places = lengths.iter().map(place).collect();
        let section = stretch.open(&answer.folder, files)?;
        Ok(Some(Self { path: stretch.path(&answer.folder), section, schema, places }))
    }

    pub(in crate::archive) fn count(&self) -> usize {
        self.places.len()
    }

    pub(in crate::archive) fn get(&self, index: usize) -> Result<RecordBatch> {
        let read = || -> Result<RecordBatch, Reason> {
            let place = self.places.get(index).ok_or("it ends too soon")?;
            unpack(&self.section.read(place.start, place.end - place.start)?, &self.schema)
        };
        read().map_err(|source| Error::Damaged { path: self.path.clone(), source })
    }
}
