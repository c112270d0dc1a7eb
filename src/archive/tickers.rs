//! What is known of some series, without reading the others.
//!
//! [`View::cells`] reads a table from start to end. A server is asked for one series after the other, in any order, so
//! here the files stay open, and where each series is in a row group is remembered once that was read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::error::ArchiveError;
use super::fold::cells::Revision;
use super::fold::histories::EVER;
use super::sealed::folder::Folder;
use super::sealed::horizon::Share;
use super::sealed::keys;
use super::sealed::row_groups::RowGroups;
use super::view::View;
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::Vintage;
use crate::tables::{Change, SeriesKey, Table};

/// A table of an archive, for reading some series of it at any instant.
pub(crate) struct SeriesReader {
    table: Table,
    files: Vec<SeriesFile>,
}

/// A file of the table.
struct SeriesFile {
    folder: Arc<Folder>,
    rows: RowGroups,
    /// The series in the row groups that were read.
    groups: Mutex<HashMap<usize, Arc<Places>>>,
}

/// The series of a row group in order, each with its rows.
type Places = Vec<(SeriesKey, Range<usize>)>;

impl View {
    /// A reader of a table, for this and other instants of the archive.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub(crate) fn series_reader(&self, table: Table) -> Result<SeriesReader> {
        let (name, schema) = (table.file(), table.file_schema());
        let with_rows = self.archive().read().iter().filter(|folder| folder.seal().rows(&name) > 0);
        let open = |folder: &Arc<Folder>| {
            let rows = RowGroups::open(folder, &name, &schema)?;
            Ok(SeriesFile { folder: Arc::clone(folder), rows, groups: Mutex::default() })
        };
        Ok(SeriesReader { table, files: with_rows.map(open).collect::<Result<_>>()? })
    }

    /// The series of a ticker that answers list, with the requests that do.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub(crate) fn series_of(&self, ticker: &Ticker) -> Result<Vec<(SeriesKey, Vec<ListedBy>)>> {
        let series = self.listings()?.of_ticker(ticker).filter_map(|(key, listings)| {
            let listed = listings.iter().filter(|listing| listing.change == Change::Added);
            let by: Vec<ListedBy> = listed
                .map(|listing| ListedBy { request: listing.request.to_string(), since: listing.sealed_at })
                .collect();
            (!by.is_empty()).then(|| (key.clone(), by))
        });
        Ok(series.collect())
    }

    /// The tickers that answers list, in order.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub(crate) fn listed_tickers(&self) -> Result<Vec<Ticker>> {
        let mut tickers: Vec<Ticker> = self.listings()?.series().map(|(key, _)| key.ticker.clone()).collect();
        tickers.dedup();
        Ok(tickers)
    }
}

/// A request whose latest answer lists a series.
#[derive(Clone, Debug)]
pub(crate) struct ListedBy {
    pub(crate) request: String,
    /// When the run was sealed that first had it listed.
    pub(crate) since: DateTime<Utc>,
}

impl SeriesReader {
    /// The known cells of some series, which are in order, in a view of the archive: each series that has any, with its
    /// rows in the columns of [`Table::known_schema`].
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub(crate) fn known(&self, view: &View, series: &[SeriesKey]) -> Result<Vec<(SeriesKey, RecordBatch)>> {
        let mut batches = Vec::new();
        for file in &self.files {
            let share = view.horizon().share(file.folder.seal());
            for rows in if share == Share::None { Vec::new() } else { file.rows_of(self.table, series)? } {
                // The last column says from when on a row counts.
                let counting = match share {
                    Share::All => rows.project(&Vec::from_iter(0..rows.num_columns() - 1)),
                    Share::Some | Share::None => view.horizon().rows(&rows),
                };
                batches.push(counting.map_err(ArchiveError::merge)?);
            }
        }
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let known = view.fold(self.table, &batches)?.known_rows(EVER, Revision::OfValue, Vintage::Latest)?;
        let ranges = keys::ranges(self.table, &known).map_err(ArchiveError::merge)?;
        Ok(ranges.into_iter().map(|(key, range)| (key, known.slice(range.start, range.len()))).collect())
    }
}

impl SeriesFile {
    /// The rows of some series, a batch per row group that has any.
    fn rows_of(&self, table: Table, series: &[SeriesKey]) -> Result<Vec<RecordBatch>> {
        let [Some(first), Some(last)] = [series.first(), series.last()] else { return Ok(Vec::new()) };
        let mut batches = Vec::new();
        for group in 0..self.rows.count() {
            if !self.rows.may_have(group, &first.ticker, &last.ticker) {
                continue;
            }
            let places = self.places(table, group)?;
            let place = |key: &SeriesKey| places.binary_search_by(|(known, _)| known.cmp(key)).ok();
            let wanted: Vec<Range<usize>> = series.iter().filter_map(place).map(|at| places[at].1.clone()).collect();
            if !wanted.is_empty() {
                batches.push(self.rows.rows(group, &wanted)?);
            }
        }
        Ok(batches)
    }

    /// Where the series of a row group are.
    fn places(&self, table: Table, group: usize) -> Result<Arc<Places>> {
        if let Some(known) = self.groups.lock().unwrap_or_else(PoisonError::into_inner).get(&group) {
            return Ok(Arc::clone(known));
        }
        let keys = self.rows.keys(group, table.key_columns())?;
        let places = Arc::new(keys::ranges(table, &keys).map_err(|reason| self.rows.damaged(reason))?);
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(group, Arc::clone(&places));
        Ok(places)
    }
}
