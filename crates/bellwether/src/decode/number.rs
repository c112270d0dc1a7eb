//! Parses numbers to the nearest `f64`.
//!
//! Most numbers of an answer have few digits, for which one division is provably exact; all others go to the standard
//! library, which is exact as well. Numbers follow the JSON grammar: no `+1`, no `.5`, no `NaN`. Zero has no sign.

use crate::interface::unsigned_zero;

/// Powers of ten that are exact as `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Reads the number that a text starts with, and its length; `None` if there is none or it is not finite.
#[inline]
pub(super) fn read_first(text: &[u8]) -> Option<(f64, usize)> {
    if let Some(found) = read_fraction(text) {
        return Some(found);
    }
    let is_negative = text.first() == Some(&b'-');
    let mut digits = Digits { text, at: usize::from(is_negative), value: 0 };
    let start = digits.at;
    match digits.take() {
        0 => return None,
        1 => {}
        _ if text[start] == b'0' => return None,
        _ => {}
    }
    let mut decimals = 0;
    if digits.next() == Some(b'.') {
        digits.at += 1;
        decimals = digits.take();
        if decimals == 0 {
            return None;
        }
    }
    let length = digits.at;
    if matches!(digits.next(), Some(b'e' | b'E')) {
        let length = exponent_end(text, length)?;
        return Some((exact(&text[..length])?, length));
    }
    // An integer up to 2^53 and a power of ten up to 10^22 are exact as `f64`, and IEEE 754 rounds their division
    // correctly. With at most 19 digits the integer has not overflowed.
    let count = length - start - usize::from(decimals > 0);
    if count > 19 || digits.value > 1 << 53 || decimals >= POWERS.len() {
        return Some((exact(&text[..length])?, length));
    }
    let value = digits.value as f64 / POWERS[decimals];
    Some((if is_negative { 0.0 - value } else { value }, length))
}

/// Reads `0.` and up to seven decimals, all digits at once; almost every confidence is written so.
#[inline]
fn read_fraction(text: &[u8]) -> Option<(f64, usize)> {
    /// Repeats a byte in each byte of a word.
    const EACH: u64 = u64::MAX / 0xff;
    let [b'0', b'.', rest @ ..] = text else { return None };
    let word = u64::from_le_bytes(*rest.first_chunk()?);
    // Digits become their values. Other bytes become more than nine, and adding 118 to those sets the highest bit.
    let values = word ^ (EACH * u64::from(b'0'));
    let others = (((values & (EACH * 0x7f)) + EACH * 118) | values) & (EACH << 7);
    let count = others.trailing_zeros() / 8;
    if !(1..8).contains(&count) || (word >> (8 * count)) as u8 | 0x20 == b'e' {
        return None;
    }
    // Shifts in zeros before the digits, and shifts out what follows them.
    let value = of_eight_digits(values << (64 - 8 * count));
    Some((value as f64 / POWERS[count as usize], 2 + count as usize))
}

/// The number with eight digits, the first in the lowest byte: combines pairs of digits, then pairs of pairs.
#[inline]
fn of_eight_digits(digits: u64) -> u64 {
    let pairs = digits * 10 + (digits >> 8);
    let (odd, even) = (pairs & 0x00ff_0000_00ff, (pairs >> 16) & 0x00ff_0000_00ff);
    odd.wrapping_mul(100 + (1_000_000 << 32)).wrapping_add(even.wrapping_mul(1 + (10_000 << 32))) >> 32
}

/// Reads a text that is a number as a whole.
pub(super) fn read(text: &str) -> Option<f64> {
    read_first(text.as_bytes()).filter(|&(_, length)| length == text.len()).map(|(value, _)| value)
}

/// Where the exponent that starts at a byte ends.
fn exponent_end(text: &[u8], at: usize) -> Option<usize> {
    let signed = at + 1;
    let start = signed + usize::from(matches!(text.get(signed), Some(b'+' | b'-')));
    let count = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then_some(start + count)
}

fn exact(number: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    value.is_finite().then_some(unsigned_zero(value))
}

/// A reader of digits.
struct Digits<'a> {
    text: &'a [u8],
    at: usize,
    /// Their value; valid for up to 19 digits.
    value: u64,
}

impl Digits<'_> {
    #[inline]
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Reads the next digits; returns their number.
    #[inline]
    fn take(&mut self) -> usize {
        let start = self.at;
        while let Some(byte @ b'0'..=b'9') = self.next() {
            self.value = self.value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        self.at - start
    }
}

#[cfg(test)]
mod tests {
    use super::{read, read_first};

    #[test]
    fn numbers_follow_the_json_grammar() {
        for (text, value) in [
            ("0", 0.0),
            ("-0.5", -0.5),
            ("1e3", 1e3),
            ("1.25E-2", 0.0125),
            ("5e-324", 5e-324),
            ("1e-999", 0.0),
            ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
        ] {
            assert_eq!(read(text), Some(value), "{text}");
        }
        for text in
            ["", "-", "+1", ".5", "5.", "01", "-01", "1e", "1e+", "0x1", "NaN", "inf", "1e999", "-1e999", "1 ", "1_0"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
        for text in ["-0", "-0.0", "-0.0000000000000000000000", "-0e5", "-1e-999", "0"] {
            assert_eq!(read(text).map(f64::to_bits), Some(0), "{text}");
        }
        assert_eq!(read_first(b"0.25,"), Some((0.25, 4)));
        assert_eq!(read_first(b"0.25e1,      "), Some((2.5, 6)));
        assert_eq!(read_first(b"0.25E,       "), None);
        assert_eq!(read_first(b"0.,          "), None);
        assert_eq!(read_first(b"0.25\xb9        "), Some((0.25, 4)), "0xb9 only looks like a digit");
    }

    #[test]
    fn a_fraction_ends_at_the_first_byte_that_is_no_digit_whatever_it_is() {
        let others = (0..=u8::MAX).filter(|byte| !matches!(byte, b'0'..=b'9' | b'e' | b'E'));
        for (byte, decimals) in others.flat_map(|byte| (1..=9).map(move |decimals| (byte, decimals))) {
            let text = format!("0.{}", &"907351246"[..decimals]);
            let body = [text.as_bytes(), &[byte, b'7', byte, byte, b'0', b'3', b'1', byte, byte]].concat();
            assert_eq!(read_first(&body), Some((text.parse().unwrap(), text.len())), "{text} {byte:#x}");
        }
    }

    #[test]
    fn every_number_is_the_nearest_double() {
        // Around every limit of the fast path: 2^53, 19 and 20 digits, 22 decimals; and 2^64 + 1, whose digits overflow
        // to 1.
        let limits = [
            "9007199254740992",
            "9007199254740993",
            "90071992547409.93",
            "18446744073709551617",
            "1844674407370955161.7",
        ];
        let mut texts: Vec<String> = limits.map(str::to_owned).into();
        for digits in 1..=40 {
            let long = "9123456789".repeat(4);
            texts.extend((1..digits).map(|point| format!("{}.{}", &long[..point], &long[point..digits])));
            texts.push(format!("0.{}", &long[..digits]));
            texts.push(format!("0.{}1", "0".repeat(digits)));
            texts.push(long[..digits].to_owned());
        }
        for text in texts {
            let nearest: f64 = text.parse().unwrap();
            assert_eq!(read(&text).map(f64::to_bits), Some(nearest.to_bits()), "{text}");
            let followed = format!("{text},\"signal\"");
            assert_eq!(read_first(followed.as_bytes()), Some((nearest, text.len())), "{text}");
        }
    }
}
