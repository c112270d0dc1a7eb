//! Live or backfilled: whether a row could have been used when it was new.
//!
//! It could if the row was first seen while its date was fresh, and if what its features come from was asked for and
//! answered by then as well: by the run that first saw the row, or by a later one in time.

use arrow::array::{Array, Int16Array, TimestampMicrosecondArray};

use super::naive::{Timing, day};
use super::signals::TickerCodes;
use crate::freshness::fresh_until;
use crate::plan::{DatasetPlan, DayCount};
use crate::tables::Past;
use crate::time::MICROS_PER_DAY;

/// Whether a row was not seen in time, by its date and when it was first seen, in microseconds.
pub(super) fn is_backfilled(date: i64, first: i64, plan: &DatasetPlan) -> bool {
    first > fresh_until(date, plan.live_within, &plan.sessions)
}

/// When what the features of rows come from was known, each with the code of its ticker and when it was first seen.
pub(super) fn inputs_known(past: Option<&Past>, codes: &[i32], first: &[i64], tickers: &TickerCodes) -> Vec<i64> {
    let Some(past) = past else { return vec![i64::MIN; codes.len()] };
    // Rows that were first seen together usually stand together.
    let mut last: Option<(i32, i64, i64)> = None;
    let mut inputs = Vec::with_capacity(codes.len());
    for (&code, &first) in codes.iter().zip(first) {
        let known = match (last, tickers.ticker(code)) {
            (_, None) => i64::MIN,
            (Some((of, at, known)), _) if (of, at) == (code, first) => known,
            (_, Some(ticker)) => past.inputs_known(ticker, past.seal_time(first)),
        };
        last = Some((code, first, known));
        inputs.push(known);
    }
    inputs
}

/// When rows could be traded on, by their dates as written: after they were known, or if they were backfilled, the lag after
/// they were made. None where no calendar tells.
pub(super) fn tradable_at(
    (dates, offsets): (&TimestampMicrosecondArray, &Int16Array),
    backfilled: &[bool],
    known: &[i64],
    plan: &DatasetPlan,
) -> TimestampMicrosecondArray {
    let timing = Timing::new(plan);
    let mut last: Option<(i64, Option<i64>)> = None;
    let traded = (0..dates.len()).map(|row| {
        let from = if backfilled[row] {
            let (date, offset) = (dates.value(row), offsets.is_valid(row).then(|| offsets.value(row)));
            let day = day(plan.dates.face(date, offset));
            let lag = match plan.lag {
                DayCount::Calendar(days) => days.count(),
                DayCount::Trading(days) => plan.sessions.nth_after(day, days.count().unsigned_abs()) - day,
            };
            timing.made_at(date, offset).instant().saturating_add(i64::from(lag) * MICROS_PER_DAY)
        } else {
            known[row]
        };
        let traded = match last {
            Some((at, traded)) if at == from => traded,
            _ => plan.sessions.first_trade_after(from, plan.trade_at),
        };
        last = Some((from, traded));
        traded
    });
    traded.collect::<TimestampMicrosecondArray>().with_timezone("UTC")
}
