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
//!
//! Tickers and series are compared with the previous version as far as both versions asked for them: a definition that asks for
//! more does not make the universe grow, and one that asks for another sector as well is still warned when tickers of the first
//! one are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};

use super::builder::Builder;
use super::gather::Gathered;
use super::missing::{
    absent_sector, absent_tickers, demanded_of_archive, in_words, known_sectors, list, missing_answers, missing_series,
    some_of,
};
use super::scope::archived_scope;
use crate::archive::{AnswerRecord, Archive, Scope, SealedRun, View};
use crate::audit::revisions::{RewriteCount, RewrittenSince};
use crate::definition::DefinitionFile;
use crate::disk::digest;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, VersionRecord};
use crate::facts::Facts;
use crate::freshness::{self, Age, MAX_DAYS_AHEAD, days_ahead, today};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Checks, Filter, OnFinding, Plan, Request, RequestList, TickerSource};
use crate::tables::{RequestRecord, SeriesKey, Table};
use crate::text::human::{count_of, group_digits, percent};

// How to publish in spite of a check.
const MISSING: &str = "set `missing = \"warn\"`";
const UNIVERSE: &str = "raise `universe`";
const MAX_AGE: &str = "raise `max_age`";
const DATES: &str = "set `dates = \"warn\"`";

/// What the checks found.
#[derive(Debug, Default)]
struct CheckOutcome {
    /// Findings that prevent publishing, each with what to do to publish in spite of it.
    failed: Vec<(&'static str, String)>,
    /// Findings that are allowed.
    notes: Vec<String>,
}

/// The series that requests list.
type Listing = BTreeMap<String, BTreeSet<SeriesKey>>;

impl Builder {
    /// Checks what was gathered in a run: that what the definition names has answers with data. Returns notes.
    pub(super) fn check_answers(&self, records: &[Arc<AnswerRecord>], gathered: &Gathered) -> Result<Vec<String>> {
        let answers = by_request(records);
        let mut missing = missing_answers(gathered, &answers, &self.view)?;
        missing.extend(gathered.lacking.iter().cloned());
        missing.extend(self.filtered_out()?);
        let lists = records.iter().filter(|record| record.request.endpoint == Endpoint::NewsArticles);
        let lists: Vec<&RequestRecord> = lists.map(|record| &record.request).collect();
        // So many empty lists are not a coincidence.
        if lists.len() >= 10 && lists.iter().all(|list| list.rows + list.rejects == 0) {
            missing
                .push(format!("no articles: the lists of all {} tickers are empty", group_digits(lists.len() as u64)));
        }
        let answered: Vec<&&AnswerRecord> =
            self.scope.requests.iter().filter_map(|request| answers.get(request.as_str())).collect();
        let with_rows = answered.iter().filter(|record| record.request.rows > 0).flat_map(|record| &record.empty);
        let empty = with_rows.filter(|key| !self.scope.excluded.contains(&key.ticker));
        let empty: BTreeSet<String> = empty.map(in_words).collect();
        let note = (!empty.is_empty()).then(|| format!("empty histories for {}", some_of("series", empty.iter())));
        let mut now = Listing::new();
        for record in answered {
            if Table::of(record.request.endpoint) == Table::of(self.scope.source) {
                now.entry(record.request.request.clone()).or_default().extend(record.listed_series().cloned());
            }
        }
        self.conclude(missing, note, Some(now))
    }

    /// Checks what the archive has for the dataset of the definition. Returns notes.
    pub(super) fn check_archived(&self) -> Result<Vec<String>> {
        let listing = self.view.listing(&self.scope.requests)?;
        let demanded = demanded_of_archive(&self.plan, &self.scope);
        // The answered requests of the last run of this exact definition, if the archive has such a run.
        let digest = digest::of(self.plan.text.as_bytes());
        let last = self.view.runs().rfind(|run| {
            let definition = run.seal().definition.as_ref();
            definition.is_some_and(|definition| definition.name == self.plan.name && definition.digest == digest)
        });
        let requests = last.map(SealedRun::requests).transpose()?;
        let answered = requests.map(|requests| requests.into_iter().map(|record| record.request).collect());
        let mut missing = missing_series(&demanded, &listing, answered.as_ref(), &self.view)?;
        missing.extend(self.filtered_out()?);
        self.conclude(missing, None, Some(listing))
    }

    /// Checks that every filter value of an ad hoc build has data, and every one that its caller selected exists. Returns
    /// notes.
    pub(super) fn check_selected(&self, selected: &Filter) -> Result<Vec<String>> {
        let unknown = self.without_data(selected)?;
        if !unknown.is_empty() {
            let hint = "select what the archive has; `bellwether run` fetches what the definition asks for";
            return Err(Error::usage(unknown.join("; "), hint));
        }
        self.conclude(self.filtered_out()?, None, None)
    }

    /// The notes, or the failure, on what is missing and on a universe. What is missing is a warning, if it does not fail.
    fn conclude(&self, missing: Vec<String>, note: Option<String>, universe: Option<Listing>) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        for message in &missing {
            outcome.add(MISSING, self.plan.checks.missing, message.clone());
        }
        outcome.notes.extend(note);
        if let Some(universe) = universe {
            self.check_universe(universe, &mut outcome)?;
        }
        let notes = outcome.into_notes(&self.plan.name)?;
        self.control.warn(&missing);
        Ok(notes)
    }

    /// The values of the dataset's filter that no series has, and the tickers that are left out and were never in.
    fn filtered_out(&self) -> Result<Vec<String>> {
        let mut missing = self.without_data(&self.scope.filter)?;
        if self.scope.excluded.is_empty() {
            return Ok(missing);
        }
        // As far as the archive knows the lists.
        let lists = self.plan.alternatives.iter().flat_map(|operation| match &operation.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(tickers, _) => tickers.listing(),
        });
        let known = self.view.tickers_listed_by(&lists.map(|request| request.to_string()).collect())?;
        let absent: Vec<&Ticker> = self.scope.excluded.iter().filter(|ticker| !known.contains(ticker)).collect();
        if !known.is_empty() && !absent.is_empty() {
            missing.push(absent_tickers("nothing to exclude", &absent, known.iter()));
        }
        Ok(missing)
    }

    /// The values of a filter that no series has.
    fn without_data(&self, filter: &Filter) -> Result<Vec<String>> {
        let Filter { tickers, sectors, periods, regimes, pairs, .. } = filter;
        if tickers.is_none() && sectors.is_none() && periods.is_none() && regimes.is_none() && pairs.is_none() {
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
                missing.push(absent_sector(sector, known_sectors(&self.view)?));
            }
        }
        for period in periods.iter().flatten().filter(|it| all.iter().all(|key| key.period != Some(**it))) {
            missing.push(format!("no signals for period `{period}`"));
        }
        for regime in regimes.iter().flatten().filter(|it| all.iter().all(|key| key.regime != Some(**it))) {
            missing.push(format!("no signals for regime `{regime}`"));
        }
        let of_pairs = Filter { tickers: None, sectors: None, ..filter.clone() };
        let has_both = || all.iter().any(|key| of_pairs.takes(&key.ticker, key.period, key.regime));
        if filter.periods.is_some() && filter.regimes.is_some() && missing.is_empty() && !has_both() {
            missing.push("no signals with one of these periods and one of these regimes together".to_owned());
        }
        for (period, regime) in pairs.iter().flatten() {
            if all.iter().all(|key| (key.period, key.regime) != (Some(*period), Some(*regime))) {
                missing.push(format!("no signals for pair `{period} {regime}`"));
            }
        }
        Ok(missing)
    }

    /// Checks rows, and what was rewritten since the version before, if anything can have been. Returns notes.
    pub(super) fn check_rows(
        &self,
        facts: &Facts,
        rewritten: Option<&RewrittenSince>,
        now: DateTime<Utc>,
    ) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        let (plan, checks, today) = (&*self.plan, &self.plan.checks, today(&self.plan, now));
        outcome.notes.extend(plan.dataset.calendar_note(today));
        // What is dated in the future keeps nothing fresh.
        if let (Some(limit), Some(newest)) = (checks.max_age, facts.newest_by(today)) {
            let age = Age::of(newest, today, &plan.dataset.sessions);
            if age.is_above(limit) {
                let found = format!("the newest date is {newest}, {age} ago, above the limit of {limit}");
                outcome.add(MAX_AGE, OnFinding::Fail, found);
            }
        }
        let newest = facts.bounds().map(|(_, newest)| newest);
        if let Some(newest) = newest
            && let Some(days) = days_ahead(newest, today)
        {
            let [days, limit] = [days, MAX_DAYS_AHEAD].map(|days| count_of(days.into(), "day", "days"));
            let found = format!("the newest date is {newest}, {days} in the future, above the limit of {limit}");
            outcome.add(DATES, checks.dates, found);
        }
        let Some(before) = &self.before else { return outcome.into_notes(&plan.name) };
        let version = &before.recorded.version;
        if let (Some(newest), Some(known), Some(then)) = (newest, before.newest, &before.plan) {
            // A revision may take the newest date from rows that are selected by their values.
            let is_same = then.alternatives == plan.alternatives
                && then.dataset.filter == plan.dataset.filter
                && !then.dataset.filter.is_by_value()
                && then.dataset.dates == plan.dataset.dates
                && then.dataset.rows == plan.dataset.rows;
            let was_ahead = days_ahead(known, freshness::today(then, before.recorded.built_at)).is_some();
            if is_same && !was_ahead && newest < known {
                let found = format!("the newest date went back from {known} to {newest} since version `{version}`");
                outcome.add(DATES, checks.dates, found);
            }
        }
        if let Some(rewritten) = rewritten {
            check_rewrites(rewritten, checks, version, &mut outcome);
        }
        outcome.into_notes(&plan.name)
    }
}

/// The answers by the words of their requests.
pub(super) fn by_request(records: &[Arc<AnswerRecord>]) -> BTreeMap<&str, &AnswerRecord> {
    records.iter().map(|record| (record.request.request.as_str(), &**record)).collect()
}

/// More was rewritten than is usual since a version.
fn check_rewrites(rewritten: &RewrittenSince, checks: &Checks, version: &str, outcome: &mut CheckOutcome) {
    let RewrittenSince { signals, articles, series } = rewritten;
    for (count, [one, many]) in [(signals, ["signal", "signals"]), (articles, ["article", "articles"])] {
        if is_above(count, checks.rewritten) {
            let (some, all) = (group_digits(count.rewritten), count_of(count.known, one, many));
            let verb = if count.rewritten == 1 { "was" } else { "were" };
            let limit = percent(checks.rewritten);
            let found = format!(
                "{some} of {all} {verb} revised or withdrawn since version `{version}`, above the limit of {limit}"
            );
            outcome.add("raise `rewritten`", OnFinding::Fail, found);
        }
    }
    let mut above = Vec::new();
    for (key, count) in series.iter().filter(|(_, count)| is_above(count, checks.rewritten_series)) {
        let (some, all) = (group_digits(count.rewritten), group_digits(count.known));
        above.push(format!("{} ({some} of {all})", in_words(key)));
    }
    if !above.is_empty() {
        let count = count_of(above.len() as u64, "series was", "series were");
        let (limit, names) = (percent(checks.rewritten_series), list(above.iter()));
        let found = format!("{count} rewritten since version `{version}` by more than the limit of {limit}: {names}");
        outcome.add("raise `rewritten_series`", OnFinding::Fail, found);
    }
}

impl CheckOutcome {
    /// Adds a finding as a failure or a note.
    fn add(&mut self, remedy: &'static str, action: OnFinding, found: String) {
        match action {
            OnFinding::Fail => self.failed.push((remedy, found)),
            OnFinding::Warn => self.notes.push(found),
        }
    }

    /// The notes, or the failure.
    fn into_notes(self, name: &str) -> Result<Vec<String>> {
        if self.failed.is_empty() {
            return Ok(self.notes);
        }
        let mut remedies: Vec<&str> = self.failed.iter().map(|(remedy, _)| *remedy).collect();
        remedies.dedup();
        let how = format!("{} in `[checks]`", remedies.join(" and "));
        let hint = match remedies[..] {
            [MISSING] => format!("{how} to publish without it"),
            [MAX_AGE] => format!("ask the vendor why its data is stale, or {how}"),
            _ => format!("if this is expected, {how}"),
        };
        let failed = count_of(self.failed.len() as u64, "check failed", "checks failed");
        Err(Error::new(ErrorKind::Checks, format!("nothing was published for `{name}`: {failed}"))
            .with_hint(format!("the archive keeps what was fetched, and `latest` is unchanged; {hint}"))
            .with_reasons(self.failed.into_iter().map(|(_, found)| found)))
    }
}

/// Whether more than a share was rewritten. A share of fewer than 20 cells says nothing.
fn is_above(count: &RewriteCount, share: f64) -> bool {
    count.known >= 20 && count.rewritten as f64 > count.known as f64 * share
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

impl PreviousVersion {
    /// The latest version of a definition, in a folder of datasets or recorded in the store, that was built from none of the
    /// runs that are forgotten in an archive, if there is one; and notes for the user.
    pub(super) fn find(
        datasets: Option<&Path>,
        in_store: Option<&VersionRecord>,
        name: &str,
        archive: &Archive,
    ) -> (Option<Self>, Vec<String>) {
        let forgotten: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
        let counts = |one: &VersionRecord| !one.runs.iter().any(|run| forgotten.contains(run.as_str()));
        let find = || {
            let here = datasets.map(|datasets| export::latest(datasets, Some(name))).transpose()?.flatten();
            let mut all: Vec<VersionRecord> = here.into_iter().chain(in_store.cloned()).collect();
            if let Some(datasets) = datasets.filter(|_| !all.is_empty() && !all.iter().any(counts)) {
                all.extend(VersionRecord::of_dataset(datasets, name)?.into_iter().map(|(_, recorded)| recorded));
            }
            Ok::<_, Error>(all.into_iter().filter(counts).max_by_key(|one| one.built_at))
        };
        match find() {
            Ok(newest) => (newest.map(|recorded| Self::read(datasets, recorded)), Vec::new()),
            Err(error) => (None, vec![format!("nothing was compared with the previous version: {error}")]),
        }
    }

    fn read(datasets: Option<&Path>, recorded: VersionRecord) -> Self {
        let file = DefinitionFile::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone());
        let facts =
            datasets.and_then(|datasets| export::facts(&datasets.join(&recorded.name).join(&recorded.version)).ok());
        let newest = facts.and_then(|facts| export::dates_of(&facts)).map(|(_, last)| last);
        Self { plan: file.and_then(Plan::of).ok(), recorded, newest }
    }
}

/// Tickers with a period and a regime each.
type Universe = BTreeSet<SeriesKey>;

impl Builder {
    /// Compares the series with those of the previous version.
    fn check_universe(&self, now: Listing, outcome: &mut CheckOutcome) -> Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        let Some(plan) = &before.plan else { return Ok(()) };
        let earlier = View::of(self.view.archive().clone(), before.recorded.as_of);
        // The archive may be another one.
        let Ok(scope) = archived_scope(plan, &earlier) else { return Ok(()) };
        let listed = asked_by_both(plan, &self.plan, earlier.listing(&scope.requests)?);
        let (Some(mut listed), Some(mut now)) = (listed, asked_by_both(plan, &self.plan, now)) else { return Ok(()) };
        let filter = plan.dataset.filter.clone().and(self.scope.filter.clone());
        let sectors = if filter.sectors.is_some() { self.view.sectors(Some(&self.scope))? } else { HashMap::new() };
        for universe in [&mut listed, &mut now] {
            universe.retain(|SeriesKey { ticker, period, regime, .. }| {
                // The sector of a ticker may be unknown.
                let is_of_sector = filter
                    .sectors
                    .as_ref()
                    .is_none_or(|wanted| sectors.get(ticker).is_some_and(|sector| wanted.contains(sector)));
                let is_excluded = plan.excluded.contains(ticker) || self.scope.excluded.contains(ticker);
                filter.takes(ticker, *period, *regime) && is_of_sector && !is_excluded
            });
        }
        if listed.is_empty() {
            return Ok(());
        }
        let (version, share) = (before.recorded.version.as_str(), self.plan.checks.universe);
        let (before, after) = (tickers(&listed), tickers(&now));
        let mut found = above(["ticker", "tickers"], (&before, version), &after, share, Ticker::to_string);
        // If tickers appeared or disappeared, so did their series.
        if found.is_empty() {
            found = above(["series"; 2], (&listed, version), &now, share, in_words);
        }
        for found in found {
            outcome.add(UNIVERSE, OnFinding::Fail, found);
        }
        Ok(())
    }
}

/// What two plans both ask for, of some listed series; none if they cannot be compared.
fn asked_by_both(before: &Plan, now: &Plan, mut listing: Listing) -> Option<Universe> {
    if before.alternatives == now.alternatives && before.further == now.further {
        return Some(listing.into_values().flatten().collect());
    }
    match (&before.alternatives.first()?.list, &now.alternatives.first()?.list) {
        (RequestList::Listed(asked), RequestList::Listed(asked_now)) => {
            let asked: HashSet<&Request> = asked.iter().chain(&before.further).collect();
            let asked_now = asked_now.iter().chain(&now.further);
            let both: HashSet<String> =
                asked_now.filter(|request| asked.contains(request)).map(Request::to_string).collect();
            listing.retain(|request, _| both.contains(request));
            Some(listing.into_values().flatten().collect())
        }
        (RequestList::EachTicker(tickers, pairs), RequestList::EachTicker(tickers_now, pairs_now)) => {
            let tickers: Option<BTreeSet<&Ticker>> = match (tickers, tickers_now) {
                (TickerSource::Listed(before), TickerSource::Listed(now)) => {
                    Some(before.iter().filter(|ticker| now.contains(ticker)).collect())
                }
                (before, now) if before == now => None,
                _ => return None,
            };
            let pairs: Vec<_> = pairs.iter().filter(|pair| pairs_now.contains(pair)).collect();
            let mut universe: Universe = listing.into_values().flatten().collect();
            universe.retain(|key| {
                let is_pair = key.period.zip(key.regime).is_some_and(|pair| pairs.contains(&&pair));
                is_pair && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
            });
            (!pairs.is_empty()).then_some(universe)
        }
        _ => None,
    }
}

fn tickers(universe: &Universe) -> BTreeSet<Ticker> {
    universe.iter().map(|key| key.ticker.clone()).collect()
}

/// Messages on items of the previous version that disappeared, if above a share of them, and on items that appeared, if above a
/// share of the new ones. What they are is given in singular and plural.
fn above<T: Ord>(
    [one, many]: [&str; 2],
    (before, version): (&BTreeSet<T>, &str),
    now: &BTreeSet<T>,
    share: f64,
    name: impl Fn(&T) -> String,
) -> Vec<String> {
    let gone: Vec<&T> = before.difference(now).collect();
    let new: Vec<&T> = now.difference(before).collect();
    let mut messages = Vec::new();
    for (how, shifted, all) in [("disappeared", gone, before.len()), ("appeared", new, now.len())] {
        if shifted.len() as f64 > all as f64 * share {
            let (some, all) = (group_digits(shifted.len() as u64), count_of(all as u64, one, many));
            let (share, names) = (percent(share), list(shifted.iter().map(|it| name(it))));
            messages
                .push(format!("{some} of {all} {how} since version `{version}`, above the limit of {share}: {names}"));
        }
    }
    messages
}
