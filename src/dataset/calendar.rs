//! The trading days of a dataset: the dates that have signals.

use arrow::array::AsArray;
use arrow::datatypes::{Int16Type, TimestampMicrosecondType};

use super::naive::{self, Day, day};
use super::slab_columns::column;
use crate::error::Result;
use crate::plan::{DatasetPlan, Lag};
use crate::tables::Slab;

/// Every day that has a signal, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar(Vec<Day>);

impl Calendar {
    /// The days of some slabs.
    pub(super) fn of(slabs: impl Iterator<Item = Result<Slab>>, plan: &DatasetPlan) -> Result<Self> {
        let mut days: Vec<Day> = Vec::new();
        for slab in slabs {
            let signals = slab?.signals;
            let dates = column(&signals, "date").as_primitive::<TimestampMicrosecondType>();
            let offsets = column(&signals, "utc_offset_minutes").as_primitive::<Int16Type>();
            days.extend(naive::dates(dates, offsets, plan.dates).into_iter().map(day));
            days.sort_unstable();
            days.dedup();
        }
        Ok(Self(days))
    }

    /// The last day whose news a signal of a day may use.
    pub(super) fn cutoff(&self, date: Day, lag: Lag) -> Day {
        match lag {
            Lag::Calendar(days) => date - days.count(),
            Lag::Trading(count) => {
                let place = self.0.partition_point(|&day| day < date);
                // Trading days before the first date with signals are unknown.
                place.checked_sub(usize::from(count)).map_or(Day::MIN, |place| self.0[place])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calendar, Day};
    use crate::plan::Lag;

    #[test]
    fn one_trading_day_back_is_the_previous_date_with_signals() {
        let calendar = Calendar(vec![10, 11, 14, 15]);
        for (date, lag, expected) in
            [(14, "1 trading day", 11), (15, "2 trading days", 11), (10, "1 trading day", Day::MIN), (14, "1d", 13)]
        {
            assert_eq!(calendar.cutoff(date, lag.parse::<Lag>().unwrap()), expected, "{date} {lag}");
        }
    }
}
