//! Reads what the archive knows of the answered series, a few whole tickers at a time.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::by_series::AnsweredSeries;
use crate::archive::fold::cells::Cells;
use crate::archive::fold::merged::Merged;
use crate::archive::merge_failed;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::error::Result;
use crate::tables::{SeriesKey, Table};

/// A reader of an archive's observations. Tickers are requested in order, so each file is read at most once.
pub(super) struct KnownReader {
    tables: Vec<(Table, Merged)>,
}

/// Observations of some series.
#[derive(Default)]
pub(super) struct Observations {
    /// Their cells, a few series at a time.
    cells: Vec<Cells>,
    /// The index of these, and the rows of a series among theirs.
    ranges: HashMap<SeriesKey, (usize, Range<usize>)>,
}

impl KnownReader {
    pub(super) fn open(archive: &Archive) -> Result<Self> {
        let folders: Vec<&Arc<Folder>> = archive.read().iter().collect();
        let horizon = archive.horizon(DateTime::<Utc>::MAX_UTC);
        let open = |table| Ok((table, Merged::open(table, &folders, &horizon)?));
        let tables: Vec<(Table, Merged)> = Table::ALL.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self { tables })
    }

    /// Observations of some series, which are of whole tickers and in order.
    pub(super) fn of(&mut self, series: &[AnsweredSeries]) -> Result<Observations> {
        let mut observations = Observations::default();
        for (table, merged) in &mut self.tables {
            let mut tickers: Vec<&str> = series
                .iter()
                .filter(|series| series.key.table == Some(*table))
                .map(|series| series.key.ticker.as_str())
                .collect();
            tickers.dedup();
            observations.add(*table, &merged.of_tickers(tickers.iter().copied())?)?;
        }
        Ok(observations)
    }
}

impl Observations {
    fn add(&mut self, table: Table, batches: &[RecordBatch]) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let cells = Cells::of(table, batches).map_err(merge_failed)?;
        let series = cells.series().map_err(merge_failed)?;
        self.ranges.extend(series.into_iter().map(|(key, range)| (key, (self.cells.len(), range))));
        self.cells.push(cells);
        Ok(())
    }

    /// The observations of a series.
    pub(super) fn rows(&self, table: Table, key: &SeriesKey) -> RecordBatch {
        match self.ranges.get(key) {
            Some((index, range)) => self.cells[*index].rows.slice(range.start, range.len()),
            None => RecordBatch::new_empty(table.schema()),
        }
    }

    /// Values of a series as of an instant, in the columns and order of the table's rows.
    pub(super) fn values(
        &self,
        table: Table,
        key: &SeriesKey,
        as_of: DateTime<Utc>,
    ) -> std::result::Result<RecordBatch, ArrowError> {
        match self.ranges.get(key) {
            Some((index, range)) => self.cells[*index].values(range.clone(), as_of.timestamp_micros()),
            None => Ok(RecordBatch::new_empty(table.row_schema())),
        }
    }
}
