//! Builds the rows of a dataset from a view of the archive: news features, joined to signals, sorted.
//!
//! A slab of whole tickers goes through four steps. `signals` turns its names into numbers and its dates into naive ones
//! (by `naive`). `features` computes what is known of the news for each of the `keys`, which are tickers and dates that have
//! signals. `join` puts the rows in order: directly if all series of a ticker have the same dates, otherwise by sorting
//! (`row_order`). `assemble` makes the declared columns, in which the signals of a ticker and a date share their values.
//! Slabs are read in order, and joined several at once, each on one thread, while earlier ones are delivered.
//!
//! A signal of date D uses articles dated D minus the lag and earlier, never later ones: there is no nearest and no
//! forward join. One rule determines both dates, and if both instants are known an article is never later than the
//! signal that uses it (see `naive` for the full rule). The values of a window depend only on the articles in it, not
//! on their order (`statistics`), so they do not depend on threads or on the rest of the archive. A filter selects rows and
//! never changes them.
//!
//! A dataset of news has no signals, and to one of all vintages, with a row for each value that a signal had, nothing is
//! joined: `unjoined` makes their rows.

mod assemble;
mod copies;
mod external_sort;
mod features;
mod join;
mod keys;
mod labels;
mod live;
mod naive;
mod news;
mod row_order;
mod signals;
mod statistics;
mod unjoined;
mod wide;

use std::collections::HashMap;
use std::mem;
use std::ops::AddAssign;
use std::path::PathBuf;

use crate::columns::Rows;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{Column, DatasetPlan, DayCount};
use crate::prices::Prices;
use crate::process::cancel::CancellationToken;
use crate::process::in_order::in_order;
use crate::process::trace::work;
use crate::tables::{ArticleCounts, Past, Slab, TypedRows};

use external_sort::ExternalSort;
use join::Arrangement;
use keys::{CellKeys, Limit};
use labels::Labeller;
use naive::{Day, Moment, Timing};
use news::{Lists, TickerNews};
use signals::{SlabSignals, TickerCodes};

pub use naive::with_naive_dates;
#[cfg(feature = "harness")]
pub(crate) use row_order::RowOrder;
pub use signals::SeriesNames;
pub use unjoined::{Articles, Observations, articles, observations};
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
    let labels = Labeller::new(prices, plan);
    let mut counts = Counts::default();
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut sorting = ExternalSort::new(plan, is_ticker_first, scratch, stop)?;
    let known = &SlabContext { names, past, labels };
    in_order(
        slabs,
        |slab| join_slab(&slab, plan, known),
        |(rows, counted)| {
            counts += counted;
            sorting.add(rows, &mut deliver)
        },
    )?;
    sorting.finish(&mut deliver)?;
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
    let known = SlabContext { names: SeriesNames::default(), past: None, labels: None };
    let mut live = 0;
    for slab in slabs {
        let (slab, mut tickers) = (slab?, TickerCodes::default());
        let read = SlabSignals::read(TypedRows(&slab.signals), plan, &known, &mut tickers);
        live += read.map_err(join_failed)?.1.seen_live;
    }
    Ok(live)
}

fn join_slab(slab: &Slab, plan: &DatasetPlan, known: &SlabContext) -> Result<(Rows, Counts)> {
    let _work = work!("join slab");
    let past = known.past.as_ref();
    let mut tickers = TickerCodes::default();
    let read = SlabSignals::read(TypedRows(&slab.signals), plan, known, &mut tickers);
    let (mut signals, of_signals) = read.map_err(join_failed)?;
    let news = TickerNews::read(slab, plan, &mut tickers);
    limit(&mut signals, news.behind_minutes(slab, plan)?, plan);
    let arrangement = Arrangement::new(&signals, &plan.sort);
    let (cells, limits) = arrangement.cells(&signals);
    let mut keyed = if limits.is_empty() { CellKeys::of_days(&cells) } else { CellKeys::with_limits(&cells, &limits) };
    let pieces = if news::has_articles(plan) { Some(slab.articles.pieces()?) } else { None };
    let lists = &Lists::new(slab, plan, past, &tickers);
    let articles =
        pieces.into_iter().flatten().map(|piece| Ok(news::read_articles(&piece?, plan, lists, &mut tickers)));
    let (features, articles) = features::compute(&mem::take(&mut keyed.keys), articles, &news, lists)?;
    let joined = join::join(signals, &arrangement, &cells, &keyed, plan).map_err(join_failed)?;
    let rows = assemble::rows(joined, &features, plan, &tickers, past).map_err(join_failed)?;
    Ok((rows, Counts { articles, ..of_signals }))
}

/// Clears the moments at which signals were made that know all news up to their cutoff, as nearly all do.
fn limit(signals: &mut SlabSignals, behind_minutes: i64, plan: &DatasetPlan) {
    let (timing, mut is_limited) = (Timing::new(plan), false);
    let mut ends: HashMap<Day, Moment> = HashMap::new();
    for (limit, &date) in signals.limits.iter_mut().zip(&signals.dates) {
        let day = naive::day(date);
        let end = ends.entry(day).or_insert_with(|| timing.end_of(cutoff(day, plan), behind_minutes));
        if end.is_over_at(limit.made) {
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
