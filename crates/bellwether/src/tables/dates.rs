//! Parses dates of the service: in UTC if they have an offset, otherwise as written.

use chrono::DateTime;

use super::Leniencies;

/// A parsed date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// Microseconds since 1970: in UTC if there is an offset, otherwise naive.
    pub(crate) micros: i64,
    /// The offset as written, if there is one.
    pub(crate) offset_minutes: Option<i16>,
}

impl Date {
    /// From the start of year 1 to the start of year 10000: the range of most calendars and file formats.
    const RANGE: std::ops::Range<i64> = -62_135_596_800 * SECOND..253_402_300_800 * SECOND;

    #[inline]
    fn is_in_range(&self) -> bool {
        Self::RANGE.contains(&self.micros)
    }
}

/// The length of `2026-11-20`.
const DATE_LENGTH: usize = 10;

/// Lengths of time in microseconds.
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Reads a date: `2026-11-20`, `2026-11-20T00:00:00`, with a fraction, with `Z` or an offset. What other libraries write by
/// default is accepted and counted: see [`parse_leniently`].
pub(crate) fn read(text: &str, lenient: &mut Leniencies) -> Result<Date, &'static str> {
    let strict = parse(text.as_bytes());
    match strict.or_else(|| parse_leniently(text)) {
        Some(date) if date.is_in_range() => {
            lenient.dates += u64::from(strict.is_none());
            Ok(date)
        }
        Some(_) => Err("is not between the years 1 and 9999 (in UTC)"),
        None => Err(
            "is not a valid date: dates are such as `2026-11-20`, `2026-11-20T16:00:00Z` or `2026-11-20T16:00:00-05:00`",
        ),
    }
}

/// Reads a number as seconds or milliseconds since 1970, or as the digits of a calendar date. Only instants that a vendor may
/// mean are read: from March 1973, before which milliseconds look like seconds, to 2100.
pub(crate) fn read_number(number: f64) -> Option<Date> {
    const SECONDS: std::ops::Range<f64> = 1e8..4_102_444_800.0;
    if (19_700_101.0..21_001_232.0).contains(&number) && number.fract() == 0.0 {
        return parse_leniently(&format!("{number}"));
    }
    let seconds = if SECONDS.contains(&number) { number } else { number / 1e3 };
    SECONDS
        .contains(&seconds)
        .then(|| Date { micros: (seconds * SECOND as f64).round() as i64, offset_minutes: Some(0) })
}

/// Parses a date in a documented format; `None` if it is invalid.
#[inline]
pub(crate) fn read_bytes(text: &[u8]) -> Option<Date> {
    parse(text).filter(Date::is_in_range)
}

/// Reads a date in the notation of another library: `t` and `z` in lower case (RFC 3339), no seconds and an offset of hours
/// (Java, PostgreSQL), a zone in brackets (Java), ` UTC` (Ruby), a comma before the fraction (ISO 8601), `20261120`, spaces
/// around, and the dates of mails and of HTTP (Flask).
fn parse_leniently(text: &str) -> Option<Date> {
    /// Longer than any date.
    const LONGEST: usize = 80;
    let text = Some(text.trim()).filter(|text| text.is_ascii() && text.len() <= LONGEST)?;
    let text = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        // The offset before it counts.
        Some((text, zone)) if zone.contains('/') || zone == "UTC" || zone == "Z" => text,
        Some(_) => return None,
        None => text,
    };
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse(format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]).as_bytes());
    }
    if text.contains(", ") {
        let mail = DateTime::parse_from_rfc2822(text).ok()?;
        let offset = i16::try_from(mail.offset().local_minus_utc() / 60).ok()?;
        return Some(Date { micros: mail.timestamp_micros(), offset_minutes: Some(offset) });
    }
    let (date, rest) = text.split_at_checked(DATE_LENGTH)?;
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else { return parse(text.as_bytes()) };
    let named = ["UTC", "GMT", "Z", "z"].iter().find_map(|name| rest.strip_suffix(name));
    let (time, offset) = match (named, rest.rfind(['+', '-'])) {
        (Some(time), _) => (time, "Z".to_owned()),
        (None, Some(at)) if rest[at..].len() == 3 => (&rest[..at], format!("{}:00", &rest[at..])),
        (None, Some(at)) => (&rest[..at], rest[at..].to_owned()),
        (None, None) => (rest, String::new()),
    };
    let time = time.trim_end();
    let seconds = if time.len() == 5 { ":00" } else { "" };
    parse(format!("{date}T{}{seconds}{offset}", time.replacen(',', ".", 1)).as_bytes())
}

/// Reads a date of any year that four digits can spell.
#[inline]
fn parse(text: &[u8]) -> Option<Date> {
    let (date, rest) = text.split_first_chunk()?;
    let midnight = parse_date(date)?;
    let [b'T' | b' ', rest @ ..] = rest else {
        return rest.is_empty().then_some(Date { micros: midnight, offset_minutes: None });
    };
    let (time, rest) = rest.split_first_chunk()?;
    let (fraction, offset) = parse_fraction(rest)?;
    let written = midnight + parse_time(time)? + fraction;
    if offset.is_empty() {
        return Some(Date { micros: written, offset_minutes: None });
    }
    let offset = parse_offset(offset)?;
    Some(Date { micros: written - i64::from(offset) * MINUTE, offset_minutes: Some(offset) })
}

/// Midnight of a calendar date.
#[inline]
fn parse_date(text: &[u8; 10]) -> Option<i64> {
    let (month, day) = text.split_first_chunk()?;
    Month::parse(*month)?.midnight(*day.first_chunk()?)
}

/// The month at the start of a date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Month {
    text: [u8; Self::LENGTH],
    /// Midnight of the day before its first.
    before: i64,
    days: i64,
}

impl Month {
    /// The length of `2026-11-`.
    pub(crate) const LENGTH: usize = 8;

    /// Parses a month.
    #[inline]
    pub(crate) fn parse(text: [u8; Self::LENGTH]) -> Option<Self> {
        let [y1, y2, y3, y4, b'-', m1, m2, b'-'] = text else { return None };
        let (year, month) = (number(y1, y2)? * 100 + number(y3, y4)?, number(m1, m2)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        Some(Self { text, before: days_since_1970(year, month, 0) * DAY, days })
    }

    /// Whether every instant of it is in range, with any offset.
    pub(crate) fn is_within_range(&self) -> bool {
        /// More days than a month and an offset have.
        const MARGIN: i64 = 33 * DAY;
        (Date::RANGE.start + MARGIN..Date::RANGE.end - MARGIN).contains(&self.before)
    }

    /// Whether a text is this month.
    #[inline]
    pub(crate) fn is(&self, text: &[u8; Self::LENGTH]) -> bool {
        self.text == *text
    }

    /// Midnight of one of its days.
    #[inline]
    pub(crate) fn midnight(&self, [tens, ones]: [u8; 2]) -> Option<i64> {
        let day = number(tens, ones)?;
        (1..=self.days).contains(&day).then(|| self.before + day * DAY)
    }
}

/// Counts from a first of March, so that the leap day is the last day of a year.
#[inline]
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    /// The days from the last of February of the year -400 to the first of January 1970.
    const TO_1970: i64 = 865_566;
    let (year, month) = if month > 2 { (year + 400, month - 3) } else { (year + 399, month + 9) };
    // From March on, months have 31, 30, 31, 30, 31 days, twice and a bit: 153 in five.
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - TO_1970
}

#[inline]
fn parse_time(text: &[u8; 8]) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    let (hours, minutes, seconds) = (number(h1, h2)?, number(m1, m2)?, number(s1, s2)?);
    (hours < 24 && minutes < 60 && seconds < 60).then_some(hours * HOUR + minutes * MINUTE + seconds * SECOND)
}

/// The microseconds of a fraction, which may not be there, and what follows.
fn parse_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = text else { return Some((0, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&length) {
        return None;
    }
    // Truncated to microseconds, the precision of the columns.
    let digits = rest[..length].iter().map(|digit| i64::from(digit - b'0'));
    let scales = [100_000, 10_000, 1_000, 100, 10, 1];
    Some((digits.zip(scales).map(|(digit, scale)| digit * scale).sum(), &rest[length..]))
}

/// `Z`, `+00:00` or `+0000`, in minutes; no place on earth is a day away from UTC.
fn parse_offset(text: &[u8]) -> Option<i16> {
    let (sign, hours, minutes) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, number(h1, h2)?, number(m1, m2)?),
        _ => return None,
    };
    let total = i16::try_from(hours * 60 + minutes).ok().filter(|_| hours < 24 && minutes < 60)?;
    match sign {
        b'+' => Some(total),
        b'-' => Some(-total),
        _ => None,
    }
}

#[inline]
fn number(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens < 10 && ones < 10 { Some(i64::from(tens * 10 + ones)) } else { None }
}

/// The microseconds of a date that was read, for messages.
pub(crate) fn show(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).map_or_else(String::new, |instant| instant.naive_utc().to_string())
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, NaiveTime};

    use super::{Date, read, read_number, show};
    use crate::tables::Leniencies;

    fn read_and_show(text: &str) -> Option<(String, Option<i16>)> {
        let date = read(text, &mut Leniencies::default());
        date.ok().map(|Date { micros, offset_minutes }| (show(micros), offset_minutes))
    }

    fn is(text: &str, expected: &str, offset: Option<i16>) {
        assert_eq!(read_and_show(text), Some((expected.to_owned(), offset)), "{text}");
    }

    #[test]
    fn every_documented_date_format_is_parsed() {
        is("2026-11-20", "2026-11-20 00:00:00", None);
        is("2026-11-20T09:30:00", "2026-11-20 09:30:00", None);
        is("2026-11-20T00:00:00Z", "2026-11-20 00:00:00", Some(0));
        is("2026-11-20T00:00:00+00:00", "2026-11-20 00:00:00", Some(0));
        is("2026-11-20T00:00:00-05:00", "2026-11-20 05:00:00", Some(-300));
        is("2026-11-20T00:00:00-0500", "2026-11-20 05:00:00", Some(-300));
        is("2026-11-20T00:00:00+05:30", "2026-11-19 18:30:00", Some(330));
        is("2026-01-01T00:00:00+00:01", "2025-12-31 23:59:00", Some(1));
        is("2026-11-20T00:00:00.25Z", "2026-11-20 00:00:00.250", Some(0));
        is("2026-11-20 00:00:00.123456789", "2026-11-20 00:00:00.123456", None);
    }

    #[test]
    fn every_day_has_the_same_number_as_in_chrono() {
        for year in 1..=9999 {
            for (month, day) in (1..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let expected = NaiveDate::from_ymd_opt(year, month, day);
                let expected = expected.map(|date| date.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
                let text = format!("{year:04}-{month:02}-{day:02}");
                let date = read(&text, &mut Leniencies::default());
                assert_eq!(date.ok().map(|date| date.micros), expected, "{text}");
            }
        }
    }

    #[test]
    fn what_other_libraries_write_is_accepted_and_counted() {
        let mut lenient = Leniencies::default();
        for (count, (text, spelled)) in [
            ("2026-10-05T16:00", "2026-10-05T16:00:00"),
            ("2026-10-05T20:00Z", "2026-10-05T20:00:00Z"),
            ("2026-10-05 16:00:00-04", "2026-10-05T16:00:00-04:00"),
            ("2026-10-05 16:00:00 UTC", "2026-10-05T16:00:00Z"),
            ("2026-10-05 16:00:00 -0400", "2026-10-05T16:00:00-04:00"),
            ("Mon, 05 Oct 2026 00:00:00 GMT", "2026-10-05T00:00:00Z"),
            ("Mon, 05 Oct 2026 16:00:00 -0400", "2026-10-05T16:00:00-04:00"),
            ("20261005", "2026-10-05"),
            ("2026-10-05T16:00-04:00[America/New_York]", "2026-10-05T16:00:00-04:00"),
            ("2026-10-05T16:00:00,250Z", "2026-10-05T16:00:00.25Z"),
            (" 2026-10-05 ", "2026-10-05"),
            ("2026-11-20t09:30:00", "2026-11-20T09:30:00"),
            ("2026-11-20T09:30:00z", "2026-11-20T09:30:00Z"),
            ("2026-11-20t09:30:00.25z", "2026-11-20T09:30:00.25Z"),
            ("2026-11-20t09:30:00-05:00", "2026-11-20T09:30:00-05:00"),
            ("2026-11-20 09:30:00z", "2026-11-20 09:30:00Z"),
            ("2026-11-20T00:00:00 Z", "2026-11-20T00:00:00Z"),
        ]
        .into_iter()
        .enumerate()
        {
            let strict = read(spelled, &mut Leniencies::default());
            assert_eq!(read(text, &mut lenient), strict, "{text}");
            assert_eq!(lenient, Leniencies { dates: count as u64 + 1, ..Leniencies::default() }, "{text}");
        }
        for text in ["2026-11-20t", "2026-11-20z", "2026-11-20T09:30:00zz", "t", "z", "2026-11-20x09:30:00z"] {
            assert!(read(text, &mut lenient).is_err(), "{text}");
        }
        assert_eq!(lenient.dates, 17, "rejected dates are not counted");
    }

    #[test]
    fn a_number_is_an_instant_where_it_may_be_meant_as_one() {
        let noon = read("2026-10-05T12:00:00Z", &mut Leniencies::default()).unwrap();
        for number in [1_791_201_600.0, 1_791_201_600_000.0] {
            assert_eq!(read_number(number), Some(noon), "{number}");
        }
        assert_eq!(read_number(1_791_201_600.25).map(|date| date.micros), Some(noon.micros + 250_000));
        let day = read("2026-10-05", &mut Leniencies::default()).unwrap();
        assert_eq!(read_number(20_261_005.0), Some(day));
        for number in [0.0, -1.0, 20_261_305.0, 20_261_005.5, 5e9, 1e17, f64::MAX] {
            assert_eq!(read_number(number), None, "{number}");
        }
    }

    #[test]
    fn dates_range_from_year_1_to_9999_in_utc() {
        for text in [
            "0000-12-31",
            "0000-01-01T00:00:00Z",
            "0000-12-31t23:59:59z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:00-00:01",
            "9999-12-31T12:00:00-23:59",
        ] {
            assert_eq!(read(text, &mut Leniencies::default()), Err("is not between the years 1 and 9999 (in UTC)"));
        }
        is("0001-01-01", "0001-01-01 00:00:00", None);
        is("0001-01-01T00:01:00+00:01", "0001-01-01 00:00:00", Some(1));
        is("9999-12-31T23:59:59.999999", "9999-12-31 23:59:59.999999", None);
        is("9999-12-31T23:58:00-00:01", "9999-12-31 23:59:00", Some(-1));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "2026",
            "2026-02-30",
            "2024-02-30",
            "2026-13-01",
            "2026-11-20T",
            "2026-11-20T24:00:00",
            "20261320",
            "2026-11-20T00",
            "2026-11-20T00:00+5",
            "2026-11-20T00:00:00 EST",
            "2026-11-20T00:00:00[Mars]",
            "Mon, 32 Oct 2026 00:00:00 GMT",
            "05/10/2026",
            "2026-11-20T00:00:00+",
            "2026-11-20T00:00:00+25:00",
            "2026-11-20T00:00:00.",
            "2026-11-20T00:00:00.1234567890",
            "2026-11-20x",
            "+026-11-20",
            "２０２６-11-20",
        ] {
            assert_eq!(read_and_show(text), None, "{text:?}");
        }
    }
}
