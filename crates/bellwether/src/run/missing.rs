//! Sectors, tickers and operations that a definition names and that have no data; and the share of rejected records and series,
//! and whether it is too large.
//!
//! The share is computed twice, by records and by series, and for each operation separately: neither long histories of a few
//! tickers nor plenty of news can hide that most tickers were lost. A history that is rejected whole counts as many
//! records as it had. A series is lost if it had records and kept none. Answers of one run that contradict each other are
//! known once the run is settled, so it is computed then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use super::gather::Gathered;
use crate::archive::{AnswerRecord, RejectGroup, Scope, SealedRun, View};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Base, Endpoint, Period, Regime, Sector, Ticker};
use crate::plan::{Plan, Request, RequestList, TickerSource};
use crate::tables::{Oversized, RequestRecord, SeriesKey};
use crate::text::human::{group_digits, percent};
use crate::text::problem::nearest;

/// Why there is no data.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum NoData {
    Absent(&'static str),
    /// The service refuses to answer, and says why.
    Refused(String),
}

impl NoData {
    fn as_str(&self) -> &str {
        match self {
            Self::Absent(why) => why,
            Self::Refused(why) => why,
        }
    }
}

/// What a request is about: a ticker, a sector, or everything.
pub(super) fn subject_of(request: &Request) -> (Option<&Ticker>, Option<&Sector>) {
    (request.ticker.as_ref(), request.sector.as_ref())
}

/// What is missing from the answers of a run, a message each.
pub(super) fn missing_answers(
    gathered: &Gathered,
    answers: &BTreeMap<&str, &AnswerRecord>,
    view: &View,
) -> Result<Vec<String>> {
    let why = |request: &Request| {
        let words = request.to_string();
        let Some(record) = answers.get(words.as_str()) else {
            return Some(match gathered.refusals.get(&words).filter(|refusal| !refusal.is_absence()) {
                Some(refusal) => NoData::Refused(format!("the service refuses it with {refusal}")),
                None => NoData::Absent("the service does not know it"),
            });
        };
        // A ticker may have no news; a list without any says so.
        if request.endpoint.base() == Base::Sentiment || record.request.rows > 0 {
            return None;
        }
        Some(NoData::Absent(match record.request.rejects {
            0 if record.empty.is_empty() => "the answer is empty",
            0 => "every history in the answer is empty",
            _ => "every record in the answer was rejected",
        }))
    };
    let known = answers.values().flat_map(|record| record.tickers()).collect();
    messages(&gathered.demanded, why, &known, view)
}

/// What is missing from an archive, a message each: by the series that it lists for each request, and from the last run, if
/// its answered requests are known.
pub(super) fn missing_series(
    demanded: &[Request],
    listing: &BTreeMap<String, BTreeSet<SeriesKey>>,
    answered: Option<&BTreeSet<String>>,
    view: &View,
) -> Result<Vec<String>> {
    let why = |about: &Request| {
        let request = about.to_string();
        if answered.is_some_and(|answered| !answered.contains(&request)) {
            return Some(NoData::Absent("the last run got no answer"));
        }
        // A ticker may have no news.
        let is_there = listing.contains_key(&request) || about.endpoint.base() == Base::Sentiment;
        (!is_there).then_some(NoData::Absent("there were none in the last answer"))
    };
    let known = listing.values().flatten().map(|key| &key.ticker).collect();
    messages(demanded, why, &known, view)
}

/// A message for each sector, and one for the tickers of each operation, by why requests have no data, and the tickers that
/// have some.
fn messages(
    demanded: &[Request],
    why: impl Fn(&Request) -> Option<NoData>,
    known: &BTreeSet<&Ticker>,
    view: &View,
) -> Result<Vec<String>> {
    let mut subjects: BTreeMap<_, Vec<(&Request, Option<NoData>)>> = BTreeMap::new();
    for request in demanded {
        subjects.entry((request.endpoint, subject_of(request))).or_default().push((request, why(request)));
    }
    let with_data = subjects.values().flatten().filter(|(_, why)| why.is_none());
    let sectors_with_data: BTreeSet<Sector> = with_data.filter_map(|(request, _)| request.sector.clone()).collect();
    let mut messages = Vec::new();
    let mut absent: BTreeMap<(Endpoint, Option<&NoData>), Vec<&Ticker>> = BTreeMap::new();
    for ((endpoint, (ticker, sector)), requests) in &subjects {
        let lacking: Vec<(&Request, &NoData)> =
            requests.iter().filter_map(|(request, why)| Some((*request, why.as_ref()?))).collect();
        let Some((_, reason)) = lacking.first() else { continue };
        let (what, why) = (what_of(*endpoint), reason.as_str());
        match (*ticker, *sector) {
            (None, None) => messages.push(format!("no signals in {endpoint}: {why}")),
            (ticker, sector) if lacking.len() < requests.len() => {
                let pairs = list(lacking.iter().map(|(request, _)| {
                    let parts = [request.period.map(Period::as_str), request.regime.map(Regime::as_str)];
                    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
                }));
                let whose = ticker.map(|it| format!("ticker `{it}`")).or(sector.map(|it| format!("sector `{it}`")));
                messages.push(format!("{what} for {} with {pairs}: {why}", whose.unwrap_or_default()));
            }
            (Some(ticker), _) => {
                // That there is no such ticker goes without saying.
                let why = Some(*reason).filter(|why| matches!(why, NoData::Refused(_)));
                absent.entry((*endpoint, why)).or_default().push(ticker);
            }
            (None, Some(sector)) => {
                let known = &known_sectors(view)? | &sectors_with_data;
                messages.push(format!("{}: {why}", absent_sector(sector, known)));
            }
        }
    }
    for ((endpoint, why), tickers) in absent {
        let why = why.map_or_else(String::new, |why| format!(": {}", why.as_str()));
        messages.push(format!("{}{why}", absent_tickers(&what_of(endpoint), &tickers, known.iter().copied())));
    }
    Ok(messages)
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

/// Fails if a run has more than a share of rejected records or series, with what else to say about it.
pub(super) fn check_rejects(max_share: f64, answers: &[Arc<AnswerRecord>], run: &SealedRun, hint: &str) -> Result<()> {
    let above = above(max_share, answers, &run.requests()?);
    if above.is_empty() {
        return Ok(());
    }
    // Records rejected for their size, requests whose answers were rejected whole, and why records were rejected, with their
    // number and the first of them.
    let oversized = answers.iter().flat_map(|answer| &answer.oddities.oversized).take(Oversized::MAX_LISTED);
    let mut reasons: Vec<String> = oversized.map(Oversized::to_string).collect();
    let unreadable = answers.iter().filter(|answer| answer.request.rows == 0 && answer.request.rejects > 0);
    let unreadable: Vec<String> = unreadable.map(|answer| format!("`{}`", answer.request.request)).collect();
    if !unreadable.is_empty() {
        let what = if unreadable.len() == 1 { "answer" } else { "answers" };
        reasons.push(format!("every record was rejected in the {what} to {}", list(unreadable.iter())));
    }
    reasons.extend(RejectGroup::of_run(run)?.iter().take(5).map(RejectGroup::to_string));
    let what = format!("rejected {}, above the limit of {}", above.join(", "), percent(max_share));
    let hint = format!("{hint}; to allow more, raise `max_share` in `[rejects]`");
    Err(Error::new(ErrorKind::Checks, what).with_hint(hint).with_reasons(reasons))
}

/// The operations with more than a share of rejected records or series, by the answers and by the requests as they were
/// settled: `9 of 10 records and 9 of 10 series of signals-history-all` each.
fn above(max_share: f64, answers: &[Arc<AnswerRecord>], settled: &[RequestRecord]) -> Vec<String> {
    // How many were lost of how many: of records, and of series.
    let mut tallies: BTreeMap<Endpoint, [(u64, u64); 2]> = BTreeMap::new();
    for RequestRecord { endpoint, rows, rejects, .. } in settled {
        let [records, _] = tallies.entry(*endpoint).or_default();
        *records = (records.0 + rejects, records.1 + rows + rejects);
    }
    for answer in answers {
        let AnswerRecord { request, histories, lost, .. } = &**answer;
        let (lost, histories) = match request.endpoint.is_of_one_ticker() {
            true => (u64::from(request.rows == 0 && request.rejects > 0), 1),
            false => (*lost, *histories),
        };
        let [_, series] = tallies.entry(request.endpoint).or_default();
        *series = (series.0 + lost, series.1 + histories);
    }
    let mut above = Vec::new();
    for (endpoint, tally) in tallies {
        let too_many = ["records", "series"]
            .into_iter()
            .zip(tally)
            .filter(|(_, (lost, of))| *lost as f64 > *of as f64 * max_share);
        let parts: Vec<String> = too_many
            .map(|(what, (lost, of))| format!("{} of {} {what}", group_digits(lost), group_digits(of)))
            .collect();
        if !parts.is_empty() {
            above.push(format!("{} of {endpoint}", parts.join(" and ")));
        }
    }
    above
}

/// `1 ticker: A`; `12 tickers: A, B, C, D, E, F, G, H and 4 more`.
pub(super) fn some_of(one: &str, names: impl ExactSizeIterator<Item = impl Display>) -> String {
    let (count, plural) = (names.len() as u64, if one.ends_with("s") { "" } else { "s" });
    let ending = if count == 1 { "" } else { plural };
    format!("{} {one}{ending}: {}", group_digits(count), list(names))
}

/// `A, B, C, D, E, F, G, H and 4 more`.
pub(super) fn list(names: impl ExactSizeIterator<Item = impl Display>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(|name| name.to_string()).collect();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {} more", group_digits(more as u64)) }
}

/// A series, from any operation: `XOM 5d bull`.
pub(super) fn in_words(key: &SeriesKey) -> String {
    let part = |part: Option<&'static str>| part.map_or_else(String::new, |part| format!(" {part}"));
    let (period, regime) = (part(key.period.map(|it| it.as_str())), part(key.regime.map(|it| it.as_str())));
    format!("{}{period}{regime}", key.ticker)
}

#[cfg(test)]
mod tests {
    use super::some_of;

    #[test]
    fn the_first_names_are_listed_and_the_rest_counted() {
        assert_eq!(some_of("ticker", ["A"].iter()), "1 ticker: A");
        assert_eq!(some_of("series", ["A 5d bull", "B 5d bull"].iter()), "2 series: A 5d bull, B 5d bull");
        assert_eq!(some_of("ticker", 0..1_500), "1,500 tickers: 0, 1, 2, 3, 4, 5, 6, 7 and 1,492 more");
    }
}
