//! Days, times of day, lengths of time, and the clocks that they are on.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, LocalResult, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use schemars::json_schema;
use serde::{Serialize, Serializer};

use super::values::{Refusal, parsed_from_text};
use crate::text::problem::nearest;

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
            Self::DaysBack(count) => today.checked_sub_days(chrono::Days::new(u64::from(count))),
        };
        back.unwrap_or(NaiveDate::MIN)
    }
}

impl FromStr for RelativeDay {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let Some(back) = text.strip_prefix('-') else { return text.parse().map(|CalendarDay(day)| Self::Day(day)) };
        let (count, unit) = back.split_at_checked(back.len().saturating_sub(1)).unwrap_or_default();
        match (count.parse::<u32>().ok().filter(|count| (1..=36_600).contains(count)), unit) {
            (Some(years), "y") => Ok(Self::MonthsBack(12 * years)),
            (Some(months), "m") => Ok(Self::MonthsBack(months)),
            (Some(days), "d") => Ok(Self::DaysBack(days)),
            _ => Err(format!("`{text}` is not a day\nuse the form `2026-11-20`, or `-2y`, `-6m` or `-90d`")),
        }
    }
}

parsed_from_text!(
    RelativeDay,
    json_schema!({ "anyOf": [
            { "type": "string", "format": "date", "examples": ["2026-11-20"] },
            { "type": "string", "pattern": "^-[0-9]{1,5}[ymd]$", "examples": ["-2y"] },
        ] })
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
pub struct TimeSpan(pub Duration);

impl FromStr for TimeSpan {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        within(text, 1..=DAY, "`s`, `m` or `h`, such as `15m`, up to a day").map(Self)
    }
}

/// The seconds of a day.
const DAY: u64 = 86_400;

/// A duration with a unit, within bounds in seconds: `90s`, `15m`, `2h` or `1d`.
fn within(text: &str, bounds: RangeInclusive<u64>, hint: &str) -> Result<Duration, Refusal> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", DAY)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let digits = text.strip_suffix(unit).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<u64>().ok()?.checked_mul(seconds)
    });
    let seconds = seconds.filter(|seconds| bounds.contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| format!("`{text}` is not a duration\nuse a number and {hint}"))
}

parsed_from_text!(
    TimeSpan,
    json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["90s", "15m", "2h"] })
);

/// How late a run may start, spelled `12h` or `1d`; zero to start on time or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp(pub Duration);

impl FromStr for CatchUp {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        within(text, 0..=31 * DAY, "`s`, `m`, `h` or `d`, such as `1d`, up to `31d`; `0s` for none").map(Self)
    }
}

parsed_from_text!(
    CatchUp,
    json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["1d", "12h", "0s"] })
);

/// A number of calendar days, spelled `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Days(u16);

impl Days {
    /// Ten years: more than any window or lag that makes sense.
    const MAX: u16 = 3660;

    /// A number of days, known to be in range.
    pub const fn new(count: u16) -> Self {
        assert!(count <= Self::MAX, "a number of days beyond the bound");
        Self(count)
    }

    /// The number of days.
    pub fn count(self) -> i32 {
        i32::from(self.0)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}d", self.0)
    }
}

impl Serialize for Days {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Days {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let digits = text.strip_suffix('d').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let count = digits.and_then(|digits| digits.parse::<u16>().ok()).filter(|&count| count <= Self::MAX);
        count.map(Self).ok_or_else(|| {
            format!("`{text}` is not a number of days\nuse a whole number and `d`, such as `7d`, up to 3660d")
        })
    }
}

parsed_from_text!(
    Days,
    json_schema!({ "type": "string", "pattern": "^[0-9]{1,4}d$", "examples": ["1d", "7d", "30d"] })
);

/// A number of days of either kind, spelled `3d` or `2 trading days`: a lag, or the greatest age of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayCount {
    /// Calendar days.
    Calendar(Days),
    /// Trading days.
    Trading(Days),
}

impl DayCount {
    /// The number of days.
    pub fn count(self) -> i32 {
        match self {
            Self::Calendar(days) | Self::Trading(days) => days.count(),
        }
    }
}

impl fmt::Display for DayCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calendar(days) => days.fmt(formatter),
            Self::Trading(days) if days.count() == 1 => formatter.write_str("1 trading day"),
            Self::Trading(days) => write!(formatter, "{} trading days", days.count()),
        }
    }
}

impl Serialize for DayCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for DayCount {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let trading = text.strip_suffix(" trading days").or_else(|| text.strip_suffix(" trading day"));
        let days = trading.map_or_else(|| text.parse(), |count| format!("{count}d").parse());
        days.map(if trading.is_some() { Self::Trading } else { Self::Calendar }).map_err(|_| {
            format!(
                "`{text}` is not a number of days\nuse calendar days, such as `3d`, or trading days, such as `2 trading days`"
            )
        })
    }
}

parsed_from_text!(
    DayCount,
    json_schema!({ "type": "string", "pattern": "^[0-9]{1,4}(d| trading days?)$", "examples": ["1d", "2 trading days"] })
);

/// A time of day in a time zone: `16:00 America/New_York`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// The time on the clock.
    pub time: NaiveTime,
    /// The time zone of the clock.
    pub zone: Zone,
}

impl TimeOfDay {
    /// The first instant at which the clock shows the time on a day; if it skips that time, the one at which it resumes.
    pub fn on(self, day: NaiveDate) -> DateTime<Utc> {
        clock_instants(day.and_time(self.time), self.zone.0).0
    }
}

/// The first and last instant at which a clock shows a time. A time that it skips counts as the moment it resumes.
pub(crate) fn clock_instants(naive: NaiveDateTime, zone: Tz) -> (DateTime<Utc>, DateTime<Utc>) {
    let (first, last) = match zone.from_local_datetime(&naive) {
        LocalResult::Single(instant) => (instant, instant),
        LocalResult::Ambiguous(first, last) => (first, last),
        LocalResult::None => {
            let resumes = GapInfo::new(&naive, &zone).and_then(|gap| gap.end);
            let resumes = resumes.unwrap_or_else(|| zone.from_utc_datetime(&naive));
            (resumes, resumes)
        }
    };
    (first.to_utc(), last.to_utc())
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.time.format("%H:%M"), self.zone)
    }
}

impl FromStr for TimeOfDay {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let refused = || format!("`{text}` is not a time of day\nuse a time and a time zone: `16:00 America/New_York`");
        let (time, zone) = text.split_once(' ').ok_or_else(refused)?;
        Ok(Self { time: of_clock(time).ok_or_else(refused)?, zone: zone.trim().parse()? })
    }
}

/// A time as `16:00`.
fn of_clock(text: &str) -> Option<NaiveTime> {
    (text.len() == "16:00".len()).then(|| NaiveTime::parse_from_str(text, "%H:%M").ok())?
}

parsed_from_text!(
    TimeOfDay,
    json_schema!({ "type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9] .+$", "examples": ["16:00 America/New_York"] })
);

/// When a market opens and closes on the days that it trades: `09:30-16:00 America/New_York`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningHours {
    /// When it opens.
    pub open: TimeOfDay,
    /// When it closes, on the same day.
    pub close: TimeOfDay,
}

impl fmt::Display for OpeningHours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.open.time.format("%H:%M"), self.close)
    }
}

impl FromStr for OpeningHours {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let refused = || {
            format!(
                "`{text}` are not opening hours\nuse the open, the close and a time zone: `09:30-16:00 America/New_York`"
            )
        };
        let (hours, zone) = text.split_once(' ').ok_or_else(refused)?;
        let (open, close) = hours.split_once('-').ok_or_else(refused)?;
        let (open, close) =
            of_clock(open).zip(of_clock(close)).filter(|(open, close)| open < close).ok_or_else(refused)?;
        let zone = zone.trim().parse()?;
        Ok(Self { open: TimeOfDay { time: open, zone }, close: TimeOfDay { time: close, zone } })
    }
}

parsed_from_text!(
    OpeningHours,
    json_schema!({ "type": "string",
            "pattern": "^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9] .+$",
            "examples": ["09:30-16:00 America/New_York"] })
);

#[cfg(test)]
mod tests {
    use super::{OpeningHours, TimeOfDay};

    #[test]
    fn a_time_of_day_is_an_instant_also_where_clocks_change() {
        for (text, day, instant) in [
            ("16:00 America/New_York", "2026-11-25", "2026-11-25T21:00:00Z"),
            ("16:00 America/New_York", "2026-07-01", "2026-07-01T20:00:00Z"),
            ("00:30 Asia/Tokyo", "2026-07-01", "2026-06-30T15:30:00Z"),
            // 02:30 is skipped on this day, and 01:30 comes twice on that one.
            ("02:30 America/New_York", "2026-03-08", "2026-03-08T07:00:00Z"),
            ("01:30 America/New_York", "2026-11-01", "2026-11-01T05:30:00Z"),
        ] {
            let time: TimeOfDay = text.parse().unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(time.on(day.parse().unwrap()).to_rfc3339_opts(chrono::SecondsFormat::Secs, true), instant);
        }
        for wrong in ["16:00", "4pm UTC", "16:0 UTC", "24:00 UTC", "16:00 Mars/Base", "16:00:00 UTC", ""] {
            assert!(wrong.parse::<TimeOfDay>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn hours_end_on_the_day_that_they_begin() {
        let hours: OpeningHours = "09:30-16:00 America/New_York".parse().unwrap();
        assert_eq!(hours.to_string(), "09:30-16:00 America/New_York");
        for wrong in ["16:00-09:30 UTC", "09:30-09:30 UTC", "09:30 UTC", "09:30-16:00", "9:30-16:00 UTC"] {
            assert!(wrong.parse::<OpeningHours>().is_err(), "{wrong}");
        }
    }
}
