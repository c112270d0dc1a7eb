//! Finds a secret in text that echoes it, however it is encoded there.
//!
//! A service may echo the key of a request: in the URL of an error page, in a message, in a record. The key then
//! appears verbatim or escaped: percent-encoded, in JSON, in HTML, by Rust's `Debug`, or by one of these on top of
//! another, as in JSON that contains a URL. Escapes may be in either case, and each character may be escaped or not.
//!
//! The search is fast if nothing is escaped. Any other form of the secret has a first escape with plain text before it,
//! so only escapes are examined, and most of them stand for a character that the secret does not have.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr_iter, memchr3_iter};

/// The most levels of nested escapes.
const LEVELS: usize = 3;

/// The longest encoding of one byte, in bytes: a JSON escape, each of its letters escaped again.
const LONGEST: usize = 36;

/// A secret to look for.
#[derive(Debug)]
pub(crate) struct Echo {
    secret: Vec<u8>,
    plain: Finder<'static>,
    /// The bytes that occur in the secret.
    bytes: [bool; 256],
}

impl Echo {
    /// A matcher for a secret, which is not empty.
    pub(crate) fn of(secret: &str) -> Self {
        let mut bytes = [false; 256];
        secret.bytes().for_each(|byte| bytes[usize::from(byte)] = true);
        Self { secret: secret.into(), plain: Finder::new(secret).into_owned(), bytes }
    }

    /// The longest possible encoding, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.secret.len() * LONGEST
    }

    /// Where the secret occurs, from left to right.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> =
            self.plain.find_iter(text).map(|start| start..start + self.secret.len()).collect();
        let escapes = memchr3_iter(b'\\', b'%', b'&', text);
        found.extend(escapes.filter_map(|at| self.around(text, at)));
        if self.bytes[usize::from(b' ')] {
            found.extend(memchr_iter(b'+', text).filter_map(|at| self.around(text, at)));
        }
        found.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        found
    }

    /// The text with `***` in place of the secret.
    pub(crate) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return text.into();
        }
        let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
        for span in found {
            if span.start >= end {
                masked.push_str(&text[end..span.start]);
                masked.push_str("***");
            }
            end = end.max(span.end);
        }
        masked.push_str(&text[end..]);
        masked.into()
    }

    /// Overwrites every byte of the secret's occurrences with `*`.
    pub(crate) fn overwrite(&self, text: &mut [u8]) {
        for span in self.find(text) {
            text[span].fill(b'*');
        }
    }

    /// The occurrence whose first escape is at an offset.
    fn around(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        if !self.may_be_spelled(text, at) {
            return None;
        }
        units(text, at).find_map(|unit| {
            let first = unit.bytes[0];
            let blank = || if self.is_space(first) { self.before(text, at, b' ') } else { None };
            self.before(text, at, first).or_else(blank)
        })
    }

    /// Quickly rules out most escapes that are not part of the secret.
    fn may_be_spelled(&self, text: &[u8], at: usize) -> bool {
        let has = |byte: u8| self.bytes[usize::from(byte)];
        if has(text[at]) || self.is_space(text[at]) {
            return true;
        }
        let is_ours = |first: u8| has(first) || self.is_space(first) || matches!(first, b'\\' | b'%' | b'&');
        may_go_on(text, at) && simple(&text[at..]).is_none_or(is_ours)
    }

    /// The occurrence that has the plain start of the secret before an offset, and the first byte of an encoded one at
    /// it.
    fn before(&self, text: &[u8], at: usize, first: u8) -> Option<Range<usize>> {
        let lengths = memchr_iter(first, &self.secret).take_while(|&length| length <= at);
        lengths
            .filter(|&length| length == 0 || text[at - 1] == self.secret[length - 1])
            .filter(|&length| text[..at].ends_with(&self.secret[..length]))
            .find_map(|length| Some(at - length..self.end(text, length, at)?))
    }

    /// The end of the longest occurrence, given the bytes of the secret matched before an offset.
    fn end(&self, text: &[u8], spelled: usize, at: usize) -> Option<usize> {
        // In match order: each state is processed before those that follow from it.
        let (mut states, mut end) = (BTreeSet::from([(spelled, at)]), None);
        while let Some((spelled, at)) = states.pop_first() {
            let rest = &self.secret[spelled..];
            let Some(&next) = rest.first() else {
                end = Some(at);
                continue;
            };
            for unit in units(text, at) {
                let bytes = unit.bytes();
                if rest.starts_with(bytes) {
                    states.insert((spelled + bytes.len(), unit.end));
                } else if next == b' ' && unit.alone().is_some_and(|byte| self.is_space(byte)) {
                    states.insert((spelled + 1, unit.end));
                }
            }
        }
        end
    }

    /// Whether a byte may encode a space of the secret.
    fn is_space(&self, byte: u8) -> bool {
        byte == b'+' && self.bytes[usize::from(b' ')]
    }
}

/// A decoded piece of text: a byte, or a character of several bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    bytes: [u8; 4],
    length: usize,
    /// Where it ends in the text.
    end: usize,
}

impl Unit {
    fn byte(byte: u8, end: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1, end }
    }

    fn character(code: u32, end: usize) -> Option<Self> {
        let mut bytes = [0; 4];
        let length = char::from_u32(code)?.encode_utf8(&mut bytes).len();
        Some(Self { bytes, length, end })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The byte, if it is a single one.
    fn alone(&self) -> Option<u8> {
        (self.length == 1).then_some(self.bytes[0])
    }

    fn begins_escape(&self) -> bool {
        matches!(self.alone(), Some(b'\\' | b'%' | b'&'))
    }
}

/// What the bytes at an offset may stand for: the byte itself, and its decodings, level by level.
fn units(text: &[u8], at: usize) -> impl Iterator<Item = Unit> + Clone {
    let mut goes_on = true;
    (0..=LEVELS).map_while(move |level| {
        let unit = if goes_on { unit(text, at, level)? } else { return None };
        goes_on = unit.begins_escape() && (level > 0 || may_go_on(text, at));
        Some(unit)
    })
}

/// Whether the byte after the start of an escape may belong to it.
fn may_go_on(text: &[u8], at: usize) -> bool {
    match &text[at..] {
        [_, b'\\' | b'%' | b'&', ..] => true,
        [b'\\', next, ..] => b"\"'/bfnrt0xu".contains(next),
        [b'%', next, ..] => next.is_ascii_hexdigit(),
        // The second letter may itself be escaped.
        [b'&', b'a', next, ..] => b"mp\\%&".contains(next),
        [b'&', b'l' | b'g', next, ..] => b"t\\%&".contains(next),
        [b'&', b'q', next, ..] => b"u\\%&".contains(next),
        [b'&', b'#', ..] => true,
        _ => false,
    }
}

/// The first byte that an escape stands for, if it is of a common kind and its letters are not escaped.
fn simple(escape: &[u8]) -> Option<u8> {
    let code =
        |digits: &[u8]| digits.iter().try_fold(0_u32, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?));
    match escape {
        [b'%', digits @ ..] => Some(code(digits.get(..2)?)? as u8),
        [b'\\', itself @ (b'"' | b'\'' | b'/'), ..] => Some(*itself),
        [b'\\', b'u', digits @ ..] => match code(digits.get(..4)?)? {
            code @ 0..0x80 => Some(code as u8),
            code @ 0x80..0x800 => Some(0xc0 | (code >> 6) as u8),
            0xd800..0xe000 => None,
            code => Some(0xe0 | (code >> 12) as u8),
        },
        _ => None,
    }
}

/// What the bytes at an offset stand for after decoding `level` levels of escapes.
fn unit(text: &[u8], at: usize, level: usize) -> Option<Unit> {
    let Some(below) = level.checked_sub(1) else {
        return text.get(at).map(|&byte| Unit::byte(byte, at + 1));
    };
    let first = unit(text, at, below)?;
    let mut rest = Letters { text, at: first.end, level: below };
    let escaped = match first.alone() {
        Some(b'%') => rest.code(2, 16).map(|code| Unit::byte(code as u8, rest.at)),
        Some(b'\\') => rest.backslash(),
        Some(b'&') => rest.entity(),
        _ => None,
    };
    Some(escaped.filter(|unit| unit.end - at <= LONGEST * unit.length).unwrap_or(first))
}

/// The letters of an escape, which may themselves be escaped.
#[derive(Clone, Copy, Debug)]
struct Letters<'a> {
    text: &'a [u8],
    at: usize,
    level: usize,
}

impl Letters<'_> {
    fn next(&mut self) -> Option<u8> {
        let unit = unit(self.text, self.at, self.level)?;
        self.at = unit.end;
        unit.alone()
    }

    /// Consumes some letters if they come next.
    fn eat(&mut self, letters: &[u8]) -> bool {
        let mut ahead = *self;
        let comes = letters.iter().all(|letter| ahead.next() == Some(*letter));
        if comes {
            *self = ahead;
        }
        comes
    }

    /// A number of exactly this many digits.
    fn code(&mut self, digits: usize, base: u32) -> Option<u32> {
        (0..digits).try_fold(0, |code, _| Some(code * base + char::from(self.next()?).to_digit(base)?))
    }

    /// A number of some digits, and the letter that ends it.
    fn number(&mut self, base: u32, end: u8) -> Option<u32> {
        const MOST: usize = 7;
        let mut code = 0;
        for place in 0..=MOST {
            match self.next()? {
                letter if letter == end && place > 0 => return Some(code),
                letter => code = code * base + char::from(letter).to_digit(base)?,
            }
        }
        None
    }

    /// What follows a backslash, in JSON and in Rust.
    fn backslash(&mut self) -> Option<Unit> {
        let byte = match self.next()? {
            itself @ (b'"' | b'\'' | b'\\' | b'/') => itself,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'x' => self.code(2, 16)? as u8,
            b'u' if self.eat(b"{") => return Unit::character(self.number(16, b'}')?, self.at),
            b'u' => return self.utf16(),
            _ => return None,
        };
        Some(Unit::byte(byte, self.at))
    }

    /// What follows `\u`: a character, possibly as a surrogate pair.
    fn utf16(&mut self) -> Option<Unit> {
        let high = self.code(4, 16)?;
        if !(0xd800..0xdc00).contains(&high) {
            return Unit::character(high, self.at);
        }
        let low = if self.eat(b"\\u") { self.code(4, 16)?.checked_sub(0xdc00)? } else { return None };
        Unit::character(0x10000 + ((high - 0xd800) << 10) + low, self.at)
    }

    /// What follows an ampersand, in HTML.
    fn entity(&mut self) -> Option<Unit> {
        if self.eat(b"#") {
            let is_hex = self.eat(b"x") || self.eat(b"X");
            let code = self.number(if is_hex { 16 } else { 10 }, b';')?;
            return Unit::character(code, self.at);
        }
        const NAMES: [(&[u8], u8); 5] =
            [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];
        let (_, byte) = NAMES.into_iter().find(|(name, _)| self.eat(name))?;
        Some(Unit::byte(byte, self.at))
    }
}

#[cfg(test)]
mod tests {
    use url::form_urlencoded::byte_serialize;

    use super::Echo;
    use crate::time::random;

    fn below(end: usize) -> usize {
        (random() % end as u64) as usize
    }

    fn secret() -> String {
        let letters: Vec<char> = "abcXYZ0189-_ +/=%&\"'\\<>;#nrux\u{e9}\u{fc}\u{20ac}\u{1f511}".chars().collect();
        (0..8 + below(30)).map(|_| letters[below(letters.len())]).collect()
    }

    /// Escapes each character or not, at random.
    fn by_chance(text: &str, escape: impl Fn(char) -> String, must: impl Fn(char) -> bool) -> String {
        let one = |letter| if must(letter) || below(2) == 0 { escape(letter) } else { letter.to_string() };
        text.chars().map(one).collect()
    }

    fn json(text: &str) -> String {
        let units = |letter: char| {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            let one = |unit: &u16| if below(2) == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
            units.iter().map(one).collect::<String>()
        };
        let must = |letter| matches!(letter, '"' | '\\');
        let short = |letter| match letter {
            '"' | '\\' | '/' if below(2) == 0 => format!("\\{letter}"),
            _ => units(letter),
        };
        by_chance(text, short, must)
    }

    fn percents(text: &str) -> String {
        let one = |byte: u8| if below(2) == 0 { format!("%{byte:02x}") } else { format!("%{byte:02X}") };
        let escape = |letter: char| match letter {
            ' ' if below(2) == 0 => "+".to_owned(),
            _ => letter.encode_utf8(&mut [0; 4]).bytes().map(one).collect(),
        };
        by_chance(text, escape, |letter| matches!(letter, '%' | '+' | '&' | ' '))
    }

    fn html(text: &str) -> String {
        let escape = |letter| match letter {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '"' => "&quot;".to_owned(),
            other if below(2) == 0 => format!("&#{};", u32::from(other)),
            other => format!("&#x{:X};", u32::from(other)),
        };
        by_chance(text, escape, |letter| "&<>\"'".contains(letter))
    }

    fn spelled(secret: &str) -> String {
        let ways: [fn(&str) -> String; 7] = [
            str::to_owned,
            |text| byte_serialize(text.as_bytes()).collect(),
            |text| text.escape_debug().to_string(),
            |text| {
                let shown = format!("{:?}", bytes::Bytes::copy_from_slice(text.as_bytes()));
                shown[2..shown.len() - 1].to_owned()
            },
            json,
            percents,
            html,
        ];
        ways[below(ways.len())](secret)
    }

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        for _ in 0..3_000 {
            let secret = secret();
            let once = spelled(&secret);
            let text = if below(2) == 0 { json(&once) } else { once };
            let around = ["the key is \"", "\" <b>50 %</b> \\", "?api_key=", "&a=%41"];
            let (before, after) = (around[below(4)], ["\", \"a\": 1", " said", "<br>", "\n"][below(4)]);
            let found = Echo::of(&secret).find(format!("{before}{text}{after}").as_bytes());
            let place = before.len()..before.len() + text.len();
            let is_covered = found.iter().any(|span| span.start <= place.start && place.end <= span.end);
            assert!(is_covered, "{secret:?} as {text:?} after {before:?}: {found:?}");
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        let echo = Echo::of("S3CRET/key");
        for text in [
            "S3CRET/ke",
            "S3CRET%2Gkey",
            "S3CRET\\u002gkey",
            "S3CRET\\ud800/key",
            "S3CRET%2",
            "s3cret%2fkey",
            "S3CRET&sol;key",
            "\\",
            "%",
            "&",
        ] {
            assert!(echo.find(text.as_bytes()).is_empty(), "{text}");
        }
        assert_eq!(echo.masked("a S3CRET\\/key, S3CRET%2fkeyS3CRET%252Fkey b"), "a ***, ****** b");
    }
}
