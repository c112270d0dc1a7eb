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
    DateTime, Datelike, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound, TimeDelta, TimeZone,
    Timelike, Utc, Weekday,
};
use chrono_tz::{GapInfo, Tz};
use schemars::json_schema;

use super::values::{Refusal, parsed_from_text};

/// A cron expression: minute, hour, day of month, month and day of week, with or without seconds before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    fields: CronFields,
}

/// The longest expression, in bytes.
const MAX_BYTES: usize = 200;

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

    fn first_day(&self, from: NaiveDate) -> Option<NaiveDate> {
        from.iter_days().take(MAX_DAYS).find(|&date| self.fields.name_day(date))
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
        if text.len() > MAX_BYTES {
            return Err(format!("a schedule is longer than {MAX_BYTES} bytes\nuse ranges and steps such as `*/5`"));
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
            days: read(&DAY, day, |text| DayField::read(text, DayField::read_day))?,
            months: numbers(&MONTH, month)?,
            weekdays: read(&WEEKDAY, weekday, |text| {
                let text = text.strip_prefix('+').unwrap_or(text);
                DayField::read(text, DayField::read_weekday)
            })?,
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

/// What an expression names, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CronFields {
    /// The seconds, from 0.
    seconds: Vec<u32>,
    /// The minutes, from 0.
    minutes: Vec<u32>,
    /// The hours, from 0.
    hours: Vec<u32>,
    /// The months, from 1.
    months: Vec<u32>,
    /// The days of the month.
    days: DayField,
    /// From Sunday, which is zero.
    weekdays: DayField,
    /// Whether a day must be named by both fields (`+MON`), rather than by either.
    needs_both: bool,
}

/// The days of a month or of a week.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DayField {
    /// `*`, which names no day of its own.
    is_any: bool,
    /// The days by number.
    numbers: Vec<u32>,
    /// The days that depend on the month.
    marks: Vec<Mark>,
}

/// A day that depends on the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The last day: `L`.
    LastDay,
    /// The last workday: `LW`.
    LastWorkday,
    /// The workday nearest to a day of the same month: `15W`.
    NearestWorkday(u32),
    /// The first to the fifth of a weekday: `5#2`.
    Nth(u32, u32),
    /// The last of a weekday: `5L`.
    Last(u32),
}

/// A field of an expression.
struct FieldKind {
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

const SECOND: FieldKind = FieldKind { name: "second", low: 0, high: 59, words: &[], more: "" };
const MINUTE: FieldKind = FieldKind { name: "minute", low: 0, high: 59, words: &[], more: "" };
const HOUR: FieldKind = FieldKind { name: "hour", low: 0, high: 23, words: &[], more: "" };
const DAY: FieldKind = FieldKind { name: "day of month", low: 1, high: 31, words: &[], more: ", or `L` for the last" };
const MONTH: FieldKind =
    FieldKind { name: "month", low: 1, high: 12, words: MONTHS, more: ", with names such as `JAN`" };
const WEEKDAY: FieldKind =
    FieldKind { name: "day of week", low: 0, high: 7, words: WEEKDAYS, more: ", with names such as `MON-FRI`" };

impl FieldKind {
    /// The numbers that a field names, in order; `None` if it names none.
    fn numbers(&self, text: &str) -> Option<Vec<u32>> {
        if text == "*" {
            return Some((self.low..=self.high).collect());
        }
        let items: Vec<Vec<u32>> = text.split(',').map(|item| self.item(item)).collect::<Option<_>>()?;
        Some(in_order(items.concat()))
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

impl DayField {
    /// The days that a field names; the items of its list are read one by one into the numbers and the marks.
    fn read(text: &str, item: fn(&str, &mut Self) -> Option<()>) -> Option<Self> {
        let text = text.replace('?', "*").to_ascii_uppercase();
        let mut days = Self { is_any: text == "*", numbers: Vec::new(), marks: Vec::new() };
        if !days.is_any {
            text.split(',').try_for_each(|text| item(text, &mut days))?;
        }
        Some(days)
    }

    /// An item of a field of days of the month.
    fn read_day(item: &str, days: &mut Self) -> Option<()> {
        match (item, item.strip_suffix('W')) {
            ("L", _) => days.marks.push(Mark::LastDay),
            (_, Some("L")) => days.marks.push(Mark::LastWorkday),
            (_, Some(day)) => days.marks.push(Mark::NearestWorkday(DAY.number(day)?)),
            (_, None) => days.numbers.extend(DAY.item(item)?),
        }
        Some(())
    }

    /// An item of a field of weekdays. Sunday is the seventh day, too.
    fn read_weekday(item: &str, days: &mut Self) -> Option<()> {
        match (item.split_once('#'), item.strip_suffix('L')) {
            (Some((weekday, "L")), _) | (None, Some(weekday)) => {
                days.marks.push(Mark::Last(WEEKDAY.number(weekday)? % 7));
            }
            (Some((weekdays, count)), _) => {
                let count = digits(count).filter(|count| (1..=5).contains(count))?;
                days.marks.extend(WEEKDAY.item(weekdays)?.into_iter().map(|day| Mark::Nth(day % 7, count)));
            }
            (None, None) => days.numbers.extend(WEEKDAY.item(item)?.into_iter().map(|day| day % 7)),
        }
        Some(())
    }
}

impl Mark {
    /// Whether it is a day.
    fn is(self, date: NaiveDate) -> bool {
        let last = u32::from(date.num_days_in_month());
        let weekday = date.weekday().num_days_from_sunday();
        match self {
            Self::LastDay => date.day() == last,
            Self::LastWorkday => date.day() == nearest_workday(date, last, last),
            Self::NearestWorkday(day) => day <= last && date.day() == nearest_workday(date, day, last),
            Self::Nth(named, count) => weekday == named && date.day().div_ceil(7) == count,
            Self::Last(named) => weekday == named && date.day() + 7 > last,
        }
    }
}

/// The workday of a month that is nearest to one of its days.
fn nearest_workday(month: NaiveDate, day: u32, last: u32) -> u32 {
    match month.with_day(day).map(|date| date.weekday()) {
        Some(Weekday::Sat) if day == 1 => 3,
        Some(Weekday::Sat) => day - 1,
        Some(Weekday::Sun) if day == last => day - 2,
        Some(Weekday::Sun) => day + 1,
        _ => day,
    }
}

impl CronFields {
    /// Whether a day is named.
    fn name_day(&self, date: NaiveDate) -> bool {
        let (days, weekdays) = (&self.days, &self.weekdays);
        let of_month = || days.numbers.contains(&date.day()) || days.marks.iter().any(|mark| mark.is(date));
        let of_week = || {
            let weekday = date.weekday().num_days_from_sunday();
            weekdays.numbers.contains(&weekday) || weekdays.marks.iter().any(|mark| mark.is(date))
        };
        self.months.contains(&date.month())
            && match (days.is_any, weekdays.is_any) {
                (true, true) => true,
                (true, _) => of_week(),
                (_, true) => of_month(),
                _ if self.needs_both => of_month() && of_week(),
                _ => of_month() || of_week(),
            }
    }

    /// The first time of a day that is named, from a time on.
    fn first_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let mut hours = self.hours.iter().filter(|&&hour| hour >= from.hour());
        hours.find_map(|&hour| self.times_of(hour).find(|&time| time >= from))
    }

    fn times_of(&self, hour: u32) -> impl Iterator<Item = NaiveTime> {
        let seconds = self.seconds.iter();
        let of_minute =
            move |&minute| seconds.clone().filter_map(move |&second| NaiveTime::from_hms_opt(hour, minute, second));
        self.minutes.iter().flat_map(of_minute)
    }
}

/// A number in decimal digits alone.
fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Values in order, once each.
fn in_order(mut values: Vec<u32>) -> Vec<u32> {
    values.sort_unstable();
    values.dedup();
    values
}
