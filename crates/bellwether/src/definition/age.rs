//! How old data and due times may be.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::values::{Days, Refusal, parsed_from_text, seconds};

/// The greatest age of a date: `2 trading days`, or `3d` for calendar days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxAge {
    /// Calendar days.
    Calendar(Days),
    /// Trading days.
    Trading(Days),
}

impl fmt::Display for MaxAge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calendar(days) => days.fmt(formatter),
            Self::Trading(days) if days.count() == 1 => formatter.write_str("1 trading day"),
            Self::Trading(days) => write!(formatter, "{} trading days", days.count()),
        }
    }
}

impl FromStr for MaxAge {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let refused = |_| {
            format!(
                "`{text}` is not an age\nuse trading days, such as `2 trading days`, or calendar days, such as `3d`"
            )
        };
        let trading = text.strip_suffix(" trading days").or_else(|| text.strip_suffix(" trading day"));
        match trading {
            Some(count) => format!("{count}d").parse().map(Self::Trading).map_err(refused),
            None => text.parse().map(Self::Calendar).map_err(refused),
        }
    }
}

impl Serialize for MaxAge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for MaxAge {
    fn schema_name() -> Cow<'static, str> {
        "MaxAge".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,4}(d| trading days?)$", "examples": ["2 trading days", "3d"] })
    }
}

parsed_from_text!(MaxAge);

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

impl JsonSchema for CatchUp {
    fn schema_name() -> Cow<'static, str> {
        "CatchUp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$", "examples": ["1d", "12h", "0s"] })
    }
}

parsed_from_text!(CatchUp);
