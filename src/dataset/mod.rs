//! From the view of the archive to the rows of a dataset: features of the news, joined to signals, in order.
//!
//! A slab of whole tickers goes through four steps, each in a file of its own: `codes` turns its names into numbers and
//! its dates into naive ones (by `naive`), `features` computes what is known of the news for each of the `keys`, which are
//! tickers and dates that have signals, `join` puts the rows in order, by `blocks` of series that have the same dates or
//! else by sorting (`order`, and Polars), `shape` makes the declared columns of the result: what the signals of a ticker
//! and a date share stands there once. Slabs are read in order and joined several at once, each on one thread, while those
//! before them are delivered.
//!
//! A signal of date D is served by articles dated D minus the lag and earlier, never by later ones: there is no nearest
//! and no forward search. Both dates are told by one rule, and where both instants are known an article is never later than
//! the signal it serves (`naive` has the rule in full). A window's numbers come from the articles in the window alone and
//! do not depend on their order (`window`), so they do not depend on threads, nor on what stood in the archive before or
//! after. A filter selects rows and never changes them: trading days are counted by a calendar of all signals.

mod blocks;
mod calendar;
mod codes;
mod features;
mod join;
mod keys;
mod naive;
mod news;
mod order;
mod shape;
mod sorting;
mod wide;
mod window;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::{iter, mem};

use polars::prelude::PolarsError;

use crate::error::{Error, Result};
use crate::plan::{Column, DatasetPlan, Lag};
use crate::tables::{Rows, Slab};
use crate::trace::work;

use blocks::Arrangement;
use calendar::Calendar;
use codes::{Day, Signals, Tickers};
use keys::Keyed;
use naive::{Ends, Moment};
use news::News;
use sorting::Sorting;

pub use wide::Wide;

/// How many slabs may be joined, or ready, before they are delivered.
const SLABS_AHEAD: usize = 3;

/// What a dataset is built from.
pub struct Sources<Signals, Whole> {
    /// The signals that are taken, with the news of their tickers. They may be read twice.
    pub slabs: Signals,
    /// All signals that the definition asks for, whichever are taken: they say which days are trading days.
    pub whole: Whole,
}

/// What a dataset was made of, as far as a person should know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Signals that were left out: an earlier signal of their series has the same naive date.
    pub repeated_signals: u64,
    /// Articles that features were made of.
    pub articles: u64,
    /// Those of them that have no score.
    pub unscored_articles: u64,
    /// Articles that count in no window: they repeat another one exactly.
    pub repeated_articles: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.repeated_signals += other.repeated_signals;
        self.articles += other.articles;
        self.unscored_articles += other.unscored_articles;
        self.repeated_articles += other.repeated_articles;
    }
}

/// Builds a dataset and delivers its rows, batch by batch, in the order of the plan.
///
/// Where the plan orders by ticker first, memory follows the size of a slab; else rows are laid aside in a folder that
/// is made for them, when they are many, and merged.
///
/// # Errors
///
/// When a slab cannot be read, when the frames cannot be joined, and whatever `deliver` returns.
pub fn build<S: Iterator<Item = Result<Slab>>, W: Iterator<Item = Result<Slab>>>(
    sources: Sources<impl Fn() -> Result<S> + Sync, impl FnOnce() -> Result<W>>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let Sources { slabs, whole } = sources;
    let calendar = match plan.lag {
        Lag::Trading(_) if !plan.features.is_empty() => Calendar::of(whole()?, plan)?,
        Lag::Trading(_) | Lag::Calendar(_) => Calendar::default(),
    };
    let mut counts = Counts::default();
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
            let (rows, of_slab) = rows?;
            counts += of_slab;
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
    sorting.finish(|rows| deliver(rows.into()))?;
    Ok(counts)
}

/// The rows of a slab, when they are joined, and what was counted.
type Joined = mpsc::Receiver<Result<(Rows, Counts)>>;

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

fn of_slab(slab: &Slab, plan: &DatasetPlan, calendar: &Calendar) -> Result<(Rows, Counts)> {
    let _work = work!("join slab");
    let mut tickers = Tickers::default();
    let (mut signals, repeated_signals) = Signals::of(&slab.signals, plan, &mut tickers);
    let news = News::of(slab, plan, &mut tickers);
    let counts = Counts { repeated_signals, ..news.counts() };
    limit(&mut signals, news.behind_minutes(), plan, calendar);
    let arrangement = Arrangement::of(&signals, &plan.sort);
    let cells = arrangement.cells(&signals);
    let mut keyed =
        if signals.made.is_empty() { Keyed::of_days(&cells) } else { Keyed::limited(&cells, &signals.made) };
    let features = features::of(mem::take(&mut keyed.keys), &news, plan, calendar);
    let joined = join::joined(signals, &arrangement, &cells, &keyed, plan)?;
    let rows = shape::rows(joined, &features, plan, &tickers);
    Ok((rows.map_err(|error| Error::Join { source: error.into() })?, counts))
}

/// Forgets when signals were made that know all news up to their cutoff, as nearly all do.
fn limit(signals: &mut Signals, behind_minutes: i64, plan: &DatasetPlan, calendar: &Calendar) {
    let mut is_limited = false;
    let mut ends: HashMap<Day, Ends> = HashMap::new();
    for (made, &date) in signals.made.iter_mut().zip(&signals.dates) {
        let day = codes::day(date);
        let ends =
            ends.entry(day).or_insert_with(|| Ends::of(calendar.cutoff(day, plan.lag), behind_minutes, plan.dates));
        if ends.are_known(*made) {
            *made = Moment::END;
        }
        is_limited |= *made != Moment::END;
    }
    if !is_limited {
        signals.made.clear();
    }
}

fn failed(error: PolarsError) -> Error {
    Error::Join { source: error.into() }
}
