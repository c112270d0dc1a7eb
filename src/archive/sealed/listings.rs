//! Listings: which request returned which series, and since when.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::by_ticker::ByTicker;
use super::folder::Folder;
use super::keys;
use super::rows::{changes, observed};
use crate::error::{Reason, Result};
use crate::tables::{Change, SeriesKey, choice, choices, instant, key_columns, symbol, symbol_runs};

/// Name of the file.
pub(crate) const LISTINGS: &str = "listings.parquet";

/// A series that an answer listed for the first time, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::archive) struct Listing {
    pub(in crate::archive) key: SeriesKey,
    pub(in crate::archive) request: Name,
    pub(in crate::archive) change: Change,
    pub(in crate::archive) observed_at: DateTime<Utc>,
}

/// The text of a request, shared by many series.
pub(in crate::archive) type Name = Arc<str>;

impl Listing {
    /// The sort key of listings; those of one instant are ordered by change.
    pub(in crate::archive) fn order(&self) -> impl Ord + '_ {
        (&self.key, &self.request, self.observed_at, self.change as i8)
    }
}

/// The columns of the file.
pub(in crate::archive) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("ticker", symbol(), false),
            Field::new("period", choice(), true),
            Field::new("regime", choice(), true),
            Field::new("source", choice(), false),
            Field::new("request", symbol(), false),
            Field::new("change", choice(), false),
            Field::new("observed_at", instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Listings as rows of the file.
pub(in crate::archive) fn batch(listings: &[Listing]) -> std::result::Result<RecordBatch, ArrowError> {
    let seen = listings.iter().map(|listing| listing.observed_at.timestamp_micros());
    let [ticker, period, regime, source] = key_columns(listings.iter().map(|listing| (&listing.key, 1)));
    let changes = listings.iter().map(|listing| listing.change as i8).collect();
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        source,
        symbol_runs(listings.iter().map(|listing| (&*listing.request, 1))),
        choices(changes, Change::ALL.map(Change::as_str)),
        Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// The listings of some folders, by series, request and instant.
pub(in crate::archive) fn read(folders: &[Arc<Folder>]) -> Result<Vec<Listing>> {
    let mut listings = Vec::new();
    for folder in folders.iter().filter(|folder| folder.seal().rows(LISTINGS) > 0) {
        let mut file = ByTicker::open(folder, LISTINGS, &schema())?;
        let rows = file.take_rest()?;
        listings.extend(records(&rows).map_err(|error| file.damaged(error))?);
    }
    listings.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
    Ok(listings)
}

fn records(rows: &RecordBatch) -> std::result::Result<Vec<Listing>, Reason> {
    let requests = rows.column(4).as_dictionary::<Int32Type>();
    let names: Vec<Name> = requests.values().as_string::<i32>().iter().flatten().map(Name::from).collect();
    let (kinds, seen) = (changes(rows), observed(rows));
    let mut listings = Vec::with_capacity(rows.num_rows());
    for (key, range) in keys::ranges(rows)? {
        for row in range {
            let request = Arc::clone(&names[requests.keys().value(row) as usize]);
            let observed_at = DateTime::from_timestamp_micros(seen.value(row)).ok_or("an instant is out of range")?;
            listings.push(Listing { key: key.clone(), request, change: kinds[row], observed_at });
        }
    }
    Ok(listings)
}

/// The latest listing of each series by each request.
#[derive(Debug)]
pub(in crate::archive) struct Listings(Vec<Listing>);

impl Listings {
    /// The listings as of an instant.
    pub(in crate::archive) fn of(folders: &[Arc<Folder>], as_of: DateTime<Utc>) -> Result<Self> {
        let mut listings = read(folders)?;
        listings.retain(|listing| listing.observed_at <= as_of);
        // Keeps the last one of each series and request.
        listings.dedup_by(|next, last| {
            let is_same = (&next.key, &next.request) == (&last.key, &last.request);
            if is_same {
                (last.change, last.observed_at) = (next.change, next.observed_at);
            }
            is_same
        });
        listings.shrink_to_fit();
        Ok(Self(listings))
    }

    /// The series in order, each with its latest listing by each request.
    pub(in crate::archive) fn series(&self) -> impl Iterator<Item = (&SeriesKey, &[Listing])> {
        self.0.chunk_by(|one, next| one.key == next.key).map(|listings| (&listings[0].key, listings))
    }
}
