//! Cron expressions: when a definition is due.
//!
//! Times are those of the clock in a time zone. Each time that an expression names is due at the first instant at which
//! the clock shows it or a later one: a time that the clock skips, at the end of the gap, together with the others of the
//! gap; a time that the clock repeats, once, the first time. An expression that names every hour counts the hours that
//! pass instead: it is due whenever the clock shows its minutes, never in a gap, and again in a repeated hour.
//!
//! A field is a list of `*`, numbers, ranges and steps. Names stand for numbers in months and weekdays. Days may also depend
//! on the month: its last day, the workday nearest to a day, the second or the last Friday.

use std::fmt;
use std::str::FromStr;

use chrono::{
    DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound, TimeDelta, TimeZone, Timelike, Utc,
};
use chrono_tz::Tz;
use schemars::json_schema;

use super::times::clock_instants;
use super::values::{Refusal, parsed_from_text};

/// A cron expression: minute, hour, day of month, month and day of week, with or without seconds before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// What it names, in order: seconds, minutes and hours from 0, months from 1.
    seconds: Vec<u32>,
    minutes: Vec<u32>,
    hours: Vec<u32>,
    months: Vec<u32>,
    /// The days of the month; none for `*`, which names no day of its own.
    days: Option<Vec<DayRule>>,
    weekdays: Option<Vec<DayRule>>,
    /// Whether a day must be named by both fields (`+MON`), rather than by either.
    needs_both: bool,
}

/// Days that a field names. Sunday is weekday zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayRule {
    /// A day of the month.
    Day(u32),
    /// The last day: `L`.
    LastDay,
    /// The last workday: `LW`.
    LastWorkday,
    /// The workday nearest to a day of the same month: `15W`.
    NearestWorkday(u32),
    Weekday(u32),
    /// The first to the fifth of a weekday: `5#2`.
    NthWeekday(u32, u32),
    /// The last of a weekday: `5L`.
    LastWeekday(u32),
}

/// Whatever is due at all is due within eight years, and leap days on a weekday within forty.
const MAX_DAYS: usize = 41 * 366;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Cron {
    /// The first time after an instant; `None` if the calendar of the program ends before.
    pub fn next_after(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let from = instant.trunc_subsecs(0);
        if self.hours.len() == 24 {
            return self.next_shown(from + TimeDelta::seconds(1), zone);
        }
        let mut local = from.with_timezone(&zone).naive_local();
        loop {
            local = self.first_from(local + TimeDelta::seconds(1))?;
            let (due, _) = clock_instants(local, zone);
            if due > from {
                return Some(due);
            }
        }
    }

    /// The last time that is not after an instant; `None` if nothing was due for longer than anything waits.
    pub fn last_until(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let instant = instant.trunc_subsecs(0);
        let due_within = |seconds: i64| {
            let begin = instant.checked_sub_signed(TimeDelta::seconds(seconds))?;
            self.next_after(begin, zone).filter(|due| *due <= instant)
        };
        // Looks back ever further, and then halves the span that has it.
        let (mut near, mut far) = (0, 1);
        while due_within(far).is_none() {
            if far > MAX_DAYS as i64 * 86_400 {
                return None;
            }
            (near, far) = (far, 2 * far);
        }
        while far - near > 1 {
            let middle = near + (far - near) / 2;
            if due_within(middle).is_some() {
                far = middle;
            } else {
                near = middle;
            }
        }
        due_within(far)
    }

    /// The first clock time that is named, from one on.
    fn first_from(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let first_time = |from: NaiveTime| {
            let hours = self.hours.iter().filter(|&&hour| hour >= from.hour());
            let minutes = hours.flat_map(|&hour| self.minutes.iter().map(move |&minute| (hour, minute)));
            let mut times = minutes.flat_map(|(hour, minute)| {
                self.seconds.iter().filter_map(move |&second| NaiveTime::from_hms_opt(hour, minute, second))
            });
            times.find(|&time| time >= from)
        };
        if self.names_day(local.date())
            && let Some(time) = first_time(local.time())
        {
            return Some(local.date().and_time(time));
        }
        Some(self.first_day(local.date().succ_opt()?)?.and_time(first_time(NaiveTime::MIN)?))
    }

    fn first_day(&self, from: NaiveDate) -> Option<NaiveDate> {
        from.iter_days().take(MAX_DAYS).find(|&date| self.names_day(date))
    }

    /// The first instant from one on at which the clock shows a time that is named, minute by minute of a named day.
    fn next_shown(&self, from: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let mut at = from;
        loop {
            let local = at.with_timezone(&zone).naive_local();
            // A clock that repeats midnight goes back to the day before.
            let is_named = self.names_day(local.date());
            if !is_named && zone.from_local_datetime(&local).single().is_some() {
                at = clock_instants(self.first_day(local.date().succ_opt()?)?.and_time(NaiveTime::MIN), zone).0;
                continue;
            }
            let named = self.seconds.iter().find(|&&second| is_named && second >= local.second());
            if let Some(second) = named.filter(|_| self.minutes.contains(&local.minute())) {
                return Some(at + TimeDelta::seconds(i64::from(second - local.second())));
            }
            at += TimeDelta::seconds(60 - i64::from(local.second()));
        }
    }

    fn names_day(&self, date: NaiveDate) -> bool {
        let is_named =
            |rules: &Option<Vec<DayRule>>| rules.as_ref().map(|rules| rules.iter().any(|rule| rule.names(date)));
        self.months.contains(&date.month())
            && match (is_named(&self.days), is_named(&self.weekdays)) {
                (Some(of_month), Some(of_week)) if self.needs_both => of_month && of_week,
                (Some(of_month), Some(of_week)) => of_month || of_week,
                (named, None) | (None, named) => named.unwrap_or(true),
            }
    }
}

impl DayRule {
    fn names(self, date: NaiveDate) -> bool {
        let (day, last) = (date.day(), u32::from(date.num_days_in_month()));
        let weekday = date.weekday().num_days_from_sunday();
        match self {
            Self::Day(named) => day == named,
            Self::LastDay => day == last,
            Self::LastWorkday => day == nearest_workday(date, last, last),
            Self::NearestWorkday(named) => named <= last && day == nearest_workday(date, named, last),
            Self::Weekday(named) => weekday == named,
            Self::NthWeekday(named, count) => weekday == named && day.div_ceil(7) == count,
            Self::LastWeekday(named) => weekday == named && day + 7 > last,
        }
    }

    /// An item of a field of days of the month.
    fn of_month(item: &str) -> Option<Vec<Self>> {
        match (item, item.strip_suffix('W')) {
            ("L", _) => Some(vec![Self::LastDay]),
            (_, Some("L")) => Some(vec![Self::LastWorkday]),
            (_, Some(day)) => Some(vec![Self::NearestWorkday(DAY.number(day)?)]),
            (_, None) => Some(DAY.item(item)?.into_iter().map(Self::Day).collect()),
        }
    }

    /// An item of a field of weekdays. Sunday is the seventh day, too.
    fn of_week(item: &str) -> Option<Vec<Self>> {
        match (item.split_once('#'), item.strip_suffix('L')) {
            (Some((weekday, "L")), _) | (None, Some(weekday)) => {
                Some(vec![Self::LastWeekday(WEEKDAY.number(weekday)? % 7)])
            }
            (Some((weekdays, count)), _) => {
                let count = digits(count).filter(|count| (1..=5).contains(count))?;
                Some(WEEKDAY.item(weekdays)?.into_iter().map(|day| Self::NthWeekday(day % 7, count)).collect())
            }
            (None, None) => Some(WEEKDAY.item(item)?.into_iter().map(|day| Self::Weekday(day % 7)).collect()),
        }
    }
}

/// The workday of a month that is nearest to one of its days.
fn nearest_workday(month: NaiveDate, day: u32, last: u32) -> u32 {
    match month.with_day(day).map(|date| date.weekday().num_days_from_sunday()) {
        Some(6) if day == 1 => 3,
        Some(6) => day - 1,
        Some(0) if day == last => day - 2,
        Some(0) => day + 1,
        _ => day,
    }
}

/// A field of an expression.
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    /// The words that stand for numbers, in upper case, from the lowest on.
    words: &'static [&'static str],
    /// What a hint adds.
    more: &'static str,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Sunday is the first day and the seventh.
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

const SECOND: Field = Field { name: "second", low: 0, high: 59, words: &[], more: "" };
const MINUTE: Field = Field { name: "minute", low: 0, high: 59, words: &[], more: "" };
const HOUR: Field = Field { name: "hour", low: 0, high: 23, words: &[], more: "" };
const DAY: Field = Field { name: "day of month", low: 1, high: 31, words: &[], more: ", or `L` for the last" };
const MONTH: Field = Field { name: "month", low: 1, high: 12, words: MONTHS, more: ", with names such as `JAN`" };
const WEEKDAY: Field =
    Field { name: "day of week", low: 0, high: 7, words: WEEKDAYS, more: ", with names such as `MON-FRI`" };

impl Field {
    /// The numbers that a list names, in order.
    fn numbers(&self, text: &str) -> Result<Vec<u32>, Refusal> {
        if text == "*" {
            return Ok((self.low..=self.high).collect());
        }
        let mut numbers = self.list(text, |item| self.item(item))?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The days that a list names; none for `*`.
    fn days(&self, text: &str, item: fn(&str) -> Option<Vec<DayRule>>) -> Result<Option<Vec<DayRule>>, Refusal> {
        if matches!(text, "*" | "?") {
            return Ok(None);
        }
        self.list(text, |text| item(&text.replace('?', "*").to_ascii_uppercase())).map(Some)
    }

    /// What the items of a list name.
    fn list<T: Clone>(&self, text: &str, item: impl Fn(&str) -> Option<Vec<T>>) -> Result<Vec<T>, Refusal> {
        let Self { name, low, high, more, .. } = self;
        let items = text.split(',').map(item).collect::<Option<Vec<_>>>();
        items.map(|items| items.concat()).ok_or_else(|| {
            format!(
                "invalid {name} `{text}` in a schedule\nuse `*`, a number from {low} to {high}, a range such as \
                 `{low}-{high}`, a step such as `*/2`, or a list of these{more}"
            )
        })
    }

    /// The numbers that an item of a list names.
    fn item(&self, text: &str) -> Option<Vec<u32>> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(digits(step).filter(|&step| step > 0)?)),
            None => (text, None),
        };
        let (first, last) = match (range.split_once('-'), step) {
            (Some((first, last)), _) => (self.number(first)?, self.meanings(last).last()?),
            (None, Some(_)) if range == "*" => (self.low, self.high),
            (None, Some(_)) => return None,
            (None, None) => (self.number(range)?, self.number(range)?),
        };
        (first <= last).then(|| (first..=last).step_by(step.unwrap_or(1) as usize).collect())
    }

    /// A number or a word that stands for one.
    fn number(&self, text: &str) -> Option<u32> {
        self.meanings(text).next()
    }

    /// The numbers that a text may stand for, in order: Sunday is the first day of a week and the last.
    fn meanings(&self, text: &str) -> impl Iterator<Item = u32> {
        let words = self.words.iter().zip(self.low..).filter(|(word, _)| text.eq_ignore_ascii_case(word));
        let own = digits(text).filter(|number| (self.low..=self.high).contains(number));
        words.map(|(_, number)| number).chain(own)
    }
}

/// A number in decimal digits alone.
fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl FromStr for Cron {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() > 200 {
            return Err("a schedule is longer than 200 bytes\nuse ranges and steps such as `*/5`".to_owned());
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let nickname = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&text));
        if nickname.is_none() && text.starts_with('@') {
            let names = NICKNAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            let hint = format!("use {names}, or five fields such as `30 18 * * MON-FRI`");
            return Err(format!("unknown schedule `{text}`\n{hint}"));
        }
        let mut given: Vec<&str> = nickname.map_or(&*text, |(_, fields)| *fields).split_whitespace().collect();
        if given.len() == 5 {
            given.insert(0, "0");
        }
        let [second, minute, hour, day, month, weekday] = given[..] else {
            return Err(format!(
                "a schedule has five fields, found {}\nminute, hour, day of month, month, day of week: `30 18 * * \
                 MON-FRI`; with six, the first is the second",
                given.len()
            ));
        };
        let cron = Self {
            seconds: SECOND.numbers(second)?,
            minutes: MINUTE.numbers(minute)?,
            hours: HOUR.numbers(hour)?,
            days: DAY.days(day, DayRule::of_month)?,
            months: MONTH.numbers(month)?,
            weekdays: WEEKDAY.days(weekday.strip_prefix('+').unwrap_or(weekday), DayRule::of_week)?,
            needs_both: weekday.starts_with('+'),
            text,
        };
        // From a leap year on.
        let start = NaiveDate::from_ymd_opt(2000, 1, 1).expect("a day");
        match cron.first_day(start) {
            Some(_) => Ok(cron),
            None => Err(format!("a schedule that is never due: `{cron}`\nchange the day of month or the month")),
        }
    }
}

parsed_from_text!(Cron, json_schema!({ "type": "string", "examples": ["30 18 * * MON-FRI", "@daily"] }));
