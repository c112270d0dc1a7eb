//! Sectors, tickers and operations that a definition names and that have no data; and the share of rejected records and series,
//! and whether it is too large.
//!
//! The share is computed twice, by records and by series, and for each operation separately: neither long histories of a few
//! tickers nor plenty of news can hide that most tickers were lost. A history that is rejected whole counts as many
//! records as it had. A series is lost if it had records and kept none. Answers of one run that contradict each other are
//! known once the run is settled, so it is computed then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::names::{list, some_of};
use crate::archive::{AnswerRecord, RejectGroup, Scope, SealedRun, View};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Refusal;
use crate::interface::{Base, Endpoint, Period, Regime, Sector, Ticker};
use crate::plan::{Plan, Request, RequestList, TickerSource};
use crate::tables::{Oversized, RequestRecord, SeriesKey};
use crate::text::human::{group_digits, percent};
use crate::text::problem::nearest;

/// Why there is no data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NoDataReason {
    /// The service answered that there is no such thing.
    Unknown,
    /// The service refuses to answer, and says why.
    Refused(String),
    /// The answer is empty.
    Nothing,
    /// All histories in the answer are empty.
    EmptyHistories,
    /// Every record in the answer was rejected.
    Unreadable,
    /// The archive lists no series for it.
    Unlisted,
    /// The last run got no answer for it.
    Unanswered,
}

impl NoDataReason {
    fn as_str(&self) -> &str {
        match self {
            Self::Refused(why) => why,
            Self::Unknown => "the service does not know it",
            Self::Nothing => "the answer is empty",
            Self::EmptyHistories => "every history in the answer is empty",
            Self::Unreadable => "every record in the answer was rejected",
            Self::Unlisted => "there were none in the last answer",
            Self::Unanswered => "the last run got no answer",
        }
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestSubject<'a> {
    All,
    Sector(&'a Sector),
    Ticker(&'a Ticker),
}

impl<'a> RequestSubject<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        match (&request.sector, &request.ticker) {
            (Some(sector), _) => Self::Sector(sector),
            (None, Some(ticker)) => Self::Ticker(ticker),
            (None, None) => Self::All,
        }
    }
}

/// A request, and why it has no data, if so.
type Demand<'a> = (&'a Request, Option<NoDataReason>);

/// The requests for what a definition names, and why some have no data.
pub(super) struct Missing<'a> {
    demanded: Vec<Demand<'a>>,
    /// The tickers with data.
    known: BTreeSet<&'a Ticker>,
}

impl<'a> Missing<'a> {
    /// What is missing from the answers of a run.
    pub(super) fn of_answers(
        demanded: &'a [Request],
        refusals: &BTreeMap<String, Refusal>,
        answers: &BTreeMap<&str, &'a AnswerRecord>,
    ) -> Self {
        let why = |request: &Request| {
            let words = request.to_string();
            let Some(record) = answers.get(words.as_str()) else {
                return Some(match refusals.get(&words) {
                    Some(refusal) if !refusal.is_absence() => {
                        NoDataReason::Refused(format!("the service refuses it with {refusal}"))
                    }
                    _ => NoDataReason::Unknown,
                });
            };
            match (request.endpoint.base(), record.request.rows, record.request.rejects) {
                // A ticker may have no news; a list without any says so.
                (Base::Sentiment, ..) => None,
                (Base::Signals, 0, 0) if record.empty.is_empty() => Some(NoDataReason::Nothing),
                (Base::Signals, 0, 0) => Some(NoDataReason::EmptyHistories),
                (Base::Signals, 0, _) => Some(NoDataReason::Unreadable),
                (Base::Signals, ..) => None,
            }
        };
        let known = answers.values().flat_map(|record| record.tickers()).collect();
        Self { demanded: demanded.iter().map(|request| (request, why(request))).collect(), known }
    }

    /// What is missing from an archive, by the series that it lists for each request, and from the last run, if its
    /// answered requests are known.
    pub(super) fn of_archive(
        demanded: &'a [Request],
        listing: &'a BTreeMap<String, BTreeSet<SeriesKey>>,
        answered: Option<&BTreeSet<String>>,
    ) -> Self {
        let why = |about: &Request| {
            let request = about.to_string();
            let is_answered = answered.is_none_or(|answered| answered.contains(&request));
            match (is_answered, listing.contains_key(&request)) {
                (true, true) => None,
                // A ticker may have no news.
                (true, false) if about.endpoint.base() == Base::Sentiment => None,
                (true, false) => Some(NoDataReason::Unlisted),
                (false, _) => Some(NoDataReason::Unanswered),
            }
        };
        let known = listing.values().flatten().map(|key| &key.ticker).collect();
        Self { demanded: demanded.iter().map(|request| (request, why(request))).collect(), known }
    }

    /// A message for each sector, and one for the tickers of each operation.
    pub(super) fn messages(&self, view: &View) -> Result<Vec<String>> {
        let mut subjects: BTreeMap<(Endpoint, RequestSubject<'_>), Vec<&Demand<'_>>> = BTreeMap::new();
        for demand in &self.demanded {
            subjects.entry((demand.0.endpoint, RequestSubject::of(demand.0))).or_default().push(demand);
        }
        let mut messages = Vec::new();
        let mut absent: BTreeMap<(Endpoint, Option<&NoDataReason>), Vec<&Ticker>> = BTreeMap::new();
        for ((endpoint, subject), requests) in subjects {
            let lacking: Vec<(&Request, &NoDataReason)> =
                requests.iter().filter_map(|(request, why)| Some((*request, why.as_ref()?))).collect();
            let Some((_, reason)) = lacking.first() else { continue };
            let (what, why) = (what_of(endpoint), reason.as_str());
            let pairs = || list(lacking.iter().map(|(request, _)| pair(request.period, request.regime)));
            let is_whole = lacking.len() == requests.len();
            match subject {
                RequestSubject::All => messages.push(format!("no signals in {endpoint}: {why}")),
                RequestSubject::Ticker(ticker) if is_whole => {
                    // That there is no such ticker goes without saying.
                    let why = Some(*reason).filter(|why| matches!(why, NoDataReason::Refused(_)));
                    absent.entry((endpoint, why)).or_default().push(ticker);
                }
                RequestSubject::Ticker(ticker) => {
                    messages.push(format!("{what} for ticker `{ticker}` with {}: {why}", pairs()));
                }
                RequestSubject::Sector(sector) if is_whole => {
                    messages.push(format!("{}: {why}", absent_sector(sector, self.sectors(view)?)));
                }
                RequestSubject::Sector(sector) => {
                    messages.push(format!("{what} for sector `{sector}` with {}: {why}", pairs()));
                }
            }
        }
        let known = || self.known.iter().copied();
        messages.extend(absent.into_iter().map(|((endpoint, why), absent)| {
            let why = why.map_or_else(String::new, |why| format!(": {}", why.as_str()));
            format!("{}{why}", absent_tickers(&what_of(endpoint), &absent, known()))
        }));
        Ok(messages)
    }

    /// The sectors with data, in the answers or in the archive.
    fn sectors(&self, view: &View) -> Result<BTreeSet<Sector>> {
        let mut sectors = known_sectors(view)?;
        let there = self.demanded.iter().filter(|(_, why)| why.is_none());
        sectors.extend(there.filter_map(|(request, _)| request.sector.clone()));
        Ok(sectors)
    }
}

/// The requests that filled the archive, for what the definition names.
pub(super) fn demanded_of_archive(plan: &Plan, scope: &Scope) -> Vec<Request> {
    let operation = plan.alternatives.iter().find(|operation| operation.endpoint == scope.source);
    let mut demanded = operation.map_or_else(Vec::new, |operation| match &operation.list {
        RequestList::Listed(requests) => requests.clone(),
        RequestList::EachTicker(TickerSource::Listed(tickers), _) => operation.requests(tickers),
        RequestList::EachTicker(..) => Vec::new(),
    });
    demanded.extend(plan.further.iter().cloned());
    demanded
}

/// The sectors with tickers in the archive.
pub(super) fn known_sectors(view: &View) -> Result<BTreeSet<Sector>> {
    Ok(view.sectors(None)?.into_values().collect())
}

/// A message about tickers without data.
pub(crate) fn absent_tickers<'k>(what: &str, absent: &[&Ticker], known: impl Iterator<Item = &'k Ticker>) -> String {
    match absent {
        [ticker] => {
            // Symbols are short: only one letter may differ, and the case of all.
            let typed = ticker.as_str().to_uppercase();
            let is_near = |known: &&str| strsim::damerau_levenshtein(&known.to_uppercase(), &typed) <= 1;
            let near = near(ticker.as_str(), known.map(Ticker::as_str).filter(is_near));
            format!("{what} for ticker `{ticker}`{near}")
        }
        _ => format!("{what} for {}", some_of("ticker", absent.iter())),
    }
}

/// A message about a sector without data.
pub(crate) fn absent_sector(sector: &Sector, known: BTreeSet<Sector>) -> String {
    format!("no signals for sector `{sector}`{}", near(sector.as_str(), known.iter().map(Sector::as_str)))
}

/// The name that was most likely meant.
fn near<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> String {
    let meant = nearest(given, known.filter(|known| *known != given));
    meant.map_or_else(String::new, |meant| format!(" (did you mean `{meant}`?)"))
}

fn what_of(endpoint: Endpoint) -> String {
    match endpoint.base() {
        Base::Signals => "no signals".to_owned(),
        Base::Sentiment => format!("no data in {endpoint}"),
    }
}

/// The period and regime of a request.
fn pair(period: Option<Period>, regime: Option<Regime>) -> String {
    let parts = [period.map(Period::as_str), regime.map(Regime::as_str)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

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
pub(super) fn check_rejects(max_share: f64, answers: &[Arc<AnswerRecord>], run: &SealedRun, hint: &str) -> Result<()> {
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
