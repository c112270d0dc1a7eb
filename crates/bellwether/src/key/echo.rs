//! Finds a secret in text that echoes it.
//!
//! A service may echo the key of a request: in the URL of an error page, in a message, in a record. It is found as it is,
//! and escaped once for a URL, for JSON or for HTML, whichever of its characters are escaped. Escapes of escapes are not
//! undone.
//!
//! The search is fast if nothing is escaped: an escaped secret has a first escape with plain text before it, so only
//! escapes are examined, and most of them stand for a character that the secret does not have.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr_iter, memchr3_iter};

/// The longest escape that is undone, such as `&#x0000041;`, in bytes.
const LONGEST: usize = 11;

/// A secret to look for.
#[derive(Debug)]
pub(crate) struct Echo {
    secret: Vec<u8>,
    plain: Finder<'static>,
}

impl Echo {
    /// A matcher for a secret, which is not empty.
    pub(crate) fn new(secret: &str) -> Self {
        Self { secret: secret.into(), plain: Finder::new(secret).into_owned() }
    }

    /// The most bytes that it can take in a text.
    pub(crate) fn longest(&self) -> usize {
        self.secret.len() * LONGEST
    }

    /// Where the secret occurs, from left to right.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> =
            self.plain.find_iter(text).map(|start| start..start + self.secret.len()).collect();
        found.extend(memchr3_iter(b'\\', b'%', b'&', text).filter_map(|at| self.around(text, at)));
        if self.secret.contains(&b' ') {
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
        let mut buffer = [0; 4];
        let (first, _) = unescape(&text[at..], &mut buffer)?;
        memchr_iter(first[0], &self.secret)
            .filter(|&length| text[..at].ends_with(&self.secret[..length]))
            .find_map(|length| Some(at - length..self.end(text, at, length)?))
    }

    /// The end of the occurrence that has a first part of the secret before an offset, and an escape at it.
    fn end(&self, text: &[u8], mut at: usize, mut matched: usize) -> Option<usize> {
        let of_url = |byte: u8| matches!(byte, b'%' | b'+');
        let first = text[at];
        while matched < self.secret.len() {
            let (next, rest) = (*text.get(at)?, &self.secret[matched..]);
            let mut buffer = [0; 4];
            let is_of_kind = next == first || (of_url(next) && of_url(first));
            match unescape(&text[at..], &mut buffer).filter(|_| is_of_kind) {
                Some((bytes, length)) if rest.starts_with(bytes) => {
                    at += length;
                    matched += bytes.len();
                }
                _ if next == rest[0] => {
                    at += 1;
                    matched += 1;
                }
                _ => return None,
            }
        }
        Some(at)
    }
}

/// The bytes that the escape at the start of a text stands for, and its length; `None` if no escape is there.
fn unescape<'b>(text: &[u8], buffer: &'b mut [u8; 4]) -> Option<(&'b [u8], usize)> {
    let code = |from: usize, digits: usize| -> Option<u32> {
        let digits = text.get(from..from + digits)?;
        digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
    };
    let (letter, length) = match text {
        [b'+', ..] => (' ', 1),
        [b'%', ..] => {
            buffer[0] = code(1, 2)? as u8;
            return Some((&buffer[..1], 3));
        }
        [b'\\', itself @ (b'"' | b'\\' | b'/'), ..] => (char::from(*itself), 2),
        [b'\\', b'u', ..] => match code(2, 4)? {
            high @ 0xd800..0xdc00 if text[6..].starts_with(b"\\u") => {
                let low = code(8, 4)?.checked_sub(0xdc00)?;
                (char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?, 12)
            }
            code => (char::from_u32(code)?, 6),
        },
        [b'&', ..] => {
            let end = text.iter().take(LONGEST).position(|byte| *byte == b';')?;
            let letter = match &text[1..end] {
                b"amp" => '&',
                b"lt" => '<',
                b"gt" => '>',
                b"quot" => '"',
                b"apos" => '\'',
                [b'#', b'x' | b'X', ..] => char::from_u32(code(3, end - 3)?)?,
                [b'#', digits @ ..] => char::from_u32(str::from_utf8(digits).ok()?.parse().ok()?)?,
                _ => return None,
            };
            (letter, end + 1)
        }
        _ => return None,
    };
    Some((letter.encode_utf8(buffer).as_bytes(), length))
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
        by_chance(text, escape, |letter| matches!(letter, '%' | '&' | ' '))
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

    #[test]
    fn a_secret_is_found_as_it_is_and_escaped_once() {
        let ways: [fn(&str) -> String; 5] =
            [str::to_owned, |text| byte_serialize(text.as_bytes()).collect(), json, percents, html];
        for round in 0..3_000 {
            let secret = secret();
            let text = ways[round % ways.len()](&secret);
            let around = ["the key is \"", "\" <b>50 %</b> \\", "?api_key=", "&a=%41"];
            let (before, after) = (around[below(4)], ["\", \"a\": 1", " said", "<br>", "\n"][below(4)]);
            let found = Echo::new(&secret).find(format!("{before}{text}{after}").as_bytes());
            let place = before.len()..before.len() + text.len();
            let is_covered = found.iter().any(|span| span.start <= place.start && place.end <= span.end);
            assert!(is_covered, "{secret:?} as {text:?} after {before:?}: {found:?}");
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        let echo = Echo::new("S3CRET/key");
        for text in [
            "S3CRET/ke",
            "S3CRET%2Gkey",
            "S3CRET%252Fkey",
            "S3CRET\\u002gkey",
            "S3CRET\\ud800/key",
            "S3CRET\\ud83d\\u",
            "S3CRET%2",
            "s3cret%2fkey",
            "S3CRET&sol;key",
            "S3CRET&#;key",
            "S3CRET&#x;key",
            "S3CRET&;key",
            "\\",
            "\\u",
            "%",
            "&",
            "&#",
        ] {
            assert!(echo.find(text.as_bytes()).is_empty(), "{text}");
        }
        assert_eq!(echo.mask("a S3CRET\\/key, S3CRET%2fkeyS3CRET&#x2F;key b"), "a ***, ****** b");
    }
}
