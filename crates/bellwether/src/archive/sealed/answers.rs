//! Answers: what each request said of each series, changed or not.
//!
//! Only changes are stored as observations. An unchanged answer is told by its row here: which series it was about,
//! which dates it covered, and when. Together with the runs that were known when it was settled (the seal's basis), its
//! values can always be told. Reading the known values does not need this file; merging histories does, and so does
//! what asks how long a series was watched.
//!
//! Beside them are the listings: which request returned which series, and since when.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::folder::{FileRows, Folder};
use super::rows::{self, ParsedDictionary, changes, observation_times};
use super::seal::Counts;
use crate::archive::coverage::{Coverage, Edge};
use crate::archive::sealed::layout::SEALED_AT;
use crate::archive::sealed::seal::Horizon;
use crate::error::{Reason, Result};
use crate::interface::{Endpoint, Ticker};
use crate::tables::{
    Change, SeriesKey, Table, choice, choices, date, instant, key_columns, sources, symbol, symbol_runs,
};

/// Name of the file.
pub(crate) const ANSWERS: &str = "answers.parquet";

/// What a request said of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeriesAnswer {
    pub(crate) key: SeriesKey,
    pub(crate) source: Endpoint,
    pub(in crate::archive) request: Name,
    /// Number of cells.
    pub(in crate::archive) rows: u64,
    pub(crate) covers: Coverage,
    /// The articles of its oldest date, which it may not cover.
    pub(in crate::archive) edge: Edge,
    pub(crate) observed_at: DateTime<Utc>,
    /// When its run was sealed.
    pub(in crate::archive) sealed_at: DateTime<Utc>,
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
            Field::new("rows", DataType::Int64, false),
            // Null if it covers nothing, or a series whose cells have no dates.
            Field::new("covered_from", date(), true),
            // Null if it covers everything after that.
            Field::new("covered_until", date(), true),
            Field::new("edge", DataType::Utf8, true),
            Field::new("observed_at", instant(), false),
            Field::new(SEALED_AT, instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Answers as rows of the file.
pub(in crate::archive) fn batch(answers: &[SeriesAnswer]) -> Result<RecordBatch, ArrowError> {
    let instants = |instant: fn(&SeriesAnswer) -> DateTime<Utc>| -> ArrayRef {
        let micros = answers.iter().map(|answer| instant(answer).timestamp_micros());
        Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
    };
    let dates = |end: fn(Coverage) -> Option<i64>| -> ArrayRef {
        Arc::new(answers.iter().map(|answer| end(answer.covers)).collect::<TimestampMicrosecondArray>())
    };
    let [ticker, period, regime] = key_columns(answers.iter().map(|answer| (&answer.key, 1)));
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        sources(answers.iter().map(|answer| (answer.source, 1))),
        symbol_runs(answers.iter().map(|answer| (&*answer.request, 1))),
        Arc::new(Int64Array::from_iter_values(answers.iter().map(|answer| answer.rows as i64))),
        dates(Coverage::oldest),
        dates(|covers| match covers {
            Coverage::Dates { until, .. } if until != i64::MAX => Some(until),
            _ => None,
        }),
        Arc::new(answers.iter().map(|answer| answer.edge.text()).collect::<StringArray>()),
        instants(|answer| answer.observed_at),
        instants(|answer| answer.sealed_at),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// Reads answers from rows of the file.
pub(in crate::archive) fn records(rows: &RecordBatch) -> Result<Vec<SeriesAnswer>, Reason> {
    let requests = rows.column(4).as_dictionary::<Int32Type>();
    let names: Vec<Name> = requests.values().as_string::<i32>().iter().flatten().map(Name::from).collect();
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let counts = rows.column(5).as_primitive::<Int64Type>();
    let micros = |column: usize| rows.column(column).as_primitive::<TimestampMicrosecondType>();
    let (from, until, seen, sealed) = (micros(6), micros(7), observation_times(rows), micros(10));
    let edges = rows.column(8).as_string::<i32>();
    let instant = |micros: i64| DateTime::from_timestamp_micros(micros).ok_or("an instant is out of range");
    let mut answers = Vec::with_capacity(rows.num_rows());
    for (key, range) in rows::ranges_of_any(rows)? {
        let table = key.table.ok_or("an answer is about no series")?;
        for row in range {
            let covers = match (from.is_valid(row), counts.value(row)) {
                (true, _) => {
                    let until = if until.is_valid(row) { until.value(row) } else { i64::MAX };
                    Coverage::Dates { from: from.value(row), until }
                }
                (false, count) if count > 0 && !table.is_dated() => Coverage::Everything,
                (false, _) => Coverage::Nothing,
            };
            answers.push(SeriesAnswer {
                key: key.clone(),
                source: sources.get(row)?.ok_or("an answer has no operation")?,
                request: Arc::clone(&names[requests.keys().value(row) as usize]),
                rows: counts.value(row).max(0) as u64,
                covers,
                edge: Edge::of_text(if edges.is_valid(row) { edges.value(row) } else { "" }),
                observed_at: instant(seen.value(row))?,
                sealed_at: instant(sealed.value(row))?,
            });
        }
    }
    Ok(answers)
}

impl SeriesAnswer {
    /// The table of its series.
    pub(in crate::archive) fn table(&self) -> Table {
        self.key.table.expect("an answer is about a series with values")
    }
}

/// Name of the file.
pub(crate) const LISTINGS: &str = "listings.parquet";

/// A series that an answer listed for the first time, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::archive) struct Listing {
    pub(in crate::archive) key: SeriesKey,
    /// The operation of the request.
    pub(in crate::archive) source: Endpoint,
    pub(in crate::archive) request: Name,
    pub(in crate::archive) change: Change,
    pub(in crate::archive) observed_at: DateTime<Utc>,
    /// When the run was sealed that it counts from.
    pub(in crate::archive) sealed_at: DateTime<Utc>,
}

/// The text of a request, shared by many series.
pub(in crate::archive) type Name = Arc<str>;

impl Listing {
    /// The sort key of listings; those of one instant are ordered by change.
    pub(in crate::archive) fn order(&self) -> impl Ord + '_ {
        (&self.key, self.source, &self.request, self.observed_at, self.change as i8, self.sealed_at)
    }
}

/// The columns of the file.
pub(in crate::archive) fn listing_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("ticker", symbol(), false),
            Field::new("period", choice(), true),
            Field::new("regime", choice(), true),
            Field::new("source", choice(), false),
            Field::new("request", symbol(), false),
            Field::new("change", choice(), false),
            Field::new("observed_at", instant(), false),
            Field::new(SEALED_AT, instant(), false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Listings as rows of the file.
pub(in crate::archive) fn listing_batch(listings: &[Listing]) -> std::result::Result<RecordBatch, ArrowError> {
    let instants = |instant: fn(&Listing) -> DateTime<Utc>| -> ArrayRef {
        let micros = listings.iter().map(|listing| instant(listing).timestamp_micros());
        Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
    };
    let [ticker, period, regime] = key_columns(listings.iter().map(|listing| (&listing.key, 1)));
    let changes = listings.iter().map(|listing| listing.change as i8).collect();
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        sources(listings.iter().map(|listing| (listing.source, 1))),
        symbol_runs(listings.iter().map(|listing| (&*listing.request, 1))),
        choices(changes, Change::ALL.map(Change::as_str)),
        instants(|listing| listing.observed_at),
        instants(|listing| listing.sealed_at),
    ];
    RecordBatch::try_new(listing_schema(), columns)
}

/// The series that some listings list and delist.
pub(in crate::archive) fn listing_counts(listings: &[Listing]) -> Counts {
    let delisted = listings.iter().filter(|listing| listing.change == Change::Withdrawn).count() as u64;
    Counts { listed: listings.len() as u64 - delisted, delisted, ..Counts::default() }
}

/// The listings of some folders, by series, request and instant.
pub(in crate::archive) fn read_listings(folders: &[Arc<Folder>]) -> Result<Vec<Listing>> {
    let mut listings = Vec::new();
    for folder in folders.iter().filter(|folder| folder.seal().rows(LISTINGS) > 0) {
        let mut file = FileRows::open(folder, LISTINGS, &listing_schema())?;
        let rows = file.take_rest()?;
        listings.extend(listing_records(&rows).map_err(|error| file.damage(error))?);
    }
    listings.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
    Ok(listings)
}

/// Reads listings from rows of the file.
pub(in crate::archive) fn listing_records(rows: &RecordBatch) -> std::result::Result<Vec<Listing>, Reason> {
    let requests = rows.column(4).as_dictionary::<Int32Type>();
    let names: Vec<Name> = requests.values().as_string::<i32>().iter().flatten().map(Name::from).collect();
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let (kinds, seen) = (changes(rows), observation_times(rows));
    let sealed = rows.column(7).as_primitive::<TimestampMicrosecondType>();
    let instant = |micros: i64| DateTime::from_timestamp_micros(micros).ok_or("an instant is out of range");
    let mut listings = Vec::with_capacity(rows.num_rows());
    for (key, range) in rows::ranges_of_any(rows)? {
        for row in range {
            let request = Arc::clone(&names[requests.keys().value(row) as usize]);
            let (observed_at, sealed_at) = (instant(seen.value(row))?, instant(sealed.value(row))?);
            let source = sources.get(row)?.ok_or("a listing has no operation")?;
            listings.push(Listing { key: key.clone(), source, request, change: kinds[row], observed_at, sealed_at });
        }
    }
    Ok(listings)
}

/// The latest listing of each series by each request.
#[derive(Debug)]
pub(in crate::archive) struct Listings(Vec<Listing>);

impl Listings {
    /// The listings of the runs that count.
    pub(in crate::archive) fn of(folders: &[Arc<Folder>], horizon: &Horizon) -> Result<Self> {
        Ok(Self::latest(read_listings(folders)?, |listing| horizon.holds(listing.sealed_at)))
    }

    /// The latest of some listings, which are in order; each with the seal of the first one.
    pub(in crate::archive) fn latest(mut listings: Vec<Listing>, counts: impl Fn(&Listing) -> bool) -> Self {
        listings.retain(counts);
        // Keeps the last one of each series and request.
        listings.dedup_by(|next, last| {
            let is_same = (&next.key, &next.request) == (&last.key, &last.request);
            if is_same {
                (last.change, last.observed_at) = (next.change, next.observed_at);
            }
            is_same
        });
        listings.shrink_to_fit();
        Self(listings)
    }

    /// The series of a ticker in order, each with its latest listing by each request.
    pub(in crate::archive) fn of_ticker(&self, ticker: &Ticker) -> impl Iterator<Item = (&SeriesKey, &[Listing])> {
        let start = self.0.partition_point(|listing| listing.key.ticker < *ticker);
        let end = self.0.partition_point(|listing| listing.key.ticker <= *ticker);
        self.0[start..end].chunk_by(|one, next| one.key == next.key).map(|listings| (&listings[0].key, listings))
    }

    /// The series in order, each with its latest listing by each request.
    pub(in crate::archive) fn series(&self) -> impl Iterator<Item = (&SeriesKey, &[Listing])> {
        self.0.chunk_by(|one, next| one.key == next.key).map(|listings| (&listings[0].key, listings))
    }
}
