//! Numbers of days: of the calendar, or of trading.

use std::fmt;
use std::str::FromStr;

use schemars::json_schema;
use serde::{Serialize, Serializer};

use super::values::{Refusal, parsed_from_text};

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
        let digits = text.strip_suffix('d').filter(|digits| !digits.is_empty() && digits.len() <= 5);
        let count = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match count.and_then(|digits| digits.parse::<u16>().ok()).filter(|&count| count <= Self::MAX) {
            Some(count) => Ok(Self(count)),
            None => {
                Err(format!("`{text}` is not a number of days\nuse a whole number and `d`, such as `7d`, up to 3660d"))
            }
        }
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
