//! The records of an answer, deserialized by `serde`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::tables::Leniencies;
use crate::tables::dates;

/// The names and values of an object in order, including duplicates.
pub(super) struct Pairs<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Names and values, as text.
pub(super) type Extra = Vec<(String, String)>;

/// The names and values of kept fields; `None` if there are none.
pub(super) fn pairs(extra: Option<String>) -> Extra {
    let Some(text) = extra else { return Extra::new() };
    let Pairs(pairs) = serde_json::from_str(&text).expect("kept fields are an object");
    pairs.into_iter().map(|(name, json)| (name, json.get().to_owned())).collect()
}

/// Number of records of an invalid history.
pub(super) fn weight(json: &str) -> u64 {
    let Ok(Pairs(pairs)) = serde_json::from_str(json) else {
        // Otherwise the number of objects in it, one of which is the history itself.
        return (json.matches('{').count() as u64).saturating_sub(1).max(1);
    };
    let entries = pairs.iter().filter(|(name, _)| ["predictions", "items"].contains(&name.as_str()));
    entries.map(|(_, json)| elements(json.get())).sum::<u64>().max(1)
}

pub(super) fn elements(json: &str) -> u64 {
    serde_json::from_str::<Vec<&RawValue>>(json).map_or(0, |elements| elements.len() as u64)
}

pub(super) fn deserialize<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// Deserializes an object only: `serde` would accept an array of the fields as well.
pub(super) fn record<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    json.starts_with('{').then(|| serde_json::from_str(json).ok())?
}

pub(super) fn finite(json: &RawValue) -> Option<f64> {
    let is_number = json.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    json.get().parse().ok().filter(|value: &f64| is_number && value.is_finite()).map(plain_zero)
}

/// Zero for negative zero.
pub(super) fn plain_zero(number: f64) -> f64 {
    if number == 0.0 { number.abs() } else { number }
}

pub(super) fn score(json: &RawValue) -> Option<f64> {
    finite(json).or_else(|| {
        let text: String = deserialize(json.get())?;
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(plain_zero)
    })
}

/// The documented spelling of a signal in any letter case.
pub(super) fn canonical_signal(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "buy" => Some("buy"),
        "sell" => Some("sell"),
        _ => None,
    }
}

/// A date, and whether it is in another notation than the interface's.
pub(super) fn day(json: &RawValue) -> Option<(dates::Date, bool)> {
    if let Some(number) = finite(json) {
        return dates::read_number(number).map(|date| (date, true));
    }
    let (text, mut lenient) = (deserialize::<String>(json.get())?, Leniencies::default());
    let date = dates::read(&text, &mut lenient).ok()?;
    Some((date, lenient.dates > 0))
}

/// A confidence, and whether it is text.
pub(super) fn confidence(json: &RawValue) -> Option<(f64, bool)> {
    if let Some(number) = finite(json) {
        return Some((number, false));
    }
    let text: String = deserialize(json.get())?;
    decimal(&text).map(|value| (value, true))
}

/// The number in decimal that a text is, but for spaces.
fn decimal(text: &str) -> Option<f64> {
    let is_decimal = text.contains(|letter: char| letter.is_ascii_digit());
    text.trim().parse().ok().filter(|value: &f64| is_decimal && value.is_finite()).map(plain_zero)
}

/// The score of an article, if it has one, and whether it is written as the interface says.
pub(super) fn article_score(json: Option<&RawValue>) -> Option<(Option<f64>, bool)> {
    let Some(json) = json else { return Some((None, true)) };
    if let Some(number) = finite(json) {
        return Some((Some(number), true));
    }
    let text: String = deserialize(json.get())?;
    if let Some(value) = decimal(&text) {
        return Some((Some(value), text.trim().len() + 2 == json.get().len()));
    }
    let says_none = ["", "n/a", "na", "nan", "none", "null"].contains(&&*text.trim().to_ascii_lowercase());
    says_none.then_some((None, false))
}

/// A value of a history that repeats what was asked, and whether that is as the interface says.
pub(super) fn echo<T: DeserializeOwned + Copy>(json: Option<&str>, asked: Option<T>) -> Option<(T, bool)> {
    let Some(asked) = asked else { return Some((deserialize(json?)?, true)) };
    let Some(json) = json.filter(|json| *json != "null") else { return Some((asked, false)) };
    if let Some(exact) = deserialize(json) {
        return Some((exact, true));
    }
    let text = if json.starts_with('"') { deserialize::<String>(json)? } else { format!("{json}d") };
    let plain = serde_json::Value::from(text.trim().to_ascii_lowercase()).to_string();
    Some((deserialize(&plain)?, false))
}

#[derive(Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) date: &'a RawValue,
    #[serde(borrow)]
    pub(super) signal: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) confidence: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Latest<'a> {
    #[serde(borrow)]
    pub(super) ticker: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) date: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) period: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) regime: Option<&'a RawValue>,
    #[serde(borrow, alias = "ei")]
    pub(super) signal: Cow<'a, str>,
    #[serde(borrow, alias = "ci")]
    pub(super) confidence: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Article<'a> {
    #[serde(borrow)]
    pub(super) date: &'a RawValue,
    pub(super) title: Option<String>,
    #[serde(borrow)]
    pub(super) score: Option<&'a RawValue>,
    pub(super) link: Option<String>,
}

pub(super) fn into_text(text: Cow<'_, str>) -> Option<String> {
    Some(text.into_owned())
}
