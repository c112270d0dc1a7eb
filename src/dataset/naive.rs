//! The naive dates of a dataset, out of what was written.
//!
//! The archive keeps a date that was written with an offset as its instant in UTC, beside the offset; a rule says which
//! clock tells it. A date that was written without an offset is naive already, and no rule touches it.

use arrow::array::{Array, Int16Array, TimestampMicrosecondArray};
use chrono::DateTime;
use chrono_tz::Tz;

use crate::plan::{NaiveRule, Zone};

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// The dates as a rule tells them, in microseconds since 1970.
pub(super) fn dates(dates: &TimestampMicrosecondArray, offsets: &Int16Array, rule: NaiveRule) -> Vec<i64> {
    match rule {
        NaiveRule::Wall => told(dates, offsets, |instant, minutes| instant + i64::from(minutes) * MICROS_PER_MINUTE),
        NaiveRule::Zone(Zone(zone)) => told(dates, offsets, |instant, _| in_zone(instant, zone)),
        NaiveRule::Utc => dates.values().to_vec(),
    }
}

/// The dates, those with an offset told anew.
fn told(dates: &TimestampMicrosecondArray, offsets: &Int16Array, tell: impl Fn(i64, i16) -> i64) -> Vec<i64> {
    if offsets.null_count() == offsets.len() {
        return dates.values().to_vec();
    }
    let naive = |(&date, offset): (&i64, Option<i16>)| offset.map_or(date, |minutes| tell(date, minutes));
    dates.values().iter().zip(offsets).map(naive).collect()
}

fn in_zone(instant: i64, zone: Tz) -> i64 {
    let instant = DateTime::from_timestamp_micros(instant).expect("the interface has years of four digits");
    instant.with_timezone(&zone).naive_local().and_utc().timestamp_micros()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int16Array, TimestampMicrosecondArray};
    use chrono::NaiveDateTime;

    use super::dates;

    fn micros(text: &str) -> i64 {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap().and_utc().timestamp_micros()
    }

    /// The dates and offsets as the archive keeps them, by a rule.
    fn by(rule: &str, kept: &[(&str, Option<i16>)]) -> Vec<i64> {
        let instants = TimestampMicrosecondArray::from_iter_values(kept.iter().map(|(date, _)| micros(date)));
        let offsets: Int16Array = kept.iter().map(|(_, offset)| *offset).collect();
        dates(&instants, &offsets, rule.parse().unwrap())
    }

    #[test]
    fn each_rule_tells_a_date_by_its_clock_and_leaves_one_without_an_offset() {
        // As it is kept, by `utc`, by `wall`, in New York.
        let table: [(&str, Option<i16>, &str, &str, &str); 8] = [
            ("2026-11-20 00:00:00", None, "2026-11-20 00:00:00", "2026-11-20 00:00:00", "2026-11-20 00:00:00"),
            ("2026-11-20 09:30:00", None, "2026-11-20 09:30:00", "2026-11-20 09:30:00", "2026-11-20 09:30:00"),
            ("2026-11-20 00:00:00", Some(0), "2026-11-20 00:00:00", "2026-11-20 00:00:00", "2026-11-19 19:00:00"),
            ("2026-11-20 05:00:00", Some(-300), "2026-11-20 05:00:00", "2026-11-20 00:00:00", "2026-11-20 00:00:00"),
            ("2026-11-19 18:30:00", Some(330), "2026-11-19 18:30:00", "2026-11-20 00:00:00", "2026-11-19 13:30:00"),
            ("2026-07-01 04:00:00", Some(0), "2026-07-01 04:00:00", "2026-07-01 04:00:00", "2026-07-01 00:00:00"),
            ("1969-12-31 23:59:59", Some(60), "1969-12-31 23:59:59", "1970-01-01 00:59:59", "1969-12-31 18:59:59"),
            ("2026-11-20 00:00:30", Some(1), "2026-11-20 00:00:30", "2026-11-20 00:01:30", "2026-11-19 19:00:30"),
        ];
        let kept = table.map(|(date, offset, ..)| (date, offset));
        assert_eq!(by("utc", &kept), table.map(|(.., utc, _, _)| micros(utc)));
        assert_eq!(by("wall", &kept), table.map(|(.., wall, _)| micros(wall)));
        assert_eq!(by("America/New_York", &kept), table.map(|(.., new_york)| micros(new_york)));
        for rule in ["utc", "wall", "America/New_York"] {
            assert_eq!(by(rule, &kept[..2]), [micros(kept[0].0), micros(kept[1].0)], "no offset at all, by {rule}");
            assert!(by(rule, &[]).is_empty());
        }
    }

    #[test]
    fn an_instant_has_one_clock_face_in_a_zone_even_when_clocks_change() {
        // Spring forward: 06:59 UTC is 01:59, one minute later it is 03:00. Fall back: 01:30 comes twice.
        for (instant, expected) in [
            ("2026-03-08 06:59:00", "2026-03-08 01:59:00"),
            ("2026-03-08 07:00:00", "2026-03-08 03:00:00"),
            ("2026-11-01 05:30:00", "2026-11-01 01:30:00"),
            ("2026-11-01 06:30:00", "2026-11-01 01:30:00"),
        ] {
            assert_eq!(by("America/New_York", &[(instant, Some(0))]), [micros(expected)], "{instant}");
        }
    }
}
