//! What is kept of one answer until its run is sealed.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::ipc::reader::FileReader;
use serde::{Deserialize, Serialize};

use super::lanes::{Section, Stretch};
use crate::error::{Error, Result};
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

/// The batches of one kind of an answer's rows, read in any order.
pub(super) struct Batches {
    path: PathBuf,
    reader: FileReader<BufReader<Section>>,
}

impl Batches {
    /// Opens the rows of an answer; none when it has none of the kind.
    pub(super) fn open(answer: &Answer, rows: Rows) -> Result<Option<Self>> {
        let Some(stretch) = answer.record.rows.get(&rows) else { return Ok(None) };
        let path = stretch.path(&answer.folder);
        let reader = FileReader::try_new_buffered(stretch.open(&answer.folder)?, None)
            .map_err(|error| Error::Damaged { path: path.clone(), source: error.into() })?;
        Ok(Some(Self { path, reader }))
    }

    pub(super) fn count(&self) -> usize {
        self.reader.num_batches()
    }

    pub(super) fn get(&mut self, index: usize) -> Result<RecordBatch> {
        let damaged = |source| Error::Damaged { path: self.path.clone(), source };
        self.reader.set_index(index).map_err(|error| damaged(error.into()))?;
        match self.reader.next() {
            Some(batch) => batch.map_err(|error| damaged(error.into())),
            None => Err(damaged("it ends too soon".into())),
        }
    }
}
