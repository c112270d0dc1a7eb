//! The checks that data must pass before it is published.
//!
//! | check | what it finds |
//! |---|---|
//! | `missing` | sectors, tickers, operations and filter values that the definition names and that have no data |
//! | `universe` | more than a share of tickers or series that disappeared or appeared since the previous version; 1 allows all |
//! | `max_age` | a newest date that is too old: the service answers, but its data is stale |
//!
//! All checks run, and every finding is reported. Findings that the definition allows become notes. Others fail:
//! nothing is published, `latest` is unchanged, and the archive keeps what was fetched.
//!
//! The previous version is the definition's own `latest`, if there is one and it requested the same signals. A history
//! without signals counts as gone, so that emptied histories are noticed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::error::{Findings, RunError};
use super::missing::{Missing, absent_sector, absent_tickers, demanded_of_archive, known_sectors};
use super::names::{list, some_of};
use super::scope::archived;
use crate::archive::{AnswerRecord, Scope, SealedRun, View};
use crate::definition::DefinitionFile;
use crate::digest;
use crate::error::Result;
use crate::export::{self, RecordedProvenance};
use crate::freshness::{Age, today};
use crate::human::{counted, grouped, percent};
use crate::interface::{Sector, Ticker};
use crate::plan::{Filter, OnMissing, Plan, Request};
use crate::tables::{SeriesKey, Table};

/// Checks that the newest date of a dataset, in naive microseconds, is not too old.
pub(super) fn age(plan: &Plan, newest: Option<i64>, now: DateTime<Utc>) -> Result<()> {
    let newest = newest.and_then(DateTime::from_timestamp_micros).map(|newest| newest.date_naive());
    let (Some(limit), Some(newest)) = (plan.checks.max_age, newest) else { return Ok(()) };
    let age = Age::of(newest, today(plan, now));
    if !age.is_above(limit) {
        return Ok(());
    }
    let found = format!("the newest date is {newest}, {age} ago, above the limit of {limit}");
    let hint = "ask the vendor why its data is stale, or raise `max_age` in `[checks]`";
    let source = Findings::of([found].into_iter()).expect("something was found");
    Err(RunError::Checks { name: plan.name.clone(), hint, source: Box::new(source) }.into())
}

/// A check by its name in `[checks]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Missing,
    Universe,
}

/// What the checks found.
#[derive(Debug, Default)]
struct CheckOutcome {
    /// Findings that prevent publishing.
    failed: Vec<(Check, String)>,
    /// Findings that are allowed.
    notes: Vec<String>,
}

/// The answers of a run.
pub(super) struct RunAnswers<'a> {
    pub(super) records: &'a [Arc<AnswerRecord>],
    /// The requests for what the definition names.
    pub(super) demanded: &'a [Request],
    /// The operations that the service does not offer, one message each.
    pub(super) lacking: &'a [String],
}

/// The data to check, and what to check it against.
#[derive(Clone, Copy)]
pub(super) struct Checking<'a> {
    pub(super) plan: &'a Plan,
    pub(super) view: &'a View,
    pub(super) scope: &'a Scope,
    /// The folder of published datasets; none if nothing is published.
    pub(super) datasets: Option<&'a Path>,
    /// The record of the latest version in the store, if there is one.
    pub(super) in_store: Option<&'a RecordedProvenance>,
}

/// Tickers with a period and a regime each.
type Universe = BTreeSet<SeriesKey>;

impl Checking<'_> {
    /// Checks the answers of a run. Returns notes.
    pub(super) fn pull(self, pull: &RunAnswers<'_>) -> Result<Vec<String>> {
        let answers: BTreeMap<&str, &AnswerRecord> =
            pull.records.iter().map(|record| (record.request.request.as_str(), &**record)).collect();
        let mut outcome = CheckOutcome::default();
        let missing = Missing::of_answers(pull.demanded, &answers);
        outcome.missing(self.plan, missing.messages(self.view)?);
        outcome.missing(self.plan, pull.lacking.to_vec());
        outcome.missing(self.plan, self.filtered_out()?);
        let answered = || self.scope.requests.iter().filter_map(|request| answers.get(request.as_str()));
        let empty: BTreeSet<String> = answered()
            .filter(|record| record.request.rows > 0)
            .flat_map(|record| &record.empty)
            .map(in_words)
            .collect();
        if !empty.is_empty() {
            outcome.notes.push(format!("empty histories for {}", some_of("series", empty.iter())));
        }
        let has_rows = |record: &&&AnswerRecord| Table::of(record.request.endpoint) == Table::of(self.scope.source);
        let now = answered().filter(has_rows).flat_map(|record| record.listed().cloned());
        self.universe(now.collect(), &mut outcome)?;
        outcome.settled(&self.plan.name)
    }

    /// Checks the newest dataset of the definition. Returns notes.
    pub(super) fn newest(self) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        let listing = self.view.listing(&self.scope.requests)?;
        let demanded = demanded_of_archive(self.plan, self.scope);
        let missing = Missing::of_archive(&demanded, &listing, self.answered()?.as_ref());
        outcome.missing(self.plan, missing.messages(self.view)?);
        outcome.missing(self.plan, self.filtered_out()?);
        self.universe(listing.into_values().flatten().collect(), &mut outcome)?;
        outcome.settled(&self.plan.name)
    }

    /// The answered requests of the last run of this exact definition; none if the archive has no such run.
    fn answered(&self) -> Result<Option<BTreeSet<String>>> {
        let digest = digest::of(self.plan.text.as_bytes());
        let is_own = |run: &&SealedRun| {
            let definition = run.seal().definition.as_ref();
            definition.is_some_and(|definition| definition.name == self.plan.name && definition.digest == digest)
        };
        let last = self.view.runs().rfind(is_own);
        let requests = |run: &SealedRun| Ok(run.requests()?.into_iter().map(|record| record.request).collect());
        last.map(requests).transpose()
    }

    /// Checks that every filter value of an ad hoc build has data.
    pub(super) fn ad_hoc(self) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        outcome.missing(self.plan, self.filtered_out()?);
        outcome.settled(&self.plan.name)
    }

    /// The filter values that no series has.
    fn filtered_out(&self) -> Result<Vec<String>> {
        let Filter { tickers, sectors, periods, regimes, .. } = &self.scope.filter;
        if tickers.is_none() && sectors.is_none() && periods.is_none() && regimes.is_none() {
            return Ok(Vec::new());
        }
        let members = |filter: Filter| self.view.members(&Scope { filter, ..self.scope.clone() });
        let all = members(Filter::default())?;
        let mut missing = Vec::new();
        let known: BTreeSet<&Ticker> = all.iter().map(|key| &key.ticker).collect();
        let absent: Vec<&Ticker> = tickers.iter().flatten().filter(|ticker| !known.contains(ticker)).collect();
        if !absent.is_empty() {
            missing.push(absent_tickers("no signals", &absent, known.iter().copied()));
        }
        for sector in sectors.iter().flatten() {
            if members(Filter { sectors: Some([sector.clone()].into()), ..Filter::default() })?.is_empty() {
                missing.push(absent_sector(sector, known_sectors(self.view)?));
            }
        }
        let periods = periods.iter().flatten().filter(|period| all.iter().all(|key| key.period != Some(**period)));
        missing.extend(periods.map(|period| format!("no signals for period `{period}`")));
        let regimes = regimes.iter().flatten().filter(|regime| all.iter().all(|key| key.regime != Some(**regime)));
        missing.extend(regimes.map(|regime| format!("no signals for regime `{regime}`")));
        Ok(missing)
    }

    /// Compares the series with those of the previous version.
    fn universe(&self, now: Universe, outcome: &mut CheckOutcome) -> Result<()> {
        let Some(datasets) = self.datasets else { return Ok(()) };
        let before = match export::latest(datasets, Some(&self.plan.name)) {
            Ok(before) => match before.as_ref().into_iter().chain(self.in_store).max_by_key(|one| one.built_at) {
                Some(before) => before.clone(),
                None => return Ok(()),
            },
            Err(error) => {
                outcome.notes.push(format!("the universe was not compared with the previous version: {error}"));
                return Ok(());
            }
        };
        if !self.has_the_same_requests(&before) {
            return Ok(());
        }
        let earlier = View::of(self.view.archive().clone(), before.as_of);
        // The archive may be another one.
        let Ok(scope) = archived(self.plan, &earlier) else { return Ok(()) };
        let listed: Universe = earlier.listing(&scope.requests)?.into_values().flatten().collect();
        let sectors =
            if self.scope.filter.sectors.is_some() { self.view.sectors(Some(self.scope))? } else { HashMap::new() };
        let kept = |universe: Universe| -> Universe {
            let is_taken = |key: &SeriesKey| takes(&self.scope.filter, key, sectors.get(&key.ticker));
            universe.into_iter().filter(is_taken).collect()
        };
        let (listed, now) = (kept(listed), kept(now));
        if listed.is_empty() {
            return Ok(());
        }
        let (version, share) = (&before.version, self.plan.checks.universe);
        let (before, after) = (tickers(&listed), tickers(&now));
        let mut found = UniverseChange { what: ["ticker", "tickers"], before: &before, now: &after, version }
            .above(share, |it| it.to_string());
        // If tickers appeared or disappeared, so did their series.
        if found.is_empty() {
            found = UniverseChange { what: ["series"; 2], before: &listed, now: &now, version }.above(share, in_words);
        }
        outcome.failed.extend(found.into_iter().map(|found| (Check::Universe, found)));
        Ok(())
    }

    /// Whether a version requested the same signals.
    fn has_the_same_requests(&self, before: &RecordedProvenance) -> bool {
        let found = DefinitionFile::new(self.plan.path.clone(), before.definition.clone());
        found
            .and_then(Plan::of)
            .is_ok_and(|earlier| earlier.ways == self.plan.ways && earlier.dataset.filter == self.plan.dataset.filter)
    }
}

impl CheckOutcome {
    /// Adds missing data as failures or notes, as the definition says.
    fn missing(&mut self, plan: &Plan, messages: Vec<String>) {
        match plan.checks.missing {
            OnMissing::Fail => self.failed.extend(messages.into_iter().map(|message| (Check::Missing, message))),
            OnMissing::Warn => self.notes.extend(messages),
        }
    }

    /// The notes, or the failure.
    fn settled(self, name: &str) -> Result<Vec<String>> {
        let checks: BTreeSet<Check> = self.failed.iter().map(|(check, _)| *check).collect();
        let hint = match (checks.contains(&Check::Missing), checks.contains(&Check::Universe)) {
            (true, false) => "set `missing = \"warn\"` in `[checks]` to publish without it",
            (false, true) => "if this is expected, raise `universe` in `[checks]`",
            (true, true) => "if this is expected, set `missing = \"warn\"` and raise `universe` in `[checks]`",
            (false, false) => return Ok(self.notes),
        };
        let found = self.failed.into_iter().map(|(_, found)| found);
        let found = Findings::of(found).expect("something was found");
        Err(RunError::Checks { name: name.to_owned(), hint, source: Box::new(found) }.into())
    }
}

fn tickers(universe: &Universe) -> BTreeSet<Ticker> {
    universe.iter().map(|key| key.ticker.clone()).collect()
}

/// The tickers or series of now and of the previous version.
struct UniverseChange<'a, T> {
    /// The singular and plural of the compared items.
    what: [&'static str; 2],
    before: &'a BTreeSet<T>,
    now: &'a BTreeSet<T>,
    version: &'a str,
}

impl<T: Ord> UniverseChange<'_, T> {
    /// Messages on items that disappeared, if above a share of the previous version, and on items that appeared, if
    /// above a share of the new one.
    fn above(&self, share: f64, name: impl Fn(&T) -> String) -> Vec<String> {
        let Self { what: [one, many], before, now, version } = self;
        let shifts = [
            ("disappeared", before.difference(now).collect(), before.len()),
            ("appeared", now.difference(before).collect(), now.len()),
        ];
        let tell = |(how, shifted, all): (&str, Vec<&T>, usize)| {
            (shifted.len() as f64 > all as f64 * share).then(|| {
                let (some, all) = (grouped(shifted.len() as u64), counted(all as u64, one, many));
                let (share, names) = (percent(share), list(shifted.iter().map(|it| name(it))));
                format!("{some} of {all} {how} since version `{version}`, above the limit of {share}: {names}")
            })
        };
        shifts.into_iter().filter_map(tell).collect()
    }
}

/// Whether a filter accepts a series. The sector of its ticker may be unknown.
fn takes(filter: &Filter, key: &SeriesKey, sector: Option<&Sector>) -> bool {
    let Filter { tickers, sectors, periods, regimes, .. } = filter;
    tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
        && sectors.as_ref().is_none_or(|sectors| sector.is_some_and(|sector| sectors.contains(sector)))
        && periods.as_ref().is_none_or(|periods| key.period.is_some_and(|period| periods.contains(&period)))
        && regimes.as_ref().is_none_or(|regimes| key.regime.is_some_and(|regime| regimes.contains(&regime)))
}

/// A series of signals, from any operation.
fn in_words(key: &SeriesKey) -> String {
    let part = |part: Option<&'static str>| part.map_or_else(String::new, |part| format!(" {part}"));
    let (period, regime) = (part(key.period.map(|it| it.as_str())), part(key.regime.map(|it| it.as_str())));
    format!("{}{period}{regime}", key.ticker)
}
