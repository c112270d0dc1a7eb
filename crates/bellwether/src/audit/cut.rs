//! Cuts a slab in time: signals and news on one side of a line, decided from dates as written.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone};

use crate::dataset::join_failed;
use crate::plan::{NaiveRule, TimeOfDay, Zone};
use crate::tables::dates::Date;
use crate::tables::{Slab, TypedRows, written_date};

/// The part of a dataset that is built and compared.
#[derive(Clone, Copy)]
pub(super) struct DatasetPart {
    /// Only signals made before a day.
    pub(super) made_before: Option<DayBoundary>,
    /// Only signals that were made at a known instant, which is not after this one; and when signals are made.
    pub(super) made_by: Option<(i64, Option<TimeOfDay>)>,
    /// No news of this day or later.
    pub(super) news_before: Option<DayBoundary>,
    /// Only rows with a naive date before this day.
    pub(super) dated_before: Option<NaiveDate>,
}

/// The instant at which a signal with a date was made, if it is known: a definition may say when, for those whose date has
/// neither a time nor an offset.
pub(super) fn made_at(date: Date, time: Option<TimeOfDay>) -> Option<i64> {
    let day = DateTime::from_timestamp_micros(date.micros)?.naive_utc();
    match (date.offset_minutes, time) {
        (Some(_), _) => Some(date.micros),
        (None, Some(time)) if day.time() == NaiveTime::MIN => Some(time.on(day.date()).timestamp_micros()),
        (None, _) => None,
    }
}

/// The line between a day and the days before it, for dates with an offset and without.
#[derive(Clone, Copy)]
pub(super) struct DayBoundary {
    /// Midnight at the start of the day, on the clock of the rule.
    midnight: i64,
    /// The first and last instant at which that clock shows this midnight.
    instants: (i64, i64),
    rule: NaiveRule,
}

impl DatasetPart {
    /// The part of a slab on this side.
    pub(super) fn cut(&self, slab: Slab) -> Result<Slab, ArrowError> {
        let mut part = slab;
        if self.made_before.is_some() || self.made_by.is_some() {
            let is_taken = |date: Date| {
                self.made_before.is_none_or(|split| split.is_before(date))
                    && self.made_by.is_none_or(|(by, time)| made_at(date, time).is_some_and(|made| made <= by))
            };
            part.signals = filter(&part.signals, written_dates(&part.signals).map(is_taken))?;
        }
        if let Some(split) = self.news_before {
            part.articles = part.articles.map(move |articles| {
                let kept = written_dates(&articles).map(|date| !split.is_after(date));
                filter(&articles, kept).map_err(join_failed)
            });
            let is_kept = |text: Option<&str>| text.and_then(written_date).is_none_or(|date| !split.is_after(date));
            part.records = filter(&part.records, TypedRows(&part.records).texts("record").iter().map(is_kept))?;
        }
        Ok(part)
    }
}

impl DayBoundary {
    pub(super) fn new(day: NaiveDate, rule: NaiveRule) -> Self {
        let midnight = midnight(day);
        let instants = match rule {
            NaiveRule::Utc | NaiveRule::Wall => (midnight, midnight),
            NaiveRule::Zone(Zone(zone)) => {
                // Where clocks skip midnight, the day starts a little later.
                let shown = |quarters: i64| {
                    let naive = day.and_time(NaiveTime::MIN) + TimeDelta::minutes(15 * quarters);
                    let shown = zone.from_local_datetime(&naive);
                    Some((shown.earliest()?.timestamp_micros(), shown.latest()?.timestamp_micros()))
                };
                (0..100).find_map(shown).unwrap_or((midnight, midnight))
            }
        };
        Self { midnight, instants, rule }
    }

    /// The same day, with the instants of another one.
    pub(super) fn until(self, other: Self) -> Self {
        Self { instants: other.instants, ..self }
    }

    /// Whether a signal with this date was made before the day.
    fn is_before(&self, date: Date) -> bool {
        self.is_beyond(date, self.instants.0, i64::lt)
    }

    /// Whether news with this date is of the day or later.
    fn is_after(&self, date: Date) -> bool {
        self.is_beyond(date, self.instants.1, i64::ge)
    }

    /// Whether a date is on one side of an instant, and of midnight if it is compared by clock face: that is how signals
    /// without an instant are.
    fn is_beyond(&self, date: Date, instant: i64, is_beyond: fn(&i64, &i64) -> bool) -> bool {
        let Some(offset) = date.offset_minutes else { return is_beyond(&date.micros, &self.midnight) };
        let face = date.micros + i64::from(offset) * 60_000_000;
        let is_beyond_midnight = !matches!(self.rule, NaiveRule::Wall) || is_beyond(&face, &self.midnight);
        is_beyond(&date.micros, &instant) && is_beyond_midnight
    }
}

/// Dates of signals or articles, as written.
pub(super) fn written_dates(rows: &RecordBatch) -> impl Iterator<Item = Date> + use<'_> {
    let (dates, offsets) = (TypedRows(rows).instants("date"), TypedRows(rows).offsets());
    let date = move |row: usize| {
        let offset_minutes = offsets.is_valid(row).then(|| offsets.value(row));
        Date { micros: dates.value(row), offset_minutes }
    };
    (0..rows.num_rows()).map(date)
}

pub(super) fn filter(rows: &RecordBatch, is_taken: impl Iterator<Item = bool>) -> Result<RecordBatch, ArrowError> {
    filter_record_batch(rows, &is_taken.map(Some).collect::<BooleanArray>())
}

pub(super) fn midnight(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
}
