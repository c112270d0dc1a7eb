//! Finds the end of a JSON value without parsing it.
//!
//! Only three things matter: brackets, which are counted; quotes, between which brackets do not count; and backslashes,
//! which escape the next byte. So five million levels of nesting need only a counter, and the search can be suspended
//! at any byte, even within an escape or a character. The value is not validated: `[}` ends where its brackets balance.

use memchr::memchr2;

use crate::columns::pack_bits;

/// Bytes per block.
const BLOCK: usize = 64;

/// The positions of quotes and brackets in a block, also of those inside strings; the first byte has the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    quotes: u64,
    /// `[` and `{`.
    opens: u64,
    /// `]` and `}`.
    closes: u64,
    has_backslash: bool,
}

/// The bit that turns `[` into `{` and `]` into `}`, and no other byte into either.
const CURLY: u8 = 0x20;

impl Marks {
    /// The marks of a block, on any processor.
    #[inline]
    fn new(block: &[u8; BLOCK]) -> Self {
        Self {
            quotes: pack_bits(block.map(|byte| byte == b'"')),
            opens: pack_bits(block.map(|byte| byte | CURLY == b'{')),
            closes: pack_bits(block.map(|byte| byte | CURLY == b'}')),
            // Not `contains`: it stops at the first match and so is not vectorized.
            has_backslash: block.iter().fold(false, |found, &byte| found | (byte == b'\\')),
        }
    }

    /// The same with AVX2, 32 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn by_avx2(block: &[u8; BLOCK]) -> Self {
        use std::arch::x86_64::{_mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8};

        let (halves, _) = block.as_chunks::<32>();
        let [low, high] = [load(&halves[0]), load(&halves[1])];
        let [low_curly, high_curly] = [low, high].map(|half| _mm256_or_si256(half, _mm256_set1_epi8(CURLY as i8)));
        let places = |low, high, byte: u8| {
            let bits = |half| _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))) as u32;
            u64::from(bits(low)) | u64::from(bits(high)) << 32
        };
        Self {
            quotes: places(low, high, b'"'),
            opens: places(low_curly, high_curly, b'{'),
            closes: places(low_curly, high_curly, b'}'),
            has_backslash: places(low, high, b'\\') != 0,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; 32]) -> std::arch::x86_64::__m256i {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |index: usize| i64::from_le_bytes(words[index]);
    std::arch::x86_64::_mm256_set_epi64x(word(3), word(2), word(1), word(0))
}

/// The search for the end of one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip {
    /// A number, `true`, `false`, `null`, or an invalid token: ends before whitespace or punctuation.
    Scalar,
    /// A string, an array or an object: ends with its closing byte.
    Enclosed(Enclosed),
}

/// The search for the end of a value in brackets or quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enclosed {
    depth: u64,
    deepest: u64,
    text: Text,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    Outside,
    Within,
    /// After a backslash.
    Escaped,
}

impl Skip {
    /// Starts the search at the first byte of a value; `None` if no value starts with it.
    pub(super) fn begin(first: u8) -> Option<Self> {
        match first {
            b'"' | b'[' | b'{' => Some(Self::Enclosed(Enclosed { depth: 0, deepest: 0, text: Text::Outside })),
            _ if ends_scalar(first) => None,
            _ => Some(Self::Scalar),
        }
    }

    /// Continues the search: the number of bytes that belong to the value; `None` if all do and more may follow.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Scalar => bytes.iter().position(|&byte| ends_scalar(byte)),
            Self::Enclosed(enclosed) => enclosed.advance(bytes),
        }
    }

    /// The deepest nesting so far.
    pub(super) fn deepest(&self) -> u64 {
        match self {
            Self::Scalar => 0,
            Self::Enclosed(enclosed) => enclosed.deepest,
        }
    }
}

impl Enclosed {
    fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt") {
            #[expect(
                unsafe_code,
                reason = "every byte of every answer is searched here, and AVX2 takes a third of the time"
            )]
            // SAFETY: the features that the function is compiled for were just detected.
            return unsafe { self.advance_by_avx2(bytes) };
        }
        self.advance_by(bytes, Marks::new)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn advance_by_avx2(&mut self, bytes: &[u8]) -> Option<usize> {
        self.advance_by(bytes, |block| Marks::by_avx2(block))
    }

    #[inline(always)]
    fn advance_by(&mut self, bytes: &[u8], marks: impl Fn(&[u8; BLOCK]) -> Marks) -> Option<usize> {
        let mut at = self.enter(bytes);
        while let Some(block) = bytes[at..].first_chunk::<BLOCK>() {
            let marks = marks(block);
            // Most blocks have no escapes. The end of a bare string is found faster byte by byte.
            let is_plain = self.depth > 0 && !matches!(self.text, Text::Escaped) && !marks.has_backslash;
            let end = if is_plain { self.block(marks) } else { self.bytewise(block) };
            if let Some(length) = end {
                return Some(at + length);
            }
            at += BLOCK;
        }
        self.bytewise(&bytes[at..]).map(|length| at + length)
    }

    /// Enters the value if it is an array or an object that starts here; returns the number of bytes consumed.
    #[inline(always)]
    fn enter(&mut self, bytes: &[u8]) -> usize {
        let opens = self.depth == 0 && matches!(self.text, Text::Outside) && matches!(bytes, [b'[' | b'{', ..]);
        if opens {
            (self.depth, self.deepest) = (1, self.deepest.max(1));
        }
        usize::from(opens)
    }

    /// Continues with a block without escapes. Quotes then come in pairs, so the running parity of the quotes shows
    /// which bytes are inside strings; of the others, only brackets matter.
    #[inline(always)]
    fn block(&mut self, marks: Marks) -> Option<usize> {
        let mut within = running_parity(marks.quotes);
        if matches!(self.text, Text::Within) {
            within = !within;
        }
        self.text = if within >> (BLOCK - 1) == 0 { Text::Outside } else { Text::Within };
        let (opens, closes) = (marks.opens & !within, marks.closes & !within);
        let closes_first = closes & lowest(opens).wrapping_sub(1);
        let count = |bits: u64| u64::from(bits.count_ones());
        let (opened, closed) = (count(opens), count(closes));
        // Most blocks neither end the value nor exceed the deepest level.
        if closed < self.depth && self.depth + opened <= self.deepest + count(closes_first) {
            self.depth = self.depth + opened - closed;
            return None;
        }
        let mut brackets = opens | closes;
        while brackets != 0 {
            let bracket = lowest(brackets);
            brackets ^= bracket;
            if self.is_even_after(if opens & bracket == 0 { b'}' } else { b'{' }) {
                return Some(bracket.trailing_zeros() as usize + 1);
            }
        }
        None
    }

    fn bytewise(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match self.text {
                Text::Outside => {
                    let is_mark = |byte: &u8| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}');
                    at += bytes[at..].iter().position(is_mark)? + 1;
                    if self.is_even_after(bytes[at - 1]) {
                        return Some(at);
                    }
                }
                Text::Within => {
                    at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                    self.text = if bytes[at - 1] == b'"' { Text::Outside } else { Text::Escaped };
                    if self.depth == 0 && matches!(self.text, Text::Outside) {
                        return Some(at);
                    }
                }
                Text::Escaped => {
                    bytes.get(at)?;
                    at += 1;
                    self.text = Text::Within;
                }
            }
        }
    }

    /// Passes a quote or a bracket outside of strings; returns whether it ends the value.
    fn is_even_after(&mut self, mark: u8) -> bool {
        match mark {
            b'"' => self.text = Text::Within,
            b'[' | b'{' => {
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            _ => self.depth -= 1,
        }
        matches!(mark, b']' | b'}') && self.depth == 0
    }
}

/// The lowest set bit.
fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// Sets each bit for which an odd number of bits are set up to and including it.
fn running_parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Number of bytes in a string before the first quote, backslash or control character.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    // Subtracting sets the highest bit of each byte below the bound. It may borrow from the next byte, so only the
    // lowest set bit is reliable; no other is used.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGHS;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, &word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(word);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = below(word, b' ') | is(b'"') | is(b'\\');
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
    bytes.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[inline]
fn ends_scalar(byte: u8) -> bool {
    is_white(byte) || matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}')
}

/// Whether a byte is JSON whitespace.
#[inline]
pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// A byte for messages.
pub(super) fn byte_text(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("`{}`", char::from(byte)) } else { format!("byte `0x{byte:02x}`") }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Marks, Skip, plain_length};

    fn end_of(text: &str) -> Option<usize> {
        Skip::begin(text.as_bytes()[0])?.advance(text.as_bytes())
    }

    #[test]
    fn a_value_ends_at_its_closing_bracket_or_quote() {
        assert_eq!(end_of(r#"{"a": "}\"", "b": [{}]} x"#), Some(23));
        assert_eq!(end_of(r#""a\\" x"#), Some(5));
        assert_eq!(end_of(r#""a\"b"]"#), Some(6));
        assert_eq!(end_of("-1.5e3, 2"), Some(6));
        assert_eq!(end_of("[[[]]"), None, "the outermost is still open");
        assert_eq!(end_of("12"), None, "a number may continue");
        assert_eq!(end_of(","), None, "no value starts with a comma");
    }

    #[test]
    fn the_unescaped_prefix_of_a_string_has_the_right_length() {
        for length in 0..20 {
            for at in 0..=length {
                for special in (0..=255).filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')) {
                    let mut text: Vec<u8> =
                        (0..length).map(|index| [b'a', b' ', 0x7f, 0x80, 0xff, b'!'][index % 6]).collect();
                    assert_eq!(plain_length(&text), length);
                    text.insert(at, special);
                    assert_eq!(plain_length(&text), at, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn block_scanning_agrees_with_byte_scanning() {
        // Every relevant byte and some that look alike, in an order that does not repeat within a block.
        let letters = *br#""{}[]\\"Y_y"z{x"#;
        let mut state = 1_u64;
        for round in 0..2_000 {
            let mut text = b"[".to_vec();
            for _ in 0..300 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Escapes are rare in most rounds, so that whole blocks are without any.
                let letter = letters[(state >> 60) as usize % letters.len()];
                text.push(if letter == b'\\' && round % 8 > 0 { b'[' } else { letter });
            }
            let Some(Skip::Enclosed(mut by_byte)) = Skip::begin(b'[') else { panic!("a value starts") };
            let Some(Skip::Enclosed(mut by_block)) = Skip::begin(b'[') else { panic!("a value starts") };
            assert_eq!(by_block.advance(&text), by_byte.bytewise(&text), "{}", String::from_utf8_lossy(&text));
            assert_eq!(by_block.deepest, by_byte.deepest);
        }
    }

    #[test]
    fn a_search_can_be_suspended_at_any_byte() {
        let text = r#"{"ä\"\\": ["\u00e4]", {"x": [1, -2e5]}]}"#.as_bytes();
        for cut in 0..text.len() {
            let mut skip = Skip::begin(text[0]).unwrap();
            assert_eq!(skip.advance(&text[..cut]), None, "at {cut}");
            assert_eq!(skip.advance(&text[cut..]), Some(text.len() - cut), "at {cut}");
            assert_eq!(skip.deepest(), 4);
        }
    }

    #[test]
    fn every_byte_is_classified() {
        let mut state = 1_u64;
        for round in 0..2_000 {
            let block: [u8; BLOCK] = std::array::from_fn(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Each byte at each position first, then only relevant ones.
                let any = (at + round) as u8;
                if round < 256 { any } else { br#""[]{}_y\"#[(state >> 61) as usize] }
            });
            let bits =
                |bytes: &[u8]| (0..BLOCK).fold(0, |bits, at| bits | (u64::from(bytes.contains(&block[at])) << at));
            let expected = Marks {
                quotes: bits(b"\""),
                opens: bits(b"[{"),
                closes: bits(b"]}"),
                has_backslash: block.contains(&b'\\'),
            };
            assert_eq!(Marks::new(&block), expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                #[expect(unsafe_code, reason = "a function with a target feature")]
                // SAFETY: the feature was just detected.
                let found = unsafe { Marks::by_avx2(&block) };
                assert_eq!(found, expected);
            }
        }
    }
}
