//! Whether the signals of a day fall on several dates, because tickers are dated by different clocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::NaiveRule;
use crate::text::human::count_of;
use crate::time::MICROS_PER_DAY;

/// The most times of day of a ticker that are kept: two of one clock, in summer and winter, and a few odd ones.
const TIMES: usize = 4;

/// The times of day at which the signals of each ticker are dated.
#[derive(Debug, Default)]
pub(crate) struct TimesOfDay {
    /// By ticker number; more than [`TIMES`] are those of signals within a day.
    of_tickers: Vec<Vec<i64>>,
    /// The number of signals by weekday, from Monday on.
    weekdays: [u64; 7],
}

impl TimesOfDay {
    /// Adds a signal of a ticker, by its naive date.
    pub(crate) fn add(&mut self, ticker: usize, micros: i64) {
        if self.of_tickers.len() <= ticker {
            self.of_tickers.resize_with(ticker + 1, Vec::new);
        }
        self.weekdays[(micros.div_euclid(MICROS_PER_DAY) + 3).rem_euclid(7) as usize] += 1;
        let (times, time) = (&mut self.of_tickers[ticker], micros.rem_euclid(MICROS_PER_DAY));
        if times.len() <= TIMES && !times.contains(&time) {
            times.push(time);
        }
    }

    /// Whether all days seem to be a day early: there are signals of Sundays, and none of Fridays.
    pub(crate) fn are_early(&self) -> bool {
        self.weekdays[6] > 0 && self.weekdays[4] == 0
    }

    /// The tickers that are dated at many times of day.
    pub(crate) fn many(&self) -> u64 {
        self.of_tickers.iter().filter(|times| times.len() > TIMES).count() as u64
    }

    /// Whether some tickers have no time of day in common with most others.
    pub(crate) fn split(&self) -> Option<SplitDays> {
        let mut tickers: BTreeMap<BTreeSet<i64>, u64> = BTreeMap::new();
        for times in self.of_tickers.iter().filter(|times| (1..=TIMES).contains(&times.len())) {
            *tickers.entry(times.iter().copied().collect()).or_default() += 1;
        }
        let (most, _) = tickers.iter().min_by_key(|(times, count)| (Reverse(**count), *times))?;
        let apart: Vec<_> = tickers.iter().filter(|(times, _)| times.is_disjoint(most)).collect();
        let first = |times: &BTreeSet<i64>| times.first().map_or_else(String::new, |time| time_of_day(*time));
        let (other, _) = apart.iter().min_by_key(|(times, count)| (Reverse(**count), *times))?;
        Some(SplitDays {
            tickers: apart.iter().map(|(_, count)| **count).sum(),
            all: self.of_tickers.len() as u64,
            times: [first(most), first(other)],
        })
    }
}

/// Tickers whose signals are dated at other times of day than those of most others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SplitDays {
    /// How many there are.
    pub tickers: u64,
    /// The number of all tickers.
    pub all: u64,
    /// A time of day of most tickers, and one of these.
    pub times: [String; 2],
}

impl SplitDays {
    /// What it means, and the remedy under a rule of naive dates.
    pub fn in_words(&self, rule: NaiveRule) -> String {
        let Self { tickers, all, times: [most, other] } = self;
        let remedy = match rule {
            NaiveRule::Wall => "a time zone as `naive` in `[dates]` dates all signals by one clock",
            NaiveRule::Utc | NaiveRule::Zone(_) => "`naive = \"wall\"` in `[dates]` dates signals as they are written",
        };
        let tickers = format!("{tickers} of {}", count_of(*all, "ticker", "tickers"));
        format!("{tickers} are dated at {other}, others at {most}: a day's signals are on two dates; {remedy}")
    }
}

/// A time of day: `04:00`.
fn time_of_day(micros: i64) -> String {
    let minutes = micros / 60_000_000;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::{SplitDays, TimesOfDay};

    const HOUR: i64 = 3_600_000_000;

    fn split(tickers: &[&[i64]]) -> Option<SplitDays> {
        let mut times = TimesOfDay::default();
        for (ticker, hours) in tickers.iter().enumerate() {
            hours.iter().for_each(|hour| times.add(ticker, (24 * 20_000 + hour) * HOUR));
        }
        times.split()
    }

    #[test]
    fn tickers_are_apart_if_they_share_no_time_of_day_with_most_others() {
        let apart = |tickers, all, times: [&str; 2]| Some(SplitDays { tickers, all, times: times.map(str::to_owned) });
        assert_eq!(split(&[&[0], &[0], &[4]]), apart(1, 3, ["00:00", "04:00"]));
        // In summer and in winter.
        assert_eq!(split(&[&[0], &[0], &[4, 5], &[5]]), apart(2, 4, ["00:00", "04:00"]));
        assert_eq!(split(&[&[4, 5], &[4, 5], &[5], &[4]]), None);
        assert_eq!(split(&[&[15, 16], &[0], &[0]]), apart(1, 3, ["00:00", "15:00"]));
        // Within a day.
        assert_eq!(split(&[&[9, 10, 11, 12, 13, 14], &[0], &[0]]), None);
        assert_eq!(split(&[&[0], &[0]]), None);
        assert_eq!(split(&[]), None);
    }
}
