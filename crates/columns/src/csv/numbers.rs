//! Numbers as text: floats as the shortest text that reads back equal. All text is written into a buffer whose capacity was reserved,
//! at an offset that is passed from write to write.

use std::io::Write;

/// Below this, a number with eight decimals has at most fifteen digits, and different decimals are different floats.
const MOST: f64 = 1e7;

const HUNDRED_MILLION: u32 = 100_000_000;

/// Maximum length of a real number.
pub(super) const REAL: usize = 32;

/// Maximum length of an integer.
pub(super) const WHOLE: usize = 16;

/// Writes a number, and returns the length of its text.
#[inline]
pub(super) fn write_real(out: &mut [u8; REAL], number: f64) -> usize {
    let size = number.abs();
    let count = (size * 1e4 + 0.5) as u32;
    // Most confidences and scores are ten-thousandths below 1.
    if count < 10_000 && f64::from(count) / 1e4 == size {
        return write_decimal(out, number.is_sign_negative(), [0, count * 10_000]);
    }
    if (1e-4..MOST).contains(&size) {
        // Rounding is exact: halves are far from the last bit.
        let units = (size * 1e8 + 0.5) as i64;
        // A decimal that reads back equal: without trailing zeros, it is the shortest.
        if units as f64 / 1e8 == size {
            let (whole, part) = (units / i64::from(HUNDRED_MILLION), units % i64::from(HUNDRED_MILLION));
            return write_decimal(out, number.is_sign_negative(), [whole as u32, part as u32]);
        }
    }
    write_shortest(out, number)
}

/// Writes the shortest digits in the common form: with an exponent below 0.00001 and from 1e16 on.
fn write_shortest(out: &mut [u8; REAL], number: f64) -> usize {
    // For larger numbers, two texts are often equally close, and `zmij` chooses the other one.
    if (1e-5..MOST).contains(&number.abs()) {
        return put(out, 0, zmij::Buffer::new().format_finite(number).as_bytes());
    }
    let mut rest = &mut out[..];
    write!(rest, "{number:?}").expect("no number has more than 17 digits, a sign, a point and an exponent");
    REAL - rest.len()
}

/// Writes an integer, and returns the length of its text.
#[inline]
pub(super) fn write_whole(out: &mut [u8; WHOLE], number: i32) -> usize {
    if (0..10).contains(&number) {
        out[0] = b'0' + number as u8;
        return 1;
    }
    write_digits(out, number)
}

fn write_digits(out: &mut [u8; WHOLE], number: i32) -> usize {
    out[0] = b'-';
    let mut end = usize::from(number < 0);
    let (high, low) = (number.unsigned_abs() / HUNDRED_MILLION, digits(number.unsigned_abs() % HUNDRED_MILLION));
    let zeros = if high > 0 {
        // At most two digits.
        for digit in [high / 10, high % 10].into_iter().skip(usize::from(high < 10)) {
            out[end] = b'0' + digit as u8;
            end += 1;
        }
        0
    } else {
        (low.trailing_zeros() / 8).min(7) as usize
    };
    out[end..end + 8 - zeros].copy_from_slice(&texts(low)[zeros..]);
    end + 8 - zeros
}

/// Writes an integer part and hundred-millionths, with at least one decimal.
#[inline]
fn write_decimal(out: &mut [u8; REAL], is_negative: bool, [whole, part]: [u32; 2]) -> usize {
    out[0] = b'-';
    let sign = usize::from(is_negative);
    let whole_room = out[sign..].first_chunk_mut().expect("a real number is longer than an integer");
    let point = sign + write_whole(whole_room, whole as i32);
    let digits = digits(part);
    out[point] = b'.';
    // Copying all eight digits is faster than copying only those needed.
    out[point + 1..point + 9].copy_from_slice(&texts(digits));
    let zeros = (digits.leading_zeros() / 8).min(7) as usize;
    point + 9 - zeros
}

/// The eight digits of a number below a hundred million, the first in the lowest byte. All parts of the word are split
/// in half at once, into fours, twos and single digits; division by multiplication and shift is exact at these sizes.
#[inline]
fn digits(number: u32) -> u64 {
    let fours = u64::from(number / 10_000) | (u64::from(number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

#[inline]
fn texts(digits: u64) -> [u8; 8] {
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The bytes from an offset on, within the reserved capacity.
#[inline(always)]
pub(super) fn ahead<const COUNT: usize>(out: &mut [u8], at: usize) -> &mut [u8; COUNT] {
    out[at..].first_chunk_mut().expect("the capacity for a line was reserved")
}

/// Writes some bytes at `end`, and returns the new end.
#[inline]
pub(super) fn put(out: &mut [u8], end: usize, bytes: &[u8]) -> usize {
    out[end..end + bytes.len()].copy_from_slice(bytes);
    end + bytes.len()
}

#[cfg(test)]
mod tests {
    use super::{REAL, WHOLE, write_real, write_whole};

    fn text(number: f64) -> String {
        let mut out = [b'?'; REAL];
        let length = write_real(&mut out, number);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_written_like_rust_does_and_round_trip() {
        let mut state = 5_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        let mut numbers =
            vec![0.0, -0.0, 1.0, 10.0, 0.1, 0.7, 1e-4, 9.999e-5, 1e7, 9_999_999.999_999_99, f64::MIN_POSITIVE];
        numbers.extend([
            f64::MAX,
            f64::EPSILON,
            0.1 + 0.2,
            1.0 / 3.0,
            123_456.789,
            100.0,
            20.5,
            0.000_123_45,
            1e16,
            1e-7,
        ]);
        numbers.extend((0..=10_000).map(|count| f64::from(count) / 1e4));
        for _ in 0..200_000 {
            let decimals = 10_u64.pow((random() >> 60) as u32) as f64;
            numbers.push(((random() >> 33) % 100_000) as f64 / decimals);
            numbers.push(f64::from_bits(random()));
            numbers.push((random() >> 11) as f64 / (1_u64 << 53) as f64);
        }
        for number in numbers.into_iter().flat_map(|number| [number, -number]).filter(|number| number.is_finite()) {
            let written = text(number);
            let has_zeros = (1e-5..1e-4).contains(&number.abs());
            assert_eq!(written, if has_zeros { format!("{number}") } else { format!("{number:?}") });
            assert_eq!(written.parse::<f64>().unwrap().to_bits(), number.to_bits(), "{written}");
        }
    }

    #[test]
    fn integers_have_all_digits_and_no_leading_zeros() {
        let edges = (0..31).flat_map(|bit| [1 << bit, (1 << bit) - 1, -(1 << bit)]);
        let tens = (0..10).flat_map(|power| [10_i32.pow(power), 10_i32.pow(power) - 1, -10_i32.pow(power)]);
        for number in edges.chain(tens).chain([i32::MAX, i32::MIN, 1_200_000_003]).chain(-20_000..20_000) {
            let mut out = [b'?'; WHOLE];
            let length = write_whole(&mut out, number);
            assert_eq!(str::from_utf8(&out[..length]).unwrap(), number.to_string());
        }
    }
}
