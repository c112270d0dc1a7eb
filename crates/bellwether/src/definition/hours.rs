//! Times of day on the clock of a place: when a signal is made, and when a market is open.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use schemars::json_schema;

use super::values::{Refusal, Zone, parsed_from_text};

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
    /// No clock was ever put forward by more than a day.
    const LONGEST_SKIP_MINUTES: i64 = 25 * 60;
    let shown = |minutes: i64| match zone.from_local_datetime(&naive.checked_add_signed(TimeDelta::minutes(minutes))?) {
        LocalResult::Single(instant) => Some((instant.to_utc(), instant.to_utc())),
        LocalResult::Ambiguous(first, last) => Some((first.to_utc(), last.to_utc())),
        LocalResult::None => None,
    };
    (0..=LONGEST_SKIP_MINUTES).find_map(shown).unwrap_or((naive.and_utc(), naive.and_utc()))
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
