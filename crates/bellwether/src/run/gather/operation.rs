//! The requests of one operation, a few at a time. An operation that has nothing for the first few sectors or
//! tickers, or for every request about fewer, and answers for none, is no longer offered, and is not requested again in
//! this run. A request that fails by itself does not keep the others from being made, unless several do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};

use super::Gathering;
use crate::archive::{AnswerRecord, Draft, Unfinished};
use crate::decode::{Answer, DecodeFault, Decoded, Rules};
use crate::disk::digest;
use crate::error::{Error, Result};
use crate::fetch::{Answered, Body, BodySummary, Client, ReadFault, Refusal};
use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::process::trace::work;
use crate::run::missing::RequestSubject;
use crate::run::observer::{EVENT_EVERY, Stage};
use crate::run::start::Options;
use crate::tables::{Conventions, RequestRecord, Validator};

/// How many sectors or tickers must be unknown to an operation, and none known, before it counts as no longer offered.
const UNKNOWN_SUBJECTS: usize = 5;

/// How many requests of an operation may fail before no more are made.
const FAILED_REQUESTS: usize = 5;

/// The outcome of some requests of one operation.
pub(super) enum WaveOutcome {
    /// The operation is no longer offered.
    NotOffered(MissingOperation),
    /// The operation is offered.
    Offered {
        /// The tickers that the answers name.
        named: BTreeSet<Ticker>,
        /// The requests that it refuses.
        unknown: Vec<Request>,
    },
}

/// An operation that the service does not offer.
#[derive(Clone)]
pub(super) struct MissingOperation {
    pub(super) endpoint: Endpoint,
    /// A request that it refused, and how.
    pub(super) request: Request,
    pub(super) refusal: Refusal,
}

impl MissingOperation {
    /// In a few words.
    pub(super) fn in_words(&self) -> String {
        match self.refusal.is_absence() {
            true => format!("the service no longer offers {}", self.endpoint),
            false => format!("the service refuses `{}`: {}", self.request, self.refusal),
        }
    }
}

impl Gathering<'_> {
    /// Makes the requests of one operation, as a stage of the run.
    pub(super) async fn run_stage(&mut self, name: &'static str, requests: Vec<Request>) -> Result<WaveOutcome> {
        let stage = Stage::of_requests(&self.options.control, name, requests.len(), self.client.gauge());
        let wave = self.wave(&stage, &requests).await?;
        if matches!(wave, WaveOutcome::Offered { .. }) {
            self.timings.push(stage.finish());
        }
        Ok(wave)
    }

    /// Makes the requests of one operation, a few at a time.
    async fn wave(&mut self, stage: &Stage<'_>, requests: &[Request]) -> Result<WaveOutcome> {
        let is_asked = |gone: &&MissingOperation| requests.first().is_some_and(|first| first.endpoint == gone.endpoint);
        if let Some(gone) = self.gone.iter().find(is_asked) {
            return Ok(WaveOutcome::NotOffered(gone.clone()));
        }
        let subjects: BTreeSet<RequestSubject<'_>> = requests.iter().map(RequestSubject::of).collect();
        let are_few = subjects.len() <= UNKNOWN_SUBJECTS;
        let rules = Arc::new(Rules::from_plan(self.plan));
        let reading = reading(&rules, self.unfinished.conventions());
        let (client, unfinished) = (self.client, &self.unfinished);
        let ask =
            async |request| (request, answer(client, unfinished, Request::clone(request), (&rules, &reading)).await);
        let mut answers = futures_util::stream::iter(requests).map(ask).buffer_unordered(self.plan.limits.connections);
        let (mut named, mut answered, mut unknown) = (BTreeSet::new(), 0_usize, Vec::new());
        let (mut failed, mut refusals) = (Vec::new(), BTreeMap::new());
        let mut unknown_subjects: BTreeSet<RequestSubject<'_>> = BTreeSet::new();
        while let Some((request, answer)) = next(&mut answers, stage, self.options).await? {
            match answer? {
                Answered::Taken(record) => {
                    answered += 1;
                    stage.count(record.request.rows, record.request.bytes);
                    named.extend(record.tickers().cloned());
                }
                Answered::Failed(error) => {
                    failed.push(error);
                    if failed.len() == FAILED_REQUESTS {
                        break;
                    }
                }
                Answered::Refused(refusal) => {
                    unknown_subjects.insert(RequestSubject::of(request));
                    unknown.push(request.clone());
                    refusals.insert(request.to_string(), refusal.clone());
                    // One of few may be known in another period or regime, and answered later.
                    let is_enough = if are_few {
                        unknown.len() == requests.len()
                    } else {
                        unknown_subjects.len() >= UNKNOWN_SUBJECTS
                    };
                    if answered == 0 && is_enough {
                        let gone = MissingOperation { endpoint: request.endpoint, request: request.clone(), refusal };
                        drop(answers);
                        self.gone.push(gone.clone());
                        self.failed.append(&mut failed);
                        return Ok(WaveOutcome::NotOffered(gone));
                    }
                }
            }
        }
        drop(answers);
        self.failed.append(&mut failed);
        self.refusals.append(&mut refusals);
        unknown.sort();
        Ok(WaveOutcome::Offered { named, unknown })
    }
}

/// The next answer. While waiting for it, the stage shows its progress.
async fn next<T>(
    answers: &mut (impl futures_util::Stream<Item = T> + Unpin),
    stage: &Stage<'_>,
    options: &Options,
) -> Result<Option<T>> {
    loop {
        tokio::select! {
            biased;
            () = options.control.stop.cancelled() => return Err(Error::interruption()),
            next = answers.next() => return Ok(next),
            () = tokio::time::sleep(EVENT_EVERY) => stage.wait(),
        }
    }
}

/// The record of a request's answer: from an interrupted run that is resumed, or from the service.
async fn answer(
    client: &Client,
    run: &Arc<Unfinished>,
    request: Request,
    (rules, reading): (&Arc<Rules>, &str),
) -> Result<Answered<Arc<AnswerRecord>>> {
    if let Some(record) = run.answer_to(&request.to_string()) {
        return Ok(Answered::Taken(record));
    }
    let request = Arc::new(request);
    let reading = digest::of(format!("{reading} {}", client.url_without_key(&request)).as_bytes());
    let known = run.known_answer(&request.to_string(), &reading).cloned();
    let condition = known.as_ref().and_then(|known| condition(known.validator()));
    let read = {
        let (run, request, rules) = (Arc::clone(run), Arc::clone(&request), Arc::clone(rules));
        move |body: &mut Body| {
            let summary = body.summary();
            if let Some(known) = known.as_ref().filter(|_| summary.is_as_before()) {
                let record = request_record(&request, summary, (0, 0), None);
                return run.commit_as_before(known, record).map_err(ReadFault::Stop);
            }
            let draft = decode(&run, &request, &rules, body)?;
            let _work = work!("complete answer");
            let summary = body.summary();
            let validator = validator(&summary, &reading, &draft);
            let record = request_record(&request, summary, draft.counts(), validator);
            run.commit(draft, record).map_err(ReadFault::Stop)
        }
    };
    client.get(&request, condition.as_ref(), read).await
}

/// The digest of how answers are read: a validator counts where they still are.
fn reading(rules: &Rules, conventions: &Conventions) -> String {
    digest::of(format!("{} {rules:?} {conventions:?}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// The header that asks whether an answer is still the same.
fn condition(validator: &Validator) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(&validator.header).ok()?;
    Some((name, HeaderValue::try_from(&validator.value).ok()?))
}

fn validator(seen: &BodySummary, reading: &str, draft: &Draft) -> Option<Validator> {
    let (header, value) = seen.condition.as_ref()?;
    let (header, value) = (header.to_string(), value.to_str().ok()?.to_owned());
    let (histories, unusual, lenient) = draft.findings();
    Some(Validator { header, value, reading: reading.to_owned(), histories, unusual, lenient })
}

/// Decodes a body into a draft while it arrives.
fn decode(run: &Unfinished, request: &Request, rules: &Rules, body: &mut Body) -> Result<Draft, ReadFault> {
    let _work = work!("receive and decode");
    let mut draft = run.draft();
    decode_pages(&Answer { request, rules }, body, |decoded| draft.add(request.endpoint, decoded))?;
    Ok(draft)
}

/// Decodes all pages of a body, which have as many entries as the service says.
pub(in crate::run) fn decode_pages(
    answer: &Answer<'_>,
    body: &mut Body,
    mut deliver: impl FnMut(Decoded) -> Result<()>,
) -> Result<(), ReadFault> {
    let mut entries = 0;
    loop {
        let before = entries;
        let decoded = answer.decode(&mut *body, |decoded| {
            entries += decoded.records;
            deliver(decoded.after(before))
        });
        match decoded {
            Ok(()) => {}
            Err(DecodeFault::Read(error)) => return Err(ReadFault::Broken(error)),
            Err(DecodeFault::Malformed { offset, reason }) => return Err(ReadFault::Malformed { offset, reason }),
            Err(DecodeFault::Deliver(error)) => return Err(ReadFault::Stop(error)),
        }
        if !body.next_page().map_err(ReadFault::Broken)? {
            break;
        }
    }
    let BodySummary { total, bytes, .. } = body.summary();
    let is_list = matches!(answer.request.endpoint, Endpoint::NewsArticles | Endpoint::TickersAvailable);
    match total.filter(|total| is_list && entries < *total) {
        Some(total) => {
            let reason = format!("the list has {entries} of the {total} entries that `X-Total-Count` tells");
            Err(ReadFault::Malformed { offset: bytes, reason })
        }
        None => Ok(()),
    }
}

fn request_record(
    request: &Request,
    seen: BodySummary,
    (rows, rejects): (u64, u64),
    validator: Option<Validator>,
) -> RequestRecord {
    RequestRecord {
        endpoint: request.endpoint,
        request: request.to_string(),
        status: seen.status,
        attempts: seen.attempts,
        bytes: seen.bytes,
        digest: seen.digest,
        rows,
        rejects,
        validator,
        unknown_fields: Vec::new(),
        observed_at: seen.observed_at,
    }
}
