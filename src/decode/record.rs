//! A record of any form, read field by field: the exact way, which knows why something is wrong.
//!
//! Text is checked by `serde_json`; what a field must be is said here, with a reason that names the field.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::clip;
use super::cursor::kind_of;
use super::date::{self, Date};
use super::number;
use crate::interface::{Score, Unknown};
use crate::plan::NaiveRule;

/// A JSON object as its fields, in their order; a name that stands twice is there twice.
#[derive(Debug)]
pub(super) struct Record<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

/// A field of a record that the interface knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    name: &'static str,
    /// Its value as JSON.
    pub(super) json: &'a str,
}

impl<'a> Record<'a> {
    /// Reads an object.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let text = text.trim_ascii();
        let fields =
            serde_json::from_str(text).map(|Fields(fields)| fields).map_err(|fault| match text.as_bytes() {
                [b'{', ..] => reason_of(&fault),
                other => format!("expected an object, found {}", kind_of(other)),
            })?;
        Ok(Self { fields })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// Takes a field out, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Result<Option<Field<'a>>, String> {
        let place = |fields: &[(Cow<'a, str>, &str)]| fields.iter().position(|(known, _)| known == name);
        let Some(found) = place(&self.fields) else { return Ok(None) };
        let (_, json) = self.fields.remove(found);
        match place(&self.fields) {
            Some(_) => Err(duplicate(name)),
            None => Ok(Some(Field { name, json })),
        }
    }

    /// Takes a field out that must be there.
    pub(super) fn require(&mut self, name: &'static str) -> Result<Field<'a>, String> {
        self.take(name)?.ok_or_else(|| missing(name))
    }

    /// The fields that were not taken: those that the interface does not know.
    pub(super) fn unknown(&self) -> &[(Cow<'a, str>, &'a str)] {
        &self.fields
    }
}

impl<'a> Field<'a> {
    pub(super) fn new(name: &'static str, json: &'a str) -> Self {
        Self { name, json }
    }

    pub(super) fn is_null(self) -> bool {
        self.json == "null"
    }

    /// The text of a string.
    pub(super) fn string(self) -> Result<Cow<'a, str>, String> {
        if !self.json.starts_with('"') {
            return Err(self.expected("a string"));
        }
        serde_json::from_str(self.json).map(|Text(text)| text).map_err(|fault| self.at_fault(&reason_of(&fault)))
    }

    /// A value of a closed set, or a ticker.
    pub(super) fn one_of<T: FromStr<Err = Unknown>>(self) -> Result<T, String> {
        self.string()?.parse().map_err(|unknown: Unknown| {
            self.at_fault(&format!("unknown {} `{}`", unknown.kind, clip::shown(&unknown.given)))
        })
    }

    /// The fields of an object.
    pub(super) fn record(self) -> Result<Record<'a>, String> {
        Record::read(self.json).map_err(|reason| self.at_fault(&reason))
    }

    /// A date, naive by the rule.
    pub(super) fn date(self, rule: NaiveRule) -> Result<Date, String> {
        date::read(&self.string()?, rule).map_err(|reason| self.at_fault(&reason))
    }

    /// A finite number.
    pub(super) fn number(self) -> Result<f64, String> {
        if !self.json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Err(self.expected("a number"));
        }
        number::read(self.json).ok_or_else(|| self.at_fault(&not_finite(self.json)))
    }

    /// A finite number, or a string that holds one in decimal.
    pub(super) fn score(self) -> Result<f64, String> {
        if !self.json.starts_with('"') {
            return self
                .number()
                .map_err(|reason| reason.replace("expected a number,", "expected a number or a string,"));
        }
        let text = self.string()?;
        Score::Text(Cow::Borrowed(&text)).value().ok_or_else(|| self.at_fault(&not_finite(&text)))
    }

    fn expected(self, kind: &str) -> String {
        self.at_fault(&format!("expected {kind}, found {}", kind_of(self.json.as_bytes())))
    }

    pub(super) fn at_fault(self, reason: &dyn Display) -> String {
        format!("`{}`: {reason}", self.name)
    }
}

fn not_finite(written: &str) -> String {
    format!("`{}` is not a finite decimal number", clip::shown(written))
}

/// The text of a value, once it is known to be JSON.
pub(super) fn well_formed(json: &str) -> Result<&str, String> {
    serde_json::from_str::<IgnoredAny>(json).map(|_| json).map_err(|fault| reason_of(&fault))
}

pub(super) fn missing(name: &str) -> String {
    format!("missing field `{name}`")
}

pub(super) fn duplicate(name: &str) -> String {
    format!("field `{name}` stands twice")
}

/// What a fault says, without the line and column that it ends with.
pub(super) fn reason_of(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("not JSON: {}", &text[..end])
}

/// Text, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Fields<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push((name, value.get()));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Record};
    use crate::interface::{Signal, Ticker};

    #[test]
    fn a_reason_names_the_field_and_what_it_holds() {
        let reason = |json: &str, read: fn(Field<'_>) -> Option<String>| read(Field::new("score", json)).unwrap();
        let number = |json: &str| reason(json, |field| field.number().err());
        let score = |json: &str| reason(json, |field| field.score().err());
        let signal = |json: &str| reason(json, |field| field.one_of::<Signal>().err());
        assert_eq!(number("\"1\""), "`score`: expected a number, found a string");
        assert_eq!(number("1e999"), "`score`: `1e999` is not a finite decimal number");
        assert_eq!(score("[1]"), "`score`: expected a number or a string, found an array");
        assert_eq!(score("\"n/a\""), "`score`: `n/a` is not a finite decimal number");
        assert_eq!(signal("\"hold\""), "`score`: unknown signal `hold`");
        assert_eq!(signal("true"), "`score`: expected a string, found a boolean");
        let ticker = reason("\"../x\"", |field| field.one_of::<Ticker>().err());
        assert_eq!(ticker, "`score`: unknown ticker `../x`");
    }

    #[test]
    fn a_field_that_is_missing_or_stands_twice_is_named() {
        let mut record = Record::read(r#" {"a": 1, "b": 2, "\u0061": 3} "#).unwrap();
        assert_eq!(record.require("a").unwrap_err(), "field `a` stands twice");
        assert_eq!(record.require("c").unwrap_err(), "missing field `c`");
        assert_eq!(record.require("b").unwrap().json, "2");
        assert_eq!(Record::read("[1]").unwrap_err(), "expected an object, found an array");
        assert_eq!(Record::read("NaN").unwrap_err(), "expected an object, found something that is not JSON");
        assert_eq!(Record::read("{\"a\" 1}").unwrap_err(), "not JSON: expected `:`");
    }
}
