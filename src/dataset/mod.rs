//! From the view of the archive to the rows of a dataset: features of the news, joined to signals, in order.
//!
//! A slab of whole tickers goes through four steps, each in a file of its own: `codes` turns its names into numbers and
//! its dates into naive ones (by `naive`), `features` computes what is known of the news on each date that has signals,
//! `join` gives every signal the features of its date (Polars), `shape` makes the declared columns of the result.
//! Nothing here reads or writes a file.
//!
//! A signal of date D is served by articles dated D minus the lag and earlier, never by later ones: there is no nearest
//! and no forward search. A window's numbers come from the articles in the window alone, added in the order of their
//! dates, so they do not depend on threads, nor on what stood in the archive before or after.

mod codes;
mod features;
mod join;
mod naive;
mod shape;

use arrow::array::RecordBatch;
use polars::prelude::{DataFrame, PolarsError};

use crate::error::{Error, Result};
use crate::plan::{Column, DatasetPlan};
use crate::tables::Slab;

use codes::{Articles, Signals, Tickers};

/// Builds a dataset and delivers its rows, batch by batch, in the order of the plan.
///
/// Where the plan orders by ticker first, memory follows the size of a slab; else all rows are held to be ordered.
///
/// # Errors
///
/// When a slab cannot be read, when the frames cannot be joined, and whatever `deliver` returns.
pub fn build(
    slabs: impl Iterator<Item = Result<Slab>>,
    plan: &DatasetPlan,
    mut deliver: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut tickers = Tickers::default();
    let mut held: Option<DataFrame> = None;
    for slab in slabs {
        let joined = of_slab(&slab?, plan, &mut tickers)?;
        if is_ticker_first {
            deliver(shape::rows(&join::sorted(&joined, plan)?, plan, &tickers)?)?;
        } else {
            held = Some(match held.take() {
                Some(mut frame) => {
                    frame.vstack_mut_owned(joined).map_err(failed)?;
                    frame
                }
                None => joined,
            });
        }
    }
    match held {
        Some(frame) => deliver(shape::rows(&join::sorted(&frame, plan)?, plan, &tickers)?),
        None => Ok(()),
    }
}

fn of_slab(slab: &Slab, plan: &DatasetPlan, tickers: &mut Tickers) -> Result<DataFrame> {
    let signals = Signals::of(&slab.signals, plan.dates, tickers);
    let articles = Articles::of(&slab.articles, tickers);
    let features = features::of(&signals.keys(), &articles, plan);
    join::joined(signals, features)
}

fn failed(error: PolarsError) -> Error {
    Error::Join { source: error.into() }
}
