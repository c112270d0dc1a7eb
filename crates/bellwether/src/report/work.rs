//! The runs that a dataset is built from: requests, rejected records, unknown fields and durations.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::audit::answers::{self, AnsweredRun, CutOff, Rejects, UnknownFields};
use crate::interface::Endpoint;
use crate::tables::RequestRecord;

/// What the runs did.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// Runs that answered a request of the dataset, newest first.
    pub runs: Vec<AnsweredRun>,
    /// The answers of the newest of them, by operation, in the order in which operations were first answered.
    pub answers: Vec<OperationAnswers>,
    /// Rejected records of the latest answers.
    pub rejects: Rejects,
    /// Unknown fields of the latest answers.
    pub unknown: UnknownFields,
    /// Where lists of articles seem to be cut off.
    pub cut_off: Option<CutOff>,
}

/// The answers of one operation in a run.
#[derive(Clone, Debug)]
pub struct OperationAnswers {
    /// The operation.
    pub endpoint: Endpoint,
    /// Number of retries.
    pub again: u64,
    /// Rows in the answers.
    pub rows: u64,
    /// Bytes of the answers.
    pub bytes: u64,
    /// When each answer was complete, counted from the start of the run, in order.
    pub complete: Vec<Duration>,
}

impl From<answers::Answers> for Activity {
    fn from(answers: answers::Answers) -> Self {
        let answers::Answers { runs, newest, rejects, unknown, cut_off } = answers;
        let answers = runs.first().map(|run| by_endpoint(&newest, run.started_at));
        Self { runs, answers: answers.unwrap_or_default(), rejects, unknown, cut_off }
    }
}

fn by_endpoint(requests: &[RequestRecord], started_at: DateTime<Utc>) -> Vec<OperationAnswers> {
    let mut of_endpoints: BTreeMap<Endpoint, OperationAnswers> = BTreeMap::new();
    for request in requests {
        let endpoint = request.endpoint;
        let empty = OperationAnswers { endpoint, again: 0, rows: 0, bytes: 0, complete: Vec::new() };
        let answers = of_endpoints.entry(endpoint).or_insert(empty);
        answers.again += u64::from(request.attempts.saturating_sub(1));
        answers.rows += request.rows;
        answers.bytes += request.bytes;
        let time = (request.observed_at - started_at).to_std();
        answers.complete.push(time.unwrap_or_default());
    }
    let mut answers: Vec<OperationAnswers> = of_endpoints.into_values().collect();
    answers.iter_mut().for_each(|answers| answers.complete.sort_unstable());
    answers.sort_by_key(|answers| answers.complete.first().copied());
    answers
}
