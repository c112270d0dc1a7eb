//! Cron expressions: when a definition is due.
//!
//! Times are those of the clock in a time zone. Each time that an expression names is due at the first instant at which
//! the clock shows it or a later one: a time that the clock skips, at the end of the gap, together with the others of the
//! gap; a time that the clock repeats, once, the first time. An expression that names every hour counts the hours that
//! pass instead: it is due whenever the clock shows its minutes, never in a gap, and again in a repeated hour.

mod fields;

use std::fmt;
use std::iter::successors;
use std::str::FromStr;

use chrono::{
    DateTime, Days, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound, TimeDelta, TimeZone, Timelike,
    Utc,
};
use chrono_tz::{GapInfo, Tz};
use schemars::json_schema;

use self::fields::{CronFields, DAY, DayField, FieldKind, HOUR, MINUTE, MONTH, SECOND, WEEKDAY};
use super::values::{Refusal, parsed_from_text};

/// A cron expression: minute, hour, day of month, month and day of week, with or without seconds before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    fields: CronFields,
}

/// The longest expression, in bytes.
const LONGEST: usize = 200;

/// Whatever is due at all is due within eight years, and leap days on a weekday within forty.
const MOST_DAYS: usize = 41 * 366;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The last second of a day.
const LAST_SECOND: NaiveTime = NaiveTime::from_hms_opt(23, 59, 59).expect("a time");

impl Cron {
    /// The first time after an instant; `None` if the calendar of the program ends before.
    pub fn next_after(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let from = instant.trunc_subsecs(0);
        if self.is_hourly() {
            return self.next_shown(from + TimeDelta::seconds(1), zone);
        }
        let mut local = from.with_timezone(&zone).naive_local();
        loop {
            local = self.first_from(local + TimeDelta::seconds(1))?;
            let due = first_shown(local, zone)?;
            if due > from {
                return Some(due);
            }
        }
    }

    /// The last time that is not after an instant; `None` if there is none.
    pub fn last_until(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let from = instant.trunc_subsecs(0);
        if self.is_hourly() {
            return self.last_shown(from, zone);
        }
        let shown = from.with_timezone(&zone);
        // In the repetition of an hour, the rest of the hour was shown before.
        let repeated = match zone.from_local_datetime(&shown.naive_local()) {
            MappedLocalTime::Ambiguous(first, second) if second == shown => second - first,
            _ => TimeDelta::zero(),
        };
        let mut local = shown.naive_local() + repeated;
        loop {
            local = self.last_to(local)?;
            let due = first_shown(local, zone)?;
            if due <= from {
                return Some(due);
            }
            local -= TimeDelta::seconds(1);
        }
    }

    /// Whether every hour is named.
    fn is_hourly(&self) -> bool {
        self.fields.hours.len() == 24
    }

    /// The first clock time that is named, from one on.
    fn first_from(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.fields.name_day(local.date())
            && let Some(time) = self.fields.first_time(local.time())
        {
            return Some(local.date().and_time(time));
        }
        let date = self.first_day(local.date().succ_opt()?)?;
        Some(date.and_time(self.fields.first_time(NaiveTime::MIN)?))
    }

    /// The last clock time that is named, up to one.
    fn last_to(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.fields.name_day(local.date())
            && let Some(time) = self.fields.last_time(local.time())
        {
            return Some(local.date().and_time(time));
        }
        let date = self.last_day(local.date().pred_opt()?)?;
        Some(date.and_time(self.fields.last_time(LAST_SECOND)?))
    }

    fn first_day(&self, from: NaiveDate) -> Option<NaiveDate> {
        from.iter_days().take(MOST_DAYS).find(|&date| self.fields.name_day(date))
    }

    fn last_day(&self, until: NaiveDate) -> Option<NaiveDate> {
        successors(Some(until), NaiveDate::pred_opt).take(MOST_DAYS).find(|&date| self.fields.name_day(date))
    }

    /// The first instant from one on at which the clock shows a time that is named, minute by minute of a named day.
    fn next_shown(&self, from: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let CronFields { seconds, minutes, .. } = &self.fields;
        let mut at = from;
        loop {
            let local = at.with_timezone(&zone).naive_local();
            // A clock that repeats midnight goes back to the day before.
            let is_named = self.fields.name_day(local.date());
            if !is_named && zone.from_local_datetime(&local).single().is_some() {
                at = first_shown(self.first_day(local.date().succ_opt()?)?.and_time(NaiveTime::MIN), zone)?;
                continue;
            }
            let named = seconds.iter().filter(|_| is_named).find(|&&second| second >= local.second());
            if let Some(second) = named.filter(|_| minutes.contains(&local.minute())) {
                return Some(at + TimeDelta::seconds(i64::from(second - local.second())));
            }
            at += TimeDelta::seconds(60 - i64::from(local.second()));
        }
    }

    /// The last instant up to one at which the clock shows a time that is named, likewise.
    fn last_shown(&self, until: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let CronFields { seconds, minutes, .. } = &self.fields;
        let mut at = until;
        loop {
            let local = at.with_timezone(&zone).naive_local();
            let is_named = self.fields.name_day(local.date());
            if !is_named && zone.from_local_datetime(&local).single().is_some() {
                let after = (self.last_day(local.date().pred_opt()?)? + Days::new(1)).and_time(NaiveTime::MIN);
                let shown = zone.from_local_datetime(&after).latest().map(|instant| instant.with_timezone(&Utc));
                at = shown.or_else(|| first_shown(after, zone))? - TimeDelta::seconds(1);
                continue;
            }
            let named = seconds.iter().filter(|_| is_named).rfind(|&&second| second <= local.second());
            if let Some(second) = named.filter(|_| minutes.contains(&local.minute())) {
                return Some(at - TimeDelta::seconds(i64::from(local.second() - second)));
            }
            at -= TimeDelta::seconds(i64::from(local.second()) + 1);
        }
    }
}

/// The first instant at which a clock shows a time or a later one.
fn first_shown(local: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    let instant = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => instant,
        MappedLocalTime::None => GapInfo::new(&local, &zone)?.end?,
    };
    Some(instant.with_timezone(&Utc))
}

/// Reads a field by a function that gives none if it is invalid.
fn read<T>(field: &FieldKind, text: &str, of: impl FnOnce(&str) -> Option<T>) -> Result<T, Refusal> {
    let FieldKind { name, low, high, more, .. } = field;
    of(text).ok_or_else(|| {
        format!(
            "invalid {name} `{text}` in a schedule\nuse `*`, a number from {low} to {high}, a range such as `{low}-{high}`, a \
             step such as `*/2`, or a list of these{more}"
        )
    })
}

/// An expression with its nickname spelled out.
fn spelled_out(text: &str) -> Result<String, Refusal> {
    if !text.starts_with('@') {
        return Ok(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim_end()));
    known.map(|(_, fields)| (*fields).to_owned()).ok_or_else(|| {
        let names: Vec<String> = NICKNAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("unknown schedule `{text}`\nuse {}, or five fields such as `30 18 * * MON-FRI`", names.join(", "))
    })
}

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl FromStr for Cron {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() > LONGEST {
            return Err(format!("a schedule is longer than {LONGEST} bytes\nuse ranges and steps such as `*/5`"));
        }
        let text = text.trim();
        let spelled = spelled_out(text)?;
        let given: Vec<&str> = spelled.split(' ').filter(|field| !field.is_empty()).collect();
        let (second, [minute, hour, day, month, weekday]) = match given[..] {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => {
                return Err(format!(
                    "a schedule has five fields, found {}\nminute, hour, day of month, month, day of week: `30 18 * * \
                     MON-FRI`; with six, the first is the second",
                    given.len()
                ));
            }
        };
        let numbers = |field: &FieldKind, text: &str| read(field, text, |text| field.numbers(text));
        let fields = CronFields {
            seconds: numbers(&SECOND, second)?,
            minutes: numbers(&MINUTE, minute)?,
            hours: numbers(&HOUR, hour)?,
            days: read(&DAY, day, DayField::of_month)?,
            months: numbers(&MONTH, month)?,
            weekdays: read(&WEEKDAY, weekday, |text| DayField::of_week(text.strip_prefix('+').unwrap_or(text)))?,
            needs_both: weekday.starts_with('+'),
        };
        let cron = Self { text: if text.starts_with('@') { text.to_owned() } else { spelled.clone() }, fields };
        // From a leap year on.
        let start = NaiveDate::from_ymd_opt(2000, 1, 1).expect("a day");
        if cron.first_day(start).is_none() {
            return Err(format!("a schedule that is never due: `{text}`\nchange the day of month or the month"));
        }
        Ok(cron)
    }
}

parsed_from_text!(Cron, json_schema!({ "type": "string", "examples": ["30 18 * * MON-FRI", "@daily"] }));
