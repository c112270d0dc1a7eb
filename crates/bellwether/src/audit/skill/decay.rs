//! How long a signal tells something: the return over its horizon, over the horizon after that, and so on.
//!
//! The return of each lag begins at the close that ended the one before, so that no two of them share a session. So the
//! returns of a lag are those of a later date at an earlier lag: names that are entered together are sorted once for both.

use std::array;
use std::collections::BTreeMap;
use std::rc::Rc;

use bellwether_statistics::Order;

use super::cells::ReturnCell;
use super::measures::{DatedCell, Measuring};
use crate::interface::Period;

/// The number of lags.
pub(super) const LAGS: usize = 5;

/// All names of a pair are sorted if a date has at least one in so many of them: then it costs less than to sort each lag.
const ONE_IN: usize = 4;

/// The order of the returns of the dates of a pair, one date after the other.
pub(super) struct LaggedReturns<'a> {
    measuring: &'a Measuring<'a>,
    period: Period,
    /// The names of the pair, ascending.
    tickers: Vec<u16>,
    /// The order of the returns of all of them, by the session of their entry.
    by_entry: BTreeMap<usize, Rc<Order>>,
}

impl<'a> LaggedReturns<'a> {
    /// Those of a pair with some cells.
    pub(super) fn of(cells: &[ReturnCell], period: Period, measuring: &'a Measuring<'a>) -> Self {
        let mut has = vec![false; usize::from(u16::MAX) + 1];
        cells.iter().for_each(|cell| has[usize::from(cell.ticker)] = true);
        let tickers = (0..=u16::MAX).filter(|ticker| has[usize::from(*ticker)]).collect();
        Self { measuring, period, tickers, by_entry: BTreeMap::new() }
    }

    /// The order of the returns of the cells of a date, by lag; from lag 1 on, cells without a close or a complete return have
    /// none.
    pub(super) fn of_date(&mut self, cells: &[DatedCell]) -> [Rc<Order>; LAGS] {
        let entry = cells[0].cell.entry;
        let are_together = cells.iter().all(|cell| cell.cell.entry == entry)
            && cells.is_sorted_by(|one, next| one.cell.ticker < next.cell.ticker);
        if are_together && cells.len() * ONE_IN >= self.tickers.len() {
            self.of_names(usize::from(entry), cells)
        } else {
            self.of_cells(cells)
        }
    }

    /// Of cells that are all entered at a session.
    fn of_names(&mut self, entry: usize, cells: &[DatedCell]) -> [Rc<Order>; LAGS] {
        let are_all = cells.len() == self.tickers.len();
        // Both are in the order of tickers.
        let mut places = (0_u32..).zip(cells).peekable();
        let moved = |ticker: &u16| places.next_if(|(_, cell)| cell.cell.ticker == *ticker).map(|(index, _)| index);
        let moved: Vec<Option<u32>> = if are_all { Vec::new() } else { self.tickers.iter().map(moved).collect() };
        // Later dates are entered later.
        self.by_entry = self.by_entry.split_off(&entry);
        let Self { measuring, period, tickers, by_entry } = self;
        let mut next = Some(entry);
        array::from_fn(|_| {
            let Some(entry) = next else { return Rc::new(Order::of(cells.iter().map(|_| None))) };
            next = measuring.exits.exit(*period, entry);
            let value = |ticker: &u16| measuring.prices.between(*ticker, entry, next?);
            let of_all = by_entry.entry(entry).or_insert_with(|| Rc::new(Order::of(tickers.iter().map(value))));
            if are_all { Rc::clone(of_all) } else { Rc::new(of_all.at_places(&moved, cells.len())) }
        })
    }

    /// Of any cells.
    fn of_cells(&self, cells: &[DatedCell]) -> [Rc<Order>; LAGS] {
        let Measuring { exits, prices, .. } = self.measuring;
        let mut entries: Vec<Option<usize>> = cells.iter().map(|cell| Some(cell.cell.entry.into())).collect();
        array::from_fn(|_| {
            Rc::new(Order::of(entries.iter_mut().zip(cells).map(|(entry, cell)| {
                let from = (*entry)?;
                *entry = exits.exit(self.period, from);
                prices.between(cell.cell.ticker, from, (*entry)?)
            })))
        })
    }
}
