//! Cuts a body into the values of its outermost object, without looking into them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The entries of the object that a body is, in order; a key that stands twice is there twice.
pub(super) fn entries(body: &[u8]) -> Result<Vec<(Cow<'_, str>, &str)>, serde_json::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(Cow<'de, str>, &'de str)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object whose keys are tickers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                entries.push((key, value.get()));
            }
            Ok(entries)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let entries = deserializer.deserialize_map(Entries)?;
    deserializer.end()?;
    Ok(entries)
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a fault says, without the line and column that it ends with.
pub(super) fn reason_of(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The byte at which a body is faulty.
pub(super) fn offset_of(body: &[u8], fault: &serde_json::Error) -> usize {
    if fault.is_eof() {
        return body.len();
    }
    let lines = body.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.take(fault.line().saturating_sub(1)).map(<[u8]>::len).sum();
    (before + fault.column().saturating_sub(1)).min(body.len())
}

/// A key as a step of a JSON pointer.
pub(super) fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::{entries, offset_of};

    #[test]
    fn keys_keep_their_order_and_may_stand_twice() {
        let body = r#" {"B": {"x": "}"}, "A\u0041": [1, 2], "B": null} "#;
        let found = entries(body.as_bytes()).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (key.as_ref(), *value)).collect();
        assert_eq!(found, [("B", r#"{"x": "}"}"#), ("AA", "[1, 2]"), ("B", "null")]);
    }

    #[test]
    fn a_broken_body_is_located_by_its_byte() {
        let body = b"{\n\"A\": 1,\n\"B\" 2}";
        let fault = entries(body).unwrap_err();
        assert_eq!(body[offset_of(body, &fault)], b'2');
        let cut = b"{\"A\": {";
        let fault = entries(cut).unwrap_err();
        assert_eq!(offset_of(cut, &fault), cut.len());
        assert!(entries(b"{} x").is_err(), "what follows the object is an error");
        assert!(entries(b"<html>").is_err());
        assert!(entries(b"[]").is_err());
    }
}
