//! The trading days of a dataset: those of the definition's calendar, or else the dates that have signals.
//!
//! Of the latter, a signal counts only days that its own run had seen, or a run before: which days will have signals is not
//! known.

use arrow::array::AsArray;
use arrow::datatypes::{Int16Type, TimestampMicrosecondType};

use super::naive::{self, Day, day};
use super::slab_columns::column;
use crate::error::Result;
use crate::plan::{DatasetPlan, DayCount};
use crate::sessions::Sessions;
use crate::tables::Slab;

/// The trading days.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    /// Every day that has a signal, in order, and when the first one was seen.
    seen: Vec<(Day, i64)>,
    /// Those that the definition gives instead.
    sessions: Sessions,
}

impl Calendar {
    /// The days of some slabs.
    pub(super) fn of(slabs: impl Iterator<Item = Result<Slab>>, plan: &DatasetPlan) -> Result<Self> {
        let mut days: Vec<(Day, i64)> = Vec::new();
        for slab in slabs {
            let signals = slab?.signals;
            let dates = column(&signals, "date").as_primitive::<TimestampMicrosecondType>();
            let offsets = column(&signals, "utc_offset_minutes").as_primitive::<Int16Type>();
            let first = column(&signals, "first_observed_at").as_primitive::<TimestampMicrosecondType>().values();
            let naive = naive::dates(dates, offsets, plan.dates).into_iter().map(day);
            days.extend(naive.zip(first.iter().copied()));
            days.sort_unstable();
            days.dedup_by_key(|(day, _)| *day);
        }
        Ok(Self { seen: days, sessions: Sessions::default() })
    }

    /// The days that the definition of a plan gives, if it does.
    pub(super) fn of_definition(plan: &DatasetPlan) -> Self {
        Self { seen: Vec::new(), sessions: plan.sessions.clone() }
    }

    /// The last day whose news a signal of a day may use, which knows what was seen by an instant.
    pub(super) fn cutoff(&self, date: Day, seen_by: i64, lag: DayCount) -> Day {
        match lag {
            DayCount::Calendar(days) => date - days.count(),
            DayCount::Trading(days) if self.sessions.are_given() => {
                self.sessions.nth_before(date, days.count() as usize).unwrap_or(Day::MIN)
            }
            DayCount::Trading(days) => {
                let before = &self.seen[..self.seen.partition_point(|(day, _)| *day < date)];
                let mut known = before.iter().rev().filter(|(_, first)| *first <= seen_by);
                // Trading days before the first date with signals are unknown.
                known.nth(days.count() as usize - 1).map_or(Day::MIN, |(day, _)| *day)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calendar, Day};
    use crate::plan::DayCount;

    #[test]
    fn one_trading_day_back_is_the_previous_date_with_signals_that_had_been_seen() {
        let seen = vec![(10, 1), (11, 1), (12, 3), (14, 2), (15, 2)];
        let calendar = Calendar { seen, ..Calendar::default() };
        for (date, seen_by, lag, expected) in [
            (14, 2, "1 trading day", 11),
            (14, 3, "1 trading day", 12),
            (15, 2, "2 trading days", 11),
            (10, 3, "1 trading day", Day::MIN),
            (14, 0, "1 trading day", Day::MIN),
            (14, 0, "1d", 13),
        ] {
            assert_eq!(
                calendar.cutoff(date, seen_by, lag.parse::<DayCount>().unwrap()),
                expected,
                "{date} {seen_by} {lag}"
            );
        }
    }
}
