//! Walks over the cells of a series and finds those that changed in a span.

use std::ops::{Range, RangeInclusive};

use arrow::array::Array;

use super::ChangeKind;
use super::since::RewriteCount;
use super::tally::{AgeGroup, CellCounts, Month};
use crate::archive::Groups;
use crate::audit::observed::ObservedColumns;
use crate::time::MICROS_PER_DAY;

/// The span in which changes count, in microseconds: after `from`, up to and including `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeWindow {
    pub(super) from: Option<i64>,
    pub(super) until: i64,
}

impl ChangeWindow {
    fn is_before(self, seen: i64) -> bool {
        self.from.is_some_and(|from| seen <= from)
    }
}

/// A change of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite {
    /// The row with the new value.
    pub(super) row: usize,
    pub(super) kind: ChangeKind,
    /// The row with the previous value, if there was one.
    pub(super) before: Option<usize>,
    pub(super) age_days: i64,
}

/// What the answers of a series covered, in order.
pub(in crate::audit) struct CoveredDates(Vec<CoveredSpan>);

/// What all answers up to an instant covered.
#[derive(Clone, Copy)]
struct CoveredSpan {
    seen: i64,
    oldest: i64,
    newest: i64,
    /// When the newest date was first seen.
    newest_seen: i64,
}

impl CoveredDates {
    /// Those of the answers that some cells of a series came from.
    pub(in crate::audit) fn of(groups: &Groups, observed: &ObservedColumns<'_>) -> Self {
        // When they were seen, with the oldest and the newest date.
        let mut spans: Vec<(i64, i64, i64)> = Vec::new();
        for row in groups.iter().flat_map(|group| group.rows().clone()) {
            if observed.is_withdrawn(row) || observed.dates.is_null(row) {
                continue;
            }
            let (date, seen) = (observed.dates.value(row), observed.seen.value(row));
            match spans.last_mut() {
                // Rows of one answer usually come together, oldest date first.
                Some((known, from, to)) if *known == seen => (*from, *to) = ((*from).min(date), (*to).max(date)),
                _ => spans.push((seen, date, date)),
            }
        }
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let is_same = next.0 == last.0;
            if is_same {
                (last.1, last.2) = (last.1.min(next.1), last.2.max(next.2));
            }
            is_same
        });
        let mut all: Vec<CoveredSpan> = Vec::with_capacity(spans.len());
        for (seen, oldest, newest) in spans {
            let covered = match all.last() {
                Some(last) if last.newest >= newest => CoveredSpan { seen, oldest: last.oldest.min(oldest), ..*last },
                Some(last) => CoveredSpan { seen, oldest: last.oldest.min(oldest), newest, newest_seen: seen },
                None => CoveredSpan { seen, oldest, newest, newest_seen: seen },
            };
            all.push(covered);
        }
        Self(all)
    }

    /// Whether no answer before an instant covered anything.
    fn begins(&self, seen: i64) -> bool {
        self.0.first().is_none_or(|first| first.seen >= seen)
    }

    /// Whether an answer before an instant covered a date: it had both an earlier and a later date, or the same date
    /// once that day was over.
    pub(in crate::audit) fn covers(&self, date: i64, seen: i64) -> bool {
        let before = self.0.partition_point(|covered| covered.seen < seen);
        before.checked_sub(1).is_some_and(|last| {
            let CoveredSpan { oldest, newest, newest_seen, .. } = self.0[last];
            let is_over = || newest_seen.div_euclid(MICROS_PER_DAY) > date.div_euclid(MICROS_PER_DAY);
            oldest < date && (date < newest || (date == newest && is_over()))
        })
    }
}

/// Counters of one series.
#[derive(Default)]
pub(super) struct SeriesTally {
    pub(super) total: CellCounts,
    pub(super) by_age: [CellCounts; AgeGroup::ALL.len()],
    pub(super) by_month: Vec<(Month, CellCounts)>,
    /// The cells known by the walk's `since`.
    pub(super) since: RewriteCount,
}

/// A group of cells that count the same: observed once and never changed, like nearly all cells.
struct UnchangedCells {
    /// When they were last observed.
    seen: i64,
    /// From this date on, cells observed then count differently.
    end: i64,
    month: Month,
    month_end: i64,
    ages: RangeInclusive<AgeGroup>,
    /// The count of each.
    each: CellCounts,
    /// Whether they were known by the walk's `since`.
    are_known: bool,
    cells: u64,
}

impl UnchangedCells {
    /// Merges the next group if it counts the same; returns it otherwise.
    fn join(&mut self, next: Self) -> Option<Self> {
        let group = |one: &Self| (one.month, one.ages.clone(), one.each, one.are_known);
        if group(self) != group(&next) {
            return Some(next);
        }
        (self.seen, self.end, self.cells) = (next.seen, next.end, self.cells + next.cells);
        None
    }
}

/// A walk over the cells of a series.
pub(super) struct Walk<'a> {
    pub(super) observed: &'a ObservedColumns<'a>,
    pub(super) span: ChangeWindow,
    /// Cells known by then are counted apart.
    pub(super) since: Option<i64>,
}

/// A cell within the span.
#[derive(Clone, Copy, Default)]
struct WalkedCell {
    is_known_before: bool,
    /// The row of its value by the walk's `since`.
    row_then: Option<usize>,
    /// The row of its value now.
    row_now: Option<usize>,
    /// When it became known, in the span or before.
    known_from: Option<i64>,
    /// When it was withdrawn and did not come back.
    known_until: Option<i64>,
}

impl Walk<'_> {
    /// Counts some cells of a series, those in scope, and reports each change.
    pub(super) fn series(
        &self,
        groups: &Groups,
        coverage: &CoveredDates,
        is_in_scope: impl Fn(usize) -> bool,
        mut on_change: impl FnMut(Rewrite),
    ) -> SeriesTally {
        let mut tally = SeriesTally::default();
        let mut rewrites: Vec<Rewrite> = Vec::new();
        let mut unchanged: Option<UnchangedCells> = None;
        for rows in groups.cells() {
            // A latest signal without a date has no past.
            let dates = self.observed.dates;
            if dates.is_null(rows.start) || !is_in_scope(rows.start) {
                continue;
            }
            let date = dates.value(rows.start);
            if rows.len() == 1 && !self.observed.is_withdrawn(rows.start) {
                let seen = self.observed.seen.value(rows.start);
                if let Some(unchanged) =
                    unchanged.as_mut().filter(|unchanged| unchanged.seen == seen && date < unchanged.end)
                {
                    unchanged.cells += 1;
                    continue;
                }
                if !coverage.covers(date, seen) {
                    let next = self.unchanged_cell(date, seen, coverage, unchanged.as_ref());
                    let next = match &mut unchanged {
                        Some(unchanged) => unchanged.join(next),
                        None => Some(next),
                    };
                    if next.is_some() {
                        tally.count_unchanged(std::mem::replace(&mut unchanged, next));
                    }
                    continue;
                }
            }
            rewrites.clear();
            let cell = self.cell(&rows, date, coverage, &mut rewrites);
            tally.count(self, cell, date, &rewrites);
            rewrites.iter().copied().for_each(&mut on_change);
        }
        tally.count_unchanged(unchanged);
        tally
    }

    /// A cell observed once, following others.
    fn unchanged_cell(
        &self,
        date: i64,
        seen: i64,
        coverage: &CoveredDates,
        before: Option<&UnchangedCells>,
    ) -> UnchangedCells {
        let ChangeWindow { from, until } = self.span;
        // Cells are sorted by date.
        let (month, month_end) = match before {
            Some(before) if date < before.month_end => (before.month, before.month_end),
            _ => {
                let month = Month::of(date);
                (month, month.end())
            }
        };
        let instants = [from.map_or(seen, |from| from.max(seen)), until];
        let [youngest, oldest] = instants.map(|instant| AgeGroup::between(date, instant));
        // Cells of the first answer are never late.
        let end = if coverage.begins(seen) { i64::MAX } else { date };
        let ends = [end, month_end, youngest.end(instants[0]), oldest.end(instants[1])];
        let is_known_before = from.is_none() || self.span.is_before(seen);
        UnchangedCells {
            seen,
            end: ends.into_iter().min().unwrap_or(date),
            month,
            month_end,
            ages: youngest..=oldest,
            are_known: self.is_known_by(seen),
            each: CellCounts { known: 1, known_before: is_known_before.into(), ..CellCounts::default() },
            cells: 1,
        }
    }

    /// Whether what was seen at an instant was known by the walk's `since`.
    fn is_known_by(&self, seen: i64) -> bool {
        self.since.is_some_and(|since| seen <= since)
    }

    /// The changes of a cell in the span.
    fn cell(&self, rows: &Range<usize>, date: i64, coverage: &CoveredDates, rewrites: &mut Vec<Rewrite>) -> WalkedCell {
        let mut cell = WalkedCell::default();
        let mut last: Option<usize> = None;
        for row in rows.clone() {
            let seen = self.observed.seen.value(row);
            let spans = (!self.observed.is_withdrawn(row)).then_some(row);
            let kind = match (last, spans) {
                // A cell that comes back was covered when it was withdrawn.
                (None, Some(_)) if row > rows.start || coverage.covers(date, seen) => Some(ChangeKind::AddedLate),
                (None, _) => None,
                (Some(_), None) => Some(ChangeKind::Withdrawn),
                (Some(before), Some(now)) => {
                    (self.observed.value(before) != self.observed.value(now)).then_some(ChangeKind::Revised)
                }
            };
            if self.span.is_before(seen) {
                cell.is_known_before = spans.is_some();
            } else if let Some(kind) = kind {
                let age_days = (seen - date).div_euclid(MICROS_PER_DAY);
                rewrites.push(Rewrite { row, kind, before: last, age_days });
            }
            if self.is_known_by(seen) {
                cell.row_then = spans;
            }
            cell.row_now = spans;
            if spans.is_some() {
                cell.known_from = cell.known_from.or(Some(seen));
            }
            cell.known_until = spans.is_none().then_some(seen);
            // Rows of an equal value differ in what does not count: it was seen since the first of them.
            if kind.is_some() || last.is_none() {
                last = spans;
            }
        }
        cell
    }

    /// Counts one cell.
    fn tally(&self, cell: WalkedCell, rewrites: &[Rewrite]) -> CellCounts {
        let is_known_before = cell.is_known_before || self.span.from.is_none();
        let is_rewritten = |rewrite: &Rewrite| is_known_before || rewrite.kind == ChangeKind::AddedLate;
        let mut tally = CellCounts {
            known: 1,
            known_before: is_known_before.into(),
            changed: (!rewrites.is_empty()).into(),
            rewritten: rewrites.iter().any(is_rewritten).into(),
            ..CellCounts::default()
        };
        for rewrite in rewrites {
            match (rewrite.kind, rewrite.before) {
                (ChangeKind::AddedLate, _) => tally.added_late += 1,
                (ChangeKind::Withdrawn, _) => tally.withdrawn += 1,
                (ChangeKind::Revised, before) => {
                    let before = before.map(|row| self.observed.value(row)).unwrap_or_default();
                    let now = self.observed.value(rewrite.row);
                    let moved = before.number.zip(now.number).map_or(0.0, |(before, now)| (now - before).abs());
                    tally.revised += 1;
                    tally.flipped += u64::from(before.signal != now.signal);
                    tally.moved += moved;
                    tally.moved_most = tally.moved_most.max(moved);
                }
            }
        }
        tally
    }
}

impl SeriesTally {
    fn count_unchanged(&mut self, unchanged: Option<UnchangedCells>) {
        let Some(UnchangedCells { month, ages, each, are_known, cells, .. }) = unchanged else { return };
        self.since.known += if are_known { cells } else { 0 };
        let all = CellCounts { known: each.known * cells, known_before: each.known_before * cells, ..each };
        self.total += all;
        self.add_to_month(month, all);
        for at in AgeGroup::ALL.into_iter().filter(|at| ages.contains(at)) {
            self.by_age[at as usize] += all;
        }
    }

    fn add_to_month(&mut self, month: Month, tally: CellCounts) {
        match self.by_month.last_mut() {
            Some((known, sum)) if *known == month => *sum += tally,
            _ => self.by_month.push((month, tally)),
        }
    }

    fn count(&mut self, walk: &Walk<'_>, cell: WalkedCell, date: i64, rewrites: &[Rewrite]) {
        if let Some(then) = cell.row_then {
            let is_rewritten = cell.row_now.is_none_or(|now| walk.observed.value(then) != walk.observed.value(now));
            self.since += RewriteCount { known: 1, rewritten: is_rewritten.into() };
        }
        let Some(known_from) = cell.known_from else { return };
        let ChangeWindow { from, until } = walk.span;
        if cell.known_until.is_some_and(|end| walk.span.is_before(end)) {
            return;
        }
        let of_cell = walk.tally(cell, rewrites);
        self.total += of_cell;
        self.add_to_month(Month::of(date), of_cell);
        let youngest = AgeGroup::between(date, from.map_or(known_from, |from| from.max(known_from)));
        let oldest = AgeGroup::between(date, cell.known_until.unwrap_or(until));
        for at in AgeGroup::ALL {
            let own: Vec<Rewrite> = rewrites.iter().copied().filter(|one| AgeGroup::of(one.age_days) == at).collect();
            if !own.is_empty() || (youngest..=oldest).contains(&at) {
                self.by_age[at as usize] += walk.tally(cell, &own);
            }
        }
    }
}
