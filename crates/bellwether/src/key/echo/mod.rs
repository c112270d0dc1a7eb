//! Finds a secret in text that echoes it, however it is encoded there.
//!
//! A service may echo the key of a request: in the URL of an error page, in a message, in a record. The key then
//! appears verbatim or escaped: percent-encoded, in JSON, in HTML, by Rust's `Debug`, or by one of these on top of
//! another, as in JSON that contains a URL. Escapes may be in either case, and each character may be escaped or not.
//!
//! The search is fast if nothing is escaped. Any other form of the secret has a first escape with plain text before it,
//! so only escapes are examined, and most of them stand for a character that the secret does not have.

mod escapes;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr_iter, memchr3_iter};

use escapes::{LONGEST, may_continue, simple, units};

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
    pub(crate) fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
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
            let first = unit.bytes()[0];
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
        may_continue(text, at) && simple(&text[at..]).is_none_or(is_ours)
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

    fn spell(secret: &str) -> String {
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
            let once = spell(&secret);
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
        assert_eq!(echo.mask("a S3CRET\\/key, S3CRET%2fkeyS3CRET%252Fkey b"), "a ***, ****** b");
    }
}
