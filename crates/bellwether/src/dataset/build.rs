//! Builds a dataset slab by slab: signals and news are read, joined and sorted, and become the declared columns, in which the
//! signals of a ticker and a date share their values.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take;
use arrow::error::ArrowError;

use super::external_sort::{ExternalSort, join_failed};
use super::features;
use super::join::{self, Segment};
use super::keys::{CellKeys, Limit, TickerCodes};
use super::live::Labeller;
use super::naive::{self, Day, Moment, Timing, before_lag};
use super::news::{self, Lists, TickerNews};
use super::signals::{Counts, SeriesNames, SlabContext, SlabSignals};
use crate::columns::{self, Rows, Segments};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Sector, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::prices::Prices;
use crate::process::cancel::CancellationToken;
use crate::process::in_order::in_order;
use crate::process::trace::work;
use crate::sessions::day_of;
use crate::tables::{Past, Slab, TypedRows};

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
    let aligned = join::align(&signals, &plan.sort);
    let (cells, limits) = join::cells(&signals, aligned.as_deref());
    let mut keyed = if limits.is_empty() { CellKeys::of_days(&cells) } else { CellKeys::with_limits(&cells, &limits) };
    let pieces = if news::has_articles(plan) { Some(slab.articles.pieces()?) } else { None };
    let lists = &Lists::new(slab, plan, past, &tickers);
    let articles =
        pieces.into_iter().flatten().map(|piece| Ok(news::read_articles(&piece?, plan, lists, &mut tickers)));
    let (features, articles) = features::compute(&mem::take(&mut keyed.keys), articles, &news, lists)?;
    let joined = join::join(signals, aligned.as_deref(), &cells, &keyed, plan).map_err(join_failed)?;
    let rows = assemble(joined, &features, plan, &tickers, past).map_err(join_failed)?;
    Ok((rows, Counts { articles, ..of_signals }))
}

/// Clears the moments at which signals were made that know all news up to their cutoff, as nearly all do.
fn limit(signals: &mut SlabSignals, behind_minutes: i64, plan: &DatasetPlan) {
    let (timing, mut is_limited) = (Timing::new(plan), false);
    let mut ends: HashMap<Day, Moment> = HashMap::new();
    for (limit, &date) in signals.limits.iter_mut().zip(&signals.dates) {
        let day = naive::day(date);
        let end = ends.entry(day).or_insert_with(|| timing.end_of(before_lag(day, plan), behind_minutes));
        if end.is_over_at(limit.made) {
            limit.made = Moment::END;
        }
        is_limited |= *limit != Limit::NONE;
    }
    if !is_limited {
        signals.limits.clear();
    }
}

/// A dataset without rows.
pub(crate) fn no_rows(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("`{name}` has no rows"))
        .with_hint("check the sectors, periods, regimes or tickers that it asks for, and the filters")
}

/// The joined rows and their features, in the schema of the plan.
fn assemble(
    (segments, own): (Vec<Segment>, Vec<(Column, ArrayRef)>),
    features: &[ArrayRef],
    plan: &DatasetPlan,
    tickers: &TickerCodes,
    past: Option<&Past>,
) -> Result<Rows, ArrowError> {
    let shared = Segments::new(segments.iter().map(|segment| segment.rows));
    let mut own: HashMap<Column, ArrayRef> = own.into_iter().collect();
    let mut columns: Vec<columns::Column> = Vec::with_capacity(plan.schema.fields().len());
    for column in &plan.columns {
        let values: ArrayRef = match column {
            Column::Ticker => of_tickers(&segments, |code, names, rows| {
                names.append_value_n(&tickers.names[code as usize], rows.len());
            }),
            Column::Id => of_tickers(&segments, |code, ids, rows| {
                for segment in rows {
                    let ticker = tickers.ticker(code);
                    ids.append_option(ticker.and_then(|ticker| plan.identity.id(ticker, day_of(segment.date))));
                }
            }),
            Column::Date => {
                let dates = segments.iter().map(|segment| segment.date);
                Arc::new(TimestampMicrosecondArray::from_iter_values(dates))
            }
            other => match own.remove(other) {
                Some(values) => {
                    columns.push(values.into());
                    continue;
                }
                // Usually each ticker always had the same sector.
                None if matches!(other, Column::Sector | Column::SectorLatest) => {
                    let latest = |ticker: &Ticker| past?.latest_sector(ticker).map(Sector::as_str);
                    of_tickers(&segments, |code, names, rows| match tickers.ticker(code).and_then(latest) {
                        Some(sector) => names.append_value_n(sector, rows.len()),
                        None => names.append_nulls(rows.len()),
                    })
                }
                None => return Err(ArrowError::SchemaError(format!("no signal says its {}", other.name()))),
            },
        };
        columns.push(shared.column(values));
    }
    // Features stand after the columns that every dataset has.
    let lineage = columns.split_off(Column::BASE.len());
    let rows = features.first().map_or(0, |column| column.len() as u32);
    let indices = UInt32Array::from_iter_values(segments.iter().map(|segment| segment.index));
    // Usually each range of rows has its own features, in order.
    let is_each = indices.values().iter().copied().eq(0..rows);
    for values in features {
        let values = if is_each { Arc::clone(values) } else { take(values, &indices, None)? };
        columns.push(shared.column(values));
    }
    columns.extend(lineage);
    Rows::new(Arc::clone(&plan.schema), columns)
}

/// A text for each segment. Segments of one ticker are usually adjacent.
fn of_tickers(segments: &[Segment], append: impl Fn(i32, &mut StringBuilder, &[Segment])) -> ArrayRef {
    let mut texts = StringBuilder::with_capacity(segments.len(), 4 * segments.len());
    for alike in segments.chunk_by(|one, next| one.ticker == next.ticker) {
        append(alike[0].ticker, &mut texts, alike);
    }
    Arc::new(texts.finish())
}
