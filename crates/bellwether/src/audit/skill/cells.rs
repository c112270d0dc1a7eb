//! The signals of a history that can be measured, twenty-four bytes each, by pair of period and regime.
//!
//! The archive has the histories ticker by ticker, and a correlation compares the tickers of a date: so all signals are
//! held at once. What was rewritten makes *votes*, twelve bytes each: a vendor that takes a signal back, weakens, strengthens or
//! turns it votes for one direction, when part of its return, or all of it, was known.

use std::collections::{BTreeSet, HashMap};
use std::ops::AddAssign;

use bellwether_statistics::Share;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::archive::{Histories, History};
use crate::audit::revisions::{CoveredDates, CoveredSpan};
use crate::audit::subject::{ObservedColumns, Subject};
use crate::freshness::fresh_until;
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::plan::DatasetPlan;
use crate::prices::horizon::{DatedEntries, Exits, end_day, first_after};
use crate::prices::{Day, Prices, TickerPrices};
use crate::tables::SeriesKey;
use crate::time::MICROS_PER_DAY;

/// A signal with a complete return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The score as first published: the confidence, negative for a sell, even where it is zero.
    pub(super) first: f64,
    /// The latest score; not a number if it is no longer listed.
    pub(super) latest: f64,
    /// The number of its ticker, or of its id, among the prices.
    pub(super) ticker: u16,
    /// The days from the first session to its date.
    pub(super) day: u16,
    /// The session of its entry.
    pub(super) entry: u16,
    /// Whether it was seen when it was published: while its date was fresh, or by an answer that came soon after one without it.
    pub(super) is_published: bool,
    /// Whether it was added after earlier answers had covered its date without it.
    pub(super) is_added: bool,
}

impl Cell {
    pub(super) fn is_withdrawn(&self) -> bool {
        self.latest.is_nan()
    }

    pub(super) fn is_altered(&self) -> bool {
        !self.is_withdrawn() && self.first.to_bits() != self.latest.to_bits()
    }

    pub(super) fn has_turned(&self) -> bool {
        !self.is_withdrawn() && is_sell(self.first) != is_sell(self.latest)
    }

    #[cfg(test)]
    pub(super) fn of_test(ticker: u16, day: u16, entry: u16) -> Self {
        Self { first: 0.5, latest: 0.5, ticker, day, entry, is_published: true, is_added: false }
    }
}

/// Whether a score is that of a sell.
pub(super) fn is_sell(score: f64) -> bool {
    score.is_sign_negative()
}

/// What a vendor did with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    Turned,
    Weakened,
    Strengthened,
    Withdrawn,
    /// Listed again.
    Restored,
}

/// A signal that was rewritten once part of its return was known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vote {
    pub(super) ticker: u16,
    pub(super) day: u16,
    /// The last session whose close was known before, at most that of the exit.
    pub(super) known: u16,
    /// The day, in UTC, on which it was seen.
    pub(super) seen: Day,
    /// Whether it was rewritten towards a buy.
    pub(super) is_up: bool,
    pub(super) rewrite: Rewrite,
}

/// What became of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalCounts {
    /// Signals with a date.
    pub all: u64,
    /// Those that were first seen while their date was fresh.
    pub live: u64,
    /// Those that were first seen later, but soon after an answer that did not have them and ended before their date: the
    /// vendor was late, and they count as published.
    pub late: u64,
    /// Those that are measured.
    pub measured: u64,
    /// Those of them that were seen when they were published: live or late.
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
    /// Those that are measured and whose return ends with the last close of their name, before the horizon was over.
    pub ended: u64,
}

impl SignalCounts {
    /// The share of the history that was seen when it was published.
    pub(super) fn witnessed_share(&self) -> Option<f64> {
        let signals = self.all - self.same_day;
        (signals > 0).then(|| (self.live + self.late) as f64 / signals as f64)
    }
}

impl AddAssign for SignalCounts {
    fn add_assign(&mut self, other: Self) {
        add_fields!(self, other, all, live, late, measured, measured_live, unclear, same_day, before_prices);
        add_fields!(self, other, incomplete, without_price, without_id, across_names, ended);
    }
}

/// The signals of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct PairCells {
    pub(super) cells: Vec<Cell>,
    pub(super) votes: Vec<Vote>,
    pub(super) counts: SignalCounts,
    /// Successive signals of a ticker that are the opposite of the one before: of published signals, and of all as they
    /// stand today.
    pub(super) flips: [Share; 2],
}

impl PairCells {
    /// Adds other cells. Room is made an eighth at a time, since a doubled list may not fit beside the others.
    fn add(&mut self, other: Self) {
        let free = self.cells.capacity() - self.cells.len();
        if free < other.cells.len() {
            self.cells.reserve_exact(other.cells.len().max(self.cells.len() / 8));
        }
        self.cells.extend(other.cells);
        self.votes.extend(other.votes);
        self.counts += other.counts;
        self.flips.iter_mut().zip(other.flips).for_each(|(sum, flips)| *sum += flips);
    }

    /// Adds a signal, with its scores over time and the session of its exit.
    fn push(&mut self, cell: Cell, timeline: &[(i64, Option<f64>)], sessions: &[Day], exit: usize) {
        self.counts.measured += 1;
        self.counts.measured_live += u64::from(cell.is_published);
        self.cells.push(cell);
        if timeline.len() > 1 {
            let Cell { ticker, day, entry, .. } = cell;
            let vote = Vote { ticker, day, known: 0, seen: 0, is_up: false, rewrite: Rewrite::Turned };
            add_votes(timeline, vote, (sessions, entry.into(), exit), &mut self.votes);
        }
    }

    /// Adds a signal that was seen when it was published, with its scores over time: what worlds are made of.
    #[cfg(any(test, feature = "harness"))]
    pub(super) fn push_published(
        &mut self,
        [ticker, day, entry]: [u16; 3],
        timeline: &[(i64, Option<f64>)],
        (sessions, exit): (&[Day], usize),
    ) {
        let (first, latest) = (timeline[0].1.expect("a score"), timeline[timeline.len() - 1].1);
        let latest = latest.unwrap_or(f64::NAN);
        let cell = Cell { first, latest, ticker, day, entry, is_published: true, is_added: false };
        self.push(cell, timeline, sessions, exit);
    }

    /// Sorts by date and ticker.
    pub(super) fn sort(&mut self) {
        self.cells.sort_unstable_by_key(|cell| (cell.day, cell.ticker));
        self.votes.sort_by_key(|vote| (vote.day, vote.ticker));
    }
}

/// All signals, by pair.
pub(super) struct AllCells {
    pub(super) pairs: Vec<PairCells>,
    /// By days from the first session: signals with a complete horizon, and those of them without a price.
    pub(super) by_day: Vec<[u32; 2]>,
    /// The tickers with signals, and the newest date of these.
    pub(super) tickers: BTreeSet<Ticker>,
    pub(super) newest: Option<Day>,
    /// The first day on which a horizon of a published signal is over that is not yet.
    pub(super) next_end: Option<Day>,
}

impl AllCells {
    pub(super) fn new() -> Self {
        let pairs = vec![PairCells::default(); Period::COUNT * Regime::ALL.len()];
        Self { pairs, by_day: Vec::new(), tickers: BTreeSet::new(), newest: None, next_end: None }
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
        self.next_end = [self.next_end, other.next_end].into_iter().flatten().min();
    }

    /// The first day with a published signal, from the first session on.
    pub(super) fn first_published(&self) -> Option<u16> {
        let published = self.pairs.iter().flat_map(|pair| &pair.cells).filter(|cell| cell.is_published);
        published.map(|cell| cell.day).min()
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

/// A value of a cell of a day: when it was seen, which cell, and its score; none if it is withdrawn, or says neither buy nor
/// sell with a confidence.
type Said = (i64, usize, Option<f64>);

/// The score of a day from each instant on at which it was another.
type Timeline = Vec<(i64, Option<f64>)>;

/// The score of a day over time, from when there first was one, and the cell that it was first published with. A vendor that
/// writes another time of the day has taken no signal back: the cell that was published stands, or else another one.
fn timeline(said: &mut [Said]) -> Option<(usize, Timeline)> {
    said.sort_by_key(|(seen, ..)| *seen);
    let published = said.iter().find(|(.., score)| score.is_some())?.1;
    let mut standing = vec![None; said.iter().map(|(_, cell, _)| cell + 1).max().unwrap_or_default()];
    let mut timeline = Timeline::new();
    for at_once in said.chunk_by(|one, next| one.0 == next.0) {
        at_once.iter().for_each(|(_, cell, score)| standing[*cell] = *score);
        let score: Option<f64> = standing[published].or_else(|| standing.iter().flatten().next().copied());
        let last = timeline.last().map(|(_, last)| last.map(f64::to_bits));
        if last.map_or(score.is_some(), |last| last != score.map(f64::to_bits)) {
            timeline.push((at_once[0].0, score));
        }
    }
    Some((published, timeline))
}

/// What turns histories into signals that are measured.
#[derive(Clone, Copy)]
pub(super) struct Intake<'a> {
    pub(super) subject: &'a Subject,
    pub(super) prices: &'a Prices,
    pub(super) exits: &'a Exits,
    pub(super) entries: &'a DatedEntries,
    pub(super) plan: &'a DatasetPlan,
    pub(super) lag: u32,
    /// The series that are no longer listed, and since when that is known.
    pub(super) gone: &'a HashMap<SeriesKey, i64>,
    /// What the latest values are compared with: those that were known at an instant, or else those first published.
    pub(super) from: Option<DateTime<Utc>>,
}

/// A series while its days are added.
struct Series<'a> {
    period: Period,
    answers: CoveredDates,
    prices: TickerPrices<'a>,
    found: PairCells,
    /// Whether the last signals were sells, as published and today.
    last: [Option<bool>; 2],
}

impl Intake<'_> {
    /// The signals of some histories.
    pub(super) fn cells(&self, histories: &Histories, observed: &ObservedColumns<'_>) -> AllCells {
        let mut all = AllCells::new();
        for history in self.subject.series(histories) {
            if let (Some(period), Some(regime)) = (history.key.period, history.key.regime) {
                self.add_series(history, observed, (period, regime), &mut all);
            }
        }
        all
    }

    fn add_series(&self, history: &History, observed: &ObservedColumns<'_>, of: (Period, Regime), all: &mut AllCells) {
        let ticker = &history.key.ticker;
        let mut series = Series {
            period: of.0,
            answers: CoveredDates::new(&history.groups, observed),
            prices: self.prices.of_ticker(ticker),
            found: PairCells::default(),
            last: [None; 2],
        };
        let gone = self.gone.get(&history.key);
        let mut of_day = i64::MIN;
        let (mut said, mut dates): (Vec<Said>, Vec<[i64; 2]>) = (Vec::new(), Vec::new());
        for rows in history.groups.cells() {
            let Some(date) = observed.naive_date(rows.start, self.plan.dates) else { continue };
            if !self.subject.has_date(observed, rows.start) || !self.subject.has_member(ticker, date) {
                continue;
            }
            series.found.counts.all += 1;
            let day = date.div_euclid(MICROS_PER_DAY);
            all.newest = all.newest.max(Some(day as Day));
            if series.prices.is_of_another(day as Day) {
                series.found.counts.without_id += 1;
                continue;
            }
            if day != of_day {
                self.add_day(&mut series, of_day, (&mut said, &dates), all);
                of_day = day;
                said.clear();
                dates.clear();
            }
            said.extend(rows.clone().map(|row| (observed.seen.value(row), dates.len(), score(observed, row))));
            said.extend(gone.map(|gone| (*gone, dates.len(), None)));
            dates.push([date, observed.dates.value(rows.start)]);
        }
        self.add_day(&mut series, of_day, (&mut said, &dates), all);
        if series.found.counts.all > 0 {
            all.tickers.insert(ticker.clone());
        }
        all.pairs[pair(of.0, of.1)].add(series.found);
    }

    /// Adds the signal of a day, if it has a complete return. Each of its cells has a naive date, and that of the archive.
    fn add_day(
        &self,
        series: &mut Series<'_>,
        day: i64,
        (said, dates): (&mut [Said], &[[i64; 2]]),
        all: &mut AllCells,
    ) {
        let clear: BTreeSet<usize> = said.iter().filter(|said| said.2.is_some()).map(|said| said.1).collect();
        let Series { found, prices, answers, period, last } = series;
        found.counts.unclear += (dates.len() - clear.len()) as u64;
        let Some((published, timeline)) = timeline(said) else { return };
        found.counts.same_day += clear.len() as u64 - 1;
        let [date, stored] = dates[published];
        let (first_seen, mut first) = (timeline[0].0, timeline[0].1.expect("a score"));
        let latest = timeline.last().and_then(|(_, score)| *score);
        let is_live = first_seen <= self.fresh_until(date);
        let is_added = answers.covers(stored, first_seen);
        // An answer that ended before its date came a day or more earlier, but so shortly that it was published in between.
        let is_late = answers.before(first_seen).is_some_and(|CoveredSpan { seen, newest, .. }| {
            let is_day_before = seen.div_euclid(MICROS_PER_DAY) < first_seen.div_euclid(MICROS_PER_DAY);
            stored >= *newest && is_day_before && first_seen <= self.fresh_until(*seen)
        });
        let is_late = !is_live && !is_added && is_late;
        let is_published = is_live || is_late;
        found.counts.live += u64::from(is_live);
        found.counts.late += u64::from(is_late);
        for (state, score) in [Some(first).filter(|_| is_published), latest].into_iter().enumerate() {
            let Some(score) = score else { continue };
            let before = last[state].replace(is_sell(score));
            found.flips[state] += Share::new(before.map(|before| before != is_sell(score)));
        }
        let sessions = self.prices.sessions();
        let after_first = day - i64::from(sessions[0]);
        let Ok(offset) = u16::try_from(after_first) else {
            *(if after_first < 0 { &mut found.counts.before_prices } else { &mut found.counts.incomplete }) += 1;
            return;
        };
        let seen_day = Day::try_from(first_seen.div_euclid(MICROS_PER_DAY)).unwrap_or(Day::MAX);
        // One that is dated ahead is not entered before the close of its date, or with a lag the one after it.
        let before = seen_day.max(day as Day - Day::from(self.lag == 0));
        let entry = if is_published { first_after(sessions, before) } else { self.entries.entry(day as Day) };
        let Some(exit) = self.exits.exit(*period, entry) else {
            found.counts.incomplete += 1;
            if is_published {
                let entered = sessions.get(entry).copied().unwrap_or_else(|| self.plan.sessions.nth_after(before, 1));
                let end = end_day(*period, entered, &self.plan.sessions);
                all.next_end = Some(all.next_end.map_or(end, |known| known.min(end)));
            }
            return;
        };
        let number = prices.number(day as Day).filter(|_| !self.prices.lack(day as Day, entry));
        let priced = number.and_then(|number| Some((number, self.exits.held(self.prices, number, entry, exit)?)));
        all.count_day(offset, priced.is_some());
        let Some((number, (_, end))) = priced else {
            found.counts.without_price += 1;
            return;
        };
        let mut is_new = is_added;
        if let Some(from) = self.from {
            let known = timeline.iter().take_while(|(seen, _)| *seen <= from.timestamp_micros());
            let known = known.last().and_then(|(_, score)| *score);
            is_new = known.is_none();
            if is_new && latest.is_none() {
                return;
            }
            first = known.or(latest).expect("it is not new, or listed");
        }
        found.counts.across_names += u64::from(prices.is_under_another(day as Day, exit));
        found.counts.ended += u64::from(end < exit);
        let latest = latest.unwrap_or(f64::NAN);
        let cell =
            Cell { first, latest, ticker: number, day: offset, entry: entry as u16, is_published, is_added: is_new };
        let timeline = if self.from.is_none() { &timeline[..] } else { &[] };
        found.push(cell, timeline, sessions, exit);
    }

    fn fresh_until(&self, date: i64) -> i64 {
        fresh_until(date, self.plan.live_within, &self.plan.sessions)
    }
}

/// Adds what was made of a signal once part of its return was known: the net of all that was done between two closes. A close
/// of the day on which it was seen may come after it.
fn add_votes(
    timeline: &[(i64, Option<f64>)],
    vote: Vote,
    (sessions, entry, exit): (&[Day], usize, usize),
    votes: &mut Vec<Vote>,
) {
    let known_at = |seen: i64| {
        let day = Day::try_from(seen.div_euclid(MICROS_PER_DAY)).unwrap_or(Day::MAX);
        sessions.partition_point(|session| *session < day).saturating_sub(1).min(exit)
    };
    let mut before = timeline[0].1;
    for (index, (seen, after)) in timeline.iter().enumerate().skip(1) {
        let known = known_at(*seen);
        if timeline.get(index + 1).is_some_and(|(next, _)| known_at(*next) == known) {
            continue;
        }
        let towards = after.unwrap_or(0.0) - before.unwrap_or(0.0);
        let rewrite = match (before, after) {
            (None, _) => Rewrite::Restored,
            (_, None) => Rewrite::Withdrawn,
            (Some(before), Some(after)) if is_sell(before) != is_sell(*after) => Rewrite::Turned,
            (Some(before), Some(after)) if after.abs() < before.abs() => Rewrite::Weakened,
            _ => Rewrite::Strengthened,
        };
        if known > entry && towards != 0.0 {
            votes.push(Vote {
                known: known as u16,
                seen: seen.div_euclid(MICROS_PER_DAY) as Day,
                is_up: towards > 0.0,
                rewrite,
                ..vote
            });
        }
        before = *after;
    }
}

/// The confidence of a signal, negative for a sell; none if it is withdrawn, or says neither.
fn score(observed: &ObservedColumns<'_>, row: usize) -> Option<f64> {
    if observed.is_withdrawn(row) {
        return None;
    }
    let value = observed.value(row);
    let is_sell = value.signal? == Signal::Sell;
    let confidence = value.number.filter(|number| number.is_finite())?;
    Some(if is_sell { -confidence } else { confidence })
}

#[cfg(test)]
mod tests {
    use super::{Rewrite, Vote, add_votes, timeline};
    use crate::time::MICROS_PER_DAY;

    /// The scores of a day over time, by days on which they were seen, from those of each of its cells.
    fn merge(cells: &[&[(i64, Option<f64>)]]) -> Vec<(i64, Option<f64>)> {
        let said = |(cell, values): (usize, &&[(i64, Option<f64>)])| -> Vec<_> {
            values.iter().map(|(day, score)| (day * MICROS_PER_DAY, cell, *score)).collect()
        };
        let mut said: Vec<_> = cells.iter().enumerate().flat_map(said).collect();
        let of_day = timeline(&mut said).map_or_else(Vec::new, |(_, of_day)| of_day);
        of_day.into_iter().map(|(seen, score)| (seen / MICROS_PER_DAY, score)).collect()
    }

    #[test]
    fn a_signal_begins_with_its_first_direction() {
        assert_eq!(merge(&[&[(1, None), (5, Some(-0.6)), (6, Some(-0.6))]]), [(5, Some(-0.6))]);
        assert_eq!(merge(&[&[(1, Some(0.7)), (5, None)]]), [(1, Some(0.7)), (5, None)]);
        assert_eq!(merge(&[&[(1, None), (5, None)]]), []);
        assert_eq!(merge(&[&[(1, Some(0.0)), (5, Some(-0.0))]]).len(), 2, "a sell without confidence is one");
    }

    #[test]
    fn two_cells_of_a_day_are_one_signal() {
        // Dated anew on the 30th, with the same value; it had turned on the 2nd.
        let before: &[_] = &[(1, Some(0.7)), (2, Some(-0.7)), (30, None)];
        for (other, expected) in
            [(-0.7, &[(1, Some(0.7)), (2, Some(-0.7))][..]), (0.7, &[(1, Some(0.7)), (2, Some(-0.7)), (30, Some(0.7))])]
        {
            let other: &[_] = &[(30, Some(other))];
            assert_eq!(merge(&[before, other]), expected);
            assert_eq!(merge(&[other, before]), expected, "the order of the cells says nothing");
        }
        // Both are listed: the one that was published stands.
        assert_eq!(merge(&[&[(1, Some(0.7))], &[(2, Some(-0.6))]]), [(1, Some(0.7))]);
        assert_eq!(merge(&[&[(1, Some(0.7)), (3, None)], &[(2, Some(-0.6)), (3, None)]]), [(1, Some(0.7)), (3, None)]);
    }

    #[test]
    fn what_was_rewritten_is_judged_by_the_closes_of_days_before() {
        let votes = |values: &[(i64, Option<f64>)]| -> Vec<(u16, bool, Rewrite)> {
            let timeline: Vec<_> = values.iter().map(|(day, score)| (day * MICROS_PER_DAY, *score)).collect();
            let mut votes = Vec::new();
            let vote = Vote { ticker: 0, day: 0, known: 0, seen: 0, is_up: false, rewrite: Rewrite::Turned };
            // Entered on the 12th and left on the 17th, with a session a day.
            add_votes(&timeline, vote, (&(10..30).collect::<Vec<_>>(), 2, 7), &mut votes);
            votes.into_iter().map(|vote| (vote.known, vote.is_up, vote.rewrite)).collect()
        };
        assert_eq!(votes(&[(11, Some(0.7)), (13, Some(-0.7))]), [], "nothing was known");
        assert_eq!(votes(&[(11, Some(0.7)), (14, Some(-0.7))]), [(3, false, Rewrite::Turned)]);
        assert_eq!(votes(&[(11, Some(-0.7)), (29, None)]), [(7, true, Rewrite::Withdrawn)]);
        assert_eq!(
            votes(&[(11, Some(-0.7)), (14, Some(-0.5)), (18, Some(-0.6)), (20, Some(-0.4)), (21, None)]),
            [(3, true, Rewrite::Weakened), (7, true, Rewrite::Withdrawn)],
            "what came after the horizon counts once"
        );
    }
}
