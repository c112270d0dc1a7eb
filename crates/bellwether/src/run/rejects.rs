//! The share of rejected records and series, and whether it is too large.
//!
//! It is computed twice, by records and by series, and for each operation separately: neither long histories of a few
//! tickers nor plenty of news can hide that most tickers were lost. A history that is rejected whole counts as many
//! records as it had. A series is lost if it had records and kept none. Answers of one run that contradict each other are
//! known once the run is settled, so it is computed then.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::names::list;
use crate::archive::{AnswerRecord, RejectGroup, SealedRun};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::Endpoint;
use crate::tables::{Oversized, RequestRecord};
use crate::text::human::{group_digits, percent};

#[derive(Clone, Copy, Default)]
struct OperationTally {
    records: u64,
    rejected: u64,
    series: u64,
    lost: u64,
}

/// The reasons: records rejected for their size, requests whose answers were rejected whole, and why records were rejected,
/// with their number and the first of them.
fn reasons(answers: &[Arc<AnswerRecord>], settled: &SealedRun) -> Result<Vec<String>> {
    /// The most that a message has.
    const MAX_GROUPS: usize = 5;
    let groups = RejectGroup::of_run(settled)?;
    let groups = groups.iter().take(MAX_GROUPS).map(RejectGroup::to_string);

    let oversized = answers.iter().flat_map(|answer| &answer.oddities.oversized);
    let oversized = oversized.take(Oversized::MAX_LISTED).map(Oversized::to_string);
    let is_unreadable = |answer: &&Arc<AnswerRecord>| answer.request.rows == 0 && answer.request.rejects > 0;
    let unreadable = answers.iter().filter(is_unreadable).map(|answer| format!("`{}`", answer.request.request));
    let unreadable: Vec<String> = unreadable.collect();
    let what = if unreadable.len() == 1 { "answer" } else { "answers" };
    let unreadable = (!unreadable.is_empty())
        .then(|| format!("every record was rejected in the {what} to {}", list(unreadable.iter())));
    Ok(oversized.chain(unreadable).chain(groups).collect())
}

/// Fails if a run has more than a share of rejected records or series, with what else to say about it.
pub(super) fn check(max_share: f64, answers: &[Arc<AnswerRecord>], run: &SealedRun, hint: &str) -> Result<()> {
    let Some(rejected) = above(max_share, answers, &run.requests()?) else { return Ok(()) };
    let what = format!("rejected {rejected}, above the limit of {}", percent(max_share));
    let hint = format!("{hint}; to allow more, raise `max_share` in `[rejects]`");
    Err(Error::new(ErrorKind::Checks, what).with_hint(hint).with_reasons(reasons(answers, run)?))
}

/// The operations with more than a share of rejected records or series, by the answers and by the requests as they were
/// settled: `9 of 10 records and 9 of 10 series of signals-history-all`, and so on; `None` if there are none.
fn above(max_share: f64, answers: &[Arc<AnswerRecord>], settled: &[RequestRecord]) -> Option<String> {
    let mut tallies: BTreeMap<Endpoint, OperationTally> = BTreeMap::new();
    for request in settled {
        let tally = tallies.entry(request.endpoint).or_default();
        tally.records += request.rows + request.rejects;
        tally.rejected += request.rejects;
    }
    for answer in answers {
        let AnswerRecord { request, histories, lost, .. } = &**answer;
        let tally = tallies.entry(request.endpoint).or_default();
        let (histories, lost) = match request.endpoint.is_of_one_ticker() {
            true => (1, u64::from(request.rows == 0 && request.rejects > 0)),
            false => (*histories, *lost),
        };
        tally.series += histories;
        tally.lost += lost;
    }
    let mut above = Vec::new();
    for (endpoint, OperationTally { records, rejected, series, lost }) in tallies {
        let counts = [("records", rejected, records), ("series", lost, series)].into_iter();
        let too_many = counts.filter(|(_, lost, of)| *lost as f64 > *of as f64 * max_share);
        let parts: Vec<String> =
            too_many.map(|(what, lost, of)| format!("{} of {} {what}", group_digits(lost), group_digits(of))).collect();
        if !parts.is_empty() {
            above.push(format!("{} of {endpoint}", parts.join(" and ")));
        }
    }
    (!above.is_empty()).then(|| above.join(", "))
}
