//! Cron expressions: when a definition is due.
//!
//! The `croner` crate parses and evaluates them. It replaces names wherever they are, so that `30 MON * * *` would mean
//! one o'clock: which names a field may have is checked first. Each field is also parsed on its own, so that an error
//! names the field.
//!
//! Times are those of the clock in a time zone. Each time that an expression names is due at the first instant at which
//! the clock shows it or a later one: a time that the clock skips, at the end of the gap, together with the others of the
//! gap; a time that the clock repeats, once, the first time. An expression that names every hour counts the hours that
//! pass instead: it is due whenever the clock shows its minutes, never in a gap, and again in a repeated hour.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use croner::parser::{CronParser, Seconds, Year};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use super::cron_fields::CronFields;
use super::values::{Refusal, parsed_from_text};

/// A cron expression: minute, hour, day of month, month and day of week, with or without seconds before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    pattern: croner::Cron,
}

/// The longest expression, in bytes.
const LONGEST: usize = 200;

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A field of an expression.
struct Field {
    name: &'static str,
    low: u8,
    high: u8,
    /// The words that it may have, in upper case.
    words: &'static [&'static str],
    /// Letters with a meaning: `L` for the last, `W` for the nearest weekday.
    marks: &'static [&'static str],
    /// What a hint adds.
    more: &'static str,
}

const FIELDS: [Field; 6] = [
    Field { name: "second", low: 0, high: 59, words: &[], marks: &[], more: "" },
    Field { name: "minute", low: 0, high: 59, words: &[], marks: &[], more: "" },
    Field { name: "hour", low: 0, high: 23, words: &[], marks: &[], more: "" },
    Field {
        name: "day of month",
        low: 1,
        high: 31,
        words: &[],
        marks: &["L", "W", "LW"],
        more: ", or `L` for the last",
    },
    Field { name: "month", low: 1, high: 12, words: MONTHS, marks: &[], more: ", with names such as `JAN`" },
    Field {
        name: "day of week",
        low: 0,
        high: 7,
        words: WEEKDAYS,
        marks: &["L"],
        more: ", with names such as `MON-FRI`",
    },
];

impl Cron {
    /// The first time after an instant; `None` if the calendar of the program ends before.
    pub fn next_after(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let from = instant.trunc_subsecs(0).with_timezone(&zone);
        if self.is_hourly() {
            let next = self.pattern.find_next_occurrence(&from, false).ok()?;
            return Some(next.with_timezone(&Utc));
        }
        let mut local = from.naive_local();
        loop {
            local = self.pattern.find_next_occurrence(&local, false).ok()?;
            let due = first_shown(local, zone)?;
            if due > from {
                return Some(due);
            }
        }
    }

    /// The last time that is not after an instant; `None` if there is none.
    pub fn last_until(&self, instant: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let from = instant.trunc_subsecs(0).with_timezone(&zone);
        if self.is_hourly() {
            let last = self.pattern.find_previous_occurrence(&from, true).ok()?;
            return Some(last.with_timezone(&Utc));
        }
        // In the repetition of an hour, the rest of the hour was shown before.
        let repeated = match zone.from_local_datetime(&from.naive_local()) {
            MappedLocalTime::Ambiguous(first, second) if second == from => second - first,
            _ => TimeDelta::zero(),
        };
        let mut local = self.pattern.find_previous_occurrence(&(from.naive_local() + repeated), true).ok()?;
        loop {
            let due = first_shown(local, zone)?;
            if due <= from {
                return Some(due);
            }
            local = self.pattern.find_previous_occurrence(&local, false).ok()?;
        }
    }

    /// Whether a clock time from one to before another is named.
    pub fn names_between(&self, from: NaiveDateTime, until: NaiveDateTime) -> bool {
        self.pattern.find_next_occurrence(&from, true).is_ok_and(|next| next < until)
    }

    /// Whether every hour is named.
    pub fn is_hourly(&self) -> bool {
        self.pattern.pattern.hours.values().len() == 24
    }

    /// What it names, field by field.
    pub fn fields(&self) -> CronFields {
        CronFields::of(&self.pattern)
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

fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build()
}

/// Checks a field on its own.
fn check(field: &Field, place: usize, text: &str) -> Result<(), Refusal> {
    let Field { name, low, high, words, marks, more } = field;
    let is_word = |word: &str| {
        let word = word.to_ascii_uppercase();
        marks.contains(&word.as_str()) || words.contains(&word.as_str()) || {
            let stem = word.strip_suffix('L').filter(|_| marks.contains(&"L"));
            stem.is_some_and(|stem| words.contains(&stem))
        }
    };
    let mut all = text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
    let alone = || {
        let mut fields = ["*"; 6];
        fields[place] = text;
        parser().parse(&fields.join(" ")).is_ok()
    };
    if all.all(is_word) && alone() {
        return Ok(());
    }
    Err(format!(
        "invalid {name} `{text}` in a schedule\nuse `*`, a number from {low} to {high}, a range such as `{low}-{high}`, a step \
         such as `*/2`, or a list of these{more}"
    ))
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
        let before = FIELDS.len() - given.len().min(FIELDS.len());
        if before > 1 || given.len() > FIELDS.len() {
            return Err(format!(
                "a schedule has five fields, found {}\nminute, hour, day of month, month, day of week: `30 18 * * MON-FRI`; \
                 with six, the first is the second",
                given.len()
            ));
        }
        for (place, field) in FIELDS.iter().enumerate().skip(before) {
            check(field, place, given[place - before])?;
        }
        let never = || format!("a schedule that is never due: `{text}`\nchange the day of month or the month");
        let pattern = parser().parse(&spelled).map_err(|_| never())?;
        // From a leap year on: whatever is due at all is due within eight years, leap days on a weekday within forty.
        let start = NaiveDateTime::new(NaiveDate::from_ymd_opt(2000, 1, 1).expect("a day"), NaiveTime::MIN);
        pattern.find_next_occurrence(&start, true).map_err(|_| never())?;
        let text = if text.starts_with('@') { text.to_owned() } else { spelled };
        Ok(Self { text, pattern })
    }
}

impl JsonSchema for Cron {
    fn schema_name() -> Cow<'static, str> {
        "Cron".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["30 18 * * MON-FRI", "@daily"] })
    }
}

parsed_from_text!(Cron);
