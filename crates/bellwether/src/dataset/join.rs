//! Orders the rows, each with the index of its features: aligned series by their positions, everything else by sorting.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::aligned_series::{self, AlignedSeries, Arrangement};
use super::keys::CellKeys;
use super::row_order::{RowOrder, order_bits, real};
use super::slab_columns::{Numbers, SlabSignals};
use crate::plan::{Column, DatasetPlan};
use crate::time::MICROS_PER_DAY;

/// The rows of a slab, in the order of the plan.
pub(super) struct Joined {
    /// Groups of rows with the same ticker, date and features.
    pub(super) segments: Vec<Segment>,
    /// The columns with a value per row.
    pub(super) own: Vec<(Column, Numbers)>,
}

/// Consecutive rows of one ticker and date.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) ticker: i32,
    pub(super) date: i64,
    /// The index of their features.
    pub(super) index: u32,
    /// Number of rows.
    pub(super) rows: usize,
}

/// Puts the rows of a slab in order, each with the index of its features.
pub(super) fn join(
    signals: SlabSignals,
    arrangement: &Arrangement,
    cells: &[i64],
    keyed: &CellKeys,
    plan: &DatasetPlan,
) -> Joined {
    let of_cells = &keyed.of_cells;
    let segment = |row: usize, index: u32, rows: usize| {
        let (ticker, date) = (signals.tickers[row], signals.dates[row]);
        Segment { ticker, date, index, rows }
    };
    match arrangement {
        Arrangement::Aligned(aligned) => {
            let dates = aligned_series::dates(aligned).zip(of_cells);
            let segments = dates.map(|((row, rows), &index)| segment(row, index, rows)).collect();
            let ordered = |(column, values)| (column, in_order(values, aligned));
            Joined { segments, own: columns(signals).into_iter().map(ordered).collect() }
        }
        Arrangement::Any => {
            let order = order(&signals, cells, keyed, plan);
            let mut segments: Vec<Segment> = Vec::new();
            for row in order.iter().map(|&row| row as usize) {
                let next = segment(row, of_cells[row], 1);
                match segments.last_mut() {
                    Some(last) if last.is_shared_by(&next) => last.rows += 1,
                    _ => segments.push(next),
                }
            }
            let taken = |(column, values)| (column, take(values, &order));
            Joined { segments, own: columns(signals).into_iter().map(taken).collect() }
        }
    }
}

impl Segment {
    /// Whether another one, which follows it, says the same.
    fn is_shared_by(&self, next: &Self) -> bool {
        (self.ticker, self.date, self.index) == (next.ticker, next.date, next.index)
    }
}

/// The rows in the order of the plan, given the cell of each and the index of its features.
fn order(signals: &SlabSignals, cells: &[i64], keyed: &CellKeys, plan: &DatasetPlan) -> Vec<u32> {
    let mut order = RowOrder::of(signals.dates.len());
    let mut columns = plan.sort.iter().rev().peekable();
    while let Some(column) = columns.next() {
        match column {
            Column::Ticker => order.before(signals.tickers.iter().map(|&code| code as u64)),
            Column::Date => {
                // Most dates are whole days.
                order.before(signals.dates.iter().map(|&date| date.rem_euclid(MICROS_PER_DAY) as u64));
                // Where each ticker and day has one key, the indices of the keys are the order of both, in few numbers.
                if keyed.are_of_days && columns.next_if_eq(&&Column::Ticker).is_some() {
                    order.before(keyed.of_cells.iter().map(|&index| u64::from(index)));
                } else {
                    order.before(cells.iter().map(|&cell| cell as u32 as u64));
                }
            }
            Column::Period => order.before(signals.periods.iter().map(|&code| code as u64)),
            Column::Regime => order.before(signals.regimes.iter().map(|&code| code as u64)),
            Column::Signal => order.before(signals.signals.iter().map(|&code| code as u64)),
            Column::Confidence => order.before(signals.confidences.iter().map(|&value| real(value))),
            _ => {
                let known = signals.lineage.iter().find(|(known, _)| known == column);
                match known.map(|(_, numbers)| numbers) {
                    Some(Numbers::Bytes(values)) => order.before(values.iter().map(|&value| value as u64)),
                    Some(Numbers::Short(values)) => order.before(values.iter().map(|&value| value as u64)),
                    Some(Numbers::Long(values)) => order.before(values.iter().map(|&value| order_bits(value))),
                    Some(Numbers::Real(values)) => order.before(values.iter().map(|&value| real(value))),
                    Some(Numbers::Names(values)) => order.before(ranks(values).into_iter()),
                    None => {}
                }
            }
        }
    }
    order.rows()
}

/// The columns that tell the signals of a ticker and a date apart.
fn columns(signals: SlabSignals) -> Vec<(Column, Numbers)> {
    let mut columns = vec![
        (Column::Period, Numbers::Bytes(signals.periods)),
        (Column::Regime, Numbers::Bytes(signals.regimes)),
        (Column::Signal, Numbers::Bytes(signals.signals)),
        (Column::Confidence, Numbers::Real(signals.confidences)),
    ];
    columns.extend(signals.lineage);
    columns
}

/// The rank of each name among all.
fn ranks(names: &[Option<Arc<str>>]) -> Vec<u64> {
    let distinct: BTreeSet<&Option<Arc<str>>> = names.iter().collect();
    let ranks: HashMap<&Option<Arc<str>>, u64> = distinct.into_iter().zip(0..).collect();
    names.iter().map(|name| ranks[name]).collect()
}

/// A column of aligned series, in order.
fn in_order(values: Numbers, aligned: &[AlignedSeries]) -> Numbers {
    match values {
        Numbers::Bytes(values) => Numbers::Bytes(aligned_series::reorder(values, aligned)),
        Numbers::Short(values) => Numbers::Short(aligned_series::reorder(values, aligned)),
        Numbers::Long(values) => Numbers::Long(aligned_series::reorder(values, aligned)),
        Numbers::Real(values) => Numbers::Real(aligned_series::reorder(values, aligned)),
        Numbers::Names(values) => Numbers::Names(aligned_series::reorder(values, aligned)),
    }
}

/// The values of some rows, in their order.
fn take(values: Numbers, rows: &[u32]) -> Numbers {
    fn at<T: Clone>(values: &[T], rows: &[u32]) -> Vec<T> {
        rows.iter().map(|&row| values[row as usize].clone()).collect()
    }
    match values {
        Numbers::Bytes(values) => Numbers::Bytes(at(&values, rows)),
        Numbers::Short(values) => Numbers::Short(at(&values, rows)),
        Numbers::Long(values) => Numbers::Long(at(&values, rows)),
        Numbers::Real(values) => Numbers::Real(at(&values, rows)),
        Numbers::Names(values) => Numbers::Names(at(&values, rows)),
    }
}
