//! The cells of a history that can be measured, sixteen bytes each, by pair of period and regime.
//!
//! The archive has the histories ticker by ticker, and a correlation compares the tickers of a date: so all cells are
//! held at once. Nearly all of them have never changed; the latest value of those that have stands apart.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;

use super::SkillRules;
use super::horizon::{DatedEntries, Exits, first_after};
use super::observe::{Earlier, Observed};
use super::prices::{Day, Prices, TickerPrices};
use crate::archive::{Histories, History};
use crate::audit::observed::ObservedColumns;
use crate::audit::revisions::CoveredDates;
use crate::audit::subject::Subject;
use crate::freshness::fresh_until;
use crate::interface::{Period, Regime, Ticker};
use crate::time::MICROS_PER_DAY;

/// First seen while its date was fresh.
const LIVE: u16 = 1;
/// No longer listed.
const WITHDRAWN: u16 = 1 << 1;
/// Its latest value is another one, which is among the changes.
const ALTERED: u16 = 1 << 2;
/// Added after earlier answers had covered its date without it.
const LATE: u16 = 1 << 3;
/// First published as a sell.
const SELL: u16 = 1 << 4;

/// A cell with a complete return.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnCell {
    /// The signed confidence as first published.
    pub(super) first: f64,
    /// The number of its ticker, or of its id, among the prices.
    pub(super) ticker: u16,
    /// The days from the first session to its date.
    pub(super) day: u16,
    /// The session of its entry.
    pub(super) entry: u16,
    marks: u16,
}

impl ReturnCell {
    pub(super) fn is_live(&self) -> bool {
        self.marks & LIVE != 0
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.marks & WITHDRAWN != 0
    }

    pub(super) fn is_altered(&self) -> bool {
        self.marks & ALTERED != 0
    }

    pub(super) fn is_late(&self) -> bool {
        self.marks & LATE != 0
    }

    pub(super) fn is_sell(&self) -> bool {
        self.marks & SELL != 0
    }

    #[cfg(test)]
    pub(super) fn of_test(ticker: u16, day: u16, entry: u16) -> Self {
        Self { first: 0.5, ticker, day, entry, marks: LIVE }
    }
}

/// The latest value of a cell that changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangedSignal {
    pub(super) ticker: u16,
    pub(super) day: u16,
    pub(super) is_sell: bool,
    /// The day, in UTC, on which its latest direction was first seen.
    pub(super) turned: Day,
    /// The signed confidence.
    pub(super) latest: f64,
}

/// What became of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalCounts {
    /// Signals with a date.
    pub all: u64,
    /// Those that were first seen while their date was fresh.
    pub live: u64,
    /// Those that are measured.
    pub measured: u64,
    /// Those of them that are live.
    pub measured_live: u64,
    /// Left out: without a direction or confidence.
    pub unclear: u64,
    /// Further ones of a ticker on the same day, which count as one: as published, the one that was seen first.
    pub same_day: u64,
    /// Left out: dated before the first session.
    pub before_prices: u64,
    /// Left out: the horizon ends after the last session.
    pub incomplete: u64,
    /// Left out: no close at the entry or at the exit, or no prices at all for some time between its date and the exit.
    pub without_price: u64,
    /// Left out: of a ticker that the file of `[identity]` names, on a day for which it gives it no id.
    pub without_id: u64,
    /// Those that are measured and whose return ends under another ticker of the same id.
    pub across_names: u64,
}

impl SignalCounts {
    /// The share of the history that was seen while it was fresh.
    pub(super) fn witnessed_share(&self) -> Option<f64> {
        let signals = self.all - self.same_day;
        (signals > 0).then(|| self.live as f64 / signals as f64)
    }
}

impl AddAssign for SignalCounts {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.live += other.live;
        self.measured += other.measured;
        self.measured_live += other.measured_live;
        self.unclear += other.unclear;
        self.same_day += other.same_day;
        self.before_prices += other.before_prices;
        self.incomplete += other.incomplete;
        self.without_price += other.without_price;
        self.without_id += other.without_id;
        self.across_names += other.across_names;
    }
}

/// Successive signals of a ticker, and those that are the opposite of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlipCounts {
    /// Signals with one before.
    signals: u64,
    /// Those that are its opposite.
    flipped: u64,
}

impl FlipCounts {
    /// The share that flipped.
    pub(super) fn share(self) -> Option<f64> {
        (self.signals > 0).then(|| self.flipped as f64 / self.signals as f64)
    }

    fn add(&mut self, last: &mut Option<bool>, is_sell: bool) {
        if let Some(before) = last.replace(is_sell) {
            self.signals += 1;
            self.flipped += u64::from(before != is_sell);
        }
    }
}

impl AddAssign for FlipCounts {
    fn add_assign(&mut self, other: Self) {
        self.signals += other.signals;
        self.flipped += other.flipped;
    }
}

/// The cells of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct PairCells {
    pub(super) cells: Vec<ReturnCell>,
    pub(super) changes: Vec<ChangedSignal>,
    pub(super) counts: SignalCounts,
    /// Of live cells, as published.
    pub(super) flips_published: FlipCounts,
    /// Of all cells, as they stand today.
    pub(super) flips_today: FlipCounts,
}

impl PairCells {
    /// Adds other cells. Room is made an eighth at a time, since a doubled list may not fit beside the others.
    fn add(&mut self, other: Self) {
        let free = self.cells.capacity() - self.cells.len();
        if free < other.cells.len() {
            self.cells.reserve_exact(other.cells.len().max(self.cells.len() / 8));
        }
        self.cells.extend(other.cells);
        self.changes.extend(other.changes);
        self.counts += other.counts;
        self.flips_published += other.flips_published;
        self.flips_today += other.flips_today;
    }

    /// Sorts the cells by date and ticker.
    pub(super) fn sort(&mut self) {
        self.cells = by_day(&self.cells);
        self.cells
            .chunk_by_mut(|one, next| one.day == next.day)
            .for_each(|of_day| of_day.sort_by_key(|cell| cell.ticker));
        self.changes.sort_unstable_by_key(|change| (change.day, change.ticker));
    }
}

/// Cells by their days, those of a day in the order that they had: all are put in place at once.
fn by_day(cells: &[ReturnCell]) -> Vec<ReturnCell> {
    let mut indices = vec![0; usize::from(u16::MAX) + 2];
    cells.iter().for_each(|cell| indices[usize::from(cell.day) + 1] += 1);
    for day in 1..indices.len() {
        indices[day] += indices[day - 1];
    }
    let mut sorted = cells.to_vec();
    for cell in cells {
        let index = &mut indices[usize::from(cell.day)];
        sorted[*index] = *cell;
        *index += 1;
    }
    sorted
}

/// All cells, by pair.
pub(super) struct AllCells {
    pub(super) pairs: Vec<PairCells>,
    /// By days from the first session: signals with a complete horizon, and those of them without a price.
    pub(super) by_day: Vec<[u32; 2]>,
    /// The tickers with signals, and the newest date of these.
    pub(super) tickers: BTreeSet<Ticker>,
    pub(super) newest: Option<Day>,
}

impl AllCells {
    pub(super) fn new() -> Self {
        let pairs = Period::COUNT * Regime::ALL.len();
        Self {
            pairs: (0..pairs).map(|_| PairCells::default()).collect(),
            by_day: Vec::new(),
            tickers: BTreeSet::new(),
            newest: None,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.pairs.iter_mut().zip(other.pairs).for_each(|(pair, other)| pair.add(other));
        if self.by_day.len() < other.by_day.len() {
            self.by_day.resize(other.by_day.len(), [0; 2]);
        }
        for (sum, counts) in self.by_day.iter_mut().zip(other.by_day) {
            *sum = [sum[0] + counts[0], sum[1] + counts[1]];
        }
        self.tickers.extend(other.tickers);
        self.newest = self.newest.max(other.newest);
    }

    /// The first day with a live cell, from the first session on.
    pub(super) fn first_live(&self) -> Option<u16> {
        let live = self.pairs.iter().flat_map(|pair| &pair.cells).filter(|cell| cell.is_live());
        live.map(|cell| cell.day).min()
    }

    /// Of each period, the pair with the most cells; of several, the first.
    pub(super) fn largest_pairs(&self) -> Vec<(Period, Regime)> {
        let largest = |period: Period| {
            let measured = |regime: &Regime| self.pairs[pair(period, *regime)].cells.len();
            let regime = Regime::ALL.into_iter().rev().max_by_key(measured)?;
            (measured(&regime) > 0).then_some((period, regime))
        };
        Period::all().filter_map(largest).collect()
    }

    fn count_day(&mut self, day: u16, is_priced: bool) {
        let day = usize::from(day);
        if self.by_day.len() <= day {
            self.by_day.resize(day + 1, [0; 2]);
        }
        self.by_day[day][0] += 1;
        self.by_day[day][1] += u32::from(!is_priced);
    }
}

/// The number of a pair, by period and regime.
pub(super) fn pair(period: Period, regime: Regime) -> usize {
    let regime = Regime::ALL.iter().position(|other| *other == regime).unwrap_or_default();
    period.index() * Regime::ALL.len() + regime
}

/// What turns histories into cells.
#[derive(Clone, Copy)]
pub(super) struct Intake<'a> {
    pub(super) subject: &'a Subject,
    pub(super) prices: &'a Prices,
    pub(super) exits: &'a Exits,
    pub(super) entries: &'a DatedEntries,
    pub(super) rules: &'a SkillRules,
    /// What the latest values are compared with.
    pub(super) earlier: Earlier,
}

impl Intake<'_> {
    /// The cells of some histories.
    pub(super) fn cells(&self, histories: &Histories) -> AllCells {
        let mut all = AllCells::new();
        let observed = ObservedColumns::of(histories);
        for history in histories.series.iter().filter(|history| self.subject.has(&history.key)) {
            if let (Some(period), Some(regime)) = (history.key.period, history.key.regime) {
                self.series(history, &observed, (period, regime), &mut all);
            }
        }
        all
    }

    fn series(&self, history: &History, observed: &ObservedColumns<'_>, of: (Period, Regime), all: &mut AllCells) {
        let coverage = CoveredDates::of(&history.groups, observed);
        let ticker = &history.key.ticker;
        let prices = self.prices.of_ticker(ticker);
        let mut found = PairCells::default();
        let mut last = LastDirections::default();
        let mut of_day: Option<SignalOfDay> = None;
        for rows in history.groups.cells() {
            let Some(date) = observed.naive_date(rows.start, self.rules.dates) else { continue };
            if !self.subject.has_date(observed, rows.start) {
                continue;
            }
            found.counts.all += 1;
            let day = date.div_euclid(MICROS_PER_DAY);
            all.newest = all.newest.max(Some(day as Day));
            if prices.is_of_another(day as Day) {
                found.counts.without_id += 1;
                continue;
            }
            let stored = observed.dates.value(rows.start);
            let Some(cell) = self.earlier.observe(observed, rows) else {
                found.counts.unclear += 1;
                continue;
            };
            let signal = SignalOfDay { day, date, stored, cell };
            match &mut of_day {
                Some(known) if known.day == day => {
                    found.counts.same_day += 1;
                    known.join(signal);
                }
                _ => {
                    if let Some(before) = of_day.replace(signal) {
                        self.signal(before, (of.0, &coverage, prices), (&mut found, &mut last), all);
                    }
                }
            }
        }
        if let Some(signal) = of_day {
            self.signal(signal, (of.0, &coverage, prices), (&mut found, &mut last), all);
        }
        if found.counts.all > 0 {
            all.tickers.insert(ticker.clone());
        }
        all.pairs[pair(of.0, of.1)].add(found);
    }

    /// Adds the signal of a day, if it has a complete return.
    fn signal(
        &self,
        SignalOfDay { day, date, stored, cell }: SignalOfDay,
        (period, coverage, prices): (Period, &CoveredDates, TickerPrices<'_>),
        (found, last): (&mut PairCells, &mut LastDirections),
        all: &mut AllCells,
    ) {
        let sessions = self.prices.sessions();
        let is_live = cell.first_seen <= fresh_until(date, self.rules.live_within, &self.rules.sessions);
        found.counts.live += u64::from(is_live);
        if is_live {
            found.flips_published.add(&mut last.published, cell.first.1);
        }
        if let Some((_, is_sell)) = cell.latest {
            found.flips_today.add(&mut last.today, is_sell);
        }
        let after_first = day - i64::from(sessions[0]);
        let Ok(offset) = u16::try_from(after_first) else {
            *(if after_first < 0 { &mut found.counts.before_prices } else { &mut found.counts.incomplete }) += 1;
            return;
        };
        let entry = match is_live {
            true => {
                let seen = cell.first_seen.div_euclid(MICROS_PER_DAY);
                // One that is dated ahead is not entered before the close of its date, or with a lag the one after it.
                let before = day as Day - Day::from(self.rules.lag == 0);
                first_after(sessions, before.max(Day::try_from(seen).unwrap_or(Day::MAX)))
            }
            false => self.entries.entry(day as Day),
        };
        let Some(exit) = self.exits.exit(period, entry) else {
            found.counts.incomplete += 1;
            return;
        };
        let number = prices.number(day as Day);
        let is_priced =
            |number: &u16| !self.prices.lack(day as Day, entry) && self.prices.between(*number, entry, exit).is_some();
        let priced = number.filter(is_priced);
        all.count_day(offset, priced.is_some());
        let Some(number) = priced else {
            found.counts.without_price += 1;
            return;
        };
        let is_late = match self.earlier {
            Earlier::FirstPublished => coverage.covers(stored, cell.first_seen),
            Earlier::KnownAt(_) if cell.is_new && cell.latest.is_none() => return,
            Earlier::KnownAt(_) => cell.is_new,
        };
        found.counts.across_names += u64::from(prices.is_under_another(day as Day, exit));
        found.push(number, offset, entry as u16, [is_live, is_late], &cell);
    }
}

/// The signal of a series on a day.
struct SignalOfDay {
    day: i64,
    /// Its naive date, and that of the archive.
    date: i64,
    stored: i64,
    cell: Observed,
}

impl SignalOfDay {
    /// Adds another cell of the day.
    fn join(&mut self, other: Self) {
        if other.cell.is_before(&self.cell) {
            (self.date, self.stored) = (other.date, other.stored);
        }
        self.cell.join(other.cell);
    }
}

/// Whether the last signals of a series are sells, as published and today.
#[derive(Default)]
struct LastDirections {
    published: Option<bool>,
    today: Option<bool>,
}

impl PairCells {
    fn push(&mut self, ticker: u16, day: u16, entry: u16, [is_live, is_late]: [bool; 2], cell: &Observed) {
        let is_altered = cell.latest.is_some_and(|latest| latest != cell.first);
        let marks = [
            (is_live, LIVE),
            (is_late, LATE),
            (cell.first.1, SELL),
            (cell.latest.is_none(), WITHDRAWN),
            (is_altered, ALTERED),
        ];
        let marks = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).sum();
        self.counts.measured += 1;
        self.counts.measured_live += u64::from(is_live);
        self.cells.push(ReturnCell { first: cell.first.0, ticker, day, entry, marks });
        if let Some((latest, is_sell)) = cell.latest.filter(|_| is_altered) {
            self.changes.push(ChangedSignal { ticker, day, is_sell, turned: cell.turned, latest });
        }
    }
}
