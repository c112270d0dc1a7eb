//! What the archive has from an operation that the service no longer offers.

use std::collections::BTreeSet;
use std::path::Path;

use super::as_of::newest;
use crate::archive::{View, open_merged};
use crate::error::Result;
use crate::interface::{Sector, Ticker};
use crate::plan::{OperationRequests, Request, RequestList};
use crate::process::cancel::CancellationToken;
use crate::tables::SeriesKey;

/// What the last answers to some requests list.
#[derive(Default)]
pub(super) struct LastListed {
    /// The tickers.
    pub(super) tickers: BTreeSet<Ticker>,
    /// Their series.
    pub(super) series: BTreeSet<SeriesKey>,
    /// The requested sectors without tickers.
    pub(super) unlisted: Vec<Sector>,
}

impl LastListed {
    /// From the first of some operations that has any.
    pub(super) fn of_operations(operations: &[&OperationRequests], archive: &Path) -> Result<Self> {
        for operation in operations {
            if let RequestList::Listed(requests) = &operation.list {
                let known = Self::of(requests, archive)?;
                if !known.tickers.is_empty() {
                    return Ok(known);
                }
            }
        }
        Ok(Self::default())
    }

    /// From some requests.
    pub(super) fn of(requests: &[Request], archive: &Path) -> Result<Self> {
        let archive = open_merged(archive, &CancellationToken::new())?;
        let as_of = newest(&archive).unwrap_or_default();
        let listing = View::of(archive, as_of).listing(&requests.iter().map(Request::to_string).collect())?;
        let (listed, others): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| listing.contains_key(&request.to_string()));
        let sectors = |requests: Vec<&Request>| -> BTreeSet<Sector> {
            requests.into_iter().filter_map(|request| request.sector.clone()).collect()
        };
        let unlisted = &sectors(others) - &sectors(listed);
        let series: BTreeSet<SeriesKey> = listing.into_values().flatten().collect();
        let tickers = series.iter().map(|key| key.ticker.clone()).collect();
        Ok(Self { tickers, series, unlisted: unlisted.into_iter().collect() })
    }
}
