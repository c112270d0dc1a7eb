//! A confidence of the service, on its own scale.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use super::values::Refusal;

/// A positive number. The interface gives no bounds: it may be a share of one or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

/// It is a number.
impl Eq for Confidence {}

impl Confidence {
    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }

    fn of(number: f64) -> Option<Self> {
        (number.is_finite() && number > 0.0).then_some(Self(number))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

fn refusal(given: &dyn fmt::Display) -> Refusal {
    format!(
        "{given} is not a least confidence\nuse a positive number on the scale of the column `confidence`, such as `0.6`"
    )
}

impl FromStr for Confidence {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        text.parse().ok().and_then(Self::of).ok_or_else(|| refusal(&format_args!("`{text}`")))
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Confidence;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number")
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Confidence, E> {
                Confidence::of(number).ok_or_else(|| E::custom(refusal(&number)))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Confidence, E> {
                self.visit_f64(number as f64)
            }
        }

        deserializer.deserialize_any(Number)
    }
}

impl JsonSchema for Confidence {
    fn schema_name() -> Cow<'static, str> {
        "Confidence".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "examples": [0.6] })
    }
}
