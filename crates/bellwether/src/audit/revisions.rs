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
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, UInt32Array, new_null_array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, SchemaRef};
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::observed::ObservedColumns;
use super::rows::{AuditColumn, always, optional, schema_of};
use super::subject::{Subject, day};
use crate::archive::{Groups, Histories, History, StoredObservations, merge_failed};
use crate::error::Result;
use crate::interface::{Period, Regime, Ticker};
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
    /// The age of a date at an instant, both in microseconds.
    fn between(date: i64, instant: i64) -> Self {
        Self::from_days((instant - date).div_euclid(MICROS_PER_DAY))
    }

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
    let counter = Counter { subject, from: from.map(|from| from.timestamp_micros()), until: until.timestamp_micros() };
    let [mut signals, mut articles] = [Rewrites::default(), Rewrites::default()];
    for (table, found) in [(Table::Signals, &mut signals), (Table::Articles, &mut articles)] {
        subject.each_piece(
            |view| view.whole_observations(table),
            |histories, observed| counter.count(histories, observed),
            |(counted, rows)| {
                for (key, rewrites) in counted {
                    found.add_series(&key, subject.sector(&key.ticker), rewrites);
                }
                rows.as_ref().map_or(Ok(()), &mut deliver)
            },
        )?;
    }
    Ok(Revisions { from, until, signals, articles })
}

/// The columns of changes, one row each.
pub fn schema() -> SchemaRef {
    schema_of(columns())
}

pub(super) fn columns() -> Vec<AuditColumn> {
    use DataType::{Float64, Int32, Utf8};
    vec![
        always("source", Utf8, "the operation that returned the new value, or no longer the old one"),
        always("ticker", Utf8, ""),
        optional("sector", Utf8, ""),
        optional("period", Utf8, ""),
        optional("regime", Utf8, ""),
        always("date", date(), "the date of the signal or article"),
        optional("title", Utf8, ""),
        optional("link", Utf8, ""),
        always("kind", Utf8, "`added_late`, `revised` or `withdrawn`"),
        always("age_days", Int32, "how old the date was when the change was observed"),
        optional("old_signal", Utf8, "the direction before"),
        optional("new_signal", Utf8, "the direction after"),
        optional("old_confidence", Float64, "the confidence before"),
        optional("new_confidence", Float64, "the confidence after"),
        optional("old_score", Float64, "the score before"),
        optional("new_score", Float64, "the score after"),
        optional("seen_before", instant(), "when an answer had the old value for the first time"),
        always(
            "observed_at",
            instant(),
            "when an answer had the new value for the first time, or no longer the old one",
        ),
    ]
}

/// Changes as rows. Their columns are those of the table, of the row before and the row after.
fn change_rows(subject: &Subject, histories: &Histories, changes: &[Change]) -> Result<RecordBatch> {
    let rows = &histories.rows;
    let after: UInt32Array = changes.iter().map(|change| Some(change.row as u32)).collect();
    let before: UInt32Array = changes.iter().map(|change| change.before.map(|row| row as u32)).collect();
    let sector = |change: &Change| Some(subject.sector(&histories.series[change.series].key.ticker));
    let column = |field: &Arc<Field>| {
        let (name, at) = match field.name().as_str() {
            "sector" => {
                let sectors = changes.iter().map(|change| sector(change).filter(|sector| *sector != "-"));
                return Ok(Arc::new(sectors.collect::<StringArray>()) as ArrayRef);
            }
            "kind" => {
                let kinds = changes.iter().map(|change| Some(change.kind.as_str()));
                return Ok(Arc::new(kinds.collect::<StringArray>()) as ArrayRef);
            }
            "age_days" => {
                let days = changes.iter().map(|change| i32::try_from(change.age_days).unwrap_or(i32::MAX));
                return Ok(Arc::new(Int32Array::from_iter_values(days)) as ArrayRef);
            }
            "seen_before" => ("observed_at", &before),
            name => match name.split_once('_') {
                Some(("old", name)) => (name, &before),
                Some(("new", name)) => (name, &after),
                _ => (name, &after),
            },
        };
        match rows.column_by_name(name) {
            Some(column) => cast(&take(column, at, None)?, field.data_type()),
            // Signals have no title, and articles no period.
            None => Ok(new_null_array(field.data_type(), changes.len())),
        }
    };
    let schema = schema();
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>().map_err(merge_failed)?;
    RecordBatch::try_new(schema, columns).map_err(merge_failed)
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

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    AddedLate,
    Revised,
    Withdrawn,
}

impl ChangeKind {
    /// Its name in files.
    fn as_str(self) -> &'static str {
        match self {
            Self::AddedLate => "added_late",
            Self::Revised => "revised",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// A change of a cell.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The index of its series.
    series: usize,
    kind: ChangeKind,
    /// The row with the new value, and the row with the previous one, if there was one.
    row: usize,
    before: Option<usize>,
    age_days: i64,
}

/// The counts of some series, and their changes as rows.
type Counted = (Vec<(SeriesKey, Rewrites)>, Option<RecordBatch>);

/// What counts the changes in a span: after `from`, up to and including `until`, in microseconds.
#[derive(Clone, Copy)]
struct Counter<'a> {
    subject: &'a Subject,
    from: Option<i64>,
    until: i64,
}

impl Counter<'_> {
    /// Counts the changes of each series in scope, and makes rows of them, if there are any.
    fn count(self, histories: &Histories, observed: &ObservedColumns<'_>) -> Result<Counted> {
        let (mut counted, mut changes) = (Vec::new(), Vec::new());
        for (series, History { key, groups }) in histories.series.iter().enumerate() {
            if !self.subject.has(key) {
                continue;
            }
            let covered = CoveredDates::new(groups, observed);
            let mut found = Rewrites::default();
            for rows in groups.cells() {
                // A latest signal without a date has no past.
                if observed.dates.is_valid(rows.start) && self.subject.has_date(observed, rows.start) {
                    self.count_cell(series, rows, &covered, observed, (&mut found, &mut changes));
                }
            }
            counted.push((key.clone(), found));
        }
        let rows = (!changes.is_empty()).then(|| change_rows(self.subject, histories, &changes)).transpose()?;
        Ok((counted, rows))
    }

    /// Counts a cell, and adds its changes.
    fn count_cell(
        self,
        series: usize,
        rows: Range<usize>,
        covered: &CoveredDates,
        observed: &ObservedColumns<'_>,
        (found, all): (&mut Rewrites, &mut Vec<Change>),
    ) {
        let (date, start) = (observed.dates.value(rows.start), all.len());
        let (mut before, mut is_known_before) = (None, self.from.is_none());
        let (mut known_from, mut known_until) = (None, None);
        for row in rows.clone() {
            let seen = observed.seen.value(row);
            let now = (!observed.is_withdrawn(row)).then_some(row);
            let kind = match (before, now) {
                // A cell that comes back was covered when it was withdrawn.
                (None, Some(_)) if row > rows.start || covered.covers(date, seen) => Some(ChangeKind::AddedLate),
                (None, _) => None,
                (Some(_), None) => Some(ChangeKind::Withdrawn),
                (Some(before), Some(now)) => {
                    (observed.value(before) != observed.value(now)).then_some(ChangeKind::Revised)
                }
            };
            if self.from.is_some_and(|from| seen <= from) {
                is_known_before = now.is_some();
            } else if let Some(kind) = kind {
                all.push(Change { series, kind, row, before, age_days: (seen - date).div_euclid(MICROS_PER_DAY) });
            }
            known_from = known_from.or(now.map(|_| seen));
            known_until = now.is_none().then_some(seen);
            // Rows of an equal value differ in what does not count: it was seen since the first of them.
            if kind.is_some() || before.is_none() {
                before = now;
            }
        }
        let Some(known_from) = known_from else { return };
        if known_until.zip(self.from).is_some_and(|(until, from)| until <= from) {
            return;
        }
        let mut counts = CellCounts { known: 1, known_before: is_known_before.into(), ..CellCounts::default() };
        // At every age that it had in the span.
        let youngest = AgeGroup::between(date, self.from.map_or(known_from, |from| from.max(known_from)));
        let oldest = AgeGroup::between(date, known_until.unwrap_or(self.until));
        for age in (youngest.0..=oldest.0).map(AgeGroup) {
            let mut at_age = counts;
            for change in all[start..].iter().filter(|change| AgeGroup::from_days(change.age_days) == age) {
                at_age.add_change(*change, observed);
            }
            *found.by_age.entry(age).or_default() += at_age;
        }
        all[start..].iter().for_each(|change| counts.add_change(*change, observed));
        found.total += counts;
        let day = day(date);
        *found.by_month.entry(Month(day.with_day(1).unwrap_or(day))).or_default() += counts;
    }
}

impl CellCounts {
    /// Adds a change to the counts of one cell.
    fn add_change(&mut self, Change { kind, row, before, .. }: Change, observed: &ObservedColumns<'_>) {
        self.changed = 1;
        if self.known_before > 0 || kind == ChangeKind::AddedLate {
            self.rewritten = 1;
        }
        match (kind, before) {
            (ChangeKind::AddedLate, _) => self.added_late += 1,
            (ChangeKind::Withdrawn, _) => self.withdrawn += 1,
            (ChangeKind::Revised, before) => {
                let (before, now) = (before.map(|row| observed.value(row)).unwrap_or_default(), observed.value(row));
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
        for row in groups.iter().flat_map(|group| group.rows().clone()) {
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
            match all.last().copied() {
                Some(last) => {
                    let is_newer = newest > last.newest;
                    let newest_seen = if is_newer { seen } else { last.newest_seen };
                    let (oldest, newest) = (last.oldest.min(oldest), last.newest.max(newest));
                    if last.seen == seen {
                        all.pop();
                    }
                    all.push(CoveredSpan { seen, oldest, newest, newest_seen });
                }
                None => all.push(CoveredSpan { seen, oldest, newest, newest_seen: seen }),
            }
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
        let observed = ObservedColumns::new(histories);
        for History { key, groups } in histories.series.iter().filter(|history| self.subject.has(&history.key)) {
            let count = rewritten_since(self.subject, self.since, groups, &observed);
            let Self { found, .. } = self;
            let total = if key.table == Some(Table::Signals) { &mut found.signals } else { &mut found.articles };
            total.known += count.known;
            total.rewritten += count.rewritten;
            if count.rewritten > 0 {
                found.series.push((key.clone(), count));
            }
        }
    }

    /// Counts the histories of a table.
    pub(crate) fn add_table(&mut self, table: Table) -> Result<()> {
        let view = &self.subject.view;
        let histories = |piece: StoredObservations| piece.histories();
        in_order(
            || view.whole_observations(table),
            histories,
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

/// The cells of a series that were known at an instant, and those that have another value now.
fn rewritten_since(subject: &Subject, since: i64, groups: &Groups, observed: &ObservedColumns<'_>) -> RewriteCount {
    let mut count = RewriteCount::default();
    for rows in groups.cells() {
        let (first, now) = (rows.start, rows.end - 1);
        let then = rows.rev().find(|row| observed.seen.value(*row) <= since);
        let Some(then) = then.filter(|row| !observed.is_withdrawn(*row)) else { continue };
        if observed.dates.is_null(first) || !subject.has_date(observed, first) {
            continue;
        }
        count.known += 1;
        let is_rewritten = observed.is_withdrawn(now) || observed.value(then) != observed.value(now);
        count.rewritten += u64::from(is_rewritten);
    }
    count
}
