//! The listings of layout 9, per service.
//!
//! A listing of layout 9 belongs to a request, whichever service was asked: it says how an answer differed from the one
//! before. Where two services were asked the same, the answers are put together again from all of these differences, and
//! compared with those of their own service.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Schema, SchemaRef};
use chrono::{DateTime, Utc};

use super::legacy::Legacy;
use super::rows::Origins;
use crate::archive::sealed::file_rows::FileRows;
use crate::archive::sealed::horizon::SEALED_AT;
use crate::archive::sealed::listings::{LISTINGS, Listing, Name, records, schema};
use crate::error::{Reason, Result};
use crate::interface::Endpoint;
use crate::tables::{Change, RequestRecord, SeriesKey};

/// The listings of each run, by its index; `services` has the service of each run.
pub(super) fn listings(
    legacy: &Legacy,
    origins: &[Arc<Origins>],
    requests: &[Vec<RequestRecord>],
    services: &[usize],
) -> Result<Vec<Vec<Listing>>> {
    let mut listings: Vec<(usize, Listing)> = Vec::new();
    for (index, origins) in origins.iter().enumerate() {
        let of_folder = |run: &usize| legacy.runs()[*run].folder == index;
        for (run, listing) in read(legacy, index, origins)? {
            if of_folder(&run) {
                listings.push((run, listing));
            }
        }
    }
    for (run, listing) in &mut listings {
        listing.sealed_at = legacy.runs()[*run].seal().sealed_at;
    }
    let shared = answers_by_request(requests, services);
    let mut of_runs: Vec<Vec<Listing>> = vec![Vec::new(); legacy.runs().len()];
    let mut of_shared: HashMap<Name, Vec<Listing>> = HashMap::new();
    for (run, listing) in listings {
        match shared.contains_key(&listing.request) {
            true => of_shared.entry(Arc::clone(&listing.request)).or_default().push(listing),
            false => of_runs[run].push(listing),
        }
    }
    for (request, mut listings) in of_shared {
        listings.sort_by_key(|listing| (listing.observed_at, listing.change as i8));
        apart(&shared[&request], &listings, |run, listing| {
            let sealed_at = legacy.runs()[run].seal().sealed_at;
            of_runs[run].push(Listing { sealed_at, ..listing });
        });
    }
    for listings in &mut of_runs {
        listings.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
        listings.dedup();
    }
    Ok(of_runs)
}

/// An answer to a request: when, the run, and its service.
type Answered = (DateTime<Utc>, usize, usize);

/// The answers to each request that several services were asked, in order.
fn answers_by_request(requests: &[Vec<RequestRecord>], services: &[usize]) -> HashMap<Name, Vec<Answered>> {
    let mut answered: HashMap<Name, Vec<Answered>> = HashMap::new();
    for (run, requests) in requests.iter().enumerate() {
        for request in requests {
            answered.entry(request.request.as_str().into()).or_default().push((
                request.observed_at,
                run,
                services[run],
            ));
        }
    }
    answered.retain(|_, answers| answers.iter().any(|(.., service)| *service != answers[0].2));
    answered.values_mut().for_each(|answers| answers.sort_unstable());
    answered
}

/// Tells what each answer listed, from the differences between the answers of all services, as differences from the
/// answers of its own service.
fn apart(answers: &[Answered], listings: &[Listing], mut tell: impl FnMut(usize, Listing)) {
    let mut listed: BTreeMap<SeriesKey, Endpoint> = BTreeMap::new();
    let mut of_services: HashMap<usize, BTreeMap<SeriesKey, Endpoint>> = HashMap::new();
    let mut next = listings.iter().peekable();
    for &(observed_at, run, service) in answers {
        while let Some(listing) = next.next_if(|listing| listing.observed_at <= observed_at) {
            match listing.change {
                Change::Withdrawn => listed.remove(&listing.key),
                Change::Added | Change::Revised => listed.insert(listing.key.clone(), listing.source),
            };
        }
        let before = of_services.entry(service).or_default();
        let keys: BTreeSet<&SeriesKey> = before.keys().chain(listed.keys()).collect();
        for key in keys {
            let (change, source) = match (before.get(key), listed.get(key)) {
                (None, Some(source)) => (Change::Added, *source),
                (Some(source), None) => (Change::Withdrawn, *source),
                _ => continue,
            };
            let request = Arc::clone(&listings[0].request);
            tell(run, Listing { key: key.clone(), source, request, change, observed_at, sealed_at: observed_at });
        }
        before.clone_from(&listed);
    }
}

/// The listings in a folder, each with the index of its run.
fn read(legacy: &Legacy, index: usize, origins: &Origins) -> Result<Vec<(usize, Listing)>> {
    let folder = &legacy.folders[index];
    if folder.seal().rows(LISTINGS) == 0 {
        return Ok(Vec::new());
    }
    let mut file = FileRows::open(folder, LISTINGS, &legacy_schema())?;
    let rows = file.take_rest()?;
    let with_runs = || -> Result<Vec<(usize, Listing)>, Reason> {
        let run = |listing: Listing| {
            Ok((
                origins.get(listing.observed_at.timestamp_micros(), listing.source, listing.key.ticker.as_str())?,
                listing,
            ))
        };
        records(&with_instant(&rows)?)?.into_iter().map(run).collect()
    };
    with_runs().map_err(|error| file.damage(error))
}

/// The columns of layout 9, which had no `sealed_at`.
fn legacy_schema() -> SchemaRef {
    let fields: Vec<Field> = schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    Arc::new(Schema::new(fields.into_iter().filter(|field| field.name() != SEALED_AT).collect::<Vec<_>>()))
}

/// Rows with the column that layout 9 did not have, to be filled in.
fn with_instant(rows: &RecordBatch) -> Result<RecordBatch, Reason> {
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    let instants = TimestampMicrosecondArray::from_iter_values(std::iter::repeat_n(0, rows.num_rows()));
    columns.push(Arc::new(instants.with_timezone("UTC")));
    Ok(RecordBatch::try_new(schema(), columns)?)
}
