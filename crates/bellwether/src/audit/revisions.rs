//! How the vendor changed its past.
//!
//! A change counts if it was observed after one instant and at or before another, so that the view as of the first
//! differs from the view as of the second. There are three kinds:
//!
//! - *added late*: a cell that earlier answers of its series covered but did not have, or one that comes back. The
//!   first listing of a series adds nothing late; nor does a new day at its newest end, or an article of a day that was
//!   not over when the previous answers ended with it.
//! - *revised*: another signal, confidence or score. An offset, the position of an article in its list and unknown
//!   fields are not values and do not count.
//! - *withdrawn*: a cell that is no longer listed though the answer covers its date.
//!
//! A series is the same whichever operation gives it. Only signals and article scores are compared; a summary describes
//! the day of its request and has no past. The archive is read a few whole tickers at a time, so memory does not grow with
//! its size; several pieces are counted at once.
//!
//! A run of the pipeline reads the archive anyway, and counts on the way what was rewritten since the version before
//! (`Counting`): its checks look at nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, Range};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::rows::RowValue::{self, Real, Text, Whole};
use super::rows::{Entry, RowWriter, always, optional, schema_of};
use super::subject::{ObservedColumns, Subject, Value, day};
use crate::archive::{Groups, Histories, History, StoredObservations};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Signal, Ticker};
use crate::process::in_order::in_order;
use crate::tables::{SeriesKey, Table, date, instant};
use crate::time::{MICROS_PER_DAY, as_record};

/// How the vendor rewrote its past, between two instants.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Revisions {
    /// Changes observed after this instant; none for all.
    #[serde(rename = "after", serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub from: Option<DateTime<Utc>>,
    /// Changes observed up to and including this instant.
    #[serde(serialize_with = "as_record::serialize")]
    #[schemars(with = "String")]
    pub until: DateTime<Utc>,
    /// Signals.
    pub signals: Rewrites,
    /// Scores of articles.
    pub articles: Rewrites,
}

/// Changed cells, and those of each group that has any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rewrites {
    /// All cells.
    pub total: CellCounts,
    /// By age when they changed. A cell is known at every age that it had in the span.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_age: BTreeMap<AgeGroup, CellCounts>,
    /// By month of their date.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_month: BTreeMap<Month, CellCounts>,
    /// By period, for signals.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_period: BTreeMap<Period, CellCounts>,
    /// By market regime, for signals.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_regime: BTreeMap<Regime, CellCounts>,
    /// By sector; `-` if unknown.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_sector: BTreeMap<String, CellCounts>,
    /// By ticker.
    #[serde(serialize_with = "changed_groups")]
    #[schemars(with = "BTreeMap<String, CellCounts>")]
    pub by_ticker: BTreeMap<Ticker, CellCounts>,
}

/// Cells and their changes. Shares and means are those of sums: whatever is added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CellCounts {
    /// Cells known at the start of the span, or first seen in it.
    pub known: u64,
    /// Those that changed, however often.
    pub changed: u64,
    /// The share that changed.
    pub rate: Option<f64>,
    /// Cells that earlier answers did not have though they covered the date.
    pub added_late: u64,
    /// Changes to another value.
    pub revised: u64,
    /// Cells that are no longer listed.
    pub withdrawn: u64,
    /// Changes from `buy` to `sell` or back.
    pub flipped: u64,
    /// The cells known at the start of the span; all known cells if it has no start.
    pub known_before: u64,
    /// Those that were rewritten since, late additions included.
    pub rewritten: u64,
    /// The share of them.
    pub rewritten_share: Option<f64>,
    /// The mean absolute change of confidence or score.
    pub moved_on_average: Option<f64>,
    /// The largest absolute change.
    pub moved_most: Option<f64>,
    /// The sum of absolute changes.
    #[serde(skip)]
    moved: f64,
}

impl AddAssign for CellCounts {
    fn add_assign(&mut self, other: Self) {
        add_fields!(
            self,
            other,
            known,
            changed,
            added_late,
            revised,
            withdrawn,
            flipped,
            known_before,
            rewritten,
            moved
        );
        let share = |some: f64, all: u64| (all > 0).then(|| some / all as f64);
        self.rate = share(self.changed as f64, self.known);
        self.rewritten_share = share(self.rewritten as f64, self.known_before);
        self.moved_on_average = share(self.moved, self.revised);
        // None is less than any number.
        if other.moved_most > self.moved_most {
            self.moved_most = other.moved_most;
        }
    }
}

/// Groups with changes, by name.
fn changed_groups<K: fmt::Display, S: Serializer>(
    groups: &BTreeMap<K, CellCounts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let changed = groups.iter().filter(|(_, counts)| counts.changed > 0);
    serializer.collect_map(changed.map(|(name, counts)| (name.to_string(), counts)))
}

/// Age of a cell in whole days from its date to an instant, both in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgeGroup(usize);

/// The ages, youngest first: the fewest days, and the name. What is dated in the future is as young as can be.
const AGES: [(i64, &str); 6] =
    [(i64::MIN, "0-1d"), (2, "2-7d"), (8, "8-30d"), (31, "31-90d"), (91, "91-365d"), (366, "over 365d")];

impl AgeGroup {
    fn from_days(days: i64) -> Self {
        Self(AGES.iter().rposition(|(fewest, _)| *fewest <= days).expect("the first has no bound"))
    }
}

impl fmt::Display for AgeGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(AGES[self.0].1)
    }
}

/// A calendar month, by its first day. Shown as `2026-11`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month(NaiveDate);

impl Month {
    /// Its first day.
    pub fn start(self) -> NaiveDate {
        self.0
    }
}

impl fmt::Display for Month {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{:04}-{:02}", self.0.year(), self.0.month()))
    }
}

/// Counts changes after an instant (all of them if it is `None`) up to the instant of the subject, and delivers a row
/// for each in the columns of [`schema`].
pub(crate) fn revisions(
    subject: &Subject,
    from: Option<DateTime<Utc>>,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    let until = subject.view.as_of();
    let span = Span { from: from.map(|from| from.timestamp_micros()), until: until.timestamp_micros() };
    let [mut signals, mut articles] = [Rewrites::default(), Rewrites::default()];
    for (table, found) in [(Table::Signals, &mut signals), (Table::Articles, &mut articles)] {
        subject.each_piece(
            |view| view.whole_observations(table),
            |histories, observed| count(subject, span, histories, observed),
            |(counted, rows)| {
                for (key, rewrites) in counted {
                    found.add_series(&key, subject.sector(&key.ticker), rewrites);
                }
                rows.iter().try_for_each(&mut deliver)
            },
        )?;
    }
    Ok(Revisions { from, until, signals, articles })
}

/// The columns of changes, one row each.
pub fn schema() -> SchemaRef {
    schema_of(entries())
}

pub(super) fn entries<'a>() -> [Entry<Change<'a>>; 18] {
    use DataType::{Float64, Int32, Utf8};
    let source = "the operation that returned the new value, or no longer the old one";
    let seen = "when an answer had the new value for the first time, or no longer the old one";
    [
        always("source", Utf8, source, |it| Text(it.observed.source(it.row).map(Endpoint::as_str))),
        always("ticker", Utf8, "", |it| Text(Some(it.key.ticker.as_str()))),
        optional("sector", Utf8, "", |it| Text(Some(it.sector).filter(|sector| *sector != "-"))),
        optional("period", Utf8, "", |it| Text(it.key.period.map(Period::as_str))),
        optional("regime", Utf8, "", |it| Text(it.key.regime.map(Regime::as_str))),
        always("date", date(), "the date of the signal or article", |it| Whole(Some(it.observed.dates.value(it.row)))),
        optional("title", Utf8, "", |it| Text(it.observed.texts.map(|[titles, _]| titles.value(it.row)))),
        optional("link", Utf8, "", |it| Text(it.observed.texts.map(|[_, links]| links.value(it.row)))),
        always("kind", Utf8, "`added_late`, `revised` or `withdrawn`", |it| Text(Some(it.kind()))),
        always("age_days", Int32, "how old the date was when the change was observed", |it| Whole(Some(it.age_days()))),
        optional("old_signal", Utf8, "the direction before", |it| signal(it.before())),
        optional("new_signal", Utf8, "the direction after", |it| signal(Some(it.after()))),
        optional("old_confidence", Float64, "the confidence before", |it| it.number(Table::Signals, it.before())),
        optional("new_confidence", Float64, "the confidence after", |it| it.number(Table::Signals, Some(it.after()))),
        optional("old_score", Float64, "the score before", |it| it.number(Table::Articles, it.before())),
        optional("new_score", Float64, "the score after", |it| it.number(Table::Articles, Some(it.after()))),
        optional("seen_before", instant(), "when an answer had the old value for the first time", |it| {
            Whole(it.before.map(|row| it.observed.seen.value(row)))
        }),
        always("observed_at", instant(), seen, |it| Whole(Some(it.observed.seen.value(it.row)))),
    ]
}

fn signal(value: Option<Value>) -> RowValue<'static> {
    Text(value.and_then(|value| value.signal).map(Signal::as_str))
}

impl Rewrites {
    /// Adds the counts of a series, which has no groups but ages and months.
    fn add_series(&mut self, key: &SeriesKey, sector: &str, Self { total, by_age, by_month, .. }: Self) {
        if total.known == 0 {
            return;
        }
        self.total += total;
        *self.by_ticker.entry(key.ticker.clone()).or_default() += total;
        *self.by_sector.entry(sector.to_owned()).or_default() += total;
        if let (Some(period), Some(regime)) = (key.period, key.regime) {
            *self.by_period.entry(period).or_default() += total;
            *self.by_regime.entry(regime).or_default() += total;
        }
        by_age.into_iter().for_each(|(age, counts)| *self.by_age.entry(age).or_default() += counts);
        by_month.into_iter().for_each(|(month, counts)| *self.by_month.entry(month).or_default() += counts);
    }
}

/// A change of a cell of a series.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    key: &'a SeriesKey,
    sector: &'a str,
    observed: &'a ObservedColumns<'a>,
    /// The row with the new value, and the row with the previous one, if there was one.
    row: usize,
    before: Option<usize>,
}

impl Change<'_> {
    fn kind(&self) -> &'static str {
        match self.before {
            None => "added_late",
            Some(_) if self.observed.is_withdrawn(self.row) => "withdrawn",
            Some(_) => "revised",
        }
    }

    /// The whole days from the date to the change, both in UTC.
    fn age_days(&self) -> i64 {
        (self.observed.seen.value(self.row) - self.observed.dates.value(self.row)).div_euclid(MICROS_PER_DAY)
    }

    fn before(&self) -> Option<Value> {
        self.before.map(|row| self.observed.value(row))
    }

    fn after(&self) -> Value {
        self.observed.value(self.row)
    }

    /// The number of a value of a table; none of the other one.
    fn number(&self, table: Table, value: Option<Value>) -> RowValue<'static> {
        Real(value.filter(|_| self.key.table == Some(table)).and_then(|value| value.number))
    }
}

/// After `from`, up to and including `until`, in microseconds.
#[derive(Clone, Copy)]
struct Span {
    from: Option<i64>,
    until: i64,
}

/// The counts of some series, and their changes as rows.
type Counted = (Vec<(SeriesKey, Rewrites)>, Vec<RecordBatch>);

/// Counts the changes of each series in scope, and makes rows of them.
fn count(subject: &Subject, span: Span, histories: &Histories, observed: &ObservedColumns<'_>) -> Result<Counted> {
    let (mut counted, mut batches, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut rows = RowWriter::new(entries(), |batch: &RecordBatch| {
        batches.push(batch.clone());
        Ok(())
    });
    for History { key, groups } in subject.series(histories) {
        let covered = CoveredDates::new(groups, observed);
        let mut found = Rewrites::default();
        for cell in groups.cells() {
            // A latest signal without a date has no past.
            if subject.has_date(observed, cell.start) {
                let change = Change { key, sector: subject.sector(&key.ticker), observed, row: 0, before: None };
                found.count_cell(span, change, cell, &covered, &mut changes);
                changes.drain(..).try_for_each(|change| rows.push(&change))?;
            }
        }
        counted.push((key.clone(), found));
    }
    rows.flush()?;
    drop(rows);
    Ok((counted, batches))
}

impl Rewrites {
    /// Counts a cell, and adds its changes.
    fn count_cell<'a>(
        &mut self,
        span: Span,
        change: Change<'a>,
        rows: Range<usize>,
        covered: &CoveredDates,
        changes: &mut Vec<Change<'a>>,
    ) {
        let observed = change.observed;
        let date = observed.dates.value(rows.start);
        let (mut before, mut is_known_before) = (None, span.from.is_none());
        let (mut known_from, mut known_until) = (None, None);
        for row in rows.clone() {
            let seen = observed.seen.value(row);
            let now = (!observed.is_withdrawn(row)).then_some(row);
            let is_change = match (before, now) {
                // A cell that comes back was covered when it was withdrawn.
                (None, Some(_)) => row > rows.start || covered.covers(date, seen),
                (None, None) => false,
                (Some(_), None) => true,
                (Some(before), Some(now)) => observed.value(before) != observed.value(now),
            };
            if span.from.is_some_and(|from| seen <= from) {
                is_known_before = now.is_some();
            } else if is_change {
                changes.push(Change { row, before, ..change });
            }
            known_from = known_from.or(now.map(|_| seen));
            known_until = now.is_none().then_some(seen);
            // Rows of an equal value differ in what does not count: it was seen since the first of them.
            if is_change || before.is_none() {
                before = now;
            }
        }
        let Some(known_from) = known_from else { return };
        if known_until.zip(span.from).is_some_and(|(until, from)| until <= from) {
            return;
        }
        let mut counts = CellCounts { known: 1, known_before: is_known_before.into(), ..CellCounts::default() };
        // At every age that it had in the span.
        let age_at = |instant: i64| AgeGroup::from_days((instant - date).div_euclid(MICROS_PER_DAY));
        let youngest = age_at(span.from.map_or(known_from, |from| from.max(known_from)));
        for age in (youngest.0..=age_at(known_until.unwrap_or(span.until)).0).map(AgeGroup) {
            let mut at_age = counts;
            for change in changes.iter().filter(|change| AgeGroup::from_days(change.age_days()) == age) {
                at_age.add_change(change);
            }
            *self.by_age.entry(age).or_default() += at_age;
        }
        changes.iter().for_each(|change| counts.add_change(change));
        self.total += counts;
        let day = day(date);
        *self.by_month.entry(Month(day.with_day(1).unwrap_or(day))).or_default() += counts;
    }
}

impl CellCounts {
    /// Adds a change to the counts of one cell.
    fn add_change(&mut self, change: &Change<'_>) {
        self.changed = 1;
        let kind = change.kind();
        if self.known_before > 0 || kind == "added_late" {
            self.rewritten = 1;
        }
        match kind {
            "added_late" => self.added_late += 1,
            "withdrawn" => self.withdrawn += 1,
            _ => {
                let (before, now) = (change.before().unwrap_or_default(), change.after());
                let moved = before.number.zip(now.number).map_or(0.0, |(before, now)| (now - before).abs());
                self.revised += 1;
                self.flipped += u64::from(before.signal != now.signal);
                self.moved += moved;
                self.moved_most = Some(self.moved_most.map_or(moved, |most| most.max(moved)));
            }
        }
    }
}

/// What the answers of a series covered, in order.
pub(super) struct CoveredDates(Vec<CoveredSpan>);

/// What all answers up to an instant covered.
#[derive(Clone, Copy)]
pub(super) struct CoveredSpan {
    pub(super) seen: i64,
    oldest: i64,
    pub(super) newest: i64,
    /// When the newest date was first seen.
    newest_seen: i64,
}

impl CoveredDates {
    /// Those of the answers that some cells of a series came from.
    pub(super) fn new(groups: &Groups, observed: &ObservedColumns<'_>) -> Self {
        // When they were seen, with the oldest and the newest date.
        let mut answers: Vec<(i64, i64, i64)> = Vec::new();
        for row in groups.cells().flatten() {
            if observed.is_withdrawn(row) || observed.dates.is_null(row) {
                continue;
            }
            let (date, seen) = (observed.dates.value(row), observed.seen.value(row));
            match answers.last_mut() {
                // Rows of one answer usually come together, oldest date first.
                Some((known, from, to)) if *known == seen => (*from, *to) = ((*from).min(date), (*to).max(date)),
                _ => answers.push((seen, date, date)),
            }
        }
        answers.sort_unstable();
        let mut all: Vec<CoveredSpan> = Vec::new();
        for (seen, oldest, newest) in answers {
            let mut span = CoveredSpan { seen, oldest, newest, newest_seen: seen };
            if let Some(last) = all.pop_if(|last| last.seen == seen).or(all.last().copied()) {
                span.newest_seen = if newest > last.newest { seen } else { last.newest_seen };
                (span.oldest, span.newest) = (last.oldest.min(oldest), last.newest.max(newest));
            }
            all.push(span);
        }
        Self(all)
    }

    /// What all answers before an instant covered.
    pub(super) fn before(&self, seen: i64) -> Option<&CoveredSpan> {
        self.0[..self.0.partition_point(|covered| covered.seen < seen)].last()
    }

    /// Whether an answer before an instant covered a date: it had both an earlier and a later date, or the same date
    /// once that day was over.
    pub(super) fn covers(&self, date: i64, seen: i64) -> bool {
        self.before(seen).is_some_and(|CoveredSpan { oldest, newest, newest_seen, .. }| {
            let is_over = newest_seen.div_euclid(MICROS_PER_DAY) > date.div_euclid(MICROS_PER_DAY);
            *oldest < date && (date < *newest || (date == *newest && is_over))
        })
    }
}

/// Cells that were known at an instant, and those among them that were revised or withdrawn since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RewriteCount {
    pub(crate) known: u64,
    pub(crate) rewritten: u64,
}

/// What was rewritten since an instant: what the checks of a run look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RewrittenSince {
    pub(crate) signals: RewriteCount,
    pub(crate) articles: RewriteCount,
    /// The series with rewritten cells, in order.
    pub(crate) series: Vec<(SeriesKey, RewriteCount)>,
}

/// Counts what was rewritten since an instant, in histories that are read for another purpose.
#[derive(Debug)]
pub(crate) struct Counting<'a> {
    subject: &'a Subject,
    since: i64,
    found: RewrittenSince,
}

impl<'a> Counting<'a> {
    /// Starts counting.
    pub(crate) fn since(subject: &'a Subject, instant: DateTime<Utc>) -> Self {
        Self { subject, since: instant.timestamp_micros(), found: RewrittenSince::default() }
    }

    /// Counts histories of signals or articles, which come in order.
    pub(crate) fn add(&mut self, histories: &Histories) {
        let Self { subject, since, found } = self;
        let observed = ObservedColumns::new(histories);
        for History { key, groups } in subject.series(histories) {
            let mut count = RewriteCount::default();
            for cell in groups.cells() {
                let (first, now) = (cell.start, cell.end - 1);
                let then = cell.rev().find(|row| observed.seen.value(*row) <= *since);
                let Some(then) = then.filter(|row| !observed.is_withdrawn(*row)) else { continue };
                if subject.has_date(&observed, first) {
                    count.known += 1;
                    let is_rewritten = observed.is_withdrawn(now) || observed.value(then) != observed.value(now);
                    count.rewritten += u64::from(is_rewritten);
                }
            }
            let total = if key.table == Some(Table::Signals) { &mut found.signals } else { &mut found.articles };
            add_fields!(total, count, known, rewritten);
            if count.rewritten > 0 {
                found.series.push((key.clone(), count));
            }
        }
    }

    /// Counts the histories of a table.
    pub(crate) fn add_table(&mut self, table: Table) -> Result<()> {
        let view = &self.subject.view;
        in_order(
            || view.whole_observations(table),
            |piece: StoredObservations| piece.histories(),
            |histories| {
                self.add(&histories);
                Ok(())
            },
        )
    }

    /// What was rewritten.
    pub(crate) fn finish(self) -> RewrittenSince {
        self.found
    }
}
