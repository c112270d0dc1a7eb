//! The values of a definition that are not part of the service's interface: numbers, pairs and lists.
//!
//! Each has one spelling. The error for anything else is a message with a hint on a second line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::interface::{Period, Regime, Unknown};
use crate::text::problem::suggestion;

/// Why a value is invalid: the message, and a hint on a second line.
pub(super) type Refusal = String;

/// What a value is in the JSON Schema of a definition.
macro_rules! described {
    ($name:ident, $schema:expr) => {
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

/// A value that is spelled as text: it is read by its `FromStr`.
macro_rules! parsed_from_text {
    ($name:ident, $schema:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        $crate::definition::values::described!($name, $schema);
    };
}

pub(super) use {described, parsed_from_text};

/// A value that may be typed as text or as a list.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum TextOrList {
    Text(String),
    List(Vec<String>),
}

/// A list, which may be typed as its only value: `"energy"` is `["energy"]`. The reader puts brackets around a single
/// value, which so keeps its place; the schema offers both forms.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct List<T>(pub(super) Vec<T>);

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// Whether a schema is that of a list, which may be typed as its only value.
pub(super) fn is_list(schema: &Json) -> bool {
    let alternatives = schema.get("anyOf").and_then(Json::as_array).map(Vec::as_slice);
    matches!(alternatives, Some([one, list]) if list.get("items") == Some(one))
}

/// A confidence of the service, on its own scale: a positive number. The interface gives no bounds: it may be a share of one
/// or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Confidence(f64);

/// It is never NaN, so equality is total.
impl Eq for Confidence {}

impl Confidence {
    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

const NO_CONFIDENCE: &str =
    "is not a least confidence\nuse a positive number on the scale of the column `confidence`, such as `0.6`";

impl TryFrom<f64> for Confidence {
    type Error = Refusal;

    fn try_from(number: f64) -> Result<Self, Refusal> {
        Some(Self(number))
            .filter(|_| number.is_finite() && number > 0.0)
            .ok_or_else(|| format!("{number} {NO_CONFIDENCE}"))
    }
}

impl FromStr for Confidence {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let number = text.parse::<f64>().ok().and_then(|number| Self::try_from(number).ok());
        number.ok_or_else(|| format!("`{text}` {NO_CONFIDENCE}"))
    }
}

described!(Confidence, json_schema!({ "type": "number", "exclusiveMinimum": 0, "examples": [0.6] }));

/// A share of something, from 0 to 1: `0.2`, or `"20%"`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct Share(pub(crate) f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

impl TryFrom<NumberOrText> for Share {
    type Error = Refusal;

    fn try_from(typed: NumberOrText) -> Result<Self, Refusal> {
        let (share, refused) = match typed {
            NumberOrText::Number(number) => (Some(number), format!("{number} is out of range")),
            NumberOrText::Text(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
                (percent.map(|percent| percent / 100.0), format!("`{text}` is not a share"))
            }
        };
        share
            .filter(|share| (0.0..=1.0).contains(share))
            .map(Self)
            .ok_or_else(|| format!("{refused}\nuse a number from 0 to 1, such as `0.2`, or text such as `\"20%\"`"))
    }
}

described!(
    Share,
    json_schema!({
        "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%$" },
        ],
        "examples": [0.2, "20%"],
    })
);

/// A horizon and a market regime as one value: `5d bull`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) period: Period,
    pub(crate) regime: Regime,
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.period, self.regime)
    }
}

impl FromStr for Pair {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let words: Vec<&str> = text.split(' ').collect();
        let [period, regime] = words[..] else {
            return Err(format!("`{text}` is not a pair\nuse a period and a regime, such as `5d bull`"));
        };
        if let (Ok(regime), Ok(period)) = (period.parse::<Regime>(), regime.parse::<Period>()) {
            return Err(format!("`{text}` is not a pair\nthe period comes first: `{period} {regime}`"));
        }
        let period = period.parse().map_err(|unknown: Unknown| format!("{unknown} in `{text}`\n{}", unknown.hint))?;
        let regime = regime.parse().map_err(|unknown: Unknown| {
            format!("{unknown} in `{text}`\n{}", suggestion(regime, &Regime::ALL.map(Regime::as_str), "regimes are"))
        })?;
        Ok(Self { period, regime })
    }
}

parsed_from_text!(Pair, {
    let pattern = "^([1-9]d|[12][0-9]d|30d|[1-6]m) (bear|bull|neutral)$";
    json_schema!({ "type": "string", "pattern": pattern, "examples": ["5d bull", "1m neutral"] })
});
