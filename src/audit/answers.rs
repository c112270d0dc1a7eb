//! What did the service answer to some requests, and what of it could not be used?
//!
//! Runs ask the same again and again, so the same bad record is in every answer. What is counted are the rejected records
//! and the unknown fields of the *latest* answer to each request; those that the answer before it did not have are *new*.
//! A record is told from others by its request, its ticker and its text: its place changes whenever another one is added.
//! An archive may be shared: a run counts where it answered one of the requests, whichever definition it was of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Utc};

use super::observed::column;
use crate::archive::{Counts, SealedRun, View};
use crate::error::Result;
use crate::interface::Endpoint;
use crate::tables::{Drift, RequestRecord};

/// How many reasons are told apart: they quote the vendor's records, and may be without end.
const MOST_REASONS: usize = 256;

/// What the others are counted under.
const OTHER_REASONS: &str = "other reasons";

/// The answers to some requests.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The runs that answered any of them, the newest first.
    pub runs: Vec<RunRecord>,
    /// What the newest of these runs was answered.
    pub newest: Vec<RequestRecord>,
    /// The records of the latest answers that were rejected.
    pub rejects: Rejects,
    /// The fields of the latest answers that the interface does not know.
    pub unknown: UnknownFields,
}

/// A run, as far as it answered the requests.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Its name.
    pub name: String,
    /// The definition that it ran.
    pub definition: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// How long after that its last answer was complete.
    pub fetched_in: Duration,
    /// The requests that were answered.
    pub requests: u64,
    /// The records that were rejected.
    pub rejects: u64,
    /// What the whole run changed.
    pub changes: Counts,
}

/// Rejected records.
#[derive(Clone, Debug, Default)]
pub struct Rejects {
    /// How many there are.
    pub records: u64,
    /// How many of them are new; none where nothing was answered before.
    pub new: Option<u64>,
    /// How many of them are counted, and not listed: an answer may have very many.
    pub unlisted: u64,
    /// Why, the most frequent reason first.
    pub reasons: Vec<Reason>,
}

/// Why records were rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The operation that gave them.
    pub operation: &'static str,
    /// The reason.
    pub reason: String,
    /// How many records.
    pub records: u64,
    /// How many of them are new.
    pub new: u64,
    /// Where the first of them stood: the request, and the place in its answer.
    pub example: (String, String),
}

/// Fields that the interface does not know.
#[derive(Clone, Debug, Default)]
pub struct UnknownFields {
    /// The fields, those seen most often first.
    pub fields: Vec<Drift>,
    /// How many of them are new; none where nothing was answered before.
    pub new: Option<u64>,
}

/// Looks through the answers to some requests, as they were known by the instant of a view.
///
/// # Errors
///
/// When the archive cannot be read.
pub fn answers(view: &View, is_asked: impl Fn(&str) -> bool) -> Result<Answers> {
    let as_of = view.as_of();
    let runs: Vec<&SealedRun> = view.archive().runs().iter().filter(|run| run.seal().started_at <= as_of).collect();
    let mut found = Answers::default();
    let mut requests: HashMap<String, Asked> = HashMap::new();
    for (run, sealed) in runs.iter().enumerate() {
        let mut answered = sealed.requests()?;
        answered.retain(|record| record.observed_at <= as_of && is_asked(&record.request));
        if answered.is_empty() {
            continue;
        }
        found.runs.push(RunRecord::of(sealed, &answered));
        for record in &answered {
            requests.entry(record.request.clone()).or_default().add(Given::of(run, record));
        }
        found.newest = answered;
    }
    found.runs.reverse();
    found.unknown = UnknownFields::of(&requests);
    found.rejects = Rejecting::of(&runs, &mut requests)?.finish(&requests);
    Ok(found)
}

/// What was answered to a request: last, and before that.
#[derive(Default)]
struct Asked {
    last: Option<Given>,
    before: Option<Given>,
}

/// An answer, as far as it could not be used.
struct Given {
    /// The place of its run among all runs.
    run: usize,
    endpoint: Endpoint,
    observed_at: DateTime<Utc>,
    rejects: u64,
    /// Its rejects that are listed.
    listed: u64,
    unknown_fields: Vec<Drift>,
}

impl Given {
    fn of(run: usize, record: &RequestRecord) -> Self {
        Self {
            run,
            endpoint: record.endpoint,
            observed_at: record.observed_at,
            rejects: record.rejects,
            listed: 0,
            unknown_fields: record.unknown_fields.clone(),
        }
    }

    fn unlisted(&self) -> u64 {
        self.rejects.saturating_sub(self.listed)
    }
}

impl Asked {
    /// Adds an answer. Runs that were made at once may give theirs in any order.
    fn add(&mut self, given: Given) {
        let is_after =
            |known: &Option<Given>| known.as_ref().is_none_or(|known| known.observed_at <= given.observed_at);
        if is_after(&self.last) {
            self.before = self.last.replace(given);
        } else if is_after(&self.before) {
            self.before = Some(given);
        }
    }

    fn both(&self) -> impl Iterator<Item = &Given> {
        self.last.iter().chain(&self.before)
    }

    /// Which of the two answers was seen at an instant in a run.
    fn seen(&mut self, run: usize, observed_at: i64) -> Option<(&mut Given, When)> {
        let is_it = |given: &&mut Given| given.run == run && given.observed_at.timestamp_micros() == observed_at;
        let last = self.last.as_mut().filter(is_it).map(|given| (given, When::Last));
        last.or_else(|| self.before.as_mut().filter(is_it).map(|given| (given, When::Before)))
    }
}

/// Which of two answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Last,
    Before,
}

impl RunRecord {
    fn of(run: &SealedRun, answered: &[RequestRecord]) -> Self {
        let seal = run.seal();
        let last = answered.iter().map(|record| record.observed_at).max().unwrap_or(seal.started_at);
        let fetched_in = (last - seal.started_at).to_std().unwrap_or_default();
        Self {
            name: seal.run.clone(),
            definition: seal.definition.as_ref().map(|definition| definition.name.clone()).unwrap_or_default(),
            started_at: seal.started_at,
            fetched_in,
            requests: answered.len() as u64,
            rejects: answered.iter().map(|record| record.rejects).sum(),
            changes: seal.changes,
        }
    }
}

impl UnknownFields {
    fn of(requests: &HashMap<String, Asked>) -> Self {
        let (mut fields, mut before) = (Vec::new(), BTreeSet::new());
        let mut is_first = true;
        // In the order of the requests, so that the examples are always the same.
        for asked in requests.iter().collect::<BTreeMap<_, _>>().into_values() {
            asked
                .last
                .iter()
                .flat_map(|given| &given.unknown_fields)
                .cloned()
                .for_each(|field| field.add_to(&mut fields));
            if let Some(given) = &asked.before {
                is_first = false;
                before.extend(given.unknown_fields.iter().map(|field| (field.endpoint, field.field.as_str())));
            }
        }
        let is_new = |field: &&Drift| !before.contains(&(field.endpoint, field.field.as_str()));
        let new = (!is_first).then(|| fields.iter().filter(is_new).count() as u64);
        fields.sort_by_key(|field| std::cmp::Reverse(field.count));
        Self { fields, new }
    }
}

/// The listed rejects of two answers to each request, while they are counted.
#[derive(Default)]
struct Rejecting {
    reasons: Vec<Reason>,
    places: HashMap<(&'static str, String), usize>,
    /// Those of the latest answers: what tells each from others, and the place of its reason.
    now: Vec<(u64, usize)>,
    /// How often a reject was in the answers before.
    before: HashMap<u64, u64>,
}

impl Rejecting {
    fn of(runs: &[&SealedRun], requests: &mut HashMap<String, Asked>) -> Result<Self> {
        let mut rejecting = Self::default();
        let read: BTreeSet<usize> = requests.values().flat_map(Asked::both).map(|given| given.run).collect();
        for run in read.into_iter().filter(|&run| runs[run].reject_count() > 0) {
            for rows in runs[run].rejects()? {
                rejecting.count(run, &rows?, requests);
            }
        }
        Ok(rejecting)
    }

    fn count(&mut self, run: usize, rows: &RecordBatch, requests: &mut HashMap<String, Asked>) {
        let text = |name: &str| column(rows, name).as_string::<i32>();
        let [request, ticker, reason, raw, pointer] = ["request", "ticker", "reason", "raw", "pointer"].map(text);
        let seen = column(rows, "observed_at").as_primitive::<TimestampMicrosecondType>();
        for row in 0..rows.num_rows() {
            let request = request.value(row);
            let Some((given, when)) = requests.get_mut(request).and_then(|it| it.seen(run, seen.value(row))) else {
                continue;
            };
            given.listed += 1;
            let mut hasher = DefaultHasher::new();
            (request, ticker.is_valid(row).then(|| ticker.value(row)), raw.value(row)).hash(&mut hasher);
            let record = hasher.finish();
            if when == When::Before {
                *self.before.entry(record).or_default() += 1;
                continue;
            }
            let reason = self.reason(given.endpoint.as_str(), reason.value(row), || {
                (request.to_owned(), pointer.value(row).to_owned())
            });
            self.now.push((record, reason));
        }
    }

    /// Counts a record under its reason, or with all others where there are too many; the place of what it counts under.
    fn reason(&mut self, operation: &'static str, reason: &str, example: impl FnOnce() -> (String, String)) -> usize {
        let mut name = (operation, reason.to_owned());
        if self.reasons.len() >= MOST_REASONS && !self.places.contains_key(&name) {
            OTHER_REASONS.clone_into(&mut name.1);
        }
        let place = *self.places.entry(name).or_insert_with_key(|(operation, reason)| {
            let (reason, example) = (reason.clone(), example());
            self.reasons.push(Reason { operation, reason, records: 0, new: 0, example });
            self.reasons.len() - 1
        });
        self.reasons[place].records += 1;
        place
    }

    fn finish(mut self, requests: &HashMap<String, Asked>) -> Rejects {
        let mut new = 0;
        for (record, reason) in self.now {
            match self.before.get_mut(&record).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => {
                    new += 1;
                    self.reasons[reason].new += 1;
                }
            }
        }
        let (mut records, mut unlisted, mut is_first) = (0, 0, true);
        for Asked { last, before } in requests.values() {
            let Some(last) = last else { continue };
            let unlisted_before = before.as_ref().map_or(0, Given::unlisted);
            is_first &= before.is_none();
            records += last.listed + last.unlisted();
            unlisted += last.unlisted();
            new += last.unlisted().saturating_sub(unlisted_before);
        }
        self.reasons.sort_by(|one, other| {
            let name = |reason: &Reason| (reason.operation, reason.reason.clone());
            other.records.cmp(&one.records).then_with(|| name(one).cmp(&name(other)))
        });
        Rejects { records, new: (!is_first).then_some(new), unlisted, reasons: self.reasons }
    }
}
