//! Dates and timestamps as text: `2026-11-20T00:00:00`, with as many decimals of a second as needed.
//!
//! A dataset may have several in each row, so the date of a day is computed here in a few multiplications instead of by
//! a general calendar.

use std::io::Write;

use chrono::DateTime;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Maximum length of a timestamp.
pub const TIMESTAMP: usize = 32;

/// The days from 0000-01-01 to 9999-12-31, counted from 1970.
const DAYS: std::ops::RangeInclusive<i64> = -719_528..=2_932_896;

/// The text of a naive timestamp, or of one in UTC without its `Z`.
pub fn text(micros: i64) -> String {
    let mut text = [0; TIMESTAMP];
    let length = write(&mut text, micros);
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// Writes a naive timestamp, or one in UTC without its `Z`, and returns the length of its text.
pub fn write(out: &mut [u8; TIMESTAMP], micros: i64) -> usize {
    let (days, since_midnight) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    if !DAYS.contains(&days) {
        return write_far(out, micros);
    }
    let (year, month, day) = date(days as i32);
    let text: &mut [u8; 19] = out.first_chunk_mut().expect("the buffer has room for a timestamp");
    *text = *b"0000-00-00T00:00:00";
    write_pairs(text, [(0, year / 100), (2, year % 100), (5, month), (8, day)]);
    let length = text.len();
    if since_midnight == 0 {
        return length;
    }
    let (seconds, rest) = ((since_midnight / 1_000_000) as u32, since_midnight % 1_000_000);
    write_pairs(text, [(11, seconds / 3600), (14, seconds / 60 % 60), (17, seconds % 60)]);
    if rest == 0 { length } else { length + format(&mut out[length..], format_args!(".{rest:06}")) }
}

/// Writes numbers of two digits, each at its position.
fn write_pairs<const COUNT: usize>(text: &mut [u8], numbers: [(usize, u32); COUNT]) {
    for (index, number) in numbers {
        text[index] = b'0' + (number / 10) as u8;
        text[index + 1] = b'0' + (number % 10) as u8;
    }
}

/// Writes a timestamp outside four-digit years.
fn write_far(out: &mut [u8; TIMESTAMP], micros: i64) -> usize {
    match DateTime::from_timestamp_micros(micros) {
        Some(instant) => format(out, format_args!("{:?}", instant.naive_utc())),
        // Outside the calendar: print the number.
        None => format(out, format_args!("{micros}")),
    }
}

fn format(out: &mut [u8], text: std::fmt::Arguments<'_>) -> usize {
    let room = out.len();
    let mut rest = out;
    rest.write_fmt(text).expect("the buffer has room for a timestamp");
    room - rest.len()
}

/// Year, month and day of a day counted from 1970, for years 0 to 9999.
///
/// By Neri and Schneider, "Euclidean affine functions and their application to calendar algorithms" (2022). Counting in
/// quarters of a day, one division gives the century and the day in it, a second the year and the day in it. The first
/// days of the months lie on a line, rounded down. Divisions are multiplications and shifts, exact in this range.
fn date(days: i32) -> (u32, u32, u32) {
    /// Days in 400 years.
    const DAYS_OF_ERA: u32 = 146_097;
    // Years start in March, so that the leap day is their last. An extra era keeps all numbers positive.
    let day = (days + 719_468 + DAYS_OF_ERA as i32) as u32;
    let quarters = 4 * day + 3;
    let (century, day) = (quarters / DAYS_OF_ERA, quarters % DAYS_OF_ERA / 4);
    // Divides by the 1461 days of four years.
    let scaled = u64::from(4 * day + 3) * 2_939_745;
    let (year, day) = ((scaled >> 32) as u32, scaled as u32 / 2_939_745 / 4);
    let line = 2_141 * day + 197_913;
    let (month, day) = (line >> 16, (line & 0xffff) / 2_141 + 1);
    // January and February are the last months.
    let is_next = month > 12;
    (100 * century + year + u32::from(is_next) - 400, if is_next { month - 12 } else { month }, day)
}

/// Whether a naive timestamp is at midnight.
pub fn is_midnight(micros: i64) -> bool {
    micros.rem_euclid(MICROS_PER_DAY) == 0
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::{DAYS, date, is_midnight, text};

    #[test]
    fn a_day_has_its_calendar_date() {
        let of = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap().to_epoch_days();
        assert_eq!(i64::from(of(0, 1, 1))..=i64::from(of(9999, 12, 31)), DAYS);
        for days in DAYS.map(|days| days as i32).filter(|days| days % 7 == 0 || (-366..36_525).contains(days)) {
            let known = NaiveDate::from_epoch_days(days).unwrap();
            assert_eq!(date(days), (known.year() as u32, known.month(), known.day()));
        }
    }

    #[test]
    fn a_timestamp_is_written_to_the_microsecond() {
        let cases = [
            (1_795_132_800_000_000, "2026-11-20T00:00:00"),
            (1_795_210_200_000_001, "2026-11-20T21:30:00.000001"),
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59.999999"),
            (-62_167_219_200_000_000, "0000-01-01T00:00:00"),
            (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
            (253_402_300_800_000_000, "+10000-01-01T00:00:00"),
            (i64::MAX, "9223372036854775807"),
        ];
        for (micros, expected) in cases {
            assert_eq!(text(micros), expected);
        }
        assert!(is_midnight(1_795_132_800_000_000) && is_midnight(-86_400_000_000) && !is_midnight(-1));
    }
}
