//! What a run did: the requests that were answered, and what was set aside of their answers.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use chrono::DateTime;

use super::index::SealedRun;
use super::{REJECTS, REQUESTS};
use crate::error::{Error, Reason, Result};
use crate::tables::RequestRecord;

impl SealedRun {
    /// How many requests were answered.
    pub fn request_count(&self) -> u64 {
        self.seal().rows(REQUESTS)
    }

    /// How many records were set aside.
    pub fn reject_count(&self) -> u64 {
        self.seal().rows(REJECTS)
    }

    /// The requests that were answered.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn requests(&self) -> Result<Vec<RequestRecord>> {
        let mut requests = Vec::new();
        for rows in self.rows(REQUESTS)? {
            let failed = |source| Error::Damaged { path: self.path().join(REQUESTS), source };
            requests.extend(requests_of(&rows?).map_err(failed)?);
        }
        Ok(requests)
    }

    /// What was set aside, batch by batch, in the columns of [`Reject::schema`](crate::tables::Reject::schema).
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn rejects(&self) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        self.rows(REJECTS)
    }
}

fn requests_of(rows: &RecordBatch) -> Result<Vec<RequestRecord>, Reason> {
    let column = |name: &str| rows.column_by_name(name).ok_or_else(|| Reason::from(format!("no column `{name}`")));
    let texts = |name: &str| Ok::<_, Reason>(column(name)?.as_string::<i32>());
    let numbers = |column: &ArrayRef| column.as_primitive::<Int32Type>().values().clone();
    let counts = |name: &str| Ok::<_, Reason>(column(name)?.as_primitive::<Int64Type>().values());
    let (endpoints, requests, digests) = (texts("endpoint")?, texts("request")?, texts("digest")?);
    let (statuses, attempts) = (numbers(column("status")?), numbers(column("attempts")?));
    let (bytes, typed, rejects) = (counts("bytes")?, counts("rows")?, counts("rejects")?);
    let unknown = texts("unknown_fields")?;
    let unknown_fields = |row: usize| match unknown.is_valid(row) {
        true => serde_json::from_str(unknown.value(row)),
        false => Ok(Vec::new()),
    };
    let seen = column("observed_at")?.as_primitive::<TimestampMicrosecondType>().values();
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
            unknown_fields: unknown_fields(row)?,
            observed_at: DateTime::from_timestamp_micros(seen[row]).unwrap_or_default(),
        })
    };
    (0..rows.num_rows()).map(of_row).collect()
}
