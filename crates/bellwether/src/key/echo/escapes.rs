//! Decodes nested escapes: of URLs, JSON, HTML and Rust.

/// The most levels of nested escapes.
const LEVELS: usize = 3;

/// The longest encoding of one byte, in bytes: a JSON escape, each of its letters escaped again.
pub(super) const LONGEST: usize = 36;

/// A decoded piece of text: a byte, or a character of several bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: [u8; 4],
    length: usize,
    /// Where it ends in the text.
    pub(super) end: usize,
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

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The byte, if it is a single one.
    pub(super) fn alone(&self) -> Option<u8> {
        (self.length == 1).then_some(self.bytes[0])
    }

    fn begins_escape(&self) -> bool {
        matches!(self.alone(), Some(b'\\' | b'%' | b'&'))
    }
}

/// The possible meanings of the bytes at an offset: the byte itself, and its decodings, level by level.
pub(super) fn units(text: &[u8], at: usize) -> impl Iterator<Item = Unit> + Clone {
    let mut continues = true;
    (0..=LEVELS).map_while(move |level| {
        let unit = if continues { unit(text, at, level)? } else { return None };
        continues = unit.begins_escape() && (level > 0 || may_continue(text, at));
        Some(unit)
    })
}

/// Whether the byte after the start of an escape may belong to it.
pub(super) fn may_continue(text: &[u8], at: usize) -> bool {
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

/// The first byte that an escape encodes, if it is of a common kind and its letters are not escaped.
pub(super) fn simple(escape: &[u8]) -> Option<u8> {
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

/// The meaning of the bytes at an offset after decoding `level` levels of escapes.
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
        for index in 0..=MOST {
            match self.next()? {
                letter if letter == end && index > 0 => return Some(code),
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
