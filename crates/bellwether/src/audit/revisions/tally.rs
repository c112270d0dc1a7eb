//! Counters of changed cells.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};

use crate::interface::{Period, Regime, Ticker};
use crate::time::MICROS_PER_DAY;

/// Changes to the past between two instants.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions {
    /// Changes count after this instant; `None` counts all.
    pub from: Option<DateTime<Utc>>,
    /// Changes count up to and including this instant.
    pub until: DateTime<Utc>,
    /// Signals.
    pub signals: Rewrites,
    /// Article scores.
    pub articles: Rewrites,
}

/// Changed cells of one table, in total and by group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrites {
    /// All cells.
    pub total: CellCounts,
    /// By age when they changed. A cell is known at every age that it had in the span.
    pub by_age: BTreeMap<AgeGroup, CellCounts>,
    /// By month of their date.
    pub by_month: BTreeMap<Month, CellCounts>,
    /// By ticker.
    pub by_ticker: BTreeMap<Ticker, CellCounts>,
    /// By sector; `-` if unknown.
    pub by_sector: BTreeMap<String, CellCounts>,
    /// By period, for signals.
    pub by_period: BTreeMap<Period, CellCounts>,
    /// By market regime, for signals.
    pub by_regime: BTreeMap<Regime, CellCounts>,
}

/// Cells and their changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellCounts {
    /// Cells known at the start of the span or first seen in it.
    pub known: u64,
    /// Cells that changed, however often.
    pub changed: u64,
    /// Cells known at the start of the span; all known cells if it has no start.
    pub known_before: u64,
    /// Known cells that were revised or withdrawn, plus cells added late.
    pub rewritten: u64,
    /// Late additions: cells that earlier answers did not have though they covered the date.
    pub added_late: u64,
    /// Revisions to another value.
    pub revised: u64,
    /// Withdrawals: cells no longer listed though the answer covered the date.
    pub withdrawn: u64,
    /// Revisions from `buy` to `sell` or back.
    pub flipped: u64,
    /// Sum of the absolute changes of confidence or score.
    pub moved: f64,
    /// Largest absolute change.
    pub moved_most: f64,
}

impl CellCounts {
    /// Share of cells that changed; `None` without cells.
    pub fn rate(&self) -> Option<f64> {
        share(self.changed, self.known)
    }

    /// Share of the cells known at the start that were rewritten since, including late additions.
    pub fn rewritten_share(&self) -> Option<f64> {
        share(self.rewritten, self.known_before)
    }

    /// Number of changes.
    pub fn changes(&self) -> u64 {
        self.added_late + self.revised + self.withdrawn
    }

    /// Mean absolute change of confidence or score per revision.
    pub fn moved_on_average(&self) -> Option<f64> {
        (self.revised > 0).then(|| self.moved / self.revised as f64)
    }
}

fn share(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

impl AddAssign for CellCounts {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.changed += other.changed;
        self.known_before += other.known_before;
        self.rewritten += other.rewritten;
        self.added_late += other.added_late;
        self.revised += other.revised;
        self.withdrawn += other.withdrawn;
        self.flipped += other.flipped;
        self.moved += other.moved;
        self.moved_most = self.moved_most.max(other.moved_most);
    }
}

/// Age of a cell: whole days from its date to an instant, both in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgeGroup {
    /// Up to a day, or dated in the future.
    Fresh,
    /// 2 to 7 days.
    Week,
    /// 8 to 30 days.
    Month,
    /// 31 to 90 days.
    Quarter,
    /// 91 to 365 days.
    Year,
    /// More than a year.
    Older,
}

impl AgeGroup {
    /// All ages, youngest first.
    pub const ALL: [Self; 6] = [Self::Fresh, Self::Week, Self::Month, Self::Quarter, Self::Year, Self::Older];

    /// The age of a date at an instant, both in microseconds.
    pub(super) fn between(date: i64, instant: i64) -> Self {
        Self::of((instant - date).div_euclid(MICROS_PER_DAY))
    }

    /// The first date, in microseconds, that is younger than this age at an instant.
    pub(super) fn end(self, instant: i64) -> i64 {
        let least = match self {
            Self::Fresh => return i64::MAX,
            Self::Week => 2,
            Self::Month => 8,
            Self::Quarter => 31,
            Self::Year => 91,
            Self::Older => 366,
        };
        instant - least * MICROS_PER_DAY + 1
    }

    /// The age class of a number of days.
    pub fn of(days: i64) -> Self {
        match days {
            ..=1 => Self::Fresh,
            2..=7 => Self::Week,
            8..=30 => Self::Month,
            31..=90 => Self::Quarter,
            91..=365 => Self::Year,
            366.. => Self::Older,
        }
    }

    /// Its range of days, as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "0-1d",
            Self::Week => "2-7d",
            Self::Month => "8-30d",
            Self::Quarter => "31-90d",
            Self::Year => "91-365d",
            Self::Older => "over 365d",
        }
    }
}

impl fmt::Display for AgeGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A calendar month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Month {
    year: i32,
    month: u32,
}

impl Month {
    /// The month of a naive timestamp in microseconds.
    pub(super) fn of(micros: i64) -> Self {
        let day = crate::audit::subject::day(micros);
        Self { year: day.year(), month: day.month() }
    }

    /// Start of the next month, in microseconds; the earliest instant if it cannot be represented.
    pub(super) fn end(self) -> i64 {
        let next = self.start().checked_add_months(Months::new(1));
        next.map_or(i64::MIN, |next| next.and_time(NaiveTime::MIN).and_utc().timestamp_micros())
    }

    /// Its first day.
    pub fn start(self) -> NaiveDate {
        NaiveDate::from_ymd_opt(self.year, self.month, 1).expect("a month has a first day")
    }
}

/// Shown as `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{:04}-{:02}", self.year, self.month))
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::{AgeGroup, MICROS_PER_DAY, Month};

    fn micros(year: i32, month: u32, day: u32) -> i64 {
        NaiveDate::from_ymd_opt(year, month, day).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp_micros()
    }

    #[test]
    fn an_age_group_ends_at_the_first_younger_date() {
        let instant = micros(2026, 11, 20) + 77_700_000_001;
        for days in 0..400 {
            for date in [0, 1, MICROS_PER_DAY - 1].map(|more| instant - days * MICROS_PER_DAY + more) {
                let age = AgeGroup::between(date, instant);
                let end = age.end(instant);
                assert!(end > date, "{date}");
                assert_eq!(AgeGroup::between(end - 1, instant), age);
                assert!(age == AgeGroup::Fresh || AgeGroup::between(end, instant) < age);
            }
        }
    }

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        for (date, next) in
            [(micros(2024, 2, 29), micros(2024, 3, 1)), (micros(2026, 12, 31) + MICROS_PER_DAY - 1, micros(2027, 1, 1))]
        {
            assert_eq!(Month::of(date).end(), next);
        }
    }
}
