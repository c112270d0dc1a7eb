//! The checks that data must pass before it is published.
//!
//! | check | what it finds |
//! |---|---|
//! | `missing` | sectors, tickers, operations and filter values that the definition names and that have no data |
//! | `universe` | more than a share of tickers or series that disappeared or appeared since the previous version; 1 allows all |
//! | `max_age` | a newest date that is too old: the service answers, but its data is stale |
//! | `dates` | a newest date that lies in the future, or before that of the previous version |
//! | `rewritten`, `rewritten_series` | more than a share of what the previous version knew that was rewritten since, of all series and of a single one |
//!
//! All checks run, and every finding is reported. Findings that the definition allows become notes. Others fail:
//! nothing is published, `latest` is unchanged, and the archive keeps what was fetched.
//!
//! The previous version is the definition's own `latest`, here or in its store. A history without signals counts as gone,
//! so that emptied histories are noticed. What is compared with that version is compared again by every run until a new one
//! is published, so that a failure does not pass by itself on the next night.

mod universe;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};

use super::missing::{Missing, absent_sector, absent_tickers, demanded_of_archive, known_sectors};
use super::names::{in_words, list, some_of};
use super::observer::Control;
use crate::archive::{AnswerRecord, Archive, Scope, SealedRun, View};
use crate::audit::revisions::{RewriteCount, RewrittenSince};
use crate::definition::DefinitionFile;
use crate::disk::digest;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, VersionRecord};
use crate::facts::Facts;
use crate::fetch::Refusal;
use crate::freshness::{Age, MAX_DAYS_AHEAD, days_ahead, today};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Filter, OnFinding, Plan, Request, RequestList};
use crate::tables::{SeriesKey, Table};
use crate::text::human::{count_of, group_digits, percent};

/// So many empty lists of articles are not a coincidence.
const FEWEST_EMPTY_LISTS: usize = 10;

/// A check by its name in `[checks]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Missing,
    Universe,
    MaxAge,
    Dates,
    Rewritten,
    RewrittenSeries,
}

impl Check {
    /// How to publish in spite of it.
    fn remedy(self) -> &'static str {
        match self {
            Self::Missing => "set `missing = \"warn\"`",
            Self::Universe => "raise `universe`",
            Self::MaxAge => "raise `max_age`",
            Self::Dates => "set `dates = \"warn\"`",
            Self::Rewritten => "raise `rewritten`",
            Self::RewrittenSeries => "raise `rewritten_series`",
        }
    }
}

/// What the checks found.
#[derive(Debug, Default)]
struct CheckOutcome {
    /// Findings that prevent publishing.
    failed: Vec<(Check, String)>,
    /// Findings that are allowed.
    notes: Vec<String>,
    /// What is missing, of these.
    missing: Vec<String>,
}

/// The data to check, and what to check it against.
#[derive(Clone, Copy)]
pub(super) struct Checking<'a> {
    pub(super) plan: &'a Plan,
    pub(super) view: &'a View,
    pub(super) scope: &'a Scope,
    /// The version before; none if there is none, or if nothing is published.
    pub(super) before: Option<&'a PreviousVersion>,
    /// Hears of what is missing and may be.
    pub(super) control: &'a Control,
}

/// The series that requests list.
type Listing = BTreeMap<String, BTreeSet<SeriesKey>>;

impl Checking<'_> {
    /// Checks the answers of a run: to the requests for what the definition names, of which the service refused some, and
    /// without the operations that it does not offer, one message each. Returns notes.
    pub(super) fn pull(
        self,
        records: &[Arc<AnswerRecord>],
        demanded: &[Request],
        refusals: &BTreeMap<String, Refusal>,
        lacking: &[String],
    ) -> Result<Vec<String>> {
        let answers: BTreeMap<&str, &AnswerRecord> =
            records.iter().map(|record| (record.request.request.as_str(), &**record)).collect();
        let mut outcome = CheckOutcome::default();
        let missing = Missing::of_answers(demanded, refusals, &answers);
        outcome.missing(self.plan, missing.messages(self.view)?);
        outcome.missing(self.plan, lacking.to_vec());
        outcome.missing(self.plan, self.filtered_out()?);
        outcome.missing(self.plan, no_news(records));
        let answered = || self.scope.requests.iter().filter_map(|request| answers.get(request.as_str()));
        let empty: BTreeSet<String> = answered()
            .filter(|record| record.request.rows > 0)
            .flat_map(|record| &record.empty)
            .filter(|key| !self.scope.excluded.contains(&key.ticker))
            .map(in_words)
            .collect();
        if !empty.is_empty() {
            outcome.notes.push(format!("empty histories for {}", some_of("series", empty.iter())));
        }
        let has_rows = |record: &&&AnswerRecord| Table::of(record.request.endpoint) == Table::of(self.scope.source);
        let mut now = Listing::new();
        for record in answered().filter(has_rows) {
            now.entry(record.request.request.clone()).or_default().extend(record.listed_series().cloned());
        }
        self.universe(now, &mut outcome)?;
        self.conclude(outcome)
    }

    /// Checks the newest dataset of the definition. Returns notes.
    pub(super) fn newest(self) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        let listing = self.view.listing(&self.scope.requests)?;
        let demanded = demanded_of_archive(self.plan, self.scope);
        let missing = Missing::of_archive(&demanded, &listing, self.answered_requests()?.as_ref());
        outcome.missing(self.plan, missing.messages(self.view)?);
        outcome.missing(self.plan, self.filtered_out()?);
        self.universe(listing, &mut outcome)?;
        self.conclude(outcome)
    }

    /// The notes, or the failure. What is missing is a warning, if it does not fail.
    fn conclude(self, outcome: CheckOutcome) -> Result<Vec<String>> {
        let missing = outcome.missing.clone();
        let notes = outcome.into_notes(&self.plan.name)?;
        self.control.warn(&missing);
        Ok(notes)
    }

    /// The answered requests of the last run of this exact definition; none if the archive has no such run.
    fn answered_requests(&self) -> Result<Option<BTreeSet<String>>> {
        let digest = digest::of(self.plan.text.as_bytes());
        let is_own = |run: &&SealedRun| {
            let definition = run.seal().definition.as_ref();
            definition.is_some_and(|definition| definition.name == self.plan.name && definition.digest == digest)
        };
        let last = self.view.runs().rfind(is_own);
        let requests = |run: &SealedRun| Ok(run.requests()?.into_iter().map(|record| record.request).collect());
        last.map(requests).transpose()
    }

    /// Checks that every filter value of an ad hoc build has data, and every one that its caller selected exists. Returns
    /// notes.
    pub(super) fn ad_hoc(self, selected: &Filter) -> Result<Vec<String>> {
        let unknown = self.without_data(selected)?;
        if !unknown.is_empty() {
            let hint = "select what the archive has; `bellwether run` fetches what the definition asks for";
            return Err(Error::usage(unknown.join("; "), hint));
        }
        let mut outcome = CheckOutcome::default();
        outcome.missing(self.plan, self.filtered_out()?);
        self.conclude(outcome)
    }

    /// The values of the dataset's filter that no series has, and the tickers that are left out and were never in.
    fn filtered_out(&self) -> Result<Vec<String>> {
        let mut missing = self.without_data(&self.scope.filter)?;
        missing.extend(self.excluded_in_vain()?);
        Ok(missing)
    }

    /// The tickers that are left out and that nothing lists, as far as the archive knows the lists.
    fn excluded_in_vain(&self) -> Result<Option<String>> {
        if self.scope.excluded.is_empty() {
            return Ok(None);
        }
        let lists = self.plan.alternatives.iter().flat_map(|operation| match &operation.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(tickers, _) => tickers.listing(),
        });
        let known = self.view.tickers_listed_by(&lists.map(|request| request.to_string()).collect())?;
        let absent: Vec<&Ticker> = self.scope.excluded.iter().filter(|ticker| !known.contains(ticker)).collect();
        let is_known = !known.is_empty() && !absent.is_empty();
        Ok(is_known.then(|| absent_tickers("nothing to exclude", &absent, known.iter())))
    }

    /// The values of a filter that no series has.
    fn without_data(&self, filter: &Filter) -> Result<Vec<String>> {
        let Filter { tickers, sectors, periods, regimes, pairs, .. } = filter;
        let is_of_series =
            tickers.is_some() || sectors.is_some() || periods.is_some() || regimes.is_some() || pairs.is_some();
        if !is_of_series {
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
        let of_pairs = Filter { tickers: None, sectors: None, ..filter.clone() };
        let has_both = || all.iter().any(|key| of_pairs.takes(&key.ticker, key.period, key.regime));
        if filter.periods.is_some() && filter.regimes.is_some() && missing.is_empty() && !has_both() {
            missing.push("no signals with one of these periods and one of these regimes together".to_owned());
        }
        let has_pair = |(period, regime)| all.iter().any(|key| key.period.zip(key.regime) == Some((period, regime)));
        let pairs = pairs.iter().flatten().filter(|pair| !has_pair(**pair));
        missing.extend(pairs.map(|(period, regime)| format!("no signals for pair `{period} {regime}`")));
        Ok(missing)
    }
}

impl CheckOutcome {
    /// Adds missing data.
    fn missing(&mut self, plan: &Plan, messages: impl IntoIterator<Item = String>) {
        for message in messages {
            if plan.checks.missing == OnFinding::Warn {
                self.missing.push(message.clone());
            }
            self.add(Check::Missing, plan.checks.missing, Some(message));
        }
    }

    /// Adds a finding, if there is one, as a failure or a note.
    fn add(&mut self, check: Check, action: OnFinding, found: Option<String>) {
        match action {
            OnFinding::Fail => self.failed.extend(found.map(|found| (check, found))),
            OnFinding::Warn => self.notes.extend(found),
        }
    }

    /// The notes, or the failure.
    fn into_notes(self, name: &str) -> Result<Vec<String>> {
        let checks: BTreeSet<Check> = self.failed.iter().map(|(check, _)| *check).collect();
        if self.failed.is_empty() {
            return Ok(self.notes);
        }
        let remedies: Vec<&str> = checks.iter().map(|check| check.remedy()).collect();
        let remedies = format!("{} in `[checks]`", remedies.join(" and "));
        let hint = match Vec::from_iter(checks)[..] {
            [Check::Missing] => format!("{remedies} to publish without it"),
            [Check::MaxAge] => format!("ask the vendor why its data is stale, or {remedies}"),
            _ => format!("if this is expected, {remedies}"),
        };
        let failed = count_of(self.failed.len() as u64, "check failed", "checks failed");
        Err(Error::new(ErrorKind::Checks, format!("nothing was published for `{name}`: {failed}"))
            .with_hint(format!("the archive keeps what was fetched, and `latest` is unchanged; {hint}"))
            .with_reasons(self.failed.into_iter().map(|(_, found)| found)))
    }
}

/// The latest version of a definition, here or in its store.
#[derive(Clone, Debug)]
pub(crate) struct PreviousVersion {
    pub(super) recorded: VersionRecord,
    /// What its definition meant; none if this version of the program does not accept it.
    pub(super) plan: Option<Plan>,
    /// Its newest date; none if its facts cannot be read, or are on another machine.
    newest: Option<NaiveDate>,
}

/// Where the versions of definitions are.
#[derive(Clone, Copy, Default)]
pub(super) struct PreviousVersions<'a> {
    /// The folder of published datasets; none if nothing is published.
    pub(super) datasets: Option<&'a Path>,
    /// The record of the latest version in the store.
    pub(super) in_store: Option<&'a VersionRecord>,
}

impl PreviousVersions<'_> {
    /// The latest version of a definition that was built from none of the runs that are forgotten in an archive, if there
    /// is one, and notes for the user.
    pub(super) fn find(self, name: &str, archive: &Archive) -> (Option<PreviousVersion>, Vec<String>) {
        let Some(datasets) = self.datasets else { return (None, Vec::new()) };
        let forgotten: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
        let counts = |one: &&VersionRecord| !one.runs.iter().any(|run| forgotten.contains(run.as_str()));
        let found = export::latest(datasets, Some(name)).and_then(|here| {
            let all: Vec<&VersionRecord> = here.iter().chain(self.in_store).collect();
            let newest = all.iter().copied().filter(counts).max_by_key(|one| one.built_at).cloned();
            if newest.is_some() || all.is_empty() {
                return Ok(newest);
            }
            let older = VersionRecord::of_dataset(datasets, name)?.into_iter().map(|(_, whole)| whole);
            Ok(older.filter(|one| counts(&one)).max_by_key(|one| one.built_at))
        });
        match found {
            Ok(newest) => (newest.map(|recorded| PreviousVersion::of(datasets, &recorded)), Vec::new()),
            Err(error) => (None, vec![format!("nothing was compared with the previous version: {error}")]),
        }
    }
}

impl PreviousVersion {
    fn of(datasets: &Path, recorded: &VersionRecord) -> Self {
        let file = DefinitionFile::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone());
        let facts = export::facts(&datasets.join(&recorded.name).join(&recorded.version)).ok();
        let newest = facts.and_then(|facts| export::dates_of(&facts)).map(|(_, last)| last);
        Self { recorded: recorded.clone(), plan: file.and_then(Plan::of).ok(), newest }
    }
}

/// The message if none of several tickers has an article.
fn no_news(records: &[Arc<AnswerRecord>]) -> Option<String> {
    let is_of_articles = |record: &&Arc<AnswerRecord>| record.request.endpoint == Endpoint::NewsArticles;
    let lists: Vec<_> = records.iter().filter(is_of_articles).collect();
    let is_empty = |record: &&Arc<AnswerRecord>| record.request.rows + record.request.rejects == 0;
    let count = group_digits(lists.len() as u64);
    (lists.len() >= FEWEST_EMPTY_LISTS && lists.iter().all(is_empty))
        .then(|| format!("no articles: the lists of all {count} tickers are empty"))
}

/// A share of fewer cells says nothing.
const FEWEST_CELLS: u64 = 20;

/// Rows to check.
#[derive(Clone, Copy)]
pub(in crate::run) struct RowChecks<'a> {
    pub(in crate::run) plan: &'a Plan,
    pub(in crate::run) facts: &'a Facts,
    /// The version before, if there is one.
    pub(in crate::run) before: Option<&'a PreviousVersion>,
    /// What was rewritten since; none if nothing can have been.
    pub(in crate::run) rewritten: Option<&'a RewrittenSince>,
    pub(in crate::run) now: DateTime<Utc>,
}

impl RowChecks<'_> {
    /// Checks the rows. Returns notes.
    pub(in crate::run) fn check(self) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        let today = today(self.plan, self.now);
        outcome.notes.extend(self.plan.dataset.calendar_note(today));
        outcome.add(Check::MaxAge, OnFinding::Fail, self.age(today));
        outcome.add(Check::Dates, self.plan.checks.dates, self.ahead(today));
        outcome.add(Check::Dates, self.plan.checks.dates, self.back());
        self.check_rewrites(&mut outcome);
        outcome.into_notes(&self.plan.name)
    }

    /// The newest date is too old. What is dated in the future keeps nothing fresh.
    fn age(self, today: NaiveDate) -> Option<String> {
        let (limit, newest) = (self.plan.checks.max_age?, self.facts.newest_by(today)?);
        let age = Age::of(newest, today, &self.plan.dataset.sessions);
        age.is_above(limit).then(|| format!("the newest date is {newest}, {age} ago, above the limit of {limit}"))
    }

    /// The newest date is far in the future.
    fn ahead(self, today: NaiveDate) -> Option<String> {
        let (_, newest) = self.facts.bounds()?;
        let days = count_of(days_ahead(newest, today)?.into(), "day", "days");
        let limit = count_of(MAX_DAYS_AHEAD.into(), "day", "days");
        Some(format!("the newest date is {newest}, {days} in the future, above the limit of {limit}"))
    }

    /// The newest date is before that of the previous version, which asked for the same and was not ahead of its time. A
    /// revision may take the newest date from rows that are selected by their values.
    fn back(self) -> Option<String> {
        let before = self.before?;
        let (plan, known) = (before.plan.as_ref()?, before.newest?);
        let is_same = plan.alternatives == self.plan.alternatives
            && plan.dataset.filter == self.plan.dataset.filter
            && !plan.dataset.filter.is_by_value()
            && plan.dataset.dates == self.plan.dataset.dates
            && plan.dataset.rows == self.plan.dataset.rows;
        let was_ahead = days_ahead(known, today(plan, before.recorded.built_at)).is_some();
        let (_, newest) = self.facts.bounds()?;
        let version = &before.recorded.version;
        (is_same && !was_ahead && newest < known)
            .then(|| format!("the newest date went back from {known} to {newest} since version `{version}`"))
    }

    /// More was rewritten than is usual.
    fn check_rewrites(self, outcome: &mut CheckOutcome) {
        let (Some(rewritten), Some(before)) = (self.rewritten, self.before) else { return };
        let version = &before.recorded.version;
        let RewrittenSince { signals, articles, series } = rewritten;
        let (limit, of_series) = (self.plan.checks.rewritten, self.plan.checks.rewritten_series);
        for (count, [one, many]) in [(signals, ["signal", "signals"]), (articles, ["article", "articles"])] {
            let found = is_above(*count, limit).then(|| {
                let (some, all) = (group_digits(count.rewritten), count_of(count.known, one, many));
                let verb = if count.rewritten == 1 { "was" } else { "were" };
                let limit = percent(limit);
                format!(
                    "{some} of {all} {verb} revised or withdrawn since version `{version}`, above the limit of {limit}"
                )
            });
            outcome.add(Check::Rewritten, OnFinding::Fail, found);
        }
        let above: Vec<String> = series
            .iter()
            .filter(|(_, count)| is_above(*count, of_series))
            .map(|(key, count)| {
                format!("{} ({} of {})", in_words(key), group_digits(count.rewritten), group_digits(count.known))
            })
            .collect();
        let found = (!above.is_empty()).then(|| {
            let (count, limit) = (count_of(above.len() as u64, "series was", "series were"), percent(of_series));
            let names = list(above.iter());
            format!("{count} rewritten since version `{version}` by more than the limit of {limit}: {names}")
        });
        outcome.add(Check::RewrittenSeries, OnFinding::Fail, found);
    }
}

fn is_above(count: RewriteCount, share: f64) -> bool {
    count.known >= FEWEST_CELLS && count.rewritten as f64 > count.known as f64 * share
}
