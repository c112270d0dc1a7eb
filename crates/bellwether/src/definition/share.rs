//! Shares: `0.2`, or `"20%"`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// A share of something, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareForm;

        impl Visitor<'_> for ShareForm {
            type Value = Share;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a share, such as `0.2` or `\"20%\"`")
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Share, E> {
                of(number).ok_or_else(|| out_of_range(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
                let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
                percent.and_then(|percent| of(percent / 100.0)).ok_or_else(|| {
                    E::custom(format!(
                        "`{text}` is not a share\nuse a number from 0 to 1, such as `0.2`, or text such as `\"20%\"`"
                    ))
                })
            }
        }

        deserializer.deserialize_any(ShareForm)
    }
}

fn of(number: f64) -> Option<Share> {
    (0.0..=1.0).contains(&number).then_some(Share(number))
}

fn out_of_range<E: de::Error>(number: f64) -> E {
    E::custom(format!("{number} is out of range\nuse a share from 0 to 1, such as `0.2` or `\"20%\"`"))
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%$" },
            ],
            "examples": [0.2, "20%"],
        })
    }
}
