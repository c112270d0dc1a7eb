//! How long a signal tells something: the return over its horizon, over the horizon after that, and so on.
//!
//! The return of each lag begins at the close that ended the one before, so that no two of them share a session.

use std::iter;

use bellwether_statistics::Order;

use super::horizon::Exits;
use super::measures::DatedCell;
use super::prices::Prices;
use crate::interface::Period;

/// The number of lags.
pub(super) const LAGS: usize = 5;

/// The order of the returns of the cells of a date, by lag; from lag 1 on, cells without a close or a complete return have
/// none.
pub(super) fn lagged_returns(cells: &[DatedCell], period: Period, exits: &Exits, prices: &Prices) -> [Order; LAGS] {
    let mut ends: Vec<Option<usize>> = cells.iter().map(|cell| Some(cell.exit)).collect();
    let mut lags = iter::once(Order::of(cells.iter().map(|cell| Some(cell.value)))).chain(iter::repeat_with(|| {
        Order::of(ends.iter_mut().zip(cells).map(|(end, cell)| {
            let from = (*end)?;
            *end = exits.exit(period, from);
            prices.between(cell.cell.ticker, from, (*end)?)
        }))
    }));
    std::array::from_fn(|_| lags.next().unwrap_or_default())
}
