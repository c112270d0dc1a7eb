//! When a row was known, whether it was seen live or backfilled, when it could be traded, and what followed.
//!
//! A row could have been used when it was new if it was first seen while its date was fresh, and if what its features come from
//! was asked for and answered by then as well: by the run that first saw the row, or by a later one in time.
//!
//! Returns beside signals are those of the join with prices of `audit skill`: from the first close at which a signal could be
//! entered, over some horizons. What was seen live is entered at the first session after the day, in UTC, from which everything
//! in the row was known, and what was backfilled some sessions after its date. Sessions are those of the prices; without prices,
//! those of the calendar.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int16Array, TimestampMicrosecondArray};

use super::keys::TickerCodes;
use super::naive::{Timing, after_lag, day};
use crate::freshness::fresh_until;
use crate::plan::{Column, DatasetPlan, Labels};
use crate::prices::horizon::{DatedEntries, Exits, first_after};
use crate::prices::{Day, Prices};
use crate::tables::Past;
use crate::time::MICROS_PER_DAY;

/// Whether a row was not seen in time, by its date and when it was first seen, in microseconds.
pub(super) fn is_backfilled(date: i64, first: i64, plan: &DatasetPlan) -> bool {
    first > fresh_until(date, plan.live_within, &plan.sessions)
}

/// When what the features of rows come from was known, each with the code of its ticker and when it was first seen.
pub(super) fn inputs_known(past: Option<&Past>, codes: &[i32], first: &[i64], tickers: &TickerCodes) -> Vec<i64> {
    let Some(past) = past else { return vec![i64::MIN; codes.len()] };
    for_sightings(codes, first, |code, first| {
        tickers.ticker(code).map_or(i64::MIN, |ticker| past.inputs_known(ticker, past.seal_time(first)))
    })
}

/// A value for each row, by the code of its ticker and by when it was first seen. Rows that were first seen together usually
/// stand together.
pub(super) fn for_sightings<T: Copy>(codes: &[i32], first: &[i64], mut value: impl FnMut(i32, i64) -> T) -> Vec<T> {
    let mut last: Option<(i32, i64, T)> = None;
    let of_row = |(&code, &first): (&i32, &i64)| match last {
        Some((of, at, known)) if (of, at) == (code, first) => known,
        _ => last.insert((code, first, value(code, first))).2,
    };
    codes.iter().zip(first).map(of_row).collect()
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
            let lag = after_lag(day, plan) - day;
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

/// Measures returns.
pub(super) struct Labeller {
    sessions: Vec<Day>,
    entries: DatedEntries,
    prices: Option<(Prices, Exits)>,
    labels: Labels,
}

/// The rows to measure, by column.
#[derive(Clone, Copy)]
pub(super) struct LabelledRows<'a> {
    /// The codes of their tickers.
    pub(super) codes: &'a [i32],
    /// Their naive dates.
    pub(super) dates: &'a [i64],
    /// From when on everything in them was known.
    pub(super) known: &'a [i64],
    /// Whether they were backfilled.
    pub(super) backfilled: &'a [bool],
}

impl Labeller {
    /// What a plan asks for; none if it asks for nothing of it.
    pub(super) fn new(prices: Option<Prices>, plan: &DatasetPlan) -> Option<Self> {
        if !plan.columns.contains(&Column::EntryAt) {
            return None;
        }
        let sessions = match &prices {
            Some(prices) => prices.sessions().to_vec(),
            // From 1990 on.
            None => plan.sessions.between(7305, 7305 + Day::from(u16::MAX)).to_vec(),
        };
        let entries = DatedEntries::new(&sessions, plan.labels.lag);
        let exits = prices.as_ref().map(Exits::new);
        let prices = prices.zip(exits);
        Some(Self { sessions, entries, prices, labels: plan.labels.clone() })
    }

    /// The columns of the labels.
    pub(super) fn columns(&self, rows: LabelledRows<'_>, tickers: &TickerCodes) -> Vec<(Column, ArrayRef)> {
        let LabelledRows { codes, dates, known, backfilled } = rows;
        let sessions = &self.sessions;
        let at = |session: usize| sessions.get(session).map(|day| i64::from(*day) * MICROS_PER_DAY);
        let entry = |row: usize| {
            let day = day(dates[row]);
            // Of a signal before the first session nobody knows what it could have been entered at.
            if day < sessions[0] {
                return sessions.len();
            }
            if backfilled[row] {
                return self.entries.entry(day);
            }
            let known = Day::try_from(known[row].div_euclid(MICROS_PER_DAY)).unwrap_or(Day::MAX);
            first_after(sessions, known.max(day - Day::from(self.labels.lag == 0)))
        };
        let entries: Vec<usize> = (0..codes.len()).map(entry).collect();
        let entered: TimestampMicrosecondArray = entries.iter().map(|&entry| at(entry)).collect();
        let mut columns: Vec<(Column, ArrayRef)> = vec![(Column::EntryAt, Arc::new(entered))];
        let Some((prices, exits)) = &self.prices else { return columns };
        let codes_of_all = 0..tickers.names.len() as i32;
        let priced: Vec<_> = codes_of_all.map(|code| Some(prices.of_ticker(tickers.ticker(code)?))).collect();
        for &horizon in &self.labels.horizons {
            let (mut ends, mut returns): (Vec<Option<i64>>, Vec<Option<f64>>) = Default::default();
            for (row, &entry) in entries.iter().enumerate() {
                let day = day(dates[row]);
                let exit = exits.exit(horizon, entry);
                let number = priced[codes[row] as usize].and_then(|prices| prices.number(day));
                let held = number.zip(exit).filter(|_| !prices.lack(day, entry));
                let held = held.and_then(|(number, exit)| exits.held(prices, number, entry, exit));
                ends.push(held.map(|(_, end)| end).or(exit).and_then(at));
                returns.push(held.map(|(value, _)| value).filter(|value| !value.is_nan()));
            }
            columns.push((Column::ExitAt(horizon), Arc::new(TimestampMicrosecondArray::from(ends))));
            columns.push((Column::Return(horizon), Arc::new(Float64Array::from(returns))));
        }
        columns
    }
}
