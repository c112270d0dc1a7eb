//! Live or backfilled: whether a row could have been used when it was new.
//!
//! It could if the row was first seen while its date was fresh, and if what its features come from was asked for and
//! answered by then as well: by the run that first saw the row, or by a later one in time.

use arrow::array::{Array, Int16Array, TimestampMicrosecondArray};

use super::naive::{Day, Timing, day};
use super::slab_columns::TickerCodes;
use crate::freshness::fresh_until;
use crate::interface::Ticker;
use crate::plan::{DatasetPlan, DayCount};
use crate::tables::Past;
use crate::time::MICROS_PER_DAY;

/// An instant that nobody knows.
pub(super) const UNKNOWN: i64 = i64::MIN;

/// Rows of signals, by column.
#[derive(Clone, Copy)]
pub(super) struct LiveRows<'a> {
    /// The codes of their tickers.
    pub(super) codes: &'a [i32],
    /// Their dates as written, with their offsets.
    pub(super) dates: &'a TimestampMicrosecondArray,
    pub(super) offsets: &'a Int16Array,
    /// When they were first seen.
    pub(super) first: &'a [i64],
    /// When their values were observed.
    pub(super) observed: &'a [i64],
}

/// What decides whether rows are live.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    /// How old a date may be, and in which days.
    pub(super) plan: &'a DatasetPlan,
    /// When features could be known; none if there are none.
    pub(super) past: Option<&'a Past>,
}

impl Live<'_> {
    /// Whether a row without features was not seen in time, by its date and when it was first seen, in microseconds.
    pub(super) fn is_backfilled(self, date: i64, first: i64) -> bool {
        first > fresh_until(date, self.plan.live_within, &self.plan.sessions)
    }

    /// When what the features of rows come from was known, each with the code of its ticker and when it was first seen.
    fn inputs_known(self, codes: &[i32], first: &[i64], tickers: &TickerCodes) -> Vec<i64> {
        let Some(past) = self.past else { return vec![i64::MIN; codes.len()] };
        let parsed: Vec<Option<Ticker>> = tickers.names().iter().map(|name| name.parse().ok()).collect();
        // Rows that were first seen together usually stand together.
        let mut last: Option<(i32, i64, i64)> = None;
        let mut inputs = Vec::with_capacity(codes.len());
        for (&code, &first) in codes.iter().zip(first) {
            let known = match (last, &parsed[code as usize]) {
                (_, None) => i64::MIN,
                (Some((of, at, known)), _) if (of, at) == (code, first) => known,
                (_, Some(ticker)) => past.inputs_known(ticker, past.seal_time(first)),
            };
            last = Some((code, first, known));
            inputs.push(known);
        }
        inputs
    }

    /// Whether rows were not seen in time, each with the code of its ticker.
    pub(super) fn mark_backfilled(self, codes: &[i32], dates: &[i64], first: &[i64], tickers: &TickerCodes) -> Vec<i8> {
        let inputs = self.inputs_known(codes, first, tickers);
        let rows = dates.iter().zip(first).zip(inputs);
        rows.map(|((date, first), inputs)| i8::from(self.is_backfilled(*date, inputs.max(*first)))).collect()
    }

    /// When everything in the rows had been seen: the run was sealed that observed their values, and what their features come
    /// from was known.
    pub(super) fn known_at(self, rows: LiveRows<'_>, tickers: &TickerCodes) -> Vec<i64> {
        let LiveRows { codes, first, observed, .. } = rows;
        let sealed = |at: i64| self.past.map_or(at, |past| past.seal_time(at));
        let inputs = self.inputs_known(codes, first, tickers);
        observed.iter().zip(inputs).map(|(observed, inputs)| sealed(*observed).max(inputs)).collect()
    }

    /// The lag after a day, in microseconds.
    fn lag_after(self, day: Day) -> i64 {
        let days = match self.plan.lag {
            DayCount::Calendar(days) => days.count(),
            DayCount::Trading(days) => self.plan.sessions.nth_after(day, days.count().unsigned_abs()) - day,
        };
        i64::from(days) * MICROS_PER_DAY
    }

    /// When rows could be traded on: after they were known, or if they were backfilled, the lag after they were made.
    /// [`UNKNOWN`] where no calendar tells.
    pub(super) fn tradable_at(self, rows: LiveRows<'_>, known: &[i64], tickers: &TickerCodes) -> Vec<i64> {
        let LiveRows { codes, dates, offsets, first, .. } = rows;
        let inputs = self.inputs_known(codes, first, tickers);
        let timing = Timing::of(self.plan);
        let DatasetPlan { sessions, trade_at, .. } = self.plan;
        let mut last: Option<(i64, i64)> = None;
        let traded = |row: usize| {
            let date = dates.value(row);
            let from = if self.is_backfilled(date, first[row].max(inputs[row])) {
                let offset = offsets.is_valid(row).then(|| offsets.value(row));
                let day = day(self.plan.dates.face(date, offset));
                timing.made_at(date, offset).instant().saturating_add(self.lag_after(day))
            } else {
                known[row]
            };
            let traded = match last {
                Some((at, traded)) if at == from => traded,
                _ => sessions.first_trade_after(from, *trade_at).unwrap_or(UNKNOWN),
            };
            last = Some((from, traded));
            traded
        };
        (0..codes.len()).map(traded).collect()
    }
}
