//! What the service answered to some requests, and which records of the answers were rejected.
//!
//! Every run asks again, so the same bad record is in every answer. This counts the rejected records and unknown fields
//! of the *latest* answer to each request; those that the previous answer did not have are *new*. A record is
//! identified by its request, ticker and text, since its position shifts whenever another record is added. In a shared
//! archive a run counts if it answered one of the requests, whatever its definition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::observed::column;
use crate::archive::{AnsweredRequest, Counts, SealedRun, View};
use crate::error::Result;
use crate::interface::Endpoint;
use crate::tables::{Drift, RequestRecord};

/// The most reasons listed separately: they quote the vendor's records, so their number is not bounded.
const MOST_REASONS: usize = 256;

/// The reason under which all further ones are counted.
const OTHER_REASONS: &str = "other reasons";

/// The answers to some requests.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Runs that answered any of them, newest first.
    pub runs: Vec<AnsweredRun>,
    /// The requests of the newest of these runs.
    pub newest: Vec<RequestRecord>,
    /// Rejected records of the latest answers.
    pub rejects: Rejects,
    /// Unknown fields of the latest answers.
    pub unknown: UnknownFields,
    /// Where lists of articles seem to be cut off.
    pub cut_off: Option<CutOff>,
}

/// A length at which lists of articles seem to be cut off: that of the longest, which many tickers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutOff {
    /// Number of articles.
    pub articles: u64,
    /// Tickers with a list of that length.
    pub tickers: u64,
    /// Tickers with articles.
    pub all: u64,
}

/// A run and its answers to the requests.
#[derive(Clone, Debug)]
pub struct AnsweredRun {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub definition: String,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// Time from its start to its last answer.
    pub fetched_in: Duration,
    /// Number of answered requests.
    pub requests: u64,
    /// Number of rejected records.
    pub rejects: u64,
    /// Changes of the whole run.
    pub changes: Counts,
}

/// Rejected records.
#[derive(Clone, Debug, Default)]
pub struct Rejects {
    /// Number of records.
    pub records: u64,
    /// How many are new; `None` without a previous answer.
    pub new: Option<u64>,
    /// How many are counted but not listed.
    pub unlisted: u64,
    /// Reasons, most frequent first.
    pub reasons: Vec<RejectReason>,
}

/// Records rejected for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RejectReason {
    /// The operation that returned them.
    pub operation: &'static str,
    /// The reason.
    pub reason: String,
    /// Number of records.
    pub records: u64,
    /// Those that the previous answers did not have; none without previous answers.
    pub new: Option<u64>,
    /// The first of them: its request, and its position in the answer.
    #[serde(skip)]
    pub example: (String, String),
}

/// Unknown fields.
#[derive(Clone, Debug, Default)]
pub struct UnknownFields {
    /// The fields, most frequent first.
    pub fields: Vec<Drift>,
    /// How many are new; `None` without a previous answer.
    pub new: Option<u64>,
}

/// Summarizes the answers to some requests, as of the instant of a view.
pub(crate) fn answers(view: &View, is_asked: impl Fn(&str) -> bool) -> Result<Answers> {
    let runs: Vec<&SealedRun> = view.runs().collect();
    let index_of: HashMap<&str, usize> = runs.iter().enumerate().map(|(index, run)| (run.name(), index)).collect();
    let mut found = Answers::default();
    let (mut of_runs, mut asked, mut are_asked) = (RequestNumbers::default(), RequestNumbers::default(), Vec::new());
    let mut latest: Vec<LatestAnswers> = Vec::new();
    let is_wanted = |request: &str| {
        let number = of_runs.of(request);
        if number == are_asked.len() {
            are_asked.push(is_asked(request));
        }
        are_asked[number]
    };
    view.each_answered(is_wanted, |run, record| {
        if found.runs.last().is_none_or(|last| last.name != run.name()) {
            found.runs.push(AnsweredRun::of(run));
        }
        found.runs.last_mut().expect("it was just added").add(run, &record);
        let number = asked.of(record.request);
        if number == latest.len() {
            latest.push(LatestAnswers::default());
        }
        latest[number].add(RequestAnswer::of(index_of[run.name()], record));
    })?;
    let mut requests: HashMap<String, LatestAnswers> = asked.names.into_iter().zip(latest).collect();
    if let Some(newest) = found.runs.last() {
        found.newest = runs[index_of[newest.name.as_str()]].requests()?;
        found.newest.retain(|record| is_asked(&record.request));
    }
    found.runs.reverse();
    found.unknown = UnknownFields::of(&requests);
    found.cut_off = CutOff::of(&requests);
    found.rejects = RejectTally::of(&runs, &mut requests)?.finish(&requests);
    Ok(found)
}

/// Numbers requests. Many runs make the same ones in the same order, so most are found without a search.
#[derive(Default)]
struct RequestNumbers {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The number that the next request probably has.
    next: usize,
}

impl RequestNumbers {
    /// The number of a request; a new one has the next that is free.
    fn of(&mut self, request: &str) -> usize {
        let number = match self.names.get(self.next) {
            Some(name) if name == request => self.next,
            _ => self.numbers.get(request).copied().unwrap_or_else(|| {
                self.names.push(request.to_owned());
                self.numbers.insert(request.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }),
        };
        self.next = number + 1;
        number
    }
}

/// The latest answer to a request, and the one before it.
#[derive(Default)]
struct LatestAnswers {
    last: Option<RequestAnswer>,
    before: Option<RequestAnswer>,
}

/// What was rejected in an answer.
struct RequestAnswer {
    /// Index of its run.
    run: usize,
    endpoint: Endpoint,
    observed_at: DateTime<Utc>,
    rows: u64,
    rejects: u64,
    /// Number of its rejected records that are listed.
    listed: u64,
    unknown_fields: Vec<Drift>,
}

impl RequestAnswer {
    fn of(run: usize, record: AnsweredRequest<'_>) -> Self {
        let AnsweredRequest { endpoint, request: _, rows, rejects, unknown_fields, observed_at } = record;
        Self { run, endpoint, observed_at, rows, rejects, listed: 0, unknown_fields }
    }

    fn unlisted_count(&self) -> u64 {
        self.rejects.saturating_sub(self.listed)
    }
}

impl LatestAnswers {
    /// Adds an answer. Answers of concurrent runs may come in any order.
    fn add(&mut self, answer: RequestAnswer) {
        let is_after =
            |known: &Option<RequestAnswer>| known.as_ref().is_none_or(|known| known.observed_at <= answer.observed_at);
        if is_after(&self.last) {
            self.before = self.last.replace(answer);
        } else if is_after(&self.before) {
            self.before = Some(answer);
        }
    }

    fn both(&self) -> impl Iterator<Item = &RequestAnswer> {
        self.last.iter().chain(&self.before)
    }

    /// The answer that a run saw at an instant, if it is one of the two.
    fn answer_at(&mut self, run: usize, observed_at: i64) -> Option<(&mut RequestAnswer, WhichAnswer)> {
        let is_it =
            |answer: &&mut RequestAnswer| answer.run == run && answer.observed_at.timestamp_micros() == observed_at;
        let last = self.last.as_mut().filter(is_it).map(|answer| (answer, WhichAnswer::Latest));
        last.or_else(|| self.before.as_mut().filter(is_it).map(|answer| (answer, WhichAnswer::Previous)))
    }
}

/// The latest answer to a request, or the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhichAnswer {
    Latest,
    Previous,
}

impl CutOff {
    /// With fewer tickers, or less than a tenth of them, lists may have the same length by chance.
    const FEWEST: usize = 3;

    fn of(requests: &HashMap<String, LatestAnswers>) -> Option<Self> {
        let last = requests.values().filter_map(|answers| answers.last.as_ref());
        let of_news = last.filter(|answer| answer.endpoint == Endpoint::NewsArticles && answer.rows > 0);
        let lengths: Vec<u64> = of_news.map(|answer| answer.rows + answer.rejects).collect();
        let (articles, all) = (*lengths.iter().max()?, lengths.len());
        let tickers = lengths.iter().filter(|length| **length == articles).count();
        let is_by_chance = articles < 2 || tickers < Self::FEWEST || tickers * 10 < all;
        (!is_by_chance).then_some(Self { articles, tickers: tickers as u64, all: all as u64 })
    }
}

impl AnsweredRun {
    fn of(run: &SealedRun) -> Self {
        let seal = run.seal();
        Self {
            name: seal.run.clone(),
            definition: seal.definition.as_ref().map(|definition| definition.name.clone()).unwrap_or_default(),
            started_at: seal.started_at,
            fetched_in: Duration::ZERO,
            requests: 0,
            rejects: 0,
            changes: seal.changes,
        }
    }

    fn add(&mut self, run: &SealedRun, record: &AnsweredRequest<'_>) {
        let since = (record.observed_at - run.seal().started_at).to_std().unwrap_or_default();
        self.fetched_in = self.fetched_in.max(since);
        self.requests += 1;
        self.rejects += record.rejects;
    }
}

impl UnknownFields {
    fn of(requests: &HashMap<String, LatestAnswers>) -> Self {
        let (mut fields, mut before) = (Vec::new(), BTreeSet::new());
        let mut is_first = true;
        // Sorted by request, so that the examples are deterministic.
        for answers in requests.iter().collect::<BTreeMap<_, _>>().into_values() {
            answers
                .last
                .iter()
                .flat_map(|answer| &answer.unknown_fields)
                .cloned()
                .for_each(|field| field.add_to(&mut fields));
            if let Some(answer) = &answers.before {
                is_first = false;
                before.extend(answer.unknown_fields.iter().map(|field| (field.endpoint, field.field.as_str())));
            }
        }
        let is_new = |field: &&Drift| !before.contains(&(field.endpoint, field.field.as_str()));
        let new = (!is_first).then(|| fields.iter().filter(is_new).count() as u64);
        fields.sort_by_key(|field| std::cmp::Reverse(field.count));
        Self { fields, new }
    }
}

/// Counts the rejected records listed in the two answers to each request.
#[derive(Default)]
struct RejectTally {
    reasons: Vec<RejectReason>,
    index_of: HashMap<(&'static str, String), usize>,
    /// Those of the latest answers: identity, and index of the reason.
    now: Vec<(u64, usize)>,
    /// How often each occurred in the previous answers.
    before: HashMap<u64, u64>,
}

impl RejectTally {
    fn of(runs: &[&SealedRun], requests: &mut HashMap<String, LatestAnswers>) -> Result<Self> {
        let mut rejecting = Self::default();
        let read: BTreeSet<usize> = requests.values().flat_map(LatestAnswers::both).map(|answer| answer.run).collect();
        for run in read.into_iter().filter(|&run| runs[run].has_rejects()) {
            for rows in runs[run].rejects()? {
                rejecting.count(run, &rows?, requests);
            }
        }
        Ok(rejecting)
    }

    fn count(&mut self, run: usize, rows: &RecordBatch, requests: &mut HashMap<String, LatestAnswers>) {
        let text = |name: &str| column(rows, name).as_string::<i32>();
        let [request, ticker, reason, raw, pointer] = ["request", "ticker", "reason", "raw", "pointer"].map(text);
        let seen = column(rows, "observed_at").as_primitive::<TimestampMicrosecondType>();
        for row in 0..rows.num_rows() {
            let request = request.value(row);
            let Some((answer, when)) = requests.get_mut(request).and_then(|it| it.answer_at(run, seen.value(row)))
            else {
                continue;
            };
            answer.listed += 1;
            let mut hasher = DefaultHasher::new();
            (request, ticker.is_valid(row).then(|| ticker.value(row)), raw.value(row)).hash(&mut hasher);
            let record = hasher.finish();
            if when == WhichAnswer::Previous {
                *self.before.entry(record).or_default() += 1;
                continue;
            }
            let reason = self.reason(answer.endpoint.as_str(), reason.value(row), || {
                (request.to_owned(), pointer.value(row).to_owned())
            });
            self.now.push((record, reason));
        }
    }

    /// Counts a record under its reason, or under "other reasons" if there are too many; returns the index of the
    /// reason.
    fn reason(&mut self, operation: &'static str, reason: &str, example: impl FnOnce() -> (String, String)) -> usize {
        let mut name = (operation, reason.to_owned());
        if self.reasons.len() >= MOST_REASONS && !self.index_of.contains_key(&name) {
            OTHER_REASONS.clone_into(&mut name.1);
        }
        let index = *self.index_of.entry(name).or_insert_with_key(|(operation, reason)| {
            let (reason, example) = (reason.clone(), example());
            self.reasons.push(RejectReason { operation, reason, records: 0, new: Some(0), example });
            self.reasons.len() - 1
        });
        self.reasons[index].records += 1;
        index
    }

    fn finish(mut self, requests: &HashMap<String, LatestAnswers>) -> Rejects {
        let mut new = 0;
        for (record, reason) in self.now {
            match self.before.get_mut(&record).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => {
                    new += 1;
                    *self.reasons[reason].new.get_or_insert_default() += 1;
                }
            }
        }
        let (mut records, mut unlisted, mut is_first) = (0, 0, true);
        for LatestAnswers { last, before } in requests.values() {
            let Some(last) = last else { continue };
            let unlisted_before = before.as_ref().map_or(0, RequestAnswer::unlisted_count);
            is_first &= before.is_none();
            records += last.listed + last.unlisted_count();
            unlisted += last.unlisted_count();
            new += last.unlisted_count().saturating_sub(unlisted_before);
        }
        if is_first {
            self.reasons.iter_mut().for_each(|reason| reason.new = None);
        }
        self.reasons.sort_by(|one, other| {
            let name = |reason: &RejectReason| (reason.operation, reason.reason.clone());
            other.records.cmp(&one.records).then_with(|| name(one).cmp(&name(other)))
        });
        Rejects { records, new: (!is_first).then_some(new), unlisted, reasons: self.reasons }
    }
}
