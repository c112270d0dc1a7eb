//! What is known of some tickers: of a few at a time, without reading the others.
//!
//! [`View::cells`] reads a table from start to end. Whoever asks for one ticker, or for the members of a list, reads the
//! row groups that hold them, and each file at most once.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use chrono::{DateTime, Utc};

use super::error::ArchiveError;
use super::fold::cells::Revision;
use super::fold::histories::EVER;
use super::sealed::by_ticker::ByTicker;
use super::sealed::keys;
use super::view::View;
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::Vintage;
use crate::tables::{Change, SeriesKey, Table};

/// A reader of the known cells of tickers, which are asked for in order.
pub(crate) struct KnownTickers {
    view: View,
    table: Table,
    files: Vec<ByTicker>,
}

impl View {
    /// A reader of the known cells of a table, for tickers that are asked for in order.
    pub(crate) fn known_tickers(&self, table: Table) -> Result<KnownTickers> {
        let (name, schema) = (table.file(), table.file_schema());
        let mut files = Vec::new();
        for folder in self.folders().into_iter().filter(|folder| folder.seal().rows(&name) > 0) {
            files.extend(ByTicker::known(folder, &name, &schema, self.horizon())?);
        }
        Ok(KnownTickers { view: self.clone(), table, files })
    }

    /// The series of a ticker that answers list, with the requests that do.
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

impl KnownTickers {
    /// The known cells of some tickers, which come after those asked for before: each series with its rows in the columns
    /// of [`Table::known_schema`].
    pub(crate) fn next(&mut self, tickers: &[Ticker]) -> Result<Vec<(SeriesKey, RecordBatch)>> {
        let mut batches = Vec::new();
        for file in &mut self.files {
            batches.extend(file.take_tickers(tickers.iter().map(Ticker::as_str))?);
        }
        let Some(first) = batches.first() else { return Ok(Vec::new()) };
        if self.files.len() == 1 && batches.len() > 1 {
            batches = vec![concat_batches(first.schema_ref(), &batches).map_err(ArchiveError::merge)?];
        }
        let cells = self.view.fold(self.table, &batches)?;
        let known = cells.known_rows(EVER, Revision::OfValue, Vintage::Latest)?;
        let ranges = keys::ranges(self.table, &known).map_err(ArchiveError::merge)?;
        Ok(ranges.into_iter().map(|(key, range)| (key, known.slice(range.start, range.len()))).collect())
    }
}
