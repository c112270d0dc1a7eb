//! The requests of one operation, a few at a time. An operation that has nothing for the first few sectors or
//! tickers, or for every request about fewer, and answers for none, is no longer offered, and is not requested again in
//! this run. A request that fails by itself does not keep the others from being made, unless several do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};

use super::Gathering;
use crate::archive::{AnswerRecord, Unfinished};
use crate::decode::{Answer, DecodeFault, Decoded, Rules};
use crate::disk::digest;
use crate::error::{Error, Result};
use crate::fetch::{Answered, Body, BodySummary, Client, ReadFault, Refusal};
use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::process::trace::work;
use crate::run::missing::subject_of;
use crate::run::observer::{EVENT_EVERY, Stage};
use crate::run::start::Options;
use crate::tables::{RequestRecord, Validator};

/// How many sectors or tickers must be unknown to an operation, and none known, before it counts as no longer offered.
const UNKNOWN_SUBJECTS: usize = 5;

/// What an operation that is offered answered to some requests.
pub(super) struct Offered {
    /// The tickers that the answers name.
    pub(super) named: BTreeSet<Ticker>,
    /// The requests that it refuses.
    pub(super) unknown: Vec<Request>,
}

/// An operation that the service does not offer: a request that it refused, and how.
#[derive(Clone)]
pub(super) struct MissingOperation {
    pub(super) request: Request,
    pub(super) refusal: Refusal,
}

impl MissingOperation {
    /// In a few words.
    pub(super) fn in_words(&self) -> String {
        match self.refusal.is_absence() {
            true => format!("the service no longer offers {}", self.request.endpoint),
            false => format!("the service refuses `{}`: {}", self.request, self.refusal),
        }
    }
}

impl Gathering<'_> {
    /// Makes the requests of one operation, as a stage of the run, unless it is no longer offered.
    pub(super) async fn run_stage(
        &mut self,
        name: &'static str,
        requests: &[Request],
    ) -> Result<Result<Offered, MissingOperation>> {
        let stage = Stage::of_requests(&self.options.control, name, requests.len(), self.client.gauge());
        let offered = self.wave(&stage, requests).await?;
        if offered.is_ok() {
            self.gathered.timings.push(stage.finish());
        }
        Ok(offered)
    }

    /// Makes the requests of one operation, a few at a time.
    async fn wave(&mut self, stage: &Stage<'_>, requests: &[Request]) -> Result<Result<Offered, MissingOperation>> {
        let endpoint = requests.first().map(|first| first.endpoint);
        if let Some(gone) = self.gone.iter().find(|gone| Some(gone.request.endpoint) == endpoint) {
            return Ok(Err(gone.clone()));
        }
        let subjects: BTreeSet<_> = requests.iter().map(subject_of).collect();
        let are_few = subjects.len() <= UNKNOWN_SUBJECTS;
        let rules = Arc::new(Rules::from_plan(self.plan));
        // How answers are read: a validator counts where they still are.
        let (version, conventions) = (env!("CARGO_PKG_VERSION"), self.unfinished.conventions());
        let reading = digest::of(format!("{version} {rules:?} {conventions:?}").as_bytes());
        let (client, unfinished) = (self.client, &self.unfinished);
        let ask =
            async |request| (request, answer(client, unfinished, Request::clone(request), &rules, &reading).await);
        let mut answers = futures_util::stream::iter(requests).map(ask).buffer_unordered(self.plan.limits.connections);
        let (mut named, mut answered, mut unknown) = (BTreeSet::new(), 0_usize, Vec::new());
        let mut unknown_subjects = BTreeSet::new();
        let (mut failed, mut refusals, mut gone) = (Vec::new(), BTreeMap::new(), None);
        while let Some((request, answer)) = next(&mut answers, stage, self.options).await? {
            match answer? {
                Answered::Taken(record) => {
                    answered += 1;
                    stage.count(record.request.rows, record.request.bytes);
                    named.extend(record.tickers().cloned());
                }
                Answered::Failed(error) => {
                    failed.push(error);
                    // So many will not be alone.
                    if failed.len() == 5 {
                        break;
                    }
                }
                Answered::Refused(refusal) => {
                    unknown_subjects.insert(subject_of(request));
                    unknown.push(request.clone());
                    // One of few may be known in another period or regime, and answered later.
                    let is_enough = match are_few {
                        true => unknown.len() == requests.len(),
                        false => unknown_subjects.len() >= UNKNOWN_SUBJECTS,
                    };
                    if answered == 0 && is_enough {
                        gone = Some(MissingOperation { request: request.clone(), refusal });
                        break;
                    }
                    refusals.insert(request.to_string(), refusal);
                }
            }
        }
        drop(answers);
        self.failed.append(&mut failed);
        if let Some(gone) = gone {
            self.gone.push(gone.clone());
            return Ok(Err(gone));
        }
        self.gathered.refusals.append(&mut refusals);
        unknown.sort();
        Ok(Ok(Offered { named, unknown }))
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
    rules: &Arc<Rules>,
    reading: &str,
) -> Result<Answered<Arc<AnswerRecord>>> {
    if let Some(record) = run.answer_to(&request.to_string()) {
        return Ok(Answered::Taken(record));
    }
    let request = Arc::new(request);
    let reading = digest::of(format!("{reading} {}", client.url_without_key(&request)).as_bytes());
    let known = run.known_answer(&request.to_string(), &reading).cloned();
    // The header that asks whether an answer is still the same.
    let condition = known.as_ref().and_then(|known| {
        let Validator { header, value, .. } = known.validator();
        HeaderName::try_from(header).ok().zip(HeaderValue::try_from(value).ok())
    });
    let read = {
        let (run, request, rules) = (Arc::clone(run), Arc::clone(&request), Arc::clone(rules));
        move |body: &mut Body| {
            let summary = body.summary();
            if let Some(known) = known.as_ref().filter(|_| summary.is_as_before()) {
                let record = request_record(&request, summary, (0, 0), None);
                return run.commit_as_before(known, record).map_err(ReadFault::Stop);
            }
            // Decoded while it arrives.
            let mut draft = run.draft();
            let receiving = work!("receive and decode");
            let answer = Answer { request: &request, rules: &rules };
            decode_pages(&answer, body, |decoded| draft.add(request.endpoint, decoded))?;
            drop(receiving);
            let _work = work!("complete answer");
            let summary = body.summary();
            let validator = summary.condition.as_ref().and_then(|(header, value)| {
                let (header, value) = (header.to_string(), value.to_str().ok()?.to_owned());
                let (histories, unusual, lenient) = draft.findings();
                Some(Validator { header, value, reading: reading.clone(), histories, unusual, lenient })
            });
            let record = request_record(&request, summary, draft.counts(), validator);
            run.commit(draft, record).map_err(ReadFault::Stop)
        }
    };
    client.get(&request, condition.as_ref(), read).await
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
        decoded.map_err(|fault| match fault {
            DecodeFault::Read(error) => ReadFault::Broken(error),
            DecodeFault::Malformed { offset, reason } => ReadFault::Malformed { offset, reason },
            DecodeFault::Deliver(error) => ReadFault::Stop(error),
        })?;
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
