//! What is kept of one answer until its run is sealed.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::ipc::reader::FileReader;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{Drift, RequestRecord, SeriesKey};

pub(super) const RECORD: &str = "answer.json";

/// What an answer said, but for its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request, and how it was answered.
    pub request: RequestRecord,
    /// The key of each series, in the order of their rows. A long one may come in pieces, and a ticker that is only
    /// listed has none.
    pub series: Vec<SeriesKey>,
    /// The files of its rows, as they were written.
    pub files: Vec<FileRecord>,
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

/// The files of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Rows {
    /// What could be typed, a batch for each piece of a series.
    Typed,
    /// What could not.
    Rejects,
}

impl Rows {
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Typed => "rows.arrow",
            Self::Rejects => "rejects.arrow",
        }
    }
}

/// An answer that is complete.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) path: PathBuf,
    pub(super) record: AnswerRecord,
}

impl Answer {
    /// Reads an answer that another process wrote down, and holds its files against what was written.
    pub(super) fn read(path: PathBuf) -> Result<Self> {
        let file = path.join(RECORD);
        let text = std::fs::read(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
        let record: AnswerRecord =
            serde_json::from_slice(&text).map_err(|error| Error::Damaged { path: file, source: error.into() })?;
        for written in &record.files {
            let path = path.join(&written.name);
            if FileRecord::of(&path, &written.name, written.rows)? != *written {
                return Err(Error::Damaged { path, source: "it is not what was written".into() });
            }
        }
        Ok(Self { path, record })
    }
}

/// The batches of one file of an answer, read in any order.
pub(super) struct Batches {
    path: PathBuf,
    reader: FileReader<BufReader<File>>,
}

impl Batches {
    pub(super) fn open(answer: &Path, rows: Rows) -> Result<Self> {
        let path = answer.join(rows.file());
        let reader = FileReader::try_new_buffered(file::open(&path)?, None)
            .map_err(|error| Error::Damaged { path: path.clone(), source: error.into() })?;
        Ok(Self { path, reader })
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
