//! What the service answered to some requests, and which records of the answers were rejected.
//!
//! Every run asks again, so the same bad record is in every answer. This counts the rejected records and unknown fields
//! of the *latest* answer to each request; those that the previous answer did not have are *new*. A record is
//! identified by its request, ticker and text, since its position shifts whenever another record is added. In a shared
//! archive a run counts if it answered one of the requests, whatever its definition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use arrow::array::Array;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::subject::instant_of;
use crate::archive::{AnsweredRequest, Counts, SealedRun, View};
use crate::error::Result;
use crate::interface::Endpoint;
use crate::tables::{Drift, RequestRecord, TypedRows};

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
    let mut requests = Requests::new();
    view.each_answered(&is_asked, |run, record| {
        let seal = run.seal();
        if found.runs.last().is_none_or(|last| last.name != run.name()) {
            found.runs.push(AnsweredRun {
                name: seal.run.clone(),
                definition: seal.definition.as_ref().map(|definition| definition.name.clone()).unwrap_or_default(),
                started_at: seal.started_at,
                fetched_in: Duration::ZERO,
                requests: 0,
                rejects: 0,
                changes: seal.changes,
            });
        }
        let answered = found.runs.last_mut().expect("it was just added");
        let since = (record.observed_at - seal.started_at).to_std().unwrap_or_default();
        answered.fetched_in = answered.fetched_in.max(since);
        answered.requests += 1;
        answered.rejects += record.rejects;
        let AnsweredRequest { endpoint, request, rows, rejects, unknown_fields, observed_at } = record;
        let run = index_of[run.name()];
        let answer = RequestAnswer { run, endpoint, observed_at, rows, rejects, listed: 0, unknown_fields };
        let answers = match requests.get_mut(request) {
            Some(answers) => answers,
            None => requests.entry(request.to_owned()).or_default(),
        };
        // Answers of concurrent runs may come in any order.
        answers.insert(answers.partition_point(|known| known.observed_at > answer.observed_at), answer);
        answers.truncate(2);
    })?;
    if let Some(newest) = found.runs.last() {
        found.newest = runs[index_of[newest.name.as_str()]].requests()?;
        found.newest.retain(|record| is_asked(&record.request));
    }
    found.runs.reverse();
    found.unknown = unknown_fields(&requests);
    found.cut_off = cut_off(&requests);
    found.rejects = count_rejects(&runs, &mut requests)?;
    Ok(found)
}

/// The latest answer to each request, and the one before it, if there is one.
type Requests = BTreeMap<String, Vec<RequestAnswer>>;

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
    fn unlisted_count(&self) -> u64 {
        self.rejects.saturating_sub(self.listed)
    }
}

/// A length at which lists of articles seem to be cut off. With fewer than three tickers, or less than a tenth of them, lists
/// may have the same length by chance.
fn cut_off(requests: &Requests) -> Option<CutOff> {
    let last = requests.values().map(|answers| &answers[0]);
    let of_news = last.filter(|answer| answer.endpoint == Endpoint::NewsArticles && answer.rows > 0);
    let lengths: Vec<u64> = of_news.map(|answer| answer.rows + answer.rejects).collect();
    let (articles, all) = (*lengths.iter().max()?, lengths.len());
    let tickers = lengths.iter().filter(|length| **length == articles).count();
    let is_by_chance = articles < 2 || tickers < 3 || tickers * 10 < all;
    (!is_by_chance).then_some(CutOff { articles, tickers: tickers as u64, all: all as u64 })
}

/// Whether no request was answered before.
fn are_first(requests: &Requests) -> bool {
    requests.values().all(|answers| answers.len() < 2)
}

fn unknown_fields(requests: &Requests) -> UnknownFields {
    let (mut fields, mut before) = (Vec::new(), BTreeSet::new());
    for answers in requests.values() {
        answers[0].unknown_fields.iter().cloned().for_each(|field| field.add_to(&mut fields));
        let fields_before = answers[1..].iter().flat_map(|answer| &answer.unknown_fields);
        before.extend(fields_before.map(|field| (field.endpoint, field.field.as_str())));
    }
    let is_new = |field: &&Drift| !before.contains(&(field.endpoint, field.field.as_str()));
    let new = (!are_first(requests)).then(|| fields.iter().filter(is_new).count() as u64);
    fields.sort_by_key(|field| std::cmp::Reverse(field.count));
    UnknownFields { fields, new }
}

/// Counts the rejected records listed in the two answers to each request.
fn count_rejects(runs: &[&SealedRun], requests: &mut Requests) -> Result<Rejects> {
    let (mut reasons, mut index_of): (Vec<RejectReason>, HashMap<(&str, String), usize>) = Default::default();
    // Of the latest answers, the identity of each record with the index of its reason; and how often each was in the
    // previous answers.
    let (mut now, mut before): (Vec<(u64, usize)>, HashMap<u64, u64>) = Default::default();
    let read: BTreeSet<usize> = requests.values().flatten().map(|answer| answer.run).collect();
    for run in read.into_iter().filter(|&run| runs[run].has_rejects()) {
        for batch in runs[run].rejects()? {
            let batch = batch?;
            let rows = TypedRows(&batch);
            let [texts, tickers, why, raw, pointers] =
                ["request", "ticker", "reason", "raw", "pointer"].map(|name| rows.texts(name));
            let instants = rows.instants("observed_at");
            for row in 0..batch.num_rows() {
                let (request, seen) = (texts.value(row), instant_of(instants.value(row)));
                let mut both = requests.get_mut(request).into_iter().flatten().enumerate();
                let Some((age, answer)) = both.find(|(_, answer)| answer.run == run && answer.observed_at == seen)
                else {
                    continue;
                };
                answer.listed += 1;
                let mut hasher = DefaultHasher::new();
                (request, tickers.is_valid(row).then(|| tickers.value(row)), raw.value(row)).hash(&mut hasher);
                let record = hasher.finish();
                if age > 0 {
                    *before.entry(record).or_default() += 1;
                    continue;
                }
                // Under "other reasons" if there are too many: they quote the vendor's records, so their number is not
                // bounded.
                let mut name = (answer.endpoint.as_str(), why.value(row).to_owned());
                if reasons.len() >= 256 && !index_of.contains_key(&name) {
                    "other reasons".clone_into(&mut name.1);
                }
                let index = *index_of.entry(name).or_insert_with_key(|(operation, reason)| {
                    let example = (request.to_owned(), pointers.value(row).to_owned());
                    reasons.push(RejectReason { operation, reason: reason.clone(), records: 0, new: Some(0), example });
                    reasons.len() - 1
                });
                reasons[index].records += 1;
                now.push((record, index));
            }
        }
    }
    let mut new = 0;
    for (record, reason) in now {
        match before.get_mut(&record).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => {
                new += 1;
                *reasons[reason].new.get_or_insert_default() += 1;
            }
        }
    }
    let (mut records, mut unlisted) = (0, 0);
    for answers in requests.values() {
        let (last, before) = (&answers[0], answers.get(1));
        records += last.listed + last.unlisted_count();
        unlisted += last.unlisted_count();
        new += last.unlisted_count().saturating_sub(before.map_or(0, RequestAnswer::unlisted_count));
    }
    let is_first = are_first(requests);
    if is_first {
        reasons.iter_mut().for_each(|reason| reason.new = None);
    }
    reasons.sort_by(|one, other| {
        let name = |reason: &RejectReason| (reason.operation, reason.reason.clone());
        other.records.cmp(&one.records).then_with(|| name(one).cmp(&name(other)))
    });
    Ok(Rejects { records, new: (!is_first).then_some(new), unlisted, reasons })
}
