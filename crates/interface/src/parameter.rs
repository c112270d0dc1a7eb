//! The parameters of requests: period, regime, sector; and the two signals of answers.
//!
//! Each is a closed set with one spelling per value. Parsing rejects everything else, with the set as the hint.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A value outside a closed set, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{given}`")]
pub struct Unknown {
    /// What was expected: "period", "regime", "signal".
    pub kind: &'static str,
    /// The value given.
    pub given: String,
    /// The valid values.
    pub hint: &'static str,
}

impl Unknown {
    /// The message and, on a second line, the hint, so that a deserializer passes on both.
    pub(crate) fn into_custom<E: de::Error>(self) -> E {
        E::custom(format_args!("{self}\n{}", self.hint))
    }
}

/// The horizon of a signal: 1 to 30 days, or 1 to 6 months.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period(u8);

const PERIODS: [&str; 36] = [
    "1d", "2d", "3d", "4d", "5d", "6d", "7d", "8d", "9d", "10d", "11d", "12d", "13d", "14d", "15d", "16d", "17d",
    "18d", "19d", "20d", "21d", "22d", "23d", "24d", "25d", "26d", "27d", "28d", "29d", "30d", "1m", "2m", "3m", "4m",
    "5m", "6m",
];

impl Period {
    /// Number of periods.
    pub const COUNT: usize = PERIODS.len();

    /// Every period, from the shortest horizon to the longest.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + Clone {
        (0..Self::COUNT as u8).map(Self)
    }

    /// The interface's spelling: `15d`, `1m`.
    pub fn as_str(self) -> &'static str {
        PERIODS[usize::from(self.0)]
    }

    /// Its index among all periods, shortest horizon first.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Period {
    /// `15d`, the interface's default.
    fn default() -> Self {
        Self(14)
    }
}

/// The market regime a signal is computed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Regime {
    /// Falling markets.
    Bear,
    /// Rising markets.
    Bull,
    /// No assumption; the interface's default.
    #[default]
    Neutral,
}

impl Regime {
    /// Every regime, in the order of its spelling.
    pub const ALL: [Self; 3] = [Self::Bear, Self::Bull, Self::Neutral];

    /// The interface's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bear => "bear",
            Self::Bull => "bull",
            Self::Neutral => "neutral",
        }
    }
}

/// The recommendation of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// Buy.
    Buy,
    /// Sell.
    Sell,
}

impl Signal {
    /// Both signals, in the order of their spelling.
    pub const ALL: [Self; 2] = [Self::Buy, Self::Sell];

    /// The interface's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }
}

/// A sector's name. The interface takes any text and gives examples only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sector(String);

impl Sector {
    /// The name in a request.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Sector {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        if text.trim().is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            let hint = "a sector is a name such as energy, without spaces around it";
            return Err(Unknown { kind: "sector", given: text.to_owned(), hint });
        }
        Ok(Self(text.to_owned()))
    }
}

impl JsonSchema for Sector {
    fn schema_name() -> Cow<'static, str> {
        "Sector".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["energy", "healthcare", "financials"] })
    }
}

/// Implements text conversions; of a closed set, by its spellings, with a hint for unknown values.
macro_rules! spelled {
    ($type:ty, $all:expr, $kind:literal, $hint:literal) => {
        impl FromStr for $type {
            type Err = Unknown;

            fn from_str(text: &str) -> Result<Self, Unknown> {
                let found = $all.into_iter().find(|value| value.as_str() == text);
                found.ok_or_else(|| Unknown { kind: $kind, given: text.to_owned(), hint: $hint })
            }
        }

        spelled!($type);
    };
    ($($type:ty),+) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str("a string")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(Unknown::into_custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )+};
}

pub(super) use spelled;

spelled!(Period, Period::all(), "period", "periods are 1d to 30d and 1m to 6m");
spelled!(Regime, Regime::ALL, "regime", "regimes are neutral, bear and bull");
spelled!(Signal, Signal::ALL, "signal", "signals are buy and sell");
spelled!(Sector);

/// The JSON Schema of a closed set, with what each value means, so that editors complete and explain them.
pub fn closed_set(values: impl IntoIterator<Item = (&'static str, String)>) -> Schema {
    let value = |(spelling, meaning)| serde_json::json!({ "const": spelling, "description": meaning });
    json_schema!({ "type": "string", "oneOf": values.into_iter().map(value).collect::<Vec<_>>() })
}

/// A closed set as a JSON Schema.
macro_rules! enumerated {
    ($type:ty, $name:literal, $all:expr, $meaning:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let meaning: fn($type) -> String = $meaning;
                closed_set($all.into_iter().map(|value| (value.as_str(), meaning(value))))
            }
        }
    };
}

enumerated!(Period, "Period", Period::all(), |period| {
    let (count, unit) = period.as_str().split_at(period.as_str().len() - 1);
    let unit = if unit == "d" { "day" } else { "calendar month" };
    if count == "1" { format!("1 {unit}.") } else { format!("{count} {unit}s.") }
});
enumerated!(Regime, "Regime", Regime::ALL, |regime| {
    ["Falling markets.", "Rising markets.", "No assumption."][regime as usize].to_owned()
});
enumerated!(Signal, "Signal", Signal::ALL, |signal| format!("To {signal}."));

#[cfg(test)]
mod tests {
    use super::{Period, Regime, Sector, Signal};

    #[test]
    fn the_periods_are_1d_to_30d_and_1m_to_6m() {
        let days = (1..=30).map(|count| format!("{count}d"));
        let months = (1..=6).map(|count| format!("{count}m"));
        let expected: Vec<String> = days.chain(months).collect();
        assert_eq!(Period::all().map(|period| period.to_string()).collect::<Vec<_>>(), expected);
        for text in ["0d", "31d", "7m", "15", "15D", " 15d", "d", "", "01d"] {
            assert!(text.parse::<Period>().is_err(), "{text:?} was taken as a period");
        }
    }

    #[test]
    fn the_defaults_match_the_documented_interface() {
        assert_eq!(Period::default().as_str(), "15d");
        assert_eq!(Regime::default().as_str(), "neutral");
    }

    #[test]
    fn spellings_round_trip_and_are_case_sensitive() {
        for regime in Regime::ALL {
            assert_eq!(regime.as_str().parse(), Ok(regime));
        }
        for signal in Signal::ALL {
            assert_eq!(signal.as_str().parse(), Ok(signal));
        }
        assert!("Buy".parse::<Signal>().is_err());
        assert!(" energy".parse::<Sector>().is_err());
    }
}
