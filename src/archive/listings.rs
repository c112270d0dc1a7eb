//! Which request is answered with which series, and since when.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::by_ticker::ByTicker;
use super::cells::{changes, observed};
use super::index::SealedRun;
use super::keys;
use super::remembered::Name;
use crate::error::Result;
use crate::tables::{Change, SeriesKey, choice, choices, instant, key_columns, stretches, symbol};

/// The name of the file.
pub(super) const LISTINGS: &str = "listings.parquet";

/// A series that an answer listed for the first time, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) key: SeriesKey,
    pub(super) request: Name,
    pub(super) change: Change,
    pub(super) observed_at: DateTime<Utc>,
}

/// The columns of the file.
pub(super) fn schema() -> SchemaRef {
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
pub(super) fn batch(listings: &[Listing]) -> std::result::Result<RecordBatch, ArrowError> {
    let seen = listings.iter().map(|listing| listing.observed_at.timestamp_micros());
    let [ticker, period, regime, source] = key_columns(listings.iter().map(|listing| (&listing.key, 1)));
    let changes = listings.iter().map(|listing| listing.change as i8).collect();
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        source,
        stretches(listings.iter().map(|listing| (&*listing.request, 1))),
        choices(changes, Change::ALL.map(Change::as_str)),
        Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// The listings of a run.
pub(super) fn read(run: &SealedRun) -> Result<Vec<Listing>> {
    // Most runs find that everything is listed as it was.
    if run.seal().rows(LISTINGS) == 0 {
        return Ok(Vec::new());
    }
    let mut file = ByTicker::open(run, LISTINGS, &schema())?;
    let rows = file.take_rest()?;
    let requests = rows.column(4).as_dictionary::<Int32Type>();
    let names: Vec<Name> = requests.values().as_string::<i32>().iter().flatten().map(Name::from).collect();
    let (kinds, seen) = (changes(&rows), observed(&rows));
    let mut listings = Vec::with_capacity(rows.num_rows());
    for (key, range) in keys::ranges(&rows).map_err(|error| file.damaged(error))? {
        for row in range {
            let request = Arc::clone(&names[requests.keys().value(row) as usize]);
            let observed_at = DateTime::from_timestamp_micros(seen.value(row));
            let observed_at = observed_at.ok_or_else(|| file.damaged("an instant is out of range"))?;
            listings.push(Listing { key: key.clone(), request, change: kinds[row], observed_at });
        }
    }
    Ok(listings)
}
