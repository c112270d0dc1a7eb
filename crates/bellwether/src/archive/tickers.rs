//! What is known of some series, without reading the others.
//!
//! [`View::cells`] reads a table from start to end. A server is asked for one series after the other, in any order, so
//! here the files stay open, and where each series is in a row group is remembered once that was read. Clients mostly ask
//! for neighbours, so a row group that is asked for again is held in memory, of which there are a few.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::coverage::Coverage;
use super::fold::cells::Revision;
use super::fold::histories::EVER;
use super::fold::order::RowRanges;
use super::sealed::answers::SeriesAnswer;
use super::sealed::folder::{Folder, RowGroups};
use super::sealed::rows;
use super::view::View;
use crate::archive::merge_failed;
use crate::archive::sealed::seal::CountedShare;
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::{Change, SeriesKey, Table};

/// A table of an archive, for reading some series of it at any instant.
pub(crate) struct SeriesReader {
    table: Table,
    files: Vec<SeriesFile>,
    held: Mutex<Held>,
}

/// The row groups that are held, and those that were asked for; the latest come first.
#[derive(Default)]
struct Held {
    groups: Vec<(GroupPlace, RecordBatch)>,
    asked: Vec<GroupPlace>,
}

/// A file and a row group of it.
type GroupPlace = (usize, usize);

/// The most row groups to hold. Each has some megabytes.
const MOST_HELD: usize = 4;

/// The most row groups to remember as asked for.
const MOST_ASKED: usize = 16;

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
    pub(crate) fn series_reader(&self, table: Table) -> Result<SeriesReader> {
        let (name, schema) = (table.file(), table.file_schema());
        let with_rows = self.archive().read().iter().filter(|folder| folder.seal().rows(&name) > 0);
        let open = |folder: &Arc<Folder>| {
            let rows = RowGroups::open(folder, &name, &schema)?;
            Ok(SeriesFile { folder: Arc::clone(folder), rows, groups: Mutex::default() })
        };
        Ok(SeriesReader { table, files: with_rows.map(open).collect::<Result<_>>()?, held: Mutex::default() })
    }

    /// The requests whose answers list a series, or did.
    pub(crate) fn listed_by(&self, key: &SeriesKey) -> Result<Vec<ListedBy>> {
        let series = self.listings()?.of_ticker(&key.ticker).filter(|(known, _)| *known == key);
        let by = series.flat_map(|(_, listings)| listings).map(|listing| ListedBy {
            request: listing.request.to_string(),
            since: listing.sealed_at,
            gone: (listing.change == Change::Withdrawn).then_some(listing.observed_at),
        });
        Ok(by.collect())
    }

    /// What the last answer with the latest signal of a series covered; none if there was no such answer.
    pub(crate) fn last_latest(&self, key: &SeriesKey) -> Result<Option<Coverage>> {
        let mut last: Option<SeriesAnswer> = None;
        for run in self.runs().rev() {
            // What a run was answered is not later than its seal.
            if last.as_ref().is_some_and(|last| last.observed_at >= run.seal().sealed_at) {
                break;
            }
            let is_it = |answer: &SeriesAnswer| answer.source.is_latest() && answer.key == *key;
            let later = run.answers()?.into_iter().filter(is_it).chain(last.take());
            last = later.max_by_key(|answer| answer.observed_at);
        }
        Ok(last.map(|answer| answer.covers))
    }
}

/// A request of which an answer listed a series.
#[derive(Clone, Debug)]
pub(crate) struct ListedBy {
    pub(crate) request: String,
    /// When the run was sealed that first had it listed.
    pub(crate) since: DateTime<Utc>,
    /// The answer that no longer lists it.
    pub(crate) gone: Option<DateTime<Utc>>,
}

impl SeriesReader {
    /// The known cells of some series, which are in order, in a view of the archive: each series that has any, with its
    /// rows in the columns of [`Table::known_schema`].
    pub(crate) fn known_cells(&self, view: &View, series: &[SeriesKey]) -> Result<Vec<(SeriesKey, RecordBatch)>> {
        let mut batches = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            let share = view.horizon().share(file.folder.seal());
            let rows = if share == CountedShare::None { Vec::new() } else { self.rows_of(index, series)? };
            for rows in rows {
                // The last column says from when on a row counts.
                let counting = match share {
                    CountedShare::All => rows.project(&Vec::from_iter(0..rows.num_columns() - 1)),
                    CountedShare::Some | CountedShare::None => view.horizon().rows(&rows),
                };
                batches.push(counting.map_err(merge_failed)?);
            }
        }
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let known = view.fold(self.table, &batches)?.known_rows(EVER, Revision::OfValue, Vintage::Latest)?;
        let ranges = rows::ranges(self.table, &known).map_err(merge_failed)?;
        Ok(ranges.into_iter().map(|(key, range)| (key, known.slice(range.start, range.len()))).collect())
    }

    /// The rows of some series in a file, a batch per row group that has any.
    fn rows_of(&self, file: usize, series: &[SeriesKey]) -> Result<Vec<RecordBatch>> {
        let [Some(first), Some(last)] = [series.first(), series.last()] else { return Ok(Vec::new()) };
        let SeriesFile { rows, .. } = &self.files[file];
        let of_group = |group: usize| {
            let places = self.files[file].places(self.table, group)?;
            let index_of = |key: &SeriesKey| places.binary_search_by(|(known, _)| known.cmp(key)).ok();
            let wanted: Vec<Range<usize>> = series.iter().filter_map(index_of).map(|at| places[at].1.clone()).collect();
            if wanted.is_empty() {
                return Ok(None);
            }
            Ok(Some(match self.group((file, group))? {
                Some(whole) => slices(&whole, &wanted)?,
                None => rows.rows(group, &wanted)?,
            }))
        };
        let groups = (0..rows.count()).filter(|group| rows.may_have(*group, &first.ticker, &last.ticker));
        let batches = groups.collect::<Vec<_>>().into_par_iter().map(of_group).collect::<Result<Vec<_>>>()?;
        Ok(batches.into_iter().flatten().collect())
    }

    /// A row group that is held, or was asked for before and is held from now on.
    fn group(&self, place: GroupPlace) -> Result<Option<RecordBatch>> {
        let lock = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_asked_again = {
            let mut held = lock();
            if let Some(at) = held.groups.iter().position(|(known, _)| *known == place) {
                let group = held.groups.remove(at);
                held.groups.insert(0, group.clone());
                return Ok(Some(group.1));
            }
            let asked = held.asked.iter().position(|known| *known == place);
            asked.map(|at| held.asked.remove(at));
            held.asked.insert(0, place);
            held.asked.truncate(MOST_ASKED);
            asked.is_some()
        };
        if !is_asked_again {
            return Ok(None);
        }
        let whole = self.files[place.0].rows.whole(place.1)?;
        let mut held = lock();
        held.groups.insert(0, (place, whole.clone()));
        held.groups.truncate(MOST_HELD);
        Ok(Some(whole))
    }
}

/// Some rows of a row group.
fn slices(whole: &RecordBatch, wanted: &[Range<usize>]) -> Result<RecordBatch> {
    match wanted {
        [only] => Ok(whole.slice(only.start, only.len())),
        wanted => RowRanges::from_iter(wanted.iter().cloned()).of(whole).map_err(merge_failed),
    }
}

impl SeriesFile {
    /// Where the series of a row group are.
    fn places(&self, table: Table, group: usize) -> Result<Arc<Places>> {
        if let Some(known) = self.groups.lock().unwrap_or_else(PoisonError::into_inner).get(&group) {
            return Ok(Arc::clone(known));
        }
        let keys = self.rows.keys(group, table.key_columns())?;
        let places = Arc::new(rows::ranges(table, &keys).map_err(|reason| self.rows.damage(reason))?);
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(group, Arc::clone(&places));
        Ok(places)
    }
}
