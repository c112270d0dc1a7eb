//! How much of what was answered could not be read, and whether that is too much.
//!
//! It is weighed twice, by records and by series, and for each operation by itself: neither the long histories of a few
//! tickers nor a wealth of news can hide that most tickers were lost. A history that is rejected whole weighs as many
//! records as it had. A series is lost when it had records and kept none.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::names::list;
use crate::archive::AnswerRecord;
use crate::error::{Findings, Rejected};
use crate::interface::Endpoint;
use crate::tables::Oversized;

#[derive(Clone, Copy, Default)]
struct Tally {
    records: u64,
    rejected: u64,
    series: u64,
    lost: u64,
}

/// What is known of why: what was rejected for its size alone, and the requests whose answers were rejected whole.
pub(super) fn reasons(answers: &[Arc<AnswerRecord>]) -> Option<Findings> {
    let oversized = answers.iter().flat_map(|answer| &answer.oddities.oversized);
    let oversized = oversized.take(Oversized::MAX_LISTED).map(Oversized::to_string);
    let is_unreadable = |answer: &&Arc<AnswerRecord>| answer.request.rows == 0 && answer.request.rejects > 0;
    let unreadable = answers.iter().filter(is_unreadable).map(|answer| format!("`{}`", answer.request.request));
    let unreadable: Vec<String> = unreadable.collect();
    let what = if unreadable.len() == 1 { "answer" } else { "answers" };
    let unreadable =
        (!unreadable.is_empty()).then(|| format!("nothing could be read in the {what} to {}", list(unreadable.iter())));
    Findings::of(oversized.chain(unreadable).collect::<Vec<_>>().into_iter())
}

/// What was rejected of more than a share.
pub(super) fn above(max_share: f64, answers: &[Arc<AnswerRecord>]) -> Vec<Rejected> {
    let mut tallies: BTreeMap<Endpoint, Tally> = BTreeMap::new();
    for answer in answers {
        let AnswerRecord { request, histories, lost, .. } = &**answer;
        let tally = tallies.entry(request.endpoint).or_default();
        tally.records += request.rows + request.rejects;
        tally.rejected += request.rejects;
        let (histories, lost) = match request.endpoint.is_of_one_ticker() {
            true => (1, u64::from(request.rows == 0 && request.rejects > 0)),
            false => (*histories, *lost),
        };
        tally.series += histories;
        tally.lost += lost;
    }
    let rejected = |(endpoint, tally): (Endpoint, Tally)| {
        let of = |what, lost, of| Rejected { operation: endpoint.as_str(), what, lost, of };
        [of("records", tally.rejected, tally.records), of("series", tally.lost, tally.series)]
    };
    let is_above = |one: &Rejected| one.lost as f64 > one.of as f64 * max_share;
    tallies.into_iter().flat_map(rejected).filter(is_above).collect()
}
