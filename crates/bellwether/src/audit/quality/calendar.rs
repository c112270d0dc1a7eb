//! The trading days of the signals, inferred from their series.

use std::collections::BTreeMap;

use super::day;
use crate::archive::{History, StoredObservations};
use crate::audit::observed::ObservedColumns;
use crate::audit::subject::Subject;
use crate::error::Result;
use crate::in_order::in_order;
use crate::tables::Table;

/// Days since 1970.
type Day = i64;

/// Trading days, in order.
#[derive(Debug, Default)]
pub(super) struct Calendar(Vec<Day>);

/// Consecutive trading days: the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DayRange {
    pub(super) first: Day,
    pub(super) last: Day,
    /// Number of trading days.
    pub(super) days: u64,
}

/// Number of series on each day.
#[derive(Default)]
struct Presence {
    present: BTreeMap<Day, u64>,
    begun: BTreeMap<Day, u64>,
    ended: BTreeMap<Day, u64>,
}

/// Days of a series that are in scope, in order.
pub(super) fn days(subject: &Subject, history: &History, observed: &ObservedColumns<'_>) -> Vec<Day> {
    let dates = observed.known(history).filter_map(|row| observed.written_date(row));
    let mut days: Vec<Day> = dates.filter(|date| subject.has_date(*date)).map(day).collect();
    days.sort_unstable();
    days.dedup();
    days
}

impl Presence {
    fn add(&mut self, days: &[Day]) {
        let (Some(first), Some(last)) = (days.first(), days.last()) else { return };
        *self.begun.entry(*first).or_default() += 1;
        *self.ended.entry(*last).or_default() += 1;
        for day in days {
            *self.present.entry(*day).or_default() += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        let Self { present, begun, ended } = other;
        let parts = [(&mut self.present, present), (&mut self.begun, begun), (&mut self.ended, ended)];
        for (counts, more) in parts {
            more.into_iter().for_each(|(day, count)| *counts.entry(day).or_default() += count);
        }
    }

    fn calendar(self) -> Calendar {
        let Self { present, begun, ended } = self;
        let (mut begun, mut ended) = (begun.into_iter().peekable(), ended.into_iter().peekable());
        let mut under_way = 0;
        let mut days = Vec::with_capacity(present.len());
        for (day, present) in present {
            while let Some((_, count)) = ended.next_if(|(last, _)| *last < day) {
                under_way -= count;
            }
            while let Some((_, count)) = begun.next_if(|(first, _)| *first <= day) {
                under_way += count;
            }
            if present * 2 >= under_way {
                days.push(day);
            }
        }
        Calendar(days)
    }
}

impl Calendar {
    /// The trading days of all series in scope.
    pub(super) fn of(subject: &Subject) -> Result<Self> {
        let mut presence = Presence::default();
        let of_piece = |piece: StoredObservations| {
            let histories = piece.histories()?;
            let observed = ObservedColumns::of(&histories);
            let mut presence = Presence::default();
            for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
                presence.add(&days(subject, history, &observed));
            }
            Ok(presence)
        };
        let merge = |piece| {
            presence.merge(piece);
            Ok(())
        };
        in_order(|| subject.view().observations(Table::Signals), of_piece, merge)?;
        Ok(presence.calendar())
    }

    /// Trading days from the first to the last of some days.
    fn between(&self, days: &[Day]) -> &[Day] {
        let (Some(first), Some(last)) = (days.first(), days.last()) else { return &[] };
        &self.0[self.0.partition_point(|day| day < first)..self.0.partition_point(|day| day <= last)]
    }

    /// Number of trading days from the first to the last of some days.
    pub(super) fn within(&self, days: &[Day]) -> u64 {
        self.between(days).len() as u64
    }

    /// Trading days between the first and last of some days that are not among them.
    pub(super) fn gaps(&self, days: &[Day]) -> Vec<DayRange> {
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
    pub(super) fn behind(&self, days: &[Day]) -> Option<DayRange> {
        let last = days.last()?;
        let after = &self.0[self.0.partition_point(|day| day <= last)..];
        Some(DayRange { first: *after.first()?, last: *after.last()?, days: after.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::{DayRange, Presence};

    #[test]
    fn a_trading_day_is_a_date_that_half_of_the_series_have() {
        let mut presence = Presence::default();
        // The second misses 3 and 4 and ends early, the third starts late, and the fourth trades on a holiday, 9.
        let series: [&[i64]; 4] = [&[1, 2, 3, 4, 7, 8], &[1, 2, 7], &[3, 4, 7, 8], &[1, 2, 3, 4, 7, 8, 9, 10]];
        series.iter().for_each(|days| presence.add(days));
        let mut holiday = Presence::default();
        [&[1, 2, 3][..], &[1, 3], &[1, 3]].iter().for_each(|days| holiday.add(days));
        assert_eq!(holiday.calendar().0, [1, 3]);
        let calendar = presence.calendar();
        assert_eq!(calendar.gaps(series[1]), [DayRange { first: 3, last: 4, days: 2 }]);
        assert_eq!(calendar.behind(series[1]), Some(DayRange { first: 8, last: 10, days: 3 }));
        assert_eq!(calendar.gaps(series[0]), []);
        assert_eq!(calendar.behind(series[3]), None);
    }
}
