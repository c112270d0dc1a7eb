//! How old data is, in trading days.
//!
//! Trading days are those of the definition's calendar, or else Monday to Friday: without a calendar, holidays count as
//! well. The age of data is the number of trading days after its newest date, up to today: Friday's signals are 0 trading
//! days old on Sunday, 1 on Monday, and 2 on Tuesday.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};

use crate::plan::{DayCount, NaiveRule, Plan};
use crate::sessions::{Sessions, day_of};
use crate::text::human::count_of;
use crate::time::MICROS_PER_DAY;

/// The age of a newest date on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// In trading days.
    pub trading_days: u32,
    /// In calendar days.
    pub days: u32,
}

impl Age {
    /// The age of a date on a day; zero if the date is in the future.
    pub fn of(newest: NaiveDate, today: NaiveDate, sessions: &Sessions) -> Self {
        let days = u32::try_from((today - newest).num_days()).unwrap_or_default();
        Self { trading_days: sessions.count_after(newest, today), days }
    }

    /// The age in words: `up to date`, or `2 trading days (4 days) old`.
    pub fn in_words(self) -> String {
        match self.trading_days {
            0 => "up to date".to_owned(),
            _ => format!("{self} old"),
        }
    }

    /// Whether it is above a limit.
    pub fn is_above(self, limit: DayCount) -> bool {
        let (age, limit) = match limit {
            DayCount::Calendar(limit) => (self.days, limit),
            DayCount::Trading(limit) => (self.trading_days, limit),
        };
        i64::from(age) > i64::from(limit.count())
    }
}

/// The last microsecond in which the age of a date, in microseconds, is not above a limit.
pub(crate) fn fresh_until(date: i64, limit: DayCount, sessions: &Sessions) -> i64 {
    let days = |count: i64| count.saturating_mul(MICROS_PER_DAY);
    match limit {
        DayCount::Calendar(limit) => date.saturating_add(days(limit.count().into())),
        DayCount::Trading(limit) => {
            let late = sessions.nth_after(day_of(date), limit.count() as u32 + 1);
            days(late.into()).saturating_sub(1)
        }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trading_days = count_of(self.trading_days.into(), "trading day", "trading days");
        match self.days {
            0 => formatter.write_str("0 trading days"),
            days => write!(formatter, "{trading_days} ({})", count_of(days.into(), "day", "days")),
        }
    }
}

/// How far the newest date may lie in the future: signals may be dated for the session that they are made for.
pub(crate) const MAX_DAYS_AHEAD: u32 = 7;

/// How many days a newest date lies in the future, if that is more than it may.
pub fn days_ahead(newest: NaiveDate, today: NaiveDate) -> Option<u32> {
    u32::try_from((newest - today).num_days()).ok().filter(|days| *days > MAX_DAYS_AHEAD)
}

/// The day that it is where a definition lives: in the time zone of its schedule, or else of its dates, or else in UTC.
pub fn today(plan: &Plan, now: DateTime<Utc>) -> NaiveDate {
    let zone = match (&plan.schedule, plan.dataset.dates) {
        (Some(schedule), _) => schedule.timezone.0,
        (None, NaiveRule::Zone(zone)) => zone.0,
        (None, NaiveRule::Utc | NaiveRule::Wall) => chrono_tz::UTC,
    };
    now.with_timezone(&zone).date_naive()
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::{Age, fresh_until};
    use crate::plan::DayCount;
    use crate::sessions::Sessions;

    #[test]
    fn fridays_signals_are_fresh_until_monday() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        for (newest, today, trading_days, days) in [
            ("2026-11-20", "2026-11-20", 0, 0),
            ("2026-11-20", "2026-11-21", 0, 1),
            ("2026-11-20", "2026-11-22", 0, 2),
            ("2026-11-20", "2026-11-23", 1, 3),
            ("2026-11-20", "2026-11-24", 2, 4),
            ("2026-11-20", "2026-11-30", 6, 10),
            ("2026-11-22", "2026-11-23", 1, 1),
            ("2026-11-18", "2026-11-21", 2, 3),
            ("2026-11-25", "2026-11-20", 0, 0),
            ("2024-12-31", "2025-12-31", 261, 365),
        ] {
            assert_eq!(
                Age::of(day(newest), day(today), &Sessions::of_rule(None, &[])),
                Age { trading_days, days },
                "{newest} on {today}"
            );
        }
        assert_eq!(Age { trading_days: 0, days: 2 }.in_words(), "up to date");
        assert_eq!(Age { trading_days: 1, days: 3 }.in_words(), "1 trading day (3 days) old");
    }

    #[test]
    fn a_date_is_fresh_as_long_as_its_age_is_not_above_the_limit() {
        let first: NaiveDate = "1970-01-20".parse().unwrap();
        let micros = |day: NaiveDate| day.and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp_micros();
        let with_holidays = Sessions::of_rule(None, &["1970-01-26", "1970-01-27"].map(|day| day.parse().unwrap()));
        for sessions in [Sessions::default(), with_holidays] {
            for limit in ["0 trading days", "1 trading day", "2 trading days", "5 trading days", "11 trading days"] {
                let limit: DayCount = limit.parse().unwrap();
                for date in first.iter_days().take(30) {
                    let late = date.iter_days().find(|day| Age::of(date, *day, &sessions).is_above(limit)).unwrap();
                    for time in [0, 77_700_000_001] {
                        let until = fresh_until(micros(date) + time, limit, &sessions);
                        assert_eq!(until, micros(late) - 1, "{date} {limit}");
                    }
                }
            }
        }
    }
}
