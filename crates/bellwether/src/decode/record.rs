//! Reads any record field by field: the exact path, which can explain what is wrong.
//!
//! A record is valid if each known field has its type and each unknown field is valid JSON. Unknown fields are checked
//! when the record is read, known ones when their values are. Reasons name the field at fault.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::IgnoredAny;

use super::cursor::{Cursor, RawValue, kind_of, reason_of};
use super::number;
use super::skip::plain_length;
use super::truncate;
use crate::interface::{Score, Signal, Ticker, Unknown};
use crate::tables::Leniencies;
use crate::tables::dates::{self, Date};

/// Unknown fields: names and JSON, in order.
pub(crate) type Fields<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// The most unknown fields of a record: an object with more is not a record, and each takes many times its text.
const MAX_UNKNOWN: usize = 1024;

/// A known field of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordField<'a> {
    pub(super) name: &'static str,
    /// Its value, if present.
    pub(super) value: Option<RawValue<'a>>,
}

/// Reads an object: the named fields, in the order of the names, and all others.
pub(crate) fn read<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Result<([RecordField<'a>; N], Fields<'a>), String> {
    let mut cursor = Cursor::new(text);
    let read = read_next(&mut cursor, names)?;
    cursor.end()?;
    Ok(read)
}

/// Reads the next object.
pub(super) fn read_next<'a, const N: usize>(
    cursor: &mut Cursor<'a>,
    names: [&'static str; N],
) -> Result<([RecordField<'a>; N], Fields<'a>), String> {
    let (mut fields, mut unknown) = (names.map(RecordField::absent), Fields::new());
    // Fields are usually in the same order, so the next one follows the last one found.
    let mut next = 0;
    each_member(cursor, |name, value| {
        let Some(index) = (next..N).chain(0..next).find(|&index| fields[index].name == name) else {
            return push_unknown(&mut unknown, name, value.json);
        };
        next = index + 1;
        if fields[index].value.replace(value).is_some() { Err(duplicate(&name)) } else { Ok(()) }
    })?;
    Ok((fields, unknown))
}

/// Whether an object is in the older of two forms: it has fields of that form, and none of the newer. None of them comes twice.
pub(super) fn is_of_older_form(text: &str, newer: &[&str], older: &[&str]) -> Result<bool, String> {
    let mut found: Vec<&str> = Vec::new();
    each_member(&mut Cursor::new(text), |name, _| {
        if let Some(known) = newer.iter().chain(older).find(|known| **known == name) {
            if found.contains(known) {
                return Err(duplicate(&name));
            }
            found.push(known);
        }
        Ok(())
    })?;
    Ok(older.iter().any(|name| found.contains(name)) && !newer.iter().any(|name| found.contains(name)))
}

/// The members of an object, in their order.
pub(super) fn members(text: &str) -> Result<Fields<'_>, String> {
    let mut members = Fields::new();
    each_member(&mut Cursor::new(text), |name, value| {
        members.push((name, value.json));
        Ok(())
    })?;
    Ok(members)
}

/// Visits the members of the next object.
#[inline]
fn each_member<'a>(
    cursor: &mut Cursor<'a>,
    mut member: impl FnMut(Cow<'a, str>, RawValue<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut members = cursor.enter(b'{')?;
    while cursor.has_next(&mut members)? {
        member(cursor.key()?, cursor.raw()?)?;
    }
    Ok(())
}

impl<'a> RecordField<'a> {
    pub(super) fn new(name: &'static str, json: &'a str) -> Self {
        Self { name, value: Some(RawValue::new(json)) }
    }

    /// A field that an object does not have.
    pub(super) const fn absent(name: &'static str) -> Self {
        Self { name, value: None }
    }

    /// The ticker that a text is.
    pub(super) fn parse(text: &str) -> Result<Ticker, String> {
        text.parse().map_err(|unknown: Unknown| format!("unknown ticker `{}`", truncate::excerpt(&unknown.given)))
    }

    /// The field, unless it is null or missing.
    pub(super) fn if_given(self) -> Option<Self> {
        Some(self).filter(|field| field.value.is_some_and(|value| value.json != "null"))
    }

    /// Its value as JSON.
    pub(crate) fn json(self) -> Result<&'a str, String> {
        self.raw().map(|value| value.json)
    }

    fn raw(self) -> Result<RawValue<'a>, String> {
        self.value.ok_or_else(|| missing(self.name))
    }

    /// The text of a string.
    pub(super) fn string(self) -> Result<Cow<'a, str>, String> {
        let value = self.raw()?;
        if !value.json.starts_with('"') {
            return Err(self.mismatch("a string", value.json));
        }
        value.text().map_err(|reason| self.at_fault(&reason))
    }

    /// A value of a closed set, or a ticker.
    pub(super) fn one_of<T: FromStr<Err = Unknown>>(self) -> Result<T, String> {
        self.string()?.parse().map_err(|unknown: Unknown| {
            self.at_fault(&format!("unknown {} `{}`", unknown.kind, truncate::excerpt(&unknown.given)))
        })
    }

    /// A signal, in any letter case.
    pub(super) fn signal(self, lenient: &mut Leniencies) -> Result<Signal, String> {
        let text = self.string()?;
        match Signal::ALL.into_iter().find(|signal| signal.as_str().eq_ignore_ascii_case(&text)) {
            Some(signal) => {
                lenient.signals += u64::from(signal.as_str() != text);
                Ok(signal)
            }
            None => self.one_of(),
        }
    }

    /// A date, or a number that stands for one.
    pub(super) fn date(self, lenient: &mut Leniencies) -> Result<Date, String> {
        if let Some(number) = number::read(self.json()?) {
            let date = dates::read_number(number);
            lenient.dates += u64::from(date.is_some());
            return date.ok_or_else(|| {
                let json = truncate::excerpt(self.json().unwrap_or_default());
                self.at_fault(&format!("`{json}` is not a date: a number is one as seconds or milliseconds since 1970"))
            });
        }
        self.date_text(lenient)
    }

    /// A date, as text.
    pub(super) fn date_text(self, lenient: &mut Leniencies) -> Result<Date, String> {
        let text = self.string()?;
        dates::read(&text, lenient).map_err(|reason| self.at_fault(&format!("`{}` {reason}", truncate::excerpt(&text))))
    }

    /// A finite number.
    pub(super) fn number(self) -> Result<f64, String> {
        let json = self.json()?;
        match json.as_bytes() {
            [b'-' | b'0'..=b'9', ..] => number::read(json).ok_or_else(|| self.at_fault(&not_finite(json))),
            _ => Err(self.mismatch("a number", json)),
        }
    }

    /// A finite number, or text with one in decimal.
    pub(super) fn confidence(self, lenient: &mut Leniencies) -> Result<f64, String> {
        let json = self.json()?;
        if !json.starts_with('"') {
            return self.number();
        }
        let text = self.string()?;
        let value = Score::Text(Cow::Borrowed(text.trim())).value();
        lenient.confidences += u64::from(value.is_some());
        value.ok_or_else(|| self.at_fault(&not_finite(&text)))
    }

    /// What the request named, if it is left out or spelled in another way; what it says, if the request did not name it.
    pub(super) fn echo<T: FromStr<Err = Unknown> + Copy>(
        self,
        asked: Option<T>,
        lenient: &mut Leniencies,
    ) -> Result<T, String> {
        let Some(asked) = asked else { return self.one_of() };
        let Some(given) = self.if_given() else {
            lenient.echoes += 1;
            return Ok(asked);
        };
        let json = given.json()?;
        // A number of days.
        let text = if number::read(json).is_some() { Cow::Owned(format!("{json}d")) } else { given.string()? };
        if let Ok(exact) = text.parse() {
            lenient.echoes += u64::from(!json.starts_with('"'));
            return Ok(exact);
        }
        let plain = text.trim().to_ascii_lowercase().parse();
        lenient.echoes += u64::from(plain.is_ok());
        plain.or_else(|_| given.one_of())
    }

    /// The score of an article: a number, text with one, or text that stands for none.
    pub(super) fn article_score(self, lenient: &mut Leniencies) -> Result<Option<f64>, String> {
        let Some(given) = self.if_given() else { return Ok(None) };
        let json = given.json()?;
        // Python writes `NaN`, though it is not JSON.
        let mut is_none = json == "NaN";
        if json.starts_with('"') {
            let text = given.string()?;
            let text = text.trim();
            if let Some(value) = Score::Text(Cow::Borrowed(text)).value() {
                lenient.scores += u64::from(text.len() + 2 != json.len());
                return Ok(Some(value));
            }
            is_none = ["", "n/a", "na", "nan", "none", "null"].contains(&&*text.to_ascii_lowercase());
        }
        lenient.scores += u64::from(is_none);
        if is_none { Ok(None) } else { given.score().map(Some) }
    }

    /// Text; empty if it is left out or null.
    pub(super) fn string_or_empty(self, is_missing: &mut bool) -> Result<Cow<'a, str>, String> {
        let given = self.if_given();
        *is_missing |= given.is_none();
        given.map_or(Ok(Cow::Borrowed("")), Self::string)
    }

    /// A finite number, or a string with one in decimal.
    pub(super) fn score(self) -> Result<f64, String> {
        let json = self.json()?;
        match json.as_bytes() {
            [b'-' | b'0'..=b'9', ..] => self.number(),
            [b'"', ..] => {
                let text = self.string()?;
                Score::Text(Cow::Borrowed(&text)).value().ok_or_else(|| self.at_fault(&not_finite(&text)))
            }
            _ => Err(self.mismatch("a number or a string", json)),
        }
    }

    fn mismatch(self, kind: &str, json: &str) -> String {
        self.at_fault(&format!("expected {kind}, found {}", kind_of(json.as_bytes())))
    }

    pub(super) fn at_fault(self, reason: &dyn Display) -> String {
        format!("`{}`: {reason}", self.name)
    }
}

fn not_finite(written: &str) -> String {
    format!("`{}` is not a finite decimal number", truncate::excerpt(written))
}

/// Adds an unknown field, after checking that its value is JSON.
pub(super) fn push_unknown<'a>(unknown: &mut Fields<'a>, name: Cow<'a, str>, json: &'a str) -> Result<(), String> {
    well_formed(json).map_err(|reason| format!("`{}`: {reason}", truncate::excerpt(&name)))?;
    if unknown.len() >= MAX_UNKNOWN {
        return Err(format!("more than {MAX_UNKNOWN} unknown fields"));
    }
    unknown.push((name, json));
    Ok(())
}

/// The text of a value, after checking that it is JSON.
pub(super) fn well_formed(json: &str) -> Result<&str, String> {
    let is_plain = match json.as_bytes() {
        [b'"', inside @ ..] => plain_length(inside) + 1 == inside.len(),
        [b'-' | b'0'..=b'9', ..] => number::read(json).is_some(),
        _ => matches!(json, "null" | "true" | "false"),
    };
    if is_plain {
        return Ok(json);
    }
    serde_json::from_str::<IgnoredAny>(json).map(|_| json).map_err(|fault| reason_of(&fault))
}

/// Fields as a JSON object; `None` if there are none.
pub(crate) fn as_object<'f>(fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> Option<String> {
    let mut text = String::new();
    for (name, json) in fields {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&serde_json::Value::from(name).to_string());
        text.push(':');
        text.push_str(json);
    }
    (!text.is_empty()).then(|| text + "}")
}

pub(super) fn missing(name: &str) -> String {
    format!("missing field `{name}`")
}

/// What a service says in place of a record, with status 200.
pub(super) fn complaint(text: &str) -> Option<String> {
    let ([], fields) = read(text, []).ok()?;
    let (_, json) = fields.iter().find(|(name, _)| COMPLAINTS.contains(&&**name))?;
    Some(format!("the service says {}", truncate::excerpt(json)))
}

/// The names of fields in which services complain.
pub(super) const COMPLAINTS: [&str; 4] = ["error", "errors", "detail", "message"];

pub(super) fn duplicate(name: &str) -> String {
    format!("duplicate field `{name}`")
}

#[cfg(test)]
mod tests {
    use super::{RecordField, read};
    use crate::interface::{Signal, Ticker};

    #[test]
    fn a_reason_names_the_field_and_its_value() {
        let reason =
            |json: &str, read: fn(RecordField<'_>) -> Option<String>| read(RecordField::new("score", json)).unwrap();
        let number = |json: &str| reason(json, |field| field.number().err());
        let score = |json: &str| reason(json, |field| field.score().err());
        let signal = |json: &str| reason(json, |field| field.one_of::<Signal>().err());
        assert_eq!(number("\"1\""), "`score`: expected a number, found a string");
        assert_eq!(number("1e999"), "`score`: `1e999` is not a finite decimal number");
        assert_eq!(score("[1]"), "`score`: expected a number or a string, found an array");
        assert_eq!(score("\"n/a\""), "`score`: `n/a` is not a finite decimal number");
        assert_eq!(signal("\"hold\""), "`score`: unknown signal `hold`");
        assert_eq!(signal("true"), "`score`: expected a string, found a boolean");
        let ticker = reason("\" x\"", |field| field.one_of::<Ticker>().err());
        assert_eq!(ticker, "`score`: unknown ticker ` x`");
    }

    #[test]
    fn missing_and_duplicate_fields_are_named() {
        let reason = |text: &str| {
            let ([a, _, c], _) = read(text, ["a", "b", "c"])?;
            a.number().and(c.number()).map(|_| ())
        };
        for (text, expected) in [
            (r#"{"a": 1, "b": 2, "\u0061": 3}"#, "duplicate field `a`"),
            (r#"{"a": 1}"#, "missing field `c`"),
            ("[1]", "expected an object, found an array"),
            ("NaN", "expected an object, found something that is not JSON"),
            (r#"{"a" 1}"#, "expected `:`, found `1`"),
            (r#"{"x": y}"#, "`x`: not JSON: expected value"),
            (r#"{"a": 1 "c": 2}"#, "expected `,` or `}`, found `\"`"),
        ] {
            assert_eq!(reason(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn fields_are_found_in_any_order_and_unknown_ones_are_kept() {
        let text = r#" { "z" : [1] , "b":"x" ,"a": -1.5, "z": null } "#;
        let ([a, b, c], unknown) = read(text, ["a", "b", "c"]).unwrap();
        assert_eq!(a.number(), Ok(-1.5));
        assert_eq!(b.string().as_deref(), Ok("x"));
        assert_eq!(c.json(), Err("missing field `c`".to_owned()));
        assert_eq!(unknown, [("z".into(), "[1]"), ("z".into(), "null")]);
    }
}
