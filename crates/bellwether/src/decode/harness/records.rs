//! The records of an answer, deserialized by `serde`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::interface::{Period, Regime, Ticker};
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

pub(super) fn day(text: &str) -> Option<dates::Date> {
    dates::read(text, &mut Leniencies::default()).ok()
}

/// Whether a date has lowercase letters.
pub(super) fn is_lenient(date: &str) -> u64 {
    u64::from(date.contains(['t', 'z']))
}

#[derive(Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) date: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) signal: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) confidence: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Latest<'a> {
    pub(super) ticker: Ticker,
    #[serde(borrow)]
    pub(super) date: Option<Cow<'a, str>>,
    pub(super) period: Period,
    pub(super) regime: Regime,
    #[serde(borrow, alias = "ei")]
    pub(super) signal: Cow<'a, str>,
    #[serde(borrow, alias = "ci")]
    pub(super) confidence: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Article<'a> {
    #[serde(borrow)]
    pub(super) date: Cow<'a, str>,
    pub(super) title: String,
    #[serde(borrow)]
    pub(super) score: Option<&'a RawValue>,
    pub(super) link: String,
}

pub(super) fn into_text(text: Cow<'_, str>) -> Option<String> {
    Some(text.into_owned())
}
