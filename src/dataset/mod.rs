//! From the view of the archive to the rows of a dataset: features of the news, joined to signals, in order.
//!
//! A slab of whole tickers goes through four steps, each in a file of its own: `codes` turns its names into numbers and
//! its dates into naive ones (by `naive`), `features` computes what is known of the news on each date that has signals,
//! `join` finds the features of every signal and puts the rows in order, by `blocks` of series that have the same dates or
//! else by sorting (`order`, and Polars), `shape` makes the declared columns of the result: what the signals of a ticker
//! and a date share stands there once. Slabs are read in order and joined several at once, each on one thread, while those
//! before them are delivered.
//!
//! A signal of date D is served by articles dated D minus the lag and earlier, never by later ones: there is no nearest
//! and no forward search. A window's numbers come from the articles in the window alone, added in the order of their
//! dates, so they do not depend on threads, nor on what stood in the archive before or after.

mod blocks;
mod calendar;
mod codes;
mod features;
mod join;
mod naive;
mod news;
mod order;
mod shape;
mod sorting;
mod wide;

use std::iter;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use polars::prelude::PolarsError;

use crate::error::{Error, Result};
use crate::plan::{Column, DatasetPlan, Lag};
use crate::tables::{Rows, Slab};
use crate::trace::work;

use blocks::Arrangement;
use calendar::Calendar;
use codes::{Signals, Tickers};
use news::News;
use sorting::Sorting;

pub use wide::Wide;

/// How many slabs may be joined, or ready, before they are delivered.
const SLABS_AHEAD: usize = 3;

/// Builds a dataset and delivers its rows, batch by batch, in the order of the plan.
///
/// Where the plan orders by ticker first, memory follows the size of a slab; else rows are laid aside in a folder that
/// is made for them, when they are many, and merged.
///
/// # Errors
///
/// When a slab cannot be read, when the frames cannot be joined, and whatever `deliver` returns.
pub fn build<S: Iterator<Item = Result<Slab>>>(
    slabs: impl Fn() -> Result<S> + Sync,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<()> {
    let calendar = match plan.lag {
        Lag::Calendar(_) => Calendar::default(),
        Lag::Trading(_) => Calendar::of(slabs()?, plan)?,
    };
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut sorting = Sorting::new(plan, scratch);
    thread::scope(|scope| -> Result<()> {
        // While a row group is written, the next slabs are made ready; a few, for each takes some megabytes.
        let (ready, joined) = mpsc::sync_channel(SLABS_AHEAD);
        let (slabs, calendar) = (&slabs, &calendar);
        scope.spawn(move || match slabs() {
            Ok(slabs) => join_all(slabs, plan, calendar, &ready),
            Err(error) => join_all(iter::once(Err(error)), plan, calendar, &ready),
        });
        for rows in joined {
            let Ok(rows) = rows.recv() else { break };
            let rows = rows?;
            if rows.num_rows() == 0 {
                continue;
            }
            if is_ticker_first {
                let _work = work!("deliver rows");
                deliver(rows)?;
            } else {
                sorting.add(rows.flat().map_err(|error| Error::Join { source: error.into() })?)?;
            }
        }
        Ok(())
    })?;
    sorting.finish(|rows| deliver(rows.into()))
}

/// The rows of a slab, when they are joined.
type Joined = mpsc::Receiver<Result<Rows>>;

/// Joins slabs, several at once, and hands their rows out in order, until nobody receives any more: a delivery failed.
fn join_all(
    slabs: impl Iterator<Item = Result<Slab>>,
    plan: &DatasetPlan,
    calendar: &Calendar,
    ready: &mpsc::SyncSender<Joined>,
) {
    rayon::in_place_scope_fifo(|scope| {
        for slab in slabs {
            let (done, rows) = mpsc::sync_channel(1);
            if ready.send(rows).is_err() {
                return;
            }
            scope.spawn_fifo(move |_| {
                // Whoever waited for it may have given up meanwhile.
                let _ = done.send(slab.and_then(|slab| of_slab(&slab, plan, calendar)));
            });
        }
    });
}

fn of_slab(slab: &Slab, plan: &DatasetPlan, calendar: &Calendar) -> Result<Rows> {
    let _work = work!("join slab");
    let mut tickers = Tickers::default();
    let signals = Signals::of(&slab.signals, plan, &mut tickers);
    let news = News::of(slab, plan, &mut tickers);
    let arrangement = Arrangement::of(&signals, &plan.sort);
    let cells = arrangement.cells(&signals);
    let features = features::of(codes::keys(&cells), &news, plan, calendar);
    let joined = join::joined(signals, &arrangement, &cells, &features, plan)?;
    shape::rows(joined, &features, plan, &tickers).map_err(|error| Error::Join { source: error.into() })
}

fn failed(error: PolarsError) -> Error {
    Error::Join { source: error.into() }
}
