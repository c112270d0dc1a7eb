//! Live or backfilled: whether a row could have been used when it was new.
//!
//! It could if the row was first seen while its date was fresh, and if what its features come from was asked for and
//! answered by then as well: by the run that first saw the row, or by a later one in time.

use crate::freshness::fresh_until;
use crate::interface::Ticker;
use crate::plan::MaxAge;
use crate::tables::Past;

use super::slab_columns::TickerCodes;

/// What decides whether rows are live.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    /// How old a date may be.
    pub(super) limit: MaxAge,
    /// When features could be known; none if there are none.
    pub(super) past: Option<&'a Past>,
}

impl Live<'_> {
    /// Whether a row without features was not seen in time, by its date and when it was first seen, in microseconds.
    pub(super) fn is_backfilled(self, date: i64, first: i64) -> bool {
        first > fresh_until(date, self.limit)
    }

    /// Whether rows were not seen in time, each with the code of its ticker.
    pub(super) fn backfilled(self, codes: &[i32], dates: &[i64], first: &[i64], tickers: &TickerCodes) -> Vec<i8> {
        let parsed: Vec<Option<Ticker>> = tickers.names().iter().map(|name| name.parse().ok()).collect();
        // Rows that were first seen together usually stand together.
        let mut last: Option<(i32, i64, i64)> = None;
        let mut late = Vec::with_capacity(codes.len());
        for ((&code, &date), &first) in codes.iter().zip(dates).zip(first) {
            let inputs = match (last, self.past, &parsed[code as usize]) {
                (_, None, _) | (_, _, None) => i64::MIN,
                (Some((of, at, known)), ..) if (of, at) == (code, first) => known,
                (_, Some(past), Some(ticker)) => past.inputs_known(ticker, past.sealed(first)),
            };
            last = Some((code, first, inputs));
            late.push(i8::from(self.is_backfilled(date, first.max(inputs))));
        }
        late
    }
}
