//! From a signal's date to a return: at which close it is entered, and at which it is left.
//!
//! No close is used that may lie before the signal. The time of day of a close is unknown, but no exchange closes before
//! the day begins in UTC, so a signal is entered at the first session whose date is after the day, in UTC, on which it
//! was seen. A backfilled signal is taken to have been seen on its own date, plus a lag in sessions.

use std::ops::Range;

use chrono::Months;

use super::{Day, Prices, date};
use crate::interface::Period;
use crate::sessions::{Sessions, number};

/// No session.
const NONE: u32 = u32::MAX;

/// How long a position is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Horizon {
    Sessions(usize),
    Months(u32),
}

impl Horizon {
    /// The horizon of a period: `15d` are sessions, `1m` is a calendar month.
    fn new(period: Period) -> Self {
        let (count, unit) = period.as_str().split_at(period.as_str().len() - 1);
        let count: u32 = count.parse().expect("a period is a number and a unit");
        if unit == "m" { Self::Months(count) } else { Self::Sessions(count as usize) }
    }

    /// The session at whose close a position ends, for each session at whose close it may begin.
    fn exits(self, sessions: &[Day]) -> Vec<u32> {
        let exit = |entry: usize| match self {
            Self::Sessions(count) => entry + count,
            Self::Months(count) => {
                let end = date(sessions[entry]).checked_add_months(Months::new(count)).map_or(Day::MAX, number);
                sessions.partition_point(|session| *session < end)
            }
        };
        let known = |exit: usize| if exit < sessions.len() { exit as u32 } else { NONE };
        (0..sessions.len()).map(|entry| known(exit(entry))).collect()
    }
}

/// The day on which a position ends that begins on a day, by a calendar of sessions; prices may end before.
pub(crate) fn end_day(period: Period, entered: Day, sessions: &Sessions) -> Day {
    match Horizon::new(period) {
        Horizon::Sessions(count) => sessions.nth_after(entered, count as u32),
        Horizon::Months(count) => date(entered).checked_add_months(Months::new(count)).map_or(Day::MAX, number),
    }
}

/// The exits of every period, and the last close of each name.
pub(crate) struct Exits {
    by_period: Vec<Vec<u32>>,
    /// The last session with a close, by the number of a ticker; `NONE` if it may have further ones.
    last: Vec<u32>,
}

impl Exits {
    pub(crate) fn new(prices: &Prices) -> Self {
        let sessions = prices.sessions().len();
        // A name whose closes end five sessions before those of the others was delisted.
        let last = |ticker: usize| {
            let last = (0..sessions).rev().find(|session| prices.between(ticker as u16, *session, *session).is_some());
            last.filter(|last| last + 5 < sessions).map_or(NONE, |last| last as u32)
        };
        Self {
            by_period: Period::all().map(|period| Horizon::new(period).exits(prices.sessions())).collect(),
            last: (0..prices.tickers().len()).map(last).collect(),
        }
    }

    /// The return of a name from one session to another, and the session at which it ends: maybe before, with the last close
    /// of the name, since whoever held it was paid that. None without a close.
    pub(crate) fn held(&self, prices: &Prices, ticker: u16, entry: usize, exit: usize) -> Option<(f64, usize)> {
        let last = self.last[usize::from(ticker)];
        let end = if (entry as u32 + 1..exit as u32).contains(&last) { last as usize } else { exit };
        Some((prices.between(ticker, entry, end)?, end))
    }

    /// The session at which a position ends that begins at a session; none if that is after the last one.
    pub(crate) fn exit(&self, period: Period, entry: usize) -> Option<usize> {
        let exit = self.by_period[period.index()].get(entry).copied().filter(|exit| *exit != NONE);
        exit.map(|exit| exit as usize)
    }
}

/// The first session after a day; the number of sessions if there is none.
pub(crate) fn first_after(sessions: &[Day], day: Day) -> usize {
    sessions.partition_point(|session| *session <= day)
}

/// The session at which a signal of a date is entered that was not watched: its lag in sessions after the date. A lag of
/// 0 is the close of the date itself, or the first after it.
pub(crate) struct DatedEntries {
    /// The day before the first session.
    first: Day,
    /// From that day to the one after the last session, or as far as a cell can be from the first one.
    by_day: Vec<u32>,
}

impl DatedEntries {
    pub(crate) fn new(sessions: &[Day], lag: u32) -> Self {
        let first = sessions[0] - 1;
        let last = (sessions[sessions.len() - 1] + 1).min(first + Day::from(u16::MAX) + 1);
        let entry = |day: Day| match lag.checked_sub(1) {
            Some(more) => (first_after(sessions, day) as u32).saturating_add(more),
            None => first_after(sessions, day - 1) as u32,
        };
        Self { first, by_day: (first..=last).map(entry).collect() }
    }

    /// The entry of a signal of a day; beyond the sessions if it is after them.
    pub(crate) fn entry(&self, day: Day) -> usize {
        let place = (day - self.first).clamp(0, self.by_day.len() as Day - 1);
        self.by_day[place as usize] as usize
    }
}

/// The sessions of the first and the last entry of some signals of a date. Those that were seen late are entered late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySpan {
    first: u16,
    last: u16,
}

impl EntrySpan {
    /// No entry yet.
    pub(crate) const NONE: Self = Self { first: u16::MAX, last: 0 };

    pub(crate) fn add(&mut self, entry: u16) {
        (self.first, self.last) = (self.first.min(entry), self.last.max(entry));
    }

    /// From the first entry to the last exit, some horizons later. What ends after the last session is open until then.
    pub(crate) fn window(self, exits: &Exits, period: Period, lag: usize) -> Range<usize> {
        let sessions = exits.by_period[period.index()].len();
        let later = |entry: u16, lags: usize| {
            (0..lags).try_fold(usize::from(entry), |entry, _| exits.exit(period, entry)).unwrap_or(sessions)
        };
        later(self.first, lag)..later(self.last, lag + 1)
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::{DatedEntries, EntrySpan, Exits, Horizon, NONE, first_after, number};
    use crate::interface::Period;

    #[test]
    fn months_end_at_the_first_session_at_or_after_their_day() {
        let days = ["2026-01-30", "2026-01-31", "2026-02-27", "2026-03-02", "2026-03-31"];
        let sessions: Vec<i32> = days.iter().map(|day| number(day.parse::<NaiveDate>().unwrap())).collect();
        // The 30th and 31st of January plus a month are the 28th of February, which is no session.
        assert_eq!(Horizon::Months(1).exits(&sessions), [3, 3, 4, NONE, NONE]);
        assert_eq!(Horizon::Sessions(2).exits(&sessions), [2, 3, 4, NONE, NONE]);
    }

    #[test]
    fn an_entry_is_never_at_a_close_that_may_lie_before_the_signal() {
        let sessions = [10, 11, 14];
        assert_eq!([9, 10, 11, 12, 14].map(|day| first_after(&sessions, day)), [0, 1, 2, 2, 3]);
        for (lag, entries) in [(1, [0, 0, 1, 2, 3, 3]), (0, [0, 0, 0, 2, 2, 3]), (2, [1, 1, 2, 3, 4, 4])] {
            let dated = DatedEntries::new(&sessions, lag);
            assert_eq!([1, 9, 10, 12, 14, 99].map(|day| dated.entry(day)), entries, "a lag of {lag}");
        }
        assert_eq!(DatedEntries::new(&sessions, u32::MAX).entry(12), u32::MAX as usize, "no lag begins anew");
        let far = DatedEntries::new(&[10, 11, 90_000_000], 1);
        assert_eq!(([10, 11, 65_545].map(|day| far.entry(day)), far.by_day.len()), ([1, 2, 2], 65_537));
    }

    #[test]
    fn the_window_of_a_date_lasts_from_the_first_entry_to_the_last_exit() {
        let sessions: Vec<i32> = (0..9).collect();
        let by_period = Period::all().map(|period| Horizon::new(period).exits(&sessions)).collect();
        let exits = Exits { by_period, last: Vec::new() };
        let mut entries = EntrySpan::NONE;
        [3, 2, 4].into_iter().for_each(|entry| entries.add(entry));
        let windows = [0, 1, 2].map(|lag| entries.window(&exits, "2d".parse().unwrap(), lag));
        assert_eq!(windows, [2..6, 4..8, 6..9]);
    }
}
