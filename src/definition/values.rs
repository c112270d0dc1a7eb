//! The values of a definition that are not the service's own: choices, days, addresses, zones, times.
//!
//! Each parses from one spelling and refuses anything else with a message and, on a second line, a hint.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono_tz::Tz;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use url::{Host, Url};

use crate::problem::nearest;

/// Why a value was refused: the message, and a hint on a second line.
pub(super) type Refusal = String;

/// A closed set of spellings.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every choice, in the order they are offered.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its spelling.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = Refusal;

            fn from_str(text: &str) -> Result<Self, Refusal> {
                let spellings = || Self::ALL.iter().map(|choice| choice.as_str());
                Self::ALL.iter().copied().find(|choice| choice.as_str() == text).ok_or_else(|| {
                    match nearest(text, spellings()) {
                        Some(meant) => format!("unknown {} `{text}`\ndid you mean `{meant}`?", $what),
                        None => format!("unknown {} `{text}`\nit is one of: {}", $what, list(spellings())),
                    }
                })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let spellings: Vec<&str> = Self::ALL.iter().map(|choice| choice.as_str()).collect();
                json_schema!({ "type": "string", "enum": spellings })
            }
        }

        parsed_from_text!($name);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

macro_rules! parsed_from_text {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

pub(super) use parsed_from_text;

choice! {
    /// A service that is known by name.
    Service, "service":
    /// The built-in demo service, in-process, with no key and no network.
    Demo = "demo",
}

choice! {
    /// The operation that histories are asked of.
    HistoryForm, "form of history":
    /// `signals-history-all`, sector by sector.
    Sector = "sector",
    /// `signals-history-batched-all`, everything in one answer.
    Batched = "batched",
    /// `signals-history/{ticker}`, ticker by ticker.
    Ticker = "ticker",
    /// `signals/{ticker}`: no history, the latest signal of each ticker.
    Latest = "latest",
}

choice! {
    /// A list of tickers that need not be written by hand.
    TickerList, "list of tickers":
    /// Those that the signals named.
    Signals = "signals",
    /// Those that the service says are available.
    Available = "available",
}

choice! {
    /// A file format.
    Format, "format":
    /// Apache Parquet, zstd.
    Parquet = "parquet",
    /// RFC 4180 text with a header.
    Csv = "csv",
    /// Arrow IPC, as Feather version 2.
    Arrow = "arrow",
}

choice! {
    /// The shape of a dataset.
    Layout, "layout":
    /// One row per signal.
    Long = "long",
}

choice! {
    /// What is said of the scores of the articles in a window.
    Statistic, "statistic":
    /// How many articles.
    Count = "count",
    /// The mean of their scores.
    Mean = "mean",
    /// The lowest score.
    Min = "min",
    /// The highest score.
    Max = "max",
    /// The score and date of the newest article, whatever its age.
    Last = "last",
}

fn list<'a>(spellings: impl Iterator<Item = &'a str>) -> String {
    spellings.map(|spelling| format!("`{spelling}`")).collect::<Vec<_>>().join(", ")
}

/// A number of calendar days, spelled `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Days(u16);

impl Days {
    /// Ten years: more than any window or lag that makes sense.
    const MAX: u16 = 3660;

    /// A number of days that is known to be in bounds.
    pub(crate) const fn new(count: u16) -> Self {
        assert!(count <= Self::MAX, "a number of days beyond the bound");
        Self(count)
    }

    /// How many.
    pub fn count(self) -> i32 {
        i32::from(self.0)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}d", self.0)
    }
}

impl FromStr for Days {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let digits = text.strip_suffix('d').filter(|digits| !digits.is_empty() && digits.len() <= 5);
        let count = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match count.and_then(|digits| digits.parse::<u16>().ok()).filter(|&count| count <= Self::MAX) {
            Some(count) => Ok(Self(count)),
            None => Err(format!("`{text}` is not a number of days\nwrite a whole number and `d`, at most 3660d: `7d`")),
        }
    }
}

impl JsonSchema for Days {
    fn schema_name() -> Cow<'static, str> {
        "Days".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,4}d$", "examples": ["1d", "7d", "30d"] })
    }
}

parsed_from_text!(Days);

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
        let url = Url::parse(text)
            .map_err(|error| format!("not an address: {error}\nwrite it whole, as in `https://api.example.com/v1`"))?;
        // What is refused is not repeated: it may hold a key.
        if url.query().is_some() || url.fragment().is_some() {
            return Err("an address with a query\nleave out everything from `?` on; \
                        the key comes from the environment, a file or a command"
                .to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a user name or password\nleave out everything before `@`".to_owned());
        }
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_loopback(&url) => Ok(Self(url)),
            "http" => Err("plain http would send the key in the clear\nuse `https://`".to_owned()),
            scheme => Err(format!("`{scheme}` is not a scheme of the service\nuse `https://`")),
        }
    }
}

/// Whether an address is of this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

impl JsonSchema for BaseUrl {
    fn schema_name() -> Cow<'static, str> {
        "BaseUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri", "examples": ["https://api.example.com/v1"] })
    }
}

parsed_from_text!(BaseUrl);

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

impl JsonSchema for Zone {
    fn schema_name() -> Cow<'static, str> {
        "Zone".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["UTC", "America/New_York"] })
    }
}

parsed_from_text!(Zone);

/// How a date with an offset becomes one without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveRule {
    /// The instant, told in UTC.
    Utc,
    /// The clock face as written; the offset is dropped.
    Wall,
    /// The instant, told in a zone.
    Zone(Zone),
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
                format!("unknown rule for dates `{text}`\n`utc`, `wall` or a time zone; {hint}")
            }),
        }
    }
}

impl JsonSchema for NaiveRule {
    fn schema_name() -> Cow<'static, str> {
        "NaiveRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["utc", "wall", "America/New_York"] })
    }
}

parsed_from_text!(NaiveRule);

/// A length of time, spelled `90s`, `15m` or `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

impl Span {
    /// How long.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const DAY: u64 = 86_400;
        let unit = |letter| match letter {
            's' => Some(1),
            'm' => Some(60),
            'h' => Some(3600),
            _ => None,
        };
        let seconds = text.char_indices().next_back().and_then(|(at, letter)| {
            let digits = Some(&text[..at]).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            digits.parse::<u64>().ok()?.checked_mul(unit(letter)?).filter(|seconds| (1..=DAY).contains(seconds))
        });
        match seconds {
            Some(seconds) => Ok(Self(Duration::from_secs(seconds))),
            None => Err(format!(
                "`{text}` is not a length of time\nwrite a number and `s`, `m` or `h`, at most a day: `15m`"
            )),
        }
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+[smh]$", "examples": ["90s", "15m", "2h"] })
    }
}

parsed_from_text!(Span);
