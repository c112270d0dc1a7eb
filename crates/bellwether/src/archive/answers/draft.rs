//! An answer that is still being written.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::answer::{AnswerRecord, Oddities, RowKind, RowPieces};
use super::answer_files::{AnswerFile, AnswerFiles};
use super::row_codec::pack;
use crate::decode::{AnswerPart, Decoded};
use crate::disk::file::FileError;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::tables::{Leniencies, Reject, RequestRecord, Series, SeriesKey, Table};

/// An answer on its way to disk. Dropped before it is committed, it leaves nothing behind.
pub struct Draft {
    files: Arc<AnswerFiles>,
    /// The file of each kind of rows, and the bytes of each piece.
    writing: BTreeMap<RowKind, (AnswerFile, Vec<u64>)>,
    series: Vec<SeriesKey>,
    empty: Vec<SeriesKey>,
    histories: u64,
    lost: u64,
    unread: BTreeSet<Option<String>>,
    oddities: Oddities,
    rows: u64,
    rejects: u64,
}

impl Draft {
    pub(in crate::archive) fn on(files: &Arc<AnswerFiles>) -> Self {
        Self {
            files: Arc::clone(files),
            writing: BTreeMap::new(),
            series: Vec::new(),
            empty: Vec::new(),
            histories: 0,
            lost: 0,
            unread: BTreeSet::new(),
            oddities: Oddities::default(),
            rows: 0,
            rejects: 0,
        }
    }

    /// Adds a series, or a piece of a long one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn add_series(&mut self, series: Series) -> Result<()> {
        self.rows += series.rows.num_rows() as u64;
        self.write(RowKind::Typed, &series.rows)?;
        if series.rows.num_rows() == 0 && series.key.table == Some(Table::Signals) {
            self.empty.push(series.key.clone());
        }
        self.series.push(series.key);
        Ok(())
    }

    /// Adds a decoded part of the answer of an operation.
    pub(crate) fn add(&mut self, source: Endpoint, decoded: Decoded) -> Result<()> {
        for part in decoded.parts {
            match part {
                AnswerPart::Series(series) => self.add_series(series)?,
                AnswerPart::Tickers(tickers) => self.add_tickers(source, tickers),
            }
        }
        self.add_rejects(&decoded.rejects, decoded.rejected)?;
        self.add_histories(decoded.histories, decoded.lost);
        let Decoded { drift, unusual, undated, lenient, oversized, .. } = decoded;
        self.add_oddities(Oddities { drift, unusual, undated, lenient, oversized });
        Ok(())
    }

    /// Adds tickers that the answer lists.
    pub fn add_tickers(&mut self, source: Endpoint, tickers: Vec<Ticker>) {
        self.rows += tickers.len() as u64;
        self.series.extend(tickers.into_iter().map(|ticker| SeriesKey::of_ticker(source, ticker)));
    }

    /// Adds to the number of histories, and of those whose records were all rejected.
    pub fn add_histories(&mut self, histories: u64, lost: u64) {
        self.histories += histories;
        self.lost += lost;
    }

    /// Adds rejected records: `count` of them, which may be more than the entries given.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn add_rejects(&mut self, rejects: &[Reject], count: u64) -> Result<()> {
        self.rejects += count;
        if rejects.is_empty() {
            return Ok(());
        }
        for Reject { ticker, .. } in rejects {
            if !self.unread.contains(ticker) {
                self.unread.insert(ticker.clone());
            }
        }
        let batch = Reject::batch(rejects);
        self.write(RowKind::Rejects, &batch.expect("rejects are texts and numbers"))
    }

    /// Adds other findings.
    pub fn add_oddities(&mut self, oddities: Oddities) {
        self.oddities.add(oddities);
    }

    /// Number of rows and of rejected records added.
    pub fn counts(&self) -> (u64, u64) {
        (self.rows, self.rejects)
    }

    /// Number of histories and of confidences outside 0 to 1, and what was accepted in another notation.
    pub(crate) fn findings(&self) -> (u64, u64, Leniencies) {
        (self.histories, self.oddities.unusual, self.oddities.lenient)
    }

    /// Completes the rows.
    ///
    /// Nothing is flushed to disk here: what a power failure loses shows in the checksums and is requested again. Only
    /// a sealed run must be durable.
    pub(in crate::archive) fn complete(self, request: RequestRecord) -> Result<AnswerRecord> {
        let mut rows = BTreeMap::new();
        for (kind, (file, lengths)) in self.writing {
            let path = file.path();
            let range = file.keep().map_err(FileError::write(&path))?;
            rows.insert(kind, RowPieces { bytes: range, lengths });
        }
        let Self { series, empty, histories, lost, unread, oddities, .. } = self;
        Ok(AnswerRecord { request, series, empty, rows, histories, lost, unread, oddities, as_before: None })
    }

    fn write(&mut self, rows: RowKind, batch: &RecordBatch) -> Result<()> {
        let (file, lengths) = match self.writing.entry(rows) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert((AnswerFiles::take(&self.files)?, Vec::new())),
        };
        let length = file.append(|out| pack(batch, out));
        lengths.push(length.map_err(FileError::write(&file.path()))?);
        Ok(())
    }
}
