//! Calendar quarters: the pieces in which a series is compared with what is known of it.

use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Datelike, NaiveDate};

use crate::time::MICROS_PER_DAY;

/// Three months, counted from the first of the year 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Quarter(i32);

impl Quarter {
    /// The quarter of a naive instant in microseconds.
    pub(super) fn of(micros: i64) -> Self {
        let date = DateTime::from_timestamp_micros(micros).expect("a date of four digits was read").date_naive();
        Self(date.year() * 4 + date.month0() as i32 / 3)
    }

    /// Its first day.
    pub(super) fn first(self) -> NaiveDate {
        let (year, month) = (self.0.div_euclid(4), self.0.rem_euclid(4) * 3 + 1);
        NaiveDate::from_ymd_opt(year, month as u32, 1).expect("the year is one of a date")
    }

    /// The first day, counted from 1970.
    pub(super) fn to_days(self) -> i32 {
        self.first().to_epoch_days()
    }

    /// The quarter that a day is of.
    pub(super) fn of_days(days: i32) -> Self {
        Self::of(i64::from(days) * MICROS_PER_DAY)
    }

    /// The naive instants that are in it, in microseconds.
    pub(super) fn micros(self) -> Range<i64> {
        let start = |quarter: Self| quarter.first().and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        start(self)..start(Self(self.0 + 1))
    }
}

/// A stretch of rows: those of one quarter, or those without a date.
pub(super) type Stretch = (Option<Quarter>, Range<usize>);

/// The stretches of rows that are in the order of their dates, those without a date first or none.
pub(super) fn stretches(rows: &RecordBatch) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let Some(dates) = rows.column_by_name("date").map(|column| column.as_primitive::<TimestampMicrosecondType>())
    else {
        return if rows.num_rows() == 0 { stretches } else { vec![(None, 0..rows.num_rows())] };
    };
    let mut row = 0;
    while row < dates.len() {
        let (quarter, end) = if dates.is_null(row) {
            (None, (row..dates.len()).find(|&row| dates.is_valid(row)).unwrap_or(dates.len()))
        } else {
            let quarter = Quarter::of(dates.value(row));
            let beyond = quarter.micros().end;
            (Some(quarter), row + dates.values()[row..].partition_point(|&date| date < beyond))
        };
        stretches.push((quarter, row..end));
        row = end;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::Quarter;

    #[test]
    fn a_quarter_begins_on_the_first_of_january_april_july_or_october() {
        const DAY: i64 = 86_400_000_000;
        // 1970-01-01, 1969-12-31, 2026-11-21, 2024-02-29.
        for (day, first) in [(0, 0), (-1, -92), (20_778, 20_727), (19_782, 19_723)] {
            let quarter = Quarter::of(day * DAY + 1);
            assert_eq!(quarter.to_days(), first);
            assert_eq!(Quarter::of_days(first), quarter);
            assert!(quarter.micros().contains(&(day * DAY)));
            assert_eq!(quarter.micros().start, i64::from(first) * DAY);
        }
    }
}
