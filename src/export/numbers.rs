//! Numbers as text: real ones as the shortest that reads back equal.

use std::io::Write;

/// Up to here a number of eight decimals has at most fifteen digits, and no two such decimals are one number.
const MOST: f64 = 1e7;

/// Appends the text of a number.
pub(super) fn push_real(out: &mut Vec<u8>, number: f64) {
    let size = number.abs();
    if (1e-4..MOST).contains(&size) {
        let units = (size * 1e8).round();
        // A decimal that reads back equal; without the zeros at its end there is none that is shorter.
        if units / 1e8 == size {
            if number.is_sign_negative() {
                out.push(b'-');
            }
            return push_decimal(out, units as u64);
        }
    }
    // The shortest digits, in the form that most programs write: with an exponent below 0.00001 and from 1e16 on.
    let written = if (1e-5..1e-4).contains(&size) { write!(out, "{number}") } else { write!(out, "{number:?}") };
    written.expect("a buffer takes all that is written to it");
}

/// Appends the text of a whole number.
pub(super) fn push_whole(out: &mut Vec<u8>, number: i32) {
    if (0..10).contains(&number) {
        out.push(b'0' + number as u8);
    } else {
        write!(out, "{number}").expect("a buffer takes all that is written to it");
    }
}

/// Appends a number of hundred-millionths, with one decimal at least.
fn push_decimal(out: &mut Vec<u8>, units: u64) {
    let (whole, mut part) = ((units / 100_000_000) as i32, units % 100_000_000);
    push_whole(out, whole);
    out.push(b'.');
    let mut digits = [b'0'; 8];
    let mut count = 1;
    for (place, digit) in digits.iter_mut().enumerate().rev() {
        let number = part % 10;
        part /= 10;
        *digit = b'0' + number as u8;
        if number != 0 && count == 1 {
            count = place + 1;
        }
    }
    out.extend_from_slice(&digits[..count]);
}

#[cfg(test)]
mod tests {
    use super::push_real;

    fn text(number: f64) -> String {
        let mut out = Vec::new();
        push_real(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_rust_writes_them_to_be_read_back() {
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
        for _ in 0..200_000 {
            let decimals = 10_u64.pow((random() >> 60) as u32) as f64;
            numbers.push(((random() >> 33) % 100_000) as f64 / decimals);
            numbers.push(f64::from_bits(random()));
            numbers.push((random() >> 11) as f64 / (1_u64 << 53) as f64);
        }
        for number in numbers.into_iter().flat_map(|number| [number, -number]).filter(|number| number.is_finite()) {
            let written = text(number);
            let is_short = !(1e-5..1e-4).contains(&number.abs());
            assert_eq!(written, if is_short { format!("{number:?}") } else { format!("{number}") });
            assert_eq!(written.parse::<f64>().unwrap().to_bits(), number.to_bits(), "{written}");
        }
    }
}
