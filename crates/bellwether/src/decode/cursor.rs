//! A cursor over the text of a piece.
//!
//! Brackets, commas and colons are checked strictly; values are returned as text without being parsed.

use std::borrow::Cow;

use super::skip::{Skip, byte_text, is_white, plain_length};

/// A position in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// The position of the next byte.
    pub(super) at: usize,
}

/// Progress through the members of an array or an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    close: u8,
    /// Number of members read.
    pub(super) count: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The unread bytes.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The text read since a byte.
    pub(super) fn since(&self, at: usize) -> &'a str {
        &self.text[at..self.at]
    }

    #[inline]
    pub(super) fn skip_white(&mut self) {
        while self.rest().first().copied().is_some_and(is_white) {
            self.at += 1;
        }
    }

    /// Consumes a token if it is next.
    #[inline]
    pub(super) fn eat(&mut self, token: &[u8]) -> bool {
        let comes = self.rest().starts_with(token);
        self.at += if comes { token.len() } else { 0 };
        comes
    }

    /// Enters an array or an object, given its opening bracket.
    pub(super) fn enter(&mut self, open: u8) -> Result<Members, String> {
        self.skip_white();
        if !self.eat(&[open]) {
            let expected = if open == b'{' { "an object" } else { "an array" };
            return Err(format!("expected {expected}, found {}", kind_of(self.rest())));
        }
        Ok(Members { close: if open == b'{' { b'}' } else { b']' }, count: 0 })
    }

    /// Moves to the next member and counts it; `false` at the end. After a trailing comma, reading the member fails.
    pub(super) fn has_next(&mut self, members: &mut Members) -> Result<bool, String> {
        self.skip_white();
        if self.eat(&[members.close]) {
            return Ok(false);
        }
        if members.count > 0 {
            if !self.eat(b",") {
                return Err(self.mismatch(&format!("`,` or `{}`", char::from(members.close))));
            }
            self.skip_white();
        }
        members.count += 1;
        Ok(true)
    }

    /// Reads the key of a member and its colon.
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>, String> {
        if self.rest().first() != Some(&b'"') {
            return Err(self.mismatch("a key"));
        }
        let name = self.raw()?;
        self.skip_white();
        if !self.eat(b":") {
            return Err(self.mismatch("`:`"));
        }
        self.skip_white();
        name.text()
    }

    /// Takes the next value as text.
    pub(super) fn value(&mut self) -> Result<&'a str, String> {
        self.raw().map(|value| value.json)
    }

    /// Takes the next value, and whether it is a plain string.
    #[inline]
    pub(super) fn raw(&mut self) -> Result<RawValue<'a>, String> {
        let plain = match self.rest() {
            [b'"', inside @ ..] => Some(plain_length(inside)).filter(|&length| inside.get(length) == Some(&b'"')),
            _ => None,
        };
        let length = plain.map_or_else(|| self.value_length(), |length| Ok(length + 2))?;
        let start = self.at;
        self.at += length;
        Ok(RawValue { json: &self.text[start..self.at], is_plain: plain.is_some() })
    }

    /// Length of the next value.
    fn value_length(&self) -> Result<usize, String> {
        let rest = self.rest();
        let mut skip = rest.first().and_then(|&first| Skip::begin(first)).ok_or_else(|| self.mismatch("a value"))?;
        match (skip.advance(rest), skip) {
            (Some(length), _) => Ok(length),
            (None, Skip::Scalar) => Ok(rest.len()),
            (None, Skip::Enclosed(_)) => Err("a value is incomplete".to_owned()),
        }
    }

    /// Checks that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.skip_white();
        if self.rest().is_empty() { Ok(()) } else { Err(self.mismatch("the end")) }
    }

    fn mismatch(&self, expected: &str) -> String {
        let found = self.rest().first().map_or_else(|| "the end".to_owned(), |&byte| byte_text(byte));
        format!("expected {expected}, found {found}")
    }
}

/// A value as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawValue<'a> {
    pub(super) json: &'a str,
    /// Whether it is known to be a string without escapes.
    is_plain: bool,
}

impl<'a> RawValue<'a> {
    /// A value that may have escapes.
    pub(super) fn new(json: &'a str) -> Self {
        Self { json, is_plain: false }
    }

    /// The unescaped text of a string.
    #[inline]
    pub(super) fn text(self) -> Result<Cow<'a, str>, String> {
        let written = &self.json[1..self.json.len() - 1];
        if self.is_plain { Ok(written.into()) } else { unescape(written) }
    }
}

/// Unescapes the text between the quotes of a string.
pub(super) fn unescape(written: &str) -> Result<Cow<'_, str>, String> {
    if plain_length(written.as_bytes()) == written.len() {
        return Ok(written.into());
    }
    let text: String = serde_json::from_str(&format!("\"{written}\"")).map_err(|fault| reason_of(&fault))?;
    Ok(text.into())
}

/// The kind of value that some JSON starts with, for messages.
pub(super) fn kind_of(text: &[u8]) -> &'static str {
    match text.first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "something that is not JSON",
    }
}

/// The message of an error without its line and column.
pub(super) fn reason_of(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("not JSON: {}", &text[..end])
}
