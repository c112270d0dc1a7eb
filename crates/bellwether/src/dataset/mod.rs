//! Builds the rows of a dataset from a view of the archive: news features, joined to signals, sorted.
//!
//! A slab of whole tickers goes through four steps. `slab_columns` turns its names into numbers and its dates into
//! naive ones (by `naive`). `features` computes what is known of the news for each of the `keys`, which are tickers and
//! dates that have signals. `join` puts the rows in order: directly if all series of a ticker have the same dates
//! (`aligned_series`), otherwise by sorting (`row_order`). `assemble` makes the declared columns, in which the signals
//! of a ticker and a date share their values. Slabs are read in order, and joined several at once, each on one thread,
//! while earlier ones are delivered.
//!
//! A signal of date D uses articles dated D minus the lag and earlier, never later ones: there is no nearest and no
//! forward join. One rule determines both dates, and if both instants are known an article is never later than the
//! signal that uses it (see `naive` for the full rule). The values of a window depend only on the articles in it, not
//! on their order (`window`), so they do not depend on threads or on the rest of the archive. A filter selects rows and
//! never changes them.
//!
//! A dataset of news has no signals: `articles` makes its rows. One of all vintages has a row for each value that a signal had,
//! and nothing is joined to it: `observations` makes them.

mod aligned_series;
mod articles;
mod assemble;
mod codes;
mod copies;
mod external_sort;
mod features;
mod join;
mod keys;
mod labels;
mod live;
mod naive;
mod news;
mod observations;
mod row_order;
mod score;
mod series_names;
mod slab_columns;
mod wide;
mod window;

use std::collections::HashMap;
use std::mem;
use std::ops::AddAssign;
use std::path::PathBuf;

use crate::columns::Rows;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{Column, DatasetPlan, DayCount};
use crate::prices::Prices;
use crate::process::cancel::{self, CancellationToken};
use crate::process::in_order::in_order;
use crate::process::trace::work;
use crate::tables::{ArticleCounts, Past, Slab};

use aligned_series::Arrangement;
use assemble::KnownNames;
use external_sort::ExternalSort;
use keys::{CellKeys, Limit};
use labels::Labeller;

use naive::{Day, Ends, Moment, Timing};
use news::{Lists, TickerNews};
use slab_columns::{SlabSignals, TickerCodes};

pub use articles::{Articles, articles};
pub use naive::with_naive_dates;
pub use observations::{Observations, observations};
#[cfg(feature = "harness")]
pub(crate) use row_order::RowOrder;
pub use series_names::SeriesNames;
pub use wide::Wide;

/// The input of a dataset.
pub struct DatasetInput<'a, Signals> {
    /// The selected signals with the news of their tickers.
    pub slabs: Signals,
    /// The names that the series of the selected signals have.
    pub names: SeriesNames,
    /// The past of the archive, if the dataset depends on it.
    pub past: Option<Past>,
    /// The prices that returns are measured by, if they are columns.
    pub prices: Option<Prices>,
    /// Cancels the build.
    pub stop: &'a CancellationToken,
}

/// Counts of the inputs of a dataset, for summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Signals left out because an earlier one of their series has the same naive date.
    pub repeated_signals: u64,
    /// Rows that were first seen while their date was fresh.
    pub seen_live: u64,
    /// Articles that features were computed from.
    pub articles: ArticleCounts,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.repeated_signals += other.repeated_signals;
        self.seen_live += other.seen_live;
        self.articles += other.articles;
    }
}

/// Builds a dataset and delivers its rows, batch by batch, in the order of the plan.
///
/// If the plan sorts by ticker first, memory follows the size of a slab; otherwise rows are sorted externally once
/// there are many, in a temporary folder.
///
/// # Errors
///
/// If a slab cannot be read or joined, if `deliver` fails, or once the token is cancelled.
pub fn build<S: Iterator<Item = Result<Slab>>>(
    sources: DatasetInput<'_, impl FnOnce() -> Result<S> + Send>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let DatasetInput { slabs, names, past, prices, stop } = sources;
    let labels = Labeller::of(prices, plan);
    let mut counts = Counts::default();
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut sorting = ExternalSort::new(plan, scratch, stop)?;
    let known = &SlabContext { names, past, labels };
    in_order(
        slabs,
        |slab| of_slab(&slab, plan, known),
        |(rows, of_slab)| {
            cancel::check(stop)?;
            counts += of_slab;
            if rows.num_rows() == 0 {
                Ok(())
            } else if is_ticker_first {
                let _work = work!("deliver rows");
                deliver(rows)
            } else {
                sorting.add(&rows.flat().map_err(join_failed)?)
            }
        },
    )?;
    sorting.finish(|rows| deliver(rows.into()))?;
    Ok(counts)
}

/// The inputs that all slabs share.
struct SlabContext {
    names: SeriesNames,
    past: Option<Past>,
    labels: Option<Labeller>,
}

/// The signals of some slabs that a plan selects, and were first seen while their date was fresh.
///
/// # Errors
///
/// If a slab cannot be read.
pub fn count_live(slabs: impl Iterator<Item = Result<Slab>>, plan: &DatasetPlan) -> Result<u64> {
    let mut live = 0;
    for slab in slabs {
        live += SlabSignals::of(&slab?.signals, plan, (None, None), &mut TickerCodes::default()).1.seen_live;
    }
    Ok(live)
}

fn of_slab(slab: &Slab, plan: &DatasetPlan, known: &SlabContext) -> Result<(Rows, Counts)> {
    let SlabContext { names, past, labels } = known;
    let past = past.as_ref();
    let _work = work!("join slab");
    let mut tickers = TickerCodes::default();
    let (mut signals, of_signals) = SlabSignals::of(&slab.signals, plan, (past, labels.as_ref()), &mut tickers);
    let news = TickerNews::of(slab, plan, &mut tickers);
    limit(&mut signals, news.behind_minutes(slab, plan)?, plan);
    let arrangement = Arrangement::of(&signals, &plan.sort);
    let (cells, limits) = arrangement.cells(&signals);
    let mut keyed = if limits.is_empty() { CellKeys::of_days(&cells) } else { CellKeys::with_limits(&cells, &limits) };
    let pieces = if news::has_articles(plan) { Some(slab.articles.pieces()?) } else { None };
    let lists = &Lists::of(slab, plan, past, &tickers);
    let articles =
        pieces.into_iter().flatten().map(|piece| Ok(news::read_articles(&piece?, plan, lists, &mut tickers)));
    let (features, articles) =
        features::of(&mem::take(&mut keyed.keys), articles, &news, features::Settings { plan, lists })?;
    let counts = Counts { articles, ..of_signals };
    let joined = join::join(signals, &arrangement, &cells, &keyed, plan);
    let rows = assemble::rows(joined, &features, plan, KnownNames { tickers: &tickers, names, past });
    Ok((rows.map_err(join_failed)?, counts))
}

/// Clears the moments at which signals were made that know all news up to their cutoff, as nearly all do.
fn limit(signals: &mut SlabSignals, behind_minutes: i64, plan: &DatasetPlan) {
    let (timing, mut is_limited) = (Timing::of(plan), false);
    let mut ends: HashMap<Day, Ends> = HashMap::new();
    for (limit, &date) in signals.limits.iter_mut().zip(&signals.dates) {
        let day = naive::day(date);
        let ends = ends.entry(day).or_insert_with(|| timing.end_of(cutoff(day, plan), behind_minutes));
        if ends.are_known(limit.made) {
            limit.made = Moment::END;
        }
        is_limited |= *limit != Limit::NONE;
    }
    if !is_limited {
        signals.limits.clear();
    }
}

/// The last day whose news a signal of a day may use.
fn cutoff(date: Day, plan: &DatasetPlan) -> Day {
    match plan.lag {
        DayCount::Calendar(days) => date - days.count(),
        DayCount::Trading(days) => plan.sessions.nth_before(date, days.count() as usize).unwrap_or(Day::MIN),
    }
}

/// A dataset without rows.
pub(crate) fn no_rows(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("`{name}` has no rows"))
        .with_hint("check the sectors, periods, regimes or tickers that it asks for, and the filters")
}

/// A join that failed.
pub(crate) fn join_failed(source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Internal, "cannot join signals with news").with_source(source)
}

#[cfg(test)]
mod tests {
    use super::Counts;
    use crate::tables::ArticleCounts;

    #[test]
    fn the_counts_of_slabs_add_up() {
        let counts = |repeated_signals, all, unscored, repeated| Counts {
            repeated_signals,
            seen_live: 2 * repeated_signals,
            articles: ArticleCounts { all, unscored, repeated },
        };
        let mut all = counts(1, 2, 3, 4);
        all += counts(10, 20, 30, 40);
        assert_eq!(all, counts(11, 22, 33, 44));
    }
}
