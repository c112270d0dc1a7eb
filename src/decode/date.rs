//! A date as the service writes it, to the naive timestamp that the definition asks for.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::clip;
use crate::plan::NaiveRule;

/// A date that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    /// Microseconds since 1970 on the naive clock.
    pub(super) micros: i64,
    /// The offset that was written; none when there was none.
    pub(super) offset_minutes: Option<i16>,
}

/// Reads a date: `2026-11-20`, `2026-11-20T00:00:00`, with a fraction, with `Z` or an offset.
pub(super) fn read(text: &str, rule: NaiveRule) -> Result<Date, String> {
    read_bytes(text.as_bytes(), rule).ok_or_else(|| format!("`{}` is not a date of the interface", clip::shown(text)))
}

/// Reads a date; none where there is none.
pub(super) fn read_bytes(text: &[u8], rule: NaiveRule) -> Option<Date> {
    let (written, offset_minutes) = parse(text)?;
    let naive = match (rule, offset_minutes) {
        (NaiveRule::Wall, _) | (_, None) => written,
        (NaiveRule::Utc, Some(offset)) => to_utc(written, offset),
        (NaiveRule::Zone(zone), Some(offset)) => to_utc(written, offset).and_utc().with_timezone(&zone.0).naive_local(),
    };
    let micros = naive.and_utc().timestamp_micros();
    Some(Date { micros, offset_minutes })
}

fn to_utc(written: NaiveDateTime, offset_minutes: i16) -> NaiveDateTime {
    // A year of four digits is far from the ends of the calendar.
    written - TimeDelta::minutes(i64::from(offset_minutes))
}

/// The calendar date and clock face as written, and the offset.
fn parse(text: &[u8]) -> Option<(NaiveDateTime, Option<i16>)> {
    let (date, rest) = text.split_at_checked(10)?;
    let date = parse_date(date)?;
    let [b'T' | b' ', rest @ ..] = rest else {
        return rest.is_empty().then_some((date.and_time(NaiveTime::MIN), None));
    };
    let (time, offset) = match rest.iter().position(|byte| matches!(byte, b'Z' | b'+' | b'-')) {
        Some(at) => (&rest[..at], Some(parse_offset(&rest[at..])?)),
        None => (rest, None),
    };
    Some((date.and_time(parse_time(time)?), offset))
}

fn parse_date(text: &[u8]) -> Option<NaiveDate> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let year = number(&[y1, y2, y3, y4])? as i32;
    NaiveDate::from_ymd_opt(year, number(&[m1, m2])?, number(&[d1, d2])?)
}

fn parse_time(text: &[u8]) -> Option<NaiveTime> {
    let (&[h1, h2, b':', m1, m2, b':', s1, s2], fraction) = text.split_first_chunk::<8>()? else { return None };
    let micros = match fraction.split_first() {
        None => 0,
        Some((b'.', digits)) if !digits.is_empty() && digits.len() <= 9 => {
            // Finer than a microsecond is cut off, for no column holds it.
            let kept = &digits[..digits.len().min(6)];
            number(digits)?;
            number(kept)? * 10_u32.pow(6 - kept.len() as u32)
        }
        Some(_) => return None,
    };
    NaiveTime::from_hms_micro_opt(number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?, micros)
}

/// `Z`, `+00:00` or `+0000`, in minutes; no place on earth is a day away from UTC.
fn parse_offset(text: &[u8]) -> Option<i16> {
    let (sign, [h1, h2, m1, m2]) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, [h1, h2, m1, m2]),
        _ => return None,
    };
    let (hours, minutes) = (number(&[h1, h2])?, number(&[m1, m2])?);
    let total = i16::try_from(hours * 60 + minutes).ok().filter(|_| hours < 24 && minutes < 60)?;
    match sign {
        b'+' => Some(total),
        b'-' => Some(-total),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

/// The naive timestamp of a date that was read, for messages.
pub(super) fn show(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).map_or_else(String::new, |instant| instant.naive_utc().to_string())
}

#[cfg(test)]
mod tests {
    use super::{Date, read, show};
    use crate::plan::NaiveRule;

    fn naive(text: &str, rule: &str) -> Option<(String, Option<i16>)> {
        let rule: NaiveRule = rule.parse().unwrap();
        read(text, rule).ok().map(|Date { micros, offset_minutes }| (show(micros), offset_minutes))
    }

    fn is(text: &str, rule: &str, expected: &str, offset: Option<i16>) {
        assert_eq!(naive(text, rule), Some((expected.to_owned(), offset)), "{text} by {rule}");
    }

    #[test]
    fn every_form_of_the_interface_is_read_by_every_rule() {
        is("2026-11-20", "utc", "2026-11-20 00:00:00", None);
        is("2026-11-20T09:30:00", "America/New_York", "2026-11-20 09:30:00", None);
        is("2026-11-20T00:00:00Z", "utc", "2026-11-20 00:00:00", Some(0));
        is("2026-11-20T00:00:00+00:00", "America/New_York", "2026-11-19 19:00:00", Some(0));
        is("2026-11-20T00:00:00-05:00", "utc", "2026-11-20 05:00:00", Some(-300));
        is("2026-11-20T00:00:00-05:00", "wall", "2026-11-20 00:00:00", Some(-300));
        is("2026-11-20T00:00:00+05:30", "utc", "2026-11-19 18:30:00", Some(330));
        is("2026-11-20T00:00:00.25Z", "utc", "2026-11-20 00:00:00.250", Some(0));
        is("2026-11-20 00:00:00.123456789", "utc", "2026-11-20 00:00:00.123456", None);
    }

    #[test]
    fn an_instant_has_one_clock_face_in_a_zone_even_when_clocks_change() {
        // Spring forward: 06:59 UTC is 01:59, one minute later it is 03:00. Fall back: 01:30 comes twice.
        is("2026-03-08T06:59:00Z", "America/New_York", "2026-03-08 01:59:00", Some(0));
        is("2026-03-08T07:00:00Z", "America/New_York", "2026-03-08 03:00:00", Some(0));
        is("2026-11-01T05:30:00Z", "America/New_York", "2026-11-01 01:30:00", Some(0));
        is("2026-11-01T06:30:00Z", "America/New_York", "2026-11-01 01:30:00", Some(0));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2026",
            "2026-02-30",
            "2024-02-30",
            "2026-13-01",
            "2026-11-20T",
            "2026-11-20T24:00:00",
            "20261120",
            "2026-11-20T00:00",
            "2026-11-20T00:00:00+",
            "2026-11-20T00:00:00+25:00",
            "2026-11-20T00:00:00.",
            "2026-11-20T00:00:00.1234567890",
            "2026-11-20x",
            "+026-11-20",
            "２０２６-11-20",
            "2026-11-20T00:00:00 Z",
        ] {
            assert_eq!(naive(text, "utc"), None, "{text:?}");
        }
    }
}
