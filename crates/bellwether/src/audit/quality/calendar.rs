//! The days on which signals are due, inferred from their series, or given by the definition's calendar.
//!
//! Most series have a signal on each trading day. Some come once a week, a month or a quarter: such a series has its own
//! cadence, the median of the days between its signals, and says nothing of trading days.

use std::collections::BTreeMap;

use super::day;
use crate::archive::History;
use crate::audit::observed::ObservedColumns;
use crate::audit::subject::Subject;

/// Days since 1970.
type Day = i64;

/// The days between two signals from which on a series is not one of trading days.
const SLOW: Day = 5;

/// The fewest intervals that tell a cadence.
const FEWEST: usize = 3;

/// The trading days, in order, and the last day of any series.
#[derive(Debug, Default)]
pub(super) struct TradingDays {
    trading: Vec<Day>,
    last: Option<Day>,
}

/// How often the signals of a series come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cadence {
    /// On trading days.
    Trading,
    /// Once in so many days.
    Slow(Day),
}

impl Cadence {
    fn of(days: &[Day]) -> Self {
        let mut intervals: Vec<Day> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if intervals.len() < FEWEST {
            return Self::Trading;
        }
        intervals.sort_unstable();
        match intervals[intervals.len() / 2] {
            ..SLOW => Self::Trading,
            median => Self::Slow(median),
        }
    }
}

/// Number of signals that are due in some days after the last one: one if they pass for an interval, which months and
/// holidays make longer or shorter.
fn due_in(days: Day, cadence: Day) -> Day {
    (days + cadence / 2) / cadence
}

/// What a series should have had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueDays {
    /// Number of days on which a signal was due, from its first to its last.
    pub(super) due: u64,
    /// Those of them without one.
    pub(super) gaps: Vec<DayRange>,
    /// Those after its last signal.
    pub(super) behind: Option<DayRange>,
}

/// Consecutive due days: the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DayRange {
    pub(super) first: Day,
    pub(super) last: Day,
    /// Number of due days.
    pub(super) days: u64,
}

/// Number of series on each day.
#[derive(Default)]
pub(super) struct Presence {
    present: BTreeMap<Day, u64>,
    begun: BTreeMap<Day, u64>,
    ended: BTreeMap<Day, u64>,
    /// The last day of any series.
    last: Option<Day>,
}

/// The days of a series.
#[derive(Debug)]
pub(super) struct SeriesDays {
    /// How often they come, by all that are known: a range of dates may have too few to tell.
    cadence: Cadence,
    /// Those in scope, in order.
    in_scope: Vec<Day>,
}

impl SeriesDays {
    pub(super) fn of(subject: &Subject, history: &History, observed: &ObservedColumns<'_>) -> Self {
        let dated = |row| Some((day(observed.written_date(row)?), subject.has_date(observed, row)));
        let mut dated: Vec<(Day, bool)> = observed.known_rows(history).filter_map(dated).collect();
        dated.sort_unstable();
        dated.dedup();
        let mut days: Vec<Day> = dated.iter().map(|(day, _)| *day).collect();
        days.dedup();
        let in_scope = dated.into_iter().filter(|(_, is_in_scope)| *is_in_scope).map(|(day, _)| day).collect();
        Self { cadence: Cadence::of(&days), in_scope }
    }

    /// Whether none is in scope.
    pub(super) fn is_empty(&self) -> bool {
        self.in_scope.is_empty()
    }
}

impl Presence {
    pub(super) fn add(&mut self, SeriesDays { cadence, in_scope: days }: &SeriesDays) {
        let (Some(first), Some(last)) = (days.first(), days.last()) else { return };
        self.last = self.last.max(Some(*last));
        if *cadence != Cadence::Trading {
            return;
        }
        *self.begun.entry(*first).or_default() += 1;
        *self.ended.entry(*last).or_default() += 1;
        for day in days {
            *self.present.entry(*day).or_default() += 1;
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        let Self { present, begun, ended, last } = other;
        self.last = self.last.max(last);
        let parts = [(&mut self.present, present), (&mut self.begun, begun), (&mut self.ended, ended)];
        for (counts, more) in parts {
            more.into_iter().for_each(|(day, count)| *counts.entry(day).or_default() += count);
        }
    }

    fn calendar(self) -> TradingDays {
        let Self { present, begun, ended, last } = self;
        let (mut begun, mut ended) = (begun.into_iter().peekable(), ended.into_iter().peekable());
        let mut under_way = 0;
        let mut trading = Vec::with_capacity(present.len());
        for (day, present) in present {
            while let Some((_, count)) = ended.next_if(|(last, _)| *last < day) {
                under_way -= count;
            }
            while let Some((_, count)) = begun.next_if(|(first, _)| *first <= day) {
                under_way += count;
            }
            if present * 2 >= under_way {
                trading.push(day);
            }
        }
        TradingDays { trading, last }
    }
}

impl TradingDays {
    /// Of all series in scope. A definition may give the trading days.
    pub(super) fn of(presence: Presence, subject: &Subject) -> Self {
        let (first, last) = (presence.present.keys().next().copied(), presence.last);
        let calendar = presence.calendar();
        let bounds = first.zip(last).and_then(|(first, last)| i32::try_from(first).ok().zip(i32::try_from(last).ok()));
        match bounds.and_then(|(first, last)| subject.sessions().between(first, last)) {
            Some(days) => Self { trading: days.iter().copied().map(Day::from).collect(), ..calendar },
            None => calendar,
        }
    }

    /// Trading days from the first to the last of some days.
    fn between(&self, days: &[Day]) -> &[Day] {
        let (Some(first), Some(last)) = (days.first(), days.last()) else { return &[] };
        let index_of = |is_before: &dyn Fn(Day) -> bool| self.trading.partition_point(|day| is_before(*day));
        &self.trading[index_of(&|day| day < *first)..index_of(&|day| day <= *last)]
    }

    /// What a series with signals on some days should have had.
    pub(super) fn due(&self, SeriesDays { cadence, in_scope: days }: &SeriesDays) -> DueDays {
        match *cadence {
            Cadence::Trading => {
                DueDays { due: self.between(days).len() as u64, gaps: self.gaps(days), behind: self.behind(days) }
            }
            Cadence::Slow(cadence) => self.due_slowly(days, cadence),
        }
    }

    /// The same for a series of its own cadence.
    fn due_slowly(&self, days: &[Day], cadence: Day) -> DueDays {
        let missing = |after: Day, count: Day| {
            let range = DayRange { first: after + cadence, last: after + count * cadence, days: count as u64 };
            (count > 0).then_some(range)
        };
        let between = days.windows(2).map(|pair| (pair[0], due_in(pair[1] - pair[0], cadence).max(1)));
        let due = 1 + between.clone().map(|(_, count)| count as u64).sum::<u64>();
        let gaps = between.filter_map(|(day, count)| missing(day, count - 1)).collect();
        let last = days.last().copied();
        // The next signal is late only when it is not just a long month.
        let late = last.zip(self.last).filter(|(last, today)| due_in(today - last, cadence) > 1);
        let behind = late.and_then(|(last, today)| missing(last, (today - last) / cadence));
        DueDays { due, gaps, behind }
    }

    /// Trading days between the first and last of some days that are not among them.
    fn gaps(&self, days: &[Day]) -> Vec<DayRange> {
        let mut gaps: Vec<DayRange> = Vec::new();
        let mut is_open = false;
        for day in self.between(days) {
            let is_missing = days.binary_search(day).is_err();
            match gaps.last_mut() {
                Some(gap) if is_missing && is_open => {
                    gap.last = *day;
                    gap.days += 1;
                }
                _ if is_missing => gaps.push(DayRange { first: *day, last: *day, days: 1 }),
                _ => {}
            }
            is_open = is_missing;
        }
        gaps
    }

    /// Trading days after the last of some days.
    fn behind(&self, days: &[Day]) -> Option<DayRange> {
        let last = days.last()?;
        let after = &self.trading[self.trading.partition_point(|day| day <= last)..];
        Some(DayRange { first: *after.first()?, last: *after.last()?, days: after.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cadence, Day, DayRange, DueDays, Presence, SeriesDays};

    fn whole(days: &[Day]) -> SeriesDays {
        SeriesDays { cadence: Cadence::of(days), in_scope: days.to_vec() }
    }

    #[test]
    fn a_trading_day_is_a_date_that_half_of_the_series_have() {
        let mut presence = Presence::default();
        // The second misses 3 and 4 and ends early, the third starts late, and the fourth trades on a holiday, 9.
        let series: [&[i64]; 4] = [&[1, 2, 3, 4, 7, 8], &[1, 2, 7], &[3, 4, 7, 8], &[1, 2, 3, 4, 7, 8, 9, 10]];
        series.iter().for_each(|days| presence.add(&whole(days)));
        let mut holiday = Presence::default();
        [&[1, 2, 3][..], &[1, 3], &[1, 3]].iter().for_each(|days| holiday.add(&whole(days)));
        assert_eq!(holiday.calendar().trading, [1, 3]);
        let calendar = presence.calendar();
        assert_eq!(calendar.gaps(series[1]), [DayRange { first: 3, last: 4, days: 2 }]);
        assert_eq!(calendar.behind(series[1]), Some(DayRange { first: 8, last: 10, days: 3 }));
        assert_eq!(calendar.gaps(series[0]), []);
        assert_eq!(calendar.behind(series[3]), None);
    }

    #[test]
    fn a_monthly_series_has_gaps_only_where_a_month_is_missing() {
        let day = |text: &str| i64::from(text.parse::<chrono::NaiveDate>().unwrap().to_epoch_days());
        // The last trading day of each month, without that of April.
        let months = ["2026-01-30", "2026-02-27", "2026-03-31", "2026-05-29", "2026-06-30", "2026-07-31"].map(day);
        let weeks: Vec<i64> = (0..30).filter(|week| *week != 7).map(|week| day("2026-01-02") + 7 * week).collect();
        let daily: Vec<i64> =
            (day("2026-01-02")..=day("2026-10-02")).filter(|day| !matches!((day + 3) % 7, 5 | 6)).collect();
        let mut presence = Presence::default();
        // Most series are not daily, and yet each is due by its own cadence.
        [&months[..], &months[..], &weeks, &weeks, &daily].into_iter().for_each(|days| presence.add(&whole(days)));
        let calendar = presence.calendar();
        let range = |first: &str, last: &str, days| DayRange { first: day(first), last: day(last), days };
        let found = calendar.due(&whole(&months));
        // The median month has 32 days: March 31st and May 29th are two apart, and August and September have none.
        let (april, late_month) = (range("2026-05-02", "2026-05-02", 1), range("2026-09-01", "2026-09-01", 1));
        assert_eq!(found, DueDays { due: 7, gaps: vec![april], behind: Some(late_month) });
        let found = calendar.due(&whole(&weeks));
        let (week, late) = (range("2026-02-20", "2026-02-20", 1), range("2026-07-31", "2026-10-02", 10));
        assert_eq!(found, DueDays { due: 30, gaps: vec![week], behind: Some(late) });
        assert_eq!(calendar.due(&whole(&daily)), DueDays { due: daily.len() as u64, gaps: Vec::new(), behind: None });
        // The last months of a range tell as little, but the series does.
        let of_range = SeriesDays { cadence: Cadence::of(&months), in_scope: months[3..].to_vec() };
        assert_eq!(calendar.due(&of_range), DueDays { due: 3, gaps: Vec::new(), behind: Some(late_month) });
        // A few days say nothing of a cadence.
        assert_eq!(calendar.due(&whole(&[daily[0], daily[20]])).gaps.len(), 1);
    }
}
