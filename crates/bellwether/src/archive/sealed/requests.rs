//! The requests of a run as records.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, Utc};

use crate::error::Reason;
use crate::interface::Endpoint;
use crate::tables::{Drift, RequestRecord};

/// The file of rejected records.
pub(in crate::archive) const REJECTS: &str = "rejects.parquet";

/// The file of answered requests.
pub(in crate::archive) const REQUESTS: &str = "requests.parquet";

/// Reads request records from rows with the columns of the schema.
pub(in crate::archive) fn records(rows: &RecordBatch) -> Result<Vec<RequestRecord>, Reason> {
    let column = |name: &str| rows.column_by_name(name).expect("the rows were read in the columns of the schema");
    let texts = |name: &str| column(name).as_string::<i32>();
    let numbers = |column: &ArrayRef| column.as_primitive::<Int32Type>().values().clone();
    let counts = |name: &str| column(name).as_primitive::<Int64Type>().values();
    let (endpoints, requests, digests) = (texts("endpoint"), texts("request"), texts("digest"));
    let (statuses, attempts) = (numbers(column("status")), numbers(column("attempts")));
    let (bytes, typed, rejects) = (counts("bytes"), counts("rows"), counts("rejects"));
    let unknown = texts("unknown_fields");
    let unknown_fields = |row: usize| match unknown.is_valid(row) {
        true => serde_json::from_str(unknown.value(row)),
        false => Ok(Vec::new()),
    };
    let validators = texts("validator");
    let validator = |row: usize| match validators.is_valid(row) {
        true => serde_json::from_str(validators.value(row)).map(Some),
        false => Ok(None),
    };
    let seen = column("observed_at").as_primitive::<TimestampMicrosecondType>().values();
    let of_row = |row: usize| {
        Ok(RequestRecord {
            endpoint: endpoints.value(row).parse()?,
            request: requests.value(row).to_owned(),
            status: statuses[row] as u16,
            attempts: attempts[row] as u32,
            bytes: bytes[row] as u64,
            digest: digests.value(row).to_owned(),
            rows: typed[row] as u64,
            rejects: rejects[row] as u64,
            validator: validator(row)?,
            unknown_fields: unknown_fields(row)?,
            observed_at: DateTime::from_timestamp_micros(seen[row]).ok_or("an instant is out of range")?,
        })
    };
    (0..rows.num_rows()).map(of_row).collect()
}

/// What a report asks of an answered request.
pub(crate) struct AnsweredRequest<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) request: &'a str,
    /// Number of typed records.
    pub(crate) rows: u64,
    /// Number of rejected records.
    pub(crate) rejects: u64,
    pub(crate) unknown_fields: Vec<Drift>,
    pub(crate) observed_at: DateTime<Utc>,
}

impl AnsweredRequest<'_> {
    /// The columns that it is read from.
    pub(in crate::archive) const COLUMNS: [&'static str; 6] =
        ["endpoint", "request", "rows", "rejects", "unknown_fields", "observed_at"];
}

/// Reads the requests that are wanted from rows with the columns of [`AnsweredRequest::COLUMNS`].
pub(in crate::archive) fn answered_requests<'a>(
    rows: &'a RecordBatch,
    mut is_wanted: impl FnMut(&str) -> bool,
) -> Result<Vec<AnsweredRequest<'a>>, Reason> {
    let column = |name: &str| rows.column_by_name(name).expect("the rows were read with the column");
    let texts = |name: &str| column(name).as_string::<i32>();
    let counts = |name: &str| column(name).as_primitive::<Int64Type>().values();
    let (endpoints, requests, unknown) = (texts("endpoint"), texts("request"), texts("unknown_fields"));
    let (typed, rejects) = (counts("rows"), counts("rejects"));
    let seen = column("observed_at").as_primitive::<TimestampMicrosecondType>().values();
    let of_row = |row: usize| {
        Ok(AnsweredRequest {
            endpoint: endpoints.value(row).parse()?,
            request: requests.value(row),
            rows: typed[row] as u64,
            rejects: rejects[row] as u64,
            unknown_fields: match unknown.is_valid(row) {
                true => serde_json::from_str(unknown.value(row))?,
                false => Vec::new(),
            },
            observed_at: DateTime::from_timestamp_micros(seen[row]).ok_or("an instant is out of range")?,
        })
    };
    (0..rows.num_rows()).filter(|&row| is_wanted(requests.value(row))).map(of_row).collect()
}
