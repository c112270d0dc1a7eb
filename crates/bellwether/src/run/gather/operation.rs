//! The requests of one operation, a few at a time. An operation that has nothing for the first few sectors or
//! tickers, or for every request about fewer, and answers for none, is no longer offered, and is not requested again in
//! this run. A request that fails by itself does not keep the others from being made, unless several do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt;

use super::Gathering;
use crate::archive::AnswerRecord;
use crate::decode::Rules;
use crate::error::{Error, Result};
use crate::fetch::{Answered, Refusal};
use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::run::answer::{answer, reading};
use crate::run::missing::RequestSubject;
use crate::run::options::Options;
use crate::run::stage::{EVENT_EVERY, Stage};

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
    pub(super) async fn wave(&mut self, stage: &Stage<'_>, requests: &[Request]) -> Result<WaveOutcome> {
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
                    advance(stage, &record);
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

fn advance(stage: &Stage<'_>, record: &AnswerRecord) {
    stage.count(record.request.rows, record.request.bytes);
}
