//! When a scheduler should run a definition.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use super::values::{Refusal, parsed_from_text};

/// Five fields that say when: minute, hour, day of month, month, day of week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron(String);

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for Cron {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const FIELDS: [(&str, u8, u8); 5] =
            [("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7)];
        let given: Vec<&str> = text.split_whitespace().collect();
        if given.len() != FIELDS.len() {
            return Err(format!(
                "a schedule has five fields, found {}\nminute, hour, day of month, month, day of week: \
                 `30 18 * * 1-5`",
                given.len()
            ));
        }
        for (field, (name, low, high)) in given.iter().zip(FIELDS) {
            if !field.split(',').all(|part| is_cron_part(part, low, high)) {
                return Err(format!(
                    "invalid {name} `{field}` in a schedule\nuse `*`, a number from {low} to {high}, a range such as \
                     `{low}-{high}`, a step such as `*/2`, or a list of these"
                ));
            }
        }
        Ok(Self(given.join(" ")))
    }
}

/// Whether a part of a field is `*`, a number or a range, with or without a step.
fn is_cron_part(part: &str, low: u8, high: u8) -> bool {
    let number = |text: &str| text.parse::<u8>().ok().filter(|number| (low..=high).contains(number));
    let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
    let range_is_right = match range.split_once('-') {
        Some((first, last)) => matches!((number(first), number(last)), (Some(first), Some(last)) if first <= last),
        None => range == "*" || number(range).is_some(),
    };
    range_is_right && step.is_none_or(|step| step.parse::<u8>().is_ok_and(|step| step > 0))
}

impl JsonSchema for Cron {
    fn schema_name() -> Cow<'static, str> {
        "Cron".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["30 18 * * 1-5"] })
    }
}

parsed_from_text!(Cron);
