//! A schedule as expressions in UTC, for platforms without time zones.
//!
//! The clock of a zone is ahead of UTC by a few different offsets. For each of them, the times that an expression names are
//! moved by it, and its days with them. The result names at least every time of the schedule, in every year: what is
//! started decides whether something is due. It may name more: the other offset's times, and, where a day is moved over
//! the end of a month, every day that may be its neighbour.

use std::collections::{BTreeMap, BTreeSet};

use bellwether::definition::{CronFields, DayField, MonthMark, WeekdayMark};
use bellwether::error::Result;
use bellwether::plan::{Plan, Schedule};

use super::dialect::{CronDialect, Days, numbers, spell};
use super::{days_ahead, offset};
use chrono::{DateTime, Utc};

/// The fewest minutes between two times.
const CLOSEST: u32 = 5;

const MINUTES_OF_DAY: i64 = 24 * 60;

/// The expressions that name every time of a schedule.
pub(super) fn expressions(plan: &Plan, schedule: &Schedule, now: DateTime<Utc>) -> Result<BTreeSet<String>> {
    let fields = CronDialect::GithubActions.fields(plan, schedule)?;
    let is_close = |one: u32, next: u32| next - one < CLOSEST;
    let around = fields.minutes.first().zip(fields.minutes.last()).map(|(first, last)| (*last, first + 60));
    let is_dense = fields.minutes.windows(2).any(|pair| is_close(pair[0], pair[1]))
        || around.is_some_and(|(last, first)| fields.minutes.len() > 1 && is_close(last, first));
    if is_dense {
        return Ok(BTreeSet::from([format!("*/{CLOSEST} * * * *")]));
    }
    let offsets: BTreeSet<i64> = days_ahead(now).map(|day| offset(schedule.timezone.0, day).num_minutes()).collect();
    Ok(offsets.into_iter().flat_map(|offset| shift(fields, offset)).collect())
}

/// The expressions that name the times of another, whose clock is ahead of UTC by some minutes.
fn shift(fields: &CronFields, offset: i64) -> Vec<String> {
    // The hours of each minute, by how many days both are moved.
    let mut hours: BTreeMap<(i64, u32), Vec<u32>> = BTreeMap::new();
    for hour in &fields.hours {
        for minute in &fields.minutes {
            let at = i64::from(*hour) * 60 + i64::from(*minute) - offset;
            let (days, at) = (at.div_euclid(MINUTES_OF_DAY), at.rem_euclid(MINUTES_OF_DAY) as u32);
            hours.entry((days, at % 60)).or_default().push(at / 60);
        }
    }
    let mut minutes: BTreeMap<(i64, Vec<u32>), Vec<u32>> = BTreeMap::new();
    for ((days, minute), mut hours) in hours {
        hours.sort_unstable();
        minutes.entry((days, hours)).or_default().push(minute);
    }
    let line = |((days, hours), minutes): ((i64, Vec<u32>), Vec<u32>)| {
        let (day, months, weekday) = moved_days(fields, days);
        spell(&minutes, &hours, &day, &months, &weekday)
    };
    minutes.into_iter().map(line).collect()
}

/// Day of month, months and weekday of an expression, a day earlier or later, or as they are.
fn moved_days(fields: &CronFields, by: i64) -> (String, Vec<u32>, String) {
    let any = || "*".to_owned();
    let month_days = |days: &DayField<MonthMark>| moved_within_month(&days_of_month(days), by);
    let weekdays = |days: &DayField<WeekdayMark>| {
        let moved: BTreeSet<u32> =
            weekdays_of(days).iter().map(|day| (i64::from(*day) + by).rem_euclid(7) as u32).collect();
        if moved.len() == 7 { any() } else { list(&moved) }
    };
    let (day, weekday) = match Days::of(fields) {
        Days::Every => (any(), any()),
        // Where both must apply, more days than these are never due.
        Days::OfMonth(days) | Days::Both(days, _) => (list(&month_days(&days)), any()),
        Days::OfWeek(days) => (any(), weekdays(&days)),
        Days::Either(days, of_week) => match (list(&month_days(&days)), weekdays(&of_week)) {
            (_, weekday) if weekday == "*" => (any(), weekday),
            both => both,
        },
    };
    // A day that is moved over the end of its month is in the month beside it.
    let beside = fields.months.iter().map(|month| ((i64::from(*month) - 1 + by).rem_euclid(12) + 1) as u32);
    let months: BTreeSet<u32> = fields.months.iter().copied().chain(beside).collect();
    (day, months.into_iter().collect(), weekday)
}

/// Days of a month, each of them moved.
fn moved_within_month(days: &BTreeSet<u32>, by: i64) -> BTreeSet<u32> {
    let moved = |day: &u32| match (by, day) {
        (0, _) => vec![*day],
        (1.., 31) => vec![1],
        (1.., 28..) => vec![1, day + 1],
        (1.., _) => vec![day + 1],
        (_, 1) => vec![28, 29, 30, 31],
        _ => vec![day - 1],
    };
    days.iter().flat_map(moved).collect()
}

/// The days of a month that a field may name.
fn days_of_month(field: &DayField<MonthMark>) -> BTreeSet<u32> {
    let of_mark = |mark: &MonthMark| match mark {
        MonthMark::NearestWorkday(day) => day.saturating_sub(2).max(1)..=(day + 2).min(31),
        MonthMark::Last | MonthMark::LastWorkday => 26..=31,
    };
    field.marks.iter().flat_map(of_mark).chain(field.numbers.iter().copied()).collect()
}

/// The weekdays that a field may name.
fn weekdays_of(field: &DayField<WeekdayMark>) -> BTreeSet<u32> {
    let of_mark = |mark: &WeekdayMark| match *mark {
        WeekdayMark::Nth(weekday, _) | WeekdayMark::Last(weekday) => weekday,
    };
    field.marks.iter().map(of_mark).chain(field.numbers.iter().copied()).collect()
}

fn list(values: &BTreeSet<u32>) -> String {
    numbers(&values.iter().copied().collect::<Vec<_>>())
}
