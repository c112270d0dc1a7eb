//! Dates and instants as text: `2026-11-20T00:00:00`, with as much of a second as there is.

use std::io::Write;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};

/// Appends the text of a naive timestamp, or of one in UTC without its `Z`.
pub(super) fn push(out: &mut Vec<u8>, micros: i64) {
    let Some(moment) = naive(micros) else {
        // No calendar has it: a number is better than nothing.
        write!(out, "{micros}").expect("a buffer takes all that is written to it");
        return;
    };
    if !(0..=9999).contains(&moment.year()) {
        write!(out, "{moment:?}").expect("a buffer takes all that is written to it");
        return;
    }
    let mut text = *b"0000-00-00T00:00:00";
    let year = moment.year() as u32;
    let date = [(0, year / 100), (2, year % 100), (5, moment.month()), (8, moment.day())];
    for (place, number) in date.into_iter().chain([(11, moment.hour()), (14, moment.minute()), (17, moment.second())]) {
        text[place] = b'0' + (number / 10) as u8;
        text[place + 1] = b'0' + (number % 10) as u8;
    }
    out.extend_from_slice(&text);
    let rest = micros.rem_euclid(1_000_000);
    if rest != 0 {
        write!(out, ".{rest:06}").expect("a buffer takes all that is written to it");
    }
}

/// Whether a naive timestamp is the beginning of a day.
pub(super) fn is_midnight(micros: i64) -> bool {
    micros.rem_euclid(86_400_000_000) == 0
}

fn naive(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::{is_midnight, push};

    #[test]
    fn a_moment_is_written_to_the_microsecond() {
        let cases = [
            (1_795_132_800_000_000, "2026-11-20T00:00:00"),
            (1_795_210_200_000_001, "2026-11-20T21:30:00.000001"),
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59.999999"),
            (253_402_300_800_000_000, "+10000-01-01T00:00:00"),
            (i64::MAX, "9223372036854775807"),
        ];
        for (micros, expected) in cases {
            let mut text = Vec::new();
            push(&mut text, micros);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
        assert!(is_midnight(1_795_132_800_000_000) && is_midnight(-86_400_000_000) && !is_midnight(-1));
    }
}
