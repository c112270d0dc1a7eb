//! The values of a definition that are not part of the service's interface: addresses, zones, times.
//!
//! Each has one spelling. The error for anything else is a message with a hint on a second line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Days, Months, NaiveDate};
use chrono_tz::Tz;
use schemars::json_schema;
use url::Url;

use crate::net::address::{self, is_loopback};
use crate::text::problem::nearest;

/// Why a value is invalid: the message, and a hint on a second line.
pub(super) type Refusal = String;

macro_rules! parsed_from_text {
    ($name:ident, $schema:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}

pub(super) use parsed_from_text;

/// A day of the calendar, spelled `2026-11-20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalendarDay(pub NaiveDate);

impl fmt::Display for CalendarDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for CalendarDay {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let day = Some(text).filter(|text| text.len() == 10).and_then(|text| text.parse().ok());
        day.map(Self).ok_or_else(|| format!("`{text}` is not a day\nuse the form `2026-11-20`"))
    }
}

parsed_from_text!(CalendarDay, json_schema!({ "type": "string", "format": "date", "examples": ["2026-11-20"] }));

/// A day of the calendar, or one counted back from today: `-2y`, `-6m`, `-90d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelativeDay {
    /// A day of the calendar.
    Day(NaiveDate),
    /// So many months before.
    MonthsBack(u32),
    /// So many days before.
    DaysBack(u32),
}

impl RelativeDay {
    /// The day, counted from another one.
    pub fn counted_from(self, today: NaiveDate) -> NaiveDate {
        let back = match self {
            Self::Day(day) => Some(day),
            Self::MonthsBack(count) => today.checked_sub_months(Months::new(count)),
            Self::DaysBack(count) => today.checked_sub_days(Days::new(u64::from(count))),
        };
        back.unwrap_or(NaiveDate::MIN)
    }
}

impl FromStr for RelativeDay {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let Some(back) = text.strip_prefix('-') else { return text.parse().map(|CalendarDay(day)| Self::Day(day)) };
        let count = |unit: char| back.strip_suffix(unit).and_then(|count| count.parse::<u32>().ok());
        let count = |unit: char| count(unit).filter(|count| (1..=36_600).contains(count));
        let years = count('y').map(|years| Self::MonthsBack(12 * years));
        let day = years.or(count('m').map(Self::MonthsBack)).or(count('d').map(Self::DaysBack));
        day.ok_or_else(|| format!("`{text}` is not a day\nuse the form `2026-11-20`, or `-2y`, `-6m` or `-90d`"))
    }
}

parsed_from_text!(
    RelativeDay,
    json_schema!({ "anyOf": [
            { "type": "string", "format": "date", "examples": ["2026-11-20"] },
            { "type": "string", "pattern": "^-[0-9]{1,5}[ymd]$", "examples": ["-2y"] },
        ] })
);

/// An address that requests are built on: https, or plain http to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// The address.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for BaseUrl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let mut url = address::parse(text)
            .map_err(|fault| format!("{fault}\nuse a full address, such as `https://api.example.com/v1`"))?;
        // With and without a slash at its end it is the same service.
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        // The address is not repeated in the error: it may contain a key.
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the address must not have a query\nremove everything from `?` on; \
                        the key comes from the environment, a file or a command"
                .to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a user name or password\nremove everything before `@`".to_owned());
        }
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_loopback(&url) => Ok(Self(url)),
            "http" => Err("plain http would send the API key unencrypted\nuse `https://`".to_owned()),
            scheme => Err(format!("unsupported scheme `{scheme}`\nuse `https://`")),
        }
    }
}

parsed_from_text!(
    BaseUrl,
    json_schema!({ "type": "string", "format": "uri", "examples": ["https://api.example.com/v1"] })
);

/// A time zone by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone(pub Tz);

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.0.name())
    }
}

impl FromStr for Zone {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        text.parse().map(Self).map_err(|_| {
            let names = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
            match nearest(text, names) {
                Some(meant) => format!("unknown time zone `{text}`\ndid you mean `{meant}`?"),
                None => format!("unknown time zone `{text}`\nzones have names such as `America/New_York`"),
            }
        })
    }
}

parsed_from_text!(Zone, json_schema!({ "type": "string", "examples": ["UTC", "America/New_York"] }));

/// How to convert a date with an offset to a naive date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveRule {
    /// The instant in UTC.
    Utc,
    /// The local time as written; the offset is dropped.
    Wall,
    /// The instant in a time zone.
    Zone(Zone),
}

impl NaiveRule {
    /// The naive date of a date as written, both in microseconds since 1970.
    pub(crate) fn face(self, date: i64, offset: Option<i16>) -> i64 {
        const MICROS_PER_MINUTE: i64 = 60_000_000;
        match (offset, self) {
            (None, _) | (Some(_), Self::Utc) => date,
            (Some(minutes), Self::Wall) => date + i64::from(minutes) * MICROS_PER_MINUTE,
            (Some(_), Self::Zone(Zone(zone))) => {
                let instant = DateTime::from_timestamp_micros(date).expect("the interface has years of four digits");
                instant.with_timezone(&zone).naive_local().and_utc().timestamp_micros()
            }
        }
    }
}

impl fmt::Display for NaiveRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utc => formatter.pad("utc"),
            Self::Wall => formatter.pad("wall"),
            Self::Zone(zone) => zone.fmt(formatter),
        }
    }
}

impl FromStr for NaiveRule {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        match text {
            "utc" => Ok(Self::Utc),
            "wall" => Ok(Self::Wall),
            _ => text.parse().map(Self::Zone).map_err(|refusal: Refusal| {
                let hint = refusal.split_once('\n').map_or("", |(_, hint)| hint);
                format!("invalid `naive`: `{text}`\nuse `utc`, `wall` or a time zone; {hint}")
            }),
        }
    }
}

parsed_from_text!(NaiveRule, json_schema!({ "type": "string", "examples": ["utc", "wall", "America/New_York"] }));

/// A length of time, spelled `90s`, `15m` or `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(Duration);

impl TimeSpan {
    /// How long.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for TimeSpan {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const DAY: u64 = 86_400;
        match seconds(text).filter(|seconds| (1..=DAY).contains(seconds)) {
            Some(seconds) => Ok(Self(Duration::from_secs(seconds))),
            None => {
                Err(format!("`{text}` is not a duration\nuse a number and `s`, `m` or `h`, such as `15m`, up to a day"))
            }
        }
    }
}

/// The seconds of a duration with a unit: `90s`, `15m`, `2h` or `1d`.
fn seconds(text: &str) -> Option<u64> {
    let (at, unit) = text.char_indices().next_back()?;
    let unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = Some(&text[..at]).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

parsed_from_text!(
    TimeSpan,
    json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["90s", "15m", "2h"] })
);

/// How late a run may start, spelled `12h` or `1d`; zero to start on time or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp(Duration);

impl CatchUp {
    /// How long.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for CatchUp {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const MONTH: u64 = 31 * 86_400;
        match seconds(text).filter(|seconds| *seconds <= MONTH) {
            Some(seconds) => Ok(Self(Duration::from_secs(seconds))),
            None => Err(format!(
                "`{text}` is not a duration\nuse a number and `s`, `m`, `h` or `d`, such as `1d`, up to `31d`; `0s` for none"
            )),
        }
    }
}

parsed_from_text!(
    CatchUp,
    json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["1d", "12h", "0s"] })
);
