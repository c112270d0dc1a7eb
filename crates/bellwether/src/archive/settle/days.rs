//! One signal a day, where a service stamps each with the time at which it made it.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int16Array, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int16Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::definition::NaiveRule;
use crate::time::MICROS_PER_DAY;

/// Signals with the days of a clock as their dates: of several of a day, the last. One without a date stays without.
pub(super) fn one_a_day(rows: &RecordBatch, clock: NaiveRule) -> Result<RecordBatch, ArrowError> {
    let column = |name: &str| Arc::clone(rows.column_by_name(name).expect("signals have the column"));
    let (dates, offsets) = (column("date"), column("utc_offset_minutes"));
    let (dates, offsets) = (dates.as_primitive::<TimestampMicrosecondType>(), offsets.as_primitive::<Int16Type>());
    let day = |row: usize| {
        let offset = offsets.is_valid(row).then(|| offsets.value(row));
        dates.is_valid(row).then(|| day_of(dates.value(row), offset, clock))
    };
    let days: Vec<Option<i64>> = (0..rows.num_rows()).map(day).collect();
    // Rows are in the order of their dates, but an offset may take one to the day before.
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by_key(|&row| days[row as usize]);
    let is_last =
        |place: &usize| order.get(place + 1).is_none_or(|&next| days[next as usize] != days[order[*place] as usize]);
    let kept: Vec<u32> = (0..order.len()).filter(is_last).map(|place| order[place]).collect();
    let days: TimestampMicrosecondArray = kept.iter().map(|&row| days[row as usize]).collect();
    let kept = take_record_batch(rows, &UInt32Array::from(kept))?;
    let offsets: Int16Array = std::iter::repeat_n(None, kept.num_rows()).collect();
    let mut columns = kept.columns().to_vec();
    columns[kept.schema_ref().index_of("date")?] = Arc::new(days);
    columns[kept.schema_ref().index_of("utc_offset_minutes")?] = Arc::new(offsets);
    RecordBatch::try_new(kept.schema(), columns)
}

/// The day on a clock of a date, as its midnight.
fn day_of(micros: i64, offset: Option<i16>, clock: NaiveRule) -> i64 {
    clock.face(micros, offset).div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::day_of;
    use crate::definition::NaiveRule;

    #[test]
    fn the_day_is_that_of_the_clock() {
        let micros = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros();
        let day = |text: &str, offset, clock: &str| {
            let midnight = day_of(micros(text), offset, clock.parse::<NaiveRule>().unwrap());
            DateTime::from_timestamp_micros(midnight).unwrap().naive_utc().to_string()
        };
        let late = "2026-10-06T02:30:07.123456Z";
        assert_eq!(day(late, Some(0), "utc"), "2026-10-06 00:00:00");
        assert_eq!(day(late, Some(0), "America/New_York"), "2026-10-05 00:00:00");
        assert_eq!(day(late, Some(-240), "wall"), "2026-10-05 00:00:00");
        assert_eq!(day(late, None, "America/New_York"), "2026-10-06 00:00:00", "it is on that clock");
    }
}
