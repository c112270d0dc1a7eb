//! Finds the features of every signal, those of its ticker and day, and orders the rows. This is where Polars works.

use polars::prelude::{
    ChunkedArray, Column as Series, DataFrame, Float64Type, IdxCa, Int32Type, Int64Type, IntoColumn, PolarsNumericType,
    PolarsResult,
};

use super::blocks::{self, Arrangement};
use super::codes::{Numbers, Signals, cell};
use super::failed;
use super::features::Features;
use super::order::{Order, real, signed};
use crate::error::{Error, Result};
use crate::plan::{Column, DatasetPlan};
use crate::time::MICROS_PER_DAY;

/// The rows of a slab, in the order of the plan.
pub(super) struct Joined {
    /// What they say themselves.
    pub(super) own: DataFrame,
    /// Which of the features they have: a place for so many rows one after another.
    pub(super) places: Vec<(usize, usize)>,
}

/// Finds the features of the rows of a slab, and orders them.
pub(super) fn joined(
    signals: Signals,
    arrangement: &Arrangement,
    cells: &[i64],
    features: &Features,
    plan: &DatasetPlan,
) -> Result<Joined> {
    let of_cells = places(cells, features)?;
    let (order, places) = match arrangement {
        Arrangement::Blocks(blocks) => {
            let counts = blocks::dates(blocks).map(|(_, count)| count);
            let places = of_cells.into_iter().map(|place| place as usize).zip(counts);
            (blocks::order(blocks), places.collect())
        }
        Arrangement::Any => {
            let order = order(&signals, cells, &of_cells, plan);
            let mut places: Vec<(usize, usize)> = Vec::new();
            for place in order.iter().map(|&row| of_cells[row as usize] as usize) {
                match places.last_mut() {
                    Some((last, count)) if *last == place => *count += 1,
                    _ => places.push((place, 1)),
                }
            }
            (order, places)
        }
    };
    let taken = IdxCa::from_vec("row".into(), order);
    // A column after the other: other slabs are joined beside this one.
    let columns = columns(signals).into_iter().map(|column| column.take(&taken)).collect::<PolarsResult<_>>();
    let own = columns.and_then(DataFrame::new_infer_height).map_err(failed)?;
    Ok(Joined { own, places })
}

/// Which of the features the signals of some cells have: those of their cell, of which there is exactly one.
fn places(cells: &[i64], features: &Features) -> Result<Vec<u32>> {
    let keys = &features.keys;
    let mut place = 0;
    let of_cell = |&wanted: &i64| {
        // A series goes forward in time, and so do the keys; where the next series begins, they are searched.
        if keys.get(place).is_none_or(|&key| cell(key) > wanted) {
            place = keys.partition_point(|&key| cell(key) < wanted);
        }
        while keys.get(place).is_some_and(|&key| cell(key) < wanted) {
            place += 1;
        }
        let is_found = keys.get(place).is_some_and(|&key| cell(key) == wanted);
        is_found.then_some(place as u32).ok_or_else(|| Error::Join { source: "a signal has no features".into() })
    };
    cells.iter().map(of_cell).collect()
}

/// The rows in the order of the plan, given the cell of each and the place of its features.
fn order(signals: &Signals, cells: &[i64], places: &[u32], plan: &DatasetPlan) -> Vec<u32> {
    let mut order = Order::of(signals.dates.len());
    let codes = |codes: &[i32]| codes.iter().map(|&code| code as u64).collect::<Vec<_>>();
    let mut columns = plan.sort.iter().rev().peekable();
    while let Some(column) = columns.next() {
        match column {
            Column::Ticker => order.before(signals.tickers.iter().map(|&code| code as u64)),
            Column::Date => {
                // Most dates are whole days.
                order.before(signals.dates.iter().map(|&date| date.rem_euclid(MICROS_PER_DAY) as u64));
                // The cells of tickers and days are in order already, so their places are that of both, in few numbers.
                match columns.next_if_eq(&&Column::Ticker) {
                    Some(_) => order.before(places.iter().map(|&place| u64::from(place))),
                    None => order.before(cells.iter().map(|&cell| cell as u32 as u64)),
                }
            }
            Column::Period => order.before(signals.periods.iter().map(|&code| code as u64)),
            Column::Regime => order.before(signals.regimes.iter().map(|&code| code as u64)),
            Column::Signal => order.before(signals.signals.iter().map(|&code| code as u64)),
            Column::Confidence => order.before(signals.confidences.iter().map(|&value| real(value))),
            Column::FirstObservedAt | Column::ObservedAt | Column::Revisions | Column::Backfilled | Column::Source => {
                let known = signals.lineage.iter().find(|(known, _)| known == column);
                match known.map(|(_, numbers)| numbers) {
                    Some(Numbers::Short(values)) => order.before(codes(values).into_iter()),
                    Some(Numbers::Long(values)) => order.before(values.iter().map(|&value| signed(value))),
                    None => {}
                }
            }
        }
    }
    order.rows()
}

fn columns(signals: Signals) -> Vec<Series> {
    let mut columns = vec![
        series::<Int32Type>(Column::Ticker, signals.tickers),
        series::<Int64Type>(Column::Date, signals.dates),
        series::<Int32Type>(Column::Period, signals.periods),
        series::<Int32Type>(Column::Regime, signals.regimes),
        series::<Int32Type>(Column::Signal, signals.signals),
        series::<Float64Type>(Column::Confidence, signals.confidences),
    ];
    columns.extend(signals.lineage.into_iter().map(|(column, values)| match values {
        Numbers::Short(values) => series::<Int32Type>(column, values),
        Numbers::Long(values) => series::<Int64Type>(column, values),
    }));
    columns
}

/// A column of numbers, which are not copied.
fn series<T: PolarsNumericType>(column: Column, values: Vec<T::Native>) -> Series
where
    ChunkedArray<T>: IntoColumn,
{
    ChunkedArray::<T>::from_vec(column.name().into(), values).into_column()
}
