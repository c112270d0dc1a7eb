//! Returns beside signals: from the first close at which a signal could be entered, over some horizons.
//!
//! It is the join with prices of `audit skill`: what was seen live is entered at the first session after the day, in UTC, from
//! which everything in the row was known, and what was backfilled some sessions after its date. Sessions are those of the
//! prices; without prices, those of the calendar.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, TimestampMicrosecondArray};

use super::naive::day;
use super::signals::TickerCodes;
use crate::plan::{Column, DatasetPlan, Labels};
use crate::prices::horizon::{DatedEntries, Exits, first_after};
use crate::prices::{Day, Prices};
use crate::time::MICROS_PER_DAY;

/// The first day of the calendar that counts: 1990-01-01.
const FIRST: Day = 7305;

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
            None => plan.sessions.between(FIRST, FIRST + Day::from(u16::MAX)).to_vec(),
        };
        let entries = DatedEntries::new(&sessions, plan.labels.lag);
        let prices = prices.map(|prices| {
            let exits = Exits::new(&prices);
            (prices, exits)
        });
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
        let codes_of_all = 0..tickers.names().len() as i32;
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
