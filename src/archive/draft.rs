//! An answer while it is being written down.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;

use super::answer::{Answer, AnswerRecord, RECORD, Rows};
use crate::error::{Error, Result};
use crate::file::{self, Described};
use crate::interface::{Endpoint, Ticker};
use crate::tables::{Drift, Reject, RequestRecord, Series, SeriesKey};

/// What one answer says, on its way to the disk. Dropped before it is committed, it leaves nothing.
pub struct Draft {
    path: PathBuf,
    target: PathBuf,
    files: BTreeMap<Rows, FileWriter<BufWriter<Described<File>>>>,
    series: Vec<SeriesKey>,
    drift: Vec<Drift>,
    unusual: u64,
    rows: u64,
    rejects: u64,
    is_committed: bool,
}

impl Draft {
    pub(super) fn create(answers: &Path, name: &str) -> Result<Self> {
        let path = answers.join(format!(".{name}"));
        // An attempt that was killed may have left one.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        fs::create_dir(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        Ok(Self {
            path,
            target: answers.join(name),
            files: BTreeMap::new(),
            series: Vec::new(),
            drift: Vec::new(),
            unusual: 0,
            rows: 0,
            rejects: 0,
            is_committed: false,
        })
    }

    /// Adds a series, or a piece of a long one.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn add_series(&mut self, series: Series) -> Result<()> {
        self.rows += series.rows.num_rows() as u64;
        self.write(Rows::Typed, &series.rows)?;
        self.series.push(series.key);
        Ok(())
    }

    /// Adds tickers that it lists.
    pub fn add_tickers(&mut self, source: Endpoint, tickers: Vec<Ticker>) {
        self.rows += tickers.len() as u64;
        self.series.extend(tickers.into_iter().map(|ticker| SeriesKey::of_ticker(source, ticker)));
    }

    /// Adds records that were set aside: `count` of them, of which very many may be told as one.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn add_rejects(&mut self, rejects: &[Reject], count: u64) -> Result<()> {
        self.rejects += count;
        if rejects.is_empty() {
            return Ok(());
        }
        let batch = Reject::batch(rejects).map_err(|error| self.failed(Rows::Rejects, error))?;
        self.write(Rows::Rejects, &batch)
    }

    /// Adds fields that nobody knows, and the number of confidences outside 0 to 1.
    pub fn add_oddities(&mut self, drift: Vec<Drift>, unusual: u64) {
        self.unusual += unusual;
        drift.into_iter().for_each(|field| field.add_to(&mut self.drift));
    }

    /// The rows and the rejects that were added.
    pub fn counts(&self) -> (u64, u64) {
        (self.rows, self.rejects)
    }

    /// Completes the answer: from here on it need not be asked for again.
    pub(super) fn commit(mut self, request: RequestRecord) -> Result<Answer> {
        let mut files = Vec::with_capacity(self.files.len());
        for (rows, writer) in std::mem::take(&mut self.files) {
            let written = writer.into_inner().map_err(|error| self.failed(rows, error))?;
            let written = written.into_inner().map_err(|error| self.failed(rows, error.into_error().into()))?;
            files.push(written.record(rows.file(), 0));
        }
        let record = AnswerRecord {
            request,
            files,
            series: std::mem::take(&mut self.series),
            drift: std::mem::take(&mut self.drift),
            unusual: self.unusual,
        };
        // Nothing waits for the disk here: what a machine lost that lost its power is told by the digests, and asked for
        // again. The sealed run is what must be durable.
        let path = self.path.join(RECORD);
        let text = serde_json::to_vec(&record).expect("a record is text and numbers");
        fs::write(&path, text).map_err(|source| Error::Write { path, source })?;
        if self.target.exists() {
            // An answer that could not be read, and was asked for again.
            fs::remove_dir_all(&self.target).map_err(|source| Error::Write { path: self.target.clone(), source })?;
        }
        fs::rename(&self.path, &self.target).map_err(|source| Error::Write { path: self.target.clone(), source })?;
        self.is_committed = true;
        Ok(Answer { path: self.target.clone(), record })
    }

    fn write(&mut self, rows: Rows, batch: &RecordBatch) -> Result<()> {
        if !self.files.contains_key(&rows) {
            let path = self.path.join(rows.file());
            let out = Described::new(file::create(&path)?);
            let writer =
                FileWriter::try_new_buffered(out, &batch.schema()).map_err(|error| self.failed(rows, error))?;
            self.files.insert(rows, writer);
        }
        let writer = self.files.get_mut(&rows).expect("it was put there");
        writer.write(batch).map_err(|error| self.failed(rows, error))
    }

    fn failed(&self, rows: Rows, error: ArrowError) -> Error {
        file::encoding_failed(&self.path.join(rows.file()), error.into())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_committed {
            // Best effort: a folder whose name begins with a dot is no answer.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
