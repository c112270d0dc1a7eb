//! The clock, and names made from instants.
//!
//! A signal's `date` is a `NaiveDateTime`; the instant of an observation is a `DateTime<Utc>`. They are different types
//! on purpose. Nothing else asks the system for the time.

pub(crate) mod skew;

use std::hash::{BuildHasher, RandomState};
use std::iter;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound, TimeDelta, Utc};
use serde::Serializer;

/// Microseconds per day.
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Source of the time.
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The system clock.
    #[default]
    System,
    /// A fixed instant.
    Fixed(DateTime<Utc>),
    /// An instant that is set while it is in use, in microseconds since 1970.
    Set(&'static AtomicI64),
}

impl Clock {
    /// The current time in whole microseconds, which every file format can represent.
    pub fn now(self) -> DateTime<Utc> {
        match self {
            // `Utc::now` panics before 1970.
            Self::System => DateTime::<Utc>::from(SystemTime::now()).trunc_subsecs(6),
            Self::Fixed(instant) => instant.trunc_subsecs(6),
            Self::Set(micros) => DateTime::from_timestamp_micros(micros.load(Ordering::SeqCst)).unwrap_or_default(),
        }
    }
}

/// A unique name that sorts by time: `20261120T213000Z-7f3a`.
pub fn unique_name(instant: DateTime<Utc>) -> String {
    name_of(instant, random() as u16)
}

/// A name from an instant and a number that separates names of the same second.
pub(crate) fn name_of(instant: DateTime<Utc>, salt: u16) -> String {
    format!("{}-{salt:04x}", instant.format("%Y%m%dT%H%M%SZ"))
}

/// A unique name that is not taken: names of the same second differ by only four digits.
pub(crate) fn free_name(instant: DateTime<Utc>, is_free: impl Fn(&str) -> bool) -> String {
    /// If this many in a row are taken, something else is wrong.
    const TRIES: usize = 8;
    let mut names = iter::repeat_with(|| unique_name(instant)).take(TRIES);
    names.find(|name| is_free(name)).unwrap_or_else(|| unique_name(instant))
}

/// An unpredictable number, from the seeds that the standard library gets from the system.
pub(crate) fn random() -> u64 {
    #[cfg(feature = "harness")]
    if let Some(number) = seeded::next() {
        return number;
    }
    RandomState::new().hash_one(0_u8)
}

/// Numbers that a simulation can repeat.
#[cfg(feature = "harness")]
pub mod seeded {
    use std::cell::Cell;
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    thread_local! {
        static NEXT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// What is random in this thread follows from a seed, from now on.
    pub fn begin(seed: u64) {
        NEXT.set(Some(seed));
    }

    pub(super) fn next() -> Option<u64> {
        let number = NEXT.get()?;
        NEXT.set(Some(number.wrapping_add(1)));
        Some(BuildHasherDefault::<DefaultHasher>::default().hash_one(number))
    }
}

/// An instant as written in records: `2026-11-20T21:30:00.000000Z`.
pub fn to_record(instant: DateTime<Utc>) -> String {
    instant.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Parses an instant: one with an offset, or a day, which means the end of it in UTC.
///
/// # Errors
///
/// A sentence, if it is neither.
///
/// ```
/// let end = bellwether::time::instant("2026-03-31")?;
/// assert_eq!(bellwether::time::to_record(end), "2026-03-31T23:59:59.999999Z");
/// # Ok::<(), String>(())
/// ```
pub fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    const FORMS: &str = "use a day, `2026-03-31`, or an instant with an offset, `2026-03-31T18:00:00Z`";
    let with_forms = |wrong: String| if wrong == DAY_FORM { FORMS.to_owned() } else { wrong };
    let Some((date, time)) = text.split_once(['T', 't', ' ']).filter(|(_, time)| time.contains(':')) else {
        let end = day(text).map_err(with_forms)?.succ_opt().map(|next| next.and_time(NaiveTime::MIN).and_utc());
        return end.map(|end| end - TimeDelta::microseconds(1)).ok_or_else(|| "the day is out of range".to_owned());
    };
    day(date).map_err(with_forms)?;
    let instant = DateTime::parse_from_rfc3339(text);
    instant.map(|instant| instant.with_timezone(&Utc).trunc_subsecs(6)).map_err(|error| {
        if time.ends_with(['Z', 'z']) || time.contains(['+', '-']) {
            return format!("{error}; {FORMS}");
        }
        let seconds = if time.matches(':').count() == 1 { ":00" } else { "" };
        format!("no offset from UTC: for a time in UTC, write `{date}T{time}{seconds}Z`")
    })
}

/// An instant as of which something is read: as [`instant`] has it, but the current day means now.
///
/// # Errors
///
/// As [`instant`].
pub fn as_of(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let parsed = instant(text)?;
    let is_today = !text.contains(':') && parsed.date_naive() == now.date_naive();
    Ok(if is_today { parsed.min(now) } else { parsed })
}

/// An instant in the shortest form that [`instant`] reads: a day for its end.
pub(crate) fn as_typed(instant: DateTime<Utc>) -> String {
    let day = instant.date_naive().to_string();
    match self::instant(&day) {
        Ok(end) if end == instant => day,
        _ => to_record(instant),
    }
}

/// The form of a day, as a hint.
const DAY_FORM: &str = "use a day in the form `2026-03-31`";

/// A day as people type it. An error names the part that is wrong, or the right form.
///
/// # Errors
///
/// If the text is not a day in the form `2026-03-31`.
pub fn day(text: &str) -> Result<NaiveDate, String> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = match text.len() {
        8 if is_digits(text) => vec![&text[..4], &text[4..6], &text[6..]],
        _ => text.split(['-', '/', '.']).collect(),
    };
    let [year, month, day] = parts[..] else { return Err(DAY_FORM.to_owned()) };
    if parts.iter().any(|part| !is_digits(part) || part.len() > 4) || year.len() != 4 {
        return Err(DAY_FORM.to_owned());
    }
    let numbers = [year, month, day].map(|part| part.parse::<u32>().unwrap_or_default());
    let [of_year, of_month, of_day] = numbers;
    if !(1..=12).contains(&of_month) {
        return Err(format!("there is no month {month}"));
    }
    let found = NaiveDate::from_ymd_opt(of_year.cast_signed(), of_month, of_day);
    let found = found.ok_or_else(|| format!("{year}-{of_month:02} has no day {day}"))?;
    let right = found.to_string();
    if right == text { Ok(found) } else { Err(format!("write `{right}`")) }
}

/// A time as a number of seconds, for serde.
pub(crate) fn as_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// The form of [`to_record`], for serde.
pub mod as_record {
    use chrono::{DateTime, Utc};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    /// Writes an instant.
    pub fn serialize<S: Serializer>(instant: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
        super::to_record(*instant).serialize(serializer)
    }

    /// Writes an instant that may be missing.
    pub fn serialize_if_any<S: Serializer>(instant: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        instant.map(super::to_record).serialize(serializer)
    }

    /// Reads an instant.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let instant = DateTime::parse_from_rfc3339(&text).map_err(de::Error::custom)?;
        Ok(instant.with_timezone(&Utc))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::{as_of, day, free_name, instant, to_record, unique_name};

    #[test]
    fn the_current_day_means_now() {
        let now = instant("2026-11-20T21:30:00Z").unwrap();
        assert_eq!(as_of("2026-11-20", now), Ok(now));
        assert_eq!(as_of("2026-11-19", now), instant("2026-11-19"));
        assert_eq!(as_of("2026-11-21", now), instant("2026-11-21"), "the future stays the future");
        assert_eq!(as_of("2026-11-20T23:00:00Z", now), instant("2026-11-20T23:00:00Z"));
    }

    #[test]
    fn an_invalid_date_names_the_invalid_part() {
        for (text, wrong) in [
            ("2026-13-01", "there is no month 13"),
            ("2026-02-29", "2026-02 has no day 29"),
            ("2026-04-31", "2026-04 has no day 31"),
            ("2026/01/01", "write `2026-01-01`"),
            ("2026.1.5", "write `2026-01-05`"),
            ("20260105", "write `2026-01-05`"),
            ("2026-1-5", "write `2026-01-05`"),
            ("05/01/2026", "use a day in the form `2026-03-31`"),
            ("yesterday", "use a day in the form"),
            ("", "use a day in the form"),
            ("2026-01-01-", "use a day in the form"),
            ("٢٠٢٦-01-01", "use a day in the form"),
        ] {
            let found = day(text).unwrap_err();
            assert!(found.starts_with(wrong), "{text}: {found}");
        }
        assert_eq!(day("2024-02-29").unwrap().to_string(), "2024-02-29");
        for (text, wrong) in [
            ("2026-13-01T00:00:00Z", "there is no month 13"),
            ("2026-03-31 18:00", "no offset from UTC: for a time in UTC, write `2026-03-31T18:00:00Z`"),
            ("2026-03-31T18:00:00", "no offset from UTC: for a time in UTC, write `2026-03-31T18:00:00Z`"),
            ("2026/03/31", "write `2026-03-31`"),
            ("yesterday", "use a day"),
        ] {
            let found = instant(text).unwrap_err();
            assert!(found.starts_with(wrong), "{text}: {found}");
        }
    }

    #[test]
    fn names_have_seconds_and_records_microseconds() {
        let instant = DateTime::from_timestamp_micros(1_795_210_200_000_001).unwrap();
        assert!(unique_name(instant).starts_with("20261120T213000Z-"), "{}", unique_name(instant));
        assert_eq!(to_record(instant), "2026-11-20T21:30:00.000001Z");
    }

    #[test]
    fn taken_names_are_skipped() {
        let instant = DateTime::UNIX_EPOCH;
        let is_even = |name: &str| name.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e']);
        let odd = (0..32).filter(|_| !is_even(&free_name(instant, is_even))).count();
        assert!(odd < 8, "{odd} of 32 are taken, where it should be one in 512");
        assert!(free_name(instant, |_| false).starts_with("19700101T000000Z-"));
    }
}
