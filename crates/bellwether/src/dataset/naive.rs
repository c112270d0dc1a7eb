//! The rule that turns dates as written into naive dates, for signals and for everything joined to them.
//!
//! The archive stores a date written with an offset as an instant in UTC, with the offset. `[dates] naive` chooses the
//! clock: UTC, the clock face as written (`wall`), or a time zone. A date without an offset is taken to be on that
//! clock. Under `wall` there is no such clock, so its instant is unknown.
//!
//! Days decide first: an article is available to signals of its own naive day plus the lag, and of later days. In
//! addition, no signal uses what was not yet known when it was made, which is a question of instants:
//!
//! - *Known from.* A date with an offset is known from its instant on. A date without one, with or without a time, is
//!   known from the end of its day on the rule's clock. `delay` is added to both.
//! - *Made at.* A signal with an offset is made at its instant, one with a time but no offset at that time on the
//!   rule's clock. A signal with neither is made when `made_at` says; without it, it covers a whole day and is made at its
//!   end. `made_at` also counts for a date that is written as midnight with an offset: it is a day, too.
//!
//! If one of the two instants is unknown, which happens only under `wall`, the clock faces are compared. With a lag of
//! a day or more, all of this follows on a clock that never goes back; it matters for a lag of `0d`, for `wall` with
//! mixed offsets, and when a zone's clock goes back over midnight. Observation times are instants; as a day under
//! `wall`, they count in UTC.

use std::sync::Arc;

use arrow::array::{Array, Int16Array, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, NaiveDate};

use crate::definition::clock_instants;
use crate::plan::{DatasetPlan, DayCount, NaiveRule, TimeOfDay, Zone};
use crate::tables::TypedRows;
use crate::time::MICROS_PER_DAY;

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// Days since 1970.
pub(super) type Day = i32;

/// The day of a naive timestamp.
pub(super) fn day(micros: i64) -> Day {
    micros.div_euclid(MICROS_PER_DAY) as Day
}

/// A moment on the clock of a rule, and in UTC if known, both in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    face: i64,
    instant: Option<i64>,
}

impl Moment {
    /// After everything.
    pub(super) const END: Self = Self { face: i64::MAX, instant: Some(i64::MAX) };

    /// Whether what is known from this moment on is known at another one.
    pub(super) fn is_by(self, other: Self) -> bool {
        match (self.instant, other.instant) {
            (Some(known), Some(made)) => known <= made,
            _ => self.face <= other.face,
        }
    }

    /// Whether everything that ends with it is known to a signal made at another one: by the clock, and by the instant.
    pub(super) fn is_over_at(self, made: Self) -> bool {
        self.face <= made.face && self.is_by(made)
    }

    /// The moment some microseconds later.
    fn after(self, delay: i64) -> Self {
        Self { face: self.face.saturating_add(delay), instant: self.instant.map(|at| at.saturating_add(delay)) }
    }

    /// The instant, or without one what the clock shows, taken for UTC.
    pub(super) fn instant(self) -> i64 {
        self.instant.unwrap_or(self.face)
    }
}

/// Known cells of the archive, with their naive dates by a rule.
///
/// # Errors
///
/// Never in practice: the dates keep their type.
pub fn with_naive_dates(cells: &RecordBatch, rule: NaiveRule) -> Result<RecordBatch, ArrowError> {
    let (index, _) = cells.schema_ref().column_with_name("date").expect("the cells have dates");
    let mut columns = cells.columns().to_vec();
    columns[index] = Arc::new(TimestampMicrosecondArray::from(dates_of(cells, rule)));
    RecordBatch::try_new(cells.schema(), columns)
}

/// The naive dates of known cells.
pub(super) fn dates_of(cells: &RecordBatch, rule: NaiveRule) -> Vec<i64> {
    let cells = TypedRows(cells);
    dates(cells.instants("date"), cells.offsets(), rule)
}

/// Naive dates by a rule, in microseconds since 1970.
pub(super) fn dates(dates: &TimestampMicrosecondArray, offsets: &Int16Array, rule: NaiveRule) -> Vec<i64> {
    if rule == NaiveRule::Utc || offsets.null_count() == offsets.len() {
        return dates.values().to_vec();
    }
    dates.values().iter().zip(offsets).map(|(&date, offset)| rule.face(date, offset)).collect()
}

/// When signals are made, and news is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    rule: NaiveRule,
    made_at: Option<TimeOfDay>,
    /// How long after its date news is known, in microseconds.
    delay: i64,
}

impl Timing {
    pub(super) fn new(plan: &DatasetPlan) -> Self {
        let delay = i64::try_from(plan.news_delay.as_micros()).unwrap_or(i64::MAX);
        Self { rule: plan.dates, made_at: plan.made_at, delay }
    }

    /// From when on news with this date is known.
    pub(super) fn known_from(self, date: i64, offset: Option<i16>) -> Moment {
        let Self { rule, delay, .. } = self;
        let dated = match offset {
            Some(_) => Moment { face: rule.face(date, offset), instant: Some(date) },
            None => end_of(day(date), rule),
        };
        dated.after(delay)
    }

    /// When a signal with this date was made.
    pub(super) fn made_at(self, date: i64, offset: Option<i16>) -> Moment {
        let rule = self.rule;
        match (offset, self.made_at) {
            (Some(_), Some(time)) if NaiveRule::Wall.face(date, offset).rem_euclid(MICROS_PER_DAY) == 0 => {
                at_time(day(NaiveRule::Wall.face(date, offset)), time, rule)
            }
            (Some(_), _) => Moment { face: rule.face(date, offset), instant: Some(date) },
            (None, made_at) if date.rem_euclid(MICROS_PER_DAY) == 0 => match made_at {
                Some(time) => at_time(day(date), time, rule),
                None => end_of(day(date), rule),
            },
            (None, _) => Moment { face: date, instant: instants(date, rule).map(|(first, _)| first) },
        }
    }

    /// Whether a signal that was made at a moment may know news that is dated after a day.
    pub(super) fn may_know_after(self, day: Day, made: Moment) -> bool {
        made.face > (i64::from(day) + 1).saturating_mul(MICROS_PER_DAY).saturating_add(self.delay)
    }

    /// When everything up to and including a day is known, if no offset as written is behind UTC by more than some minutes.
    pub(super) fn end_of(self, day: Day, behind_minutes: i64) -> Moment {
        let Self { rule, delay, .. } = self;
        if day == Day::MIN {
            return Moment { face: i64::MIN, instant: Some(i64::MIN) };
        }
        let end = end_of(day, rule);
        let end = match rule {
            NaiveRule::Wall => Moment { instant: Some(end.face + behind_minutes * MICROS_PER_MINUTE), ..end },
            NaiveRule::Utc | NaiveRule::Zone(_) => end,
        };
        end.after(delay)
    }
}

/// The moment at which a clock shows a time on a day.
fn at_time(day: Day, time: TimeOfDay, rule: NaiveRule) -> Moment {
    let Some(date) = NaiveDate::from_epoch_days(day) else { return end_of(day, rule) };
    let instant = time.on(date).timestamp_micros();
    let shown = match rule {
        NaiveRule::Wall => date.and_time(time.time).and_utc().timestamp_micros(),
        NaiveRule::Utc | NaiveRule::Zone(_) => rule.face(instant, Some(0)),
    };
    Moment { face: shown, instant: Some(instant) }
}

/// The last day whose news a signal of a day may use.
pub(super) fn before_lag(date: Day, plan: &DatasetPlan) -> Day {
    match plan.lag {
        DayCount::Calendar(days) => date - days.count(),
        DayCount::Trading(days) => plan.sessions.nth_before(date, days.count() as usize).unwrap_or(Day::MIN),
    }
}

/// The day on which a signal of a day that was backfilled can be used.
pub(super) fn after_lag(date: Day, plan: &DatasetPlan) -> Day {
    match plan.lag {
        DayCount::Calendar(days) => date + days.count(),
        DayCount::Trading(days) => plan.sessions.nth_after(date, days.count().unsigned_abs()),
    }
}

/// The end of a day on the clock of a rule; the later one if the clock shows it twice.
pub(super) fn end_of(day: Day, rule: NaiveRule) -> Moment {
    let face = (i64::from(day) + 1) * MICROS_PER_DAY;
    Moment { face, instant: instants(face, rule).map(|(_, last)| last) }
}

/// The first and last instant at which the clock of a rule shows a time; `None` if the rule has no clock. A time that
/// the clock skips counts as the moment it resumes.
fn instants(face: i64, rule: NaiveRule) -> Option<(i64, i64)> {
    let zone = match rule {
        NaiveRule::Utc => return Some((face, face)),
        NaiveRule::Wall => return None,
        NaiveRule::Zone(Zone(zone)) => zone,
    };
    let naive = DateTime::from_timestamp_micros(face)?.naive_utc();
    let (first, last) = clock_instants(naive, zone);
    Some((first.timestamp_micros(), last.timestamp_micros()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int16Array, TimestampMicrosecondArray};
    use chrono::NaiveDateTime;

    use super::{Day, Moment, Timing, dates, day, end_of};
    use crate::plan::NaiveRule;

    fn timing(rule: NaiveRule) -> Timing {
        Timing { rule, made_at: None, delay: 0 }
    }

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
    fn each_rule_dates_by_its_clock_and_skips_naive_timestamps() {
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
    fn an_instant_has_one_local_time_in_a_zone_even_across_clock_changes() {
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

    #[test]
    fn a_day_ends_when_the_clock_of_the_rule_last_shows_midnight() {
        for (rule, date, midnight, instant) in [
            ("utc", "2026-10-31 00:00:00", "2026-11-01 00:00:00", Some("2026-11-01 00:00:00")),
            ("utc", "1969-12-30 00:00:00", "1969-12-31 00:00:00", Some("1969-12-31 00:00:00")),
            ("wall", "2026-10-31 00:00:00", "2026-11-01 00:00:00", None),
            ("America/New_York", "2026-11-20 00:00:00", "2026-11-21 00:00:00", Some("2026-11-21 05:00:00")),
            // In Havana midnight comes twice on that day, and is skipped on this one.
            ("America/Havana", "2026-10-31 00:00:00", "2026-11-01 00:00:00", Some("2026-11-01 05:00:00")),
            ("America/Havana", "2026-03-07 00:00:00", "2026-03-08 00:00:00", Some("2026-03-08 05:00:00")),
        ] {
            let (by, date) = (rule.parse::<NaiveRule>().unwrap(), micros(date));
            let expected = Moment { face: micros(midnight), instant: instant.map(micros) };
            assert_eq!(end_of(day(date), by), expected, "{rule}");
            assert_eq!(timing(by).made_at(date, None), expected, "a signal of a whole day, by {rule}");
            let hour = 3_600_000_000;
            for time in [0, 1, hour, 24 * hour - 1] {
                assert_eq!(timing(by).known_from(date + time, None), expected, "news without an offset, by {rule}");
            }
        }
    }

    #[test]
    fn a_signal_with_a_time_is_made_when_the_clock_first_shows_it_and_one_with_an_offset_at_its_instant() {
        for (rule, date, offset, face, instant) in [
            ("utc", "2026-11-01 00:30:00", None, "2026-11-01 00:30:00", Some("2026-11-01 00:30:00")),
            ("wall", "2026-11-01 00:30:00", None, "2026-11-01 00:30:00", None),
            ("America/Havana", "2026-11-01 00:30:00", None, "2026-11-01 00:30:00", Some("2026-11-01 04:30:00")),
            ("America/Havana", "2026-03-08 00:30:00", None, "2026-03-08 00:30:00", Some("2026-03-08 05:00:00")),
            ("wall", "2026-11-20 05:00:00", Some(-300), "2026-11-20 00:00:00", Some("2026-11-20 05:00:00")),
            ("utc", "2026-11-20 05:00:00", Some(-300), "2026-11-20 05:00:00", Some("2026-11-20 05:00:00")),
        ] {
            let by = rule.parse::<NaiveRule>().unwrap();
            let expected = Moment { face: micros(face), instant: instant.map(micros) };
            assert_eq!(timing(by).made_at(micros(date), offset), expected, "{date} by {rule}");
            if offset.is_some() {
                assert_eq!(timing(by).known_from(micros(date), offset), expected, "{date} by {rule}");
            }
        }
    }

    #[test]
    fn instants_decide_what_is_known_if_both_are_known_and_clock_faces_if_not() {
        let moment = |face: i64, instant: Option<i64>| Moment { face, instant };
        assert!(moment(9, Some(5)).is_by(moment(1, Some(5))) && !moment(1, Some(6)).is_by(moment(9, Some(5))));
        assert!(moment(5, Some(9)).is_by(moment(5, None)) && !moment(6, None).is_by(moment(5, Some(9))));
        assert_eq!((moment(5, Some(9)).instant(), moment(5, None).instant()), (9, 5));

        let (date, minute) = (micros("2026-11-20 00:00:00"), 60_000_000);
        let midnight = date + 24 * 60 * minute;
        let by = |rule: &str| timing(rule.parse().unwrap()).end_of(day(date), 300);
        let late = midnight + 300 * minute;
        // As written, a date may be that many minutes behind.
        assert!(by("wall").is_over_at(moment(midnight, Some(late))) && by("wall").is_over_at(moment(midnight, None)));
        assert!(!by("wall").is_over_at(moment(midnight, Some(late - 1))));
        assert!(!by("wall").is_over_at(moment(midnight - 1, Some(late))));
        assert!(by("utc").is_over_at(moment(midnight, Some(midnight))));
        assert!(!by("utc").is_over_at(moment(midnight, Some(midnight - 1))));
        assert!(timing("wall".parse().unwrap()).end_of(Day::MIN, 300).is_over_at(moment(i64::MIN, Some(i64::MIN))));
        assert_eq!((day(-1), day(0), day(midnight - 1), day(midnight)), (-1, 0, day(date), day(date) + 1));
    }
    #[test]
    fn a_signal_without_a_time_is_made_when_the_definition_says_and_news_is_known_after_its_delay() {
        let minute = 60_000_000;
        let date = micros("2026-11-20 00:00:00");
        for (rule, made_at, face, instant) in [
            ("utc", "16:00 America/New_York", "2026-11-20 21:00:00", "2026-11-20 21:00:00"),
            ("America/New_York", "16:00 America/New_York", "2026-11-20 16:00:00", "2026-11-20 21:00:00"),
            ("wall", "16:00 America/New_York", "2026-11-20 16:00:00", "2026-11-20 21:00:00"),
            // In Tokyo the day begins on the evening before.
            ("utc", "00:30 Asia/Tokyo", "2026-11-19 15:30:00", "2026-11-19 15:30:00"),
        ] {
            let made_at = Some(made_at.parse().unwrap());
            let timing = Timing { made_at, delay: 15 * minute, ..timing(rule.parse().unwrap()) };
            let expected = Moment { face: micros(face), instant: Some(micros(instant)) };
            assert_eq!(timing.made_at(date, None), expected, "{rule}");
            // A midnight with an offset is a day, too; a time says more.
            assert_eq!(timing.made_at(date - 60 * minute, Some(60)), expected, "{rule}");
            assert_eq!(timing.made_at(date + minute, None).face, date + minute);
            assert_eq!(timing.made_at(date, Some(60)).instant, Some(date));
            let known = timing.known_from(date + 600 * minute, Some(0));
            assert_eq!(known.instant, Some(date + 615 * minute), "{rule}");
            let whole_day = timing.known_from(date, None);
            assert_eq!(whole_day.face, date + (24 * 60 + 15) * minute, "{rule}");
            let before = Moment { face: whole_day.face - 1, instant: whole_day.instant.map(|at| at - 1) };
            let end = timing.end_of(day(date), 0);
            assert!(end.is_over_at(whole_day) && !end.is_over_at(before), "{rule}");
        }
    }
}
