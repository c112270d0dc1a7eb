//! A dataset of news: a row for each article, as it was known.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::compute::{cast, filter, take_record_batch};
use arrow::datatypes::{DataType, Float64Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use chrono::{NaiveDate, NaiveTime};

use super::copies::Copies;
use super::external_sort::ExternalSort;
use super::join_failed;
use super::live::Live;
use super::{Counts, naive};
use crate::columns::Rows;
use crate::error::Result;
use crate::interface::{Sector, Ticker};
use crate::plan::{Column, DatasetPlan, Duplicates, NaiveRule};
use crate::process::cancel::{self, CancellationToken};
use crate::sessions::day_of;
use crate::tables::{Past, SeriesKey, Table};

/// The input of a dataset of news.
pub struct Articles<'a, Cells> {
    /// The known articles of the archive, in the order of their cells.
    pub cells: Cells,
    /// The tickers that are selected.
    pub tickers: HashSet<Ticker>,
    /// The past of the archive, if sectors are a column.
    pub past: Option<Past>,
    /// Cancels the build.
    pub stop: &'a CancellationToken,
}

/// Builds a dataset of news and delivers its rows, batch by batch, in the order of the plan.
///
/// # Errors
///
/// If the articles cannot be read, if `deliver` fails, or once the token is cancelled.
pub fn articles<C: Iterator<Item = Result<RecordBatch>>>(
    sources: Articles<'_, C>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let Articles { cells, tickers, past, stop } = sources;
    let mut rows = ArticleRows { plan, tickers, past, copies: Copies::default() };
    // The archive keeps the tickers and dates in order, and whole dates together; only another clock can change that.
    let is_in_order = plan.sort == Column::KEY_OF_ARTICLES && plan.dates == NaiveRule::Utc;
    let mut sorting = ExternalSort::new(plan, scratch, stop)?;
    let mut counts = Counts::default();
    for cells in cells {
        cancel::check(stop)?;
        let batch = rows.of(&cells?, &mut counts).and_then(|batch| sort(&batch, plan)).map_err(join_failed)?;
        match (batch.num_rows(), is_in_order) {
            (0, _) => {}
            (_, true) => deliver(batch.into())?,
            (_, false) => sorting.add(&batch)?,
        }
    }
    sorting.finish(|rows| deliver(rows.into()))?;
    Ok(counts)
}

/// What makes rows of articles.
struct ArticleRows<'a> {
    plan: &'a DatasetPlan,
    tickers: HashSet<Ticker>,
    past: Option<Past>,
    copies: Copies,
}

impl ArticleRows<'_> {
    /// The rows of known articles that are selected, in the columns of the plan.
    fn of(&mut self, cells: &RecordBatch, counts: &mut Counts) -> Result<RecordBatch, ArrowError> {
        let plan = self.plan;
        let column = |name: &str| cells.column_by_name(name).expect("known articles have the column");
        let dates = naive::dates_of(cells, plan.dates);
        let copies: ArrayRef = match plan.dates {
            NaiveRule::Utc => Arc::clone(column("copy")),
            _ => Arc::new(self.copies.of(cells, &dates)?),
        };
        let tickers: &DictionaryArray<Int32Type> = column("ticker").as_dictionary();
        let names = tickers.values().as_string::<i32>();
        let parsed: Vec<Option<Ticker>> = names.iter().map(|name| name?.parse().ok()).collect();
        let repeats = column("repeats").as_primitive::<Int32Type>().values();
        let scores = column("score").as_primitive::<Float64Type>();
        let micros = |day: Option<NaiveDate>| day.map(|day| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
        let (from, to) = (micros(plan.filter.from), micros(plan.filter.to));
        let live = Live { plan, past: None };
        let instants = |name: &str| column(name).as_primitive::<TimestampMicrosecondType>().values();
        let (written, first) = (instants("date"), instants("first_observed_at"));
        let mut is_kept = |row: usize| {
            let ticker = &parsed[tickers.keys().value(row) as usize];
            let is_member =
                |ticker: &Ticker| self.tickers.contains(ticker) && plan.filter.has_member(ticker, dates[row]);
            let is_selected = ticker.as_ref().is_some_and(is_member)
                && from.is_none_or(|from| dates[row] >= from)
                && to.is_none_or(|to| dates[row] < to);
            if !is_selected {
                return false;
            }
            let is_repeated = repeats[row] > 0 && plan.duplicates == Duplicates::Once;
            counts.seen_live += u64::from(!is_repeated && !live.is_backfilled(written[row], first[row]));
            let score = scores.is_valid(row).then(|| scores.value(row));
            counts.articles.count((!is_repeated).then_some(score));
            !is_repeated
        };
        let is_kept: BooleanArray = (0..cells.num_rows()).map(|row| Some(is_kept(row))).collect();
        let dates: ArrayRef = Arc::new(TimestampMicrosecondArray::from(dates));
        let columns = plan.columns.iter().map(|&wanted| -> Result<ArrayRef, ArrowError> {
            match wanted {
                Column::Ticker => cast(&filter(tickers, &is_kept)?, &DataType::Utf8),
                Column::Date => filter(&dates, &is_kept),
                Column::Copy => filter(&copies, &is_kept),
                Column::Id => {
                    let days = dates.as_primitive::<TimestampMicrosecondType>().values();
                    let id = |row: usize| {
                        let ticker = parsed[tickers.keys().value(row) as usize].as_ref()?;
                        plan.identity.id(ticker, day_of(days[row]))
                    };
                    filter(&(0..cells.num_rows()).map(id).collect::<StringArray>(), &is_kept)
                }
                Column::Sector | Column::SectorLatest => {
                    let sector = |row: usize| {
                        let ticker = parsed[tickers.keys().value(row) as usize].as_ref()?;
                        let past = self.past.as_ref()?;
                        let sector = match wanted {
                            Column::Sector => past.sector_at(ticker, past.seal_time(first[row])),
                            _ => past.latest_sector(ticker),
                        };
                        sector.map(Sector::as_str)
                    };
                    filter(&(0..cells.num_rows()).map(sector).collect::<StringArray>(), &is_kept)
                }
                Column::Backfilled => {
                    let late = written.iter().zip(first).map(|(date, first)| live.is_backfilled(*date, *first));
                    filter(&late.map(Some).collect::<BooleanArray>(), &is_kept)
                }
                Column::Claimed => {
                    let seen = column("observed_at").as_primitive::<TimestampMicrosecondType>().values().iter();
                    let past = self.past.as_ref();
                    let is_claimed = |seen: &i64| Some(past.is_some_and(|past| past.is_claimed(*seen, i64::MAX)));
                    filter(&seen.map(is_claimed).collect::<BooleanArray>(), &is_kept)
                }
                Column::WatchedUntil => {
                    let of_list = |ticker: &Option<Ticker>| {
                        let table = Some(Table::Articles);
                        let key = SeriesKey { table, ticker: ticker.clone()?, period: None, regime: None };
                        self.past.as_ref()?.watched_until(&key)
                    };
                    let until: Vec<Option<i64>> = parsed.iter().map(of_list).collect();
                    let until = tickers.keys().values().iter().map(|key| until[*key as usize]);
                    filter(&until.collect::<TimestampMicrosecondArray>().with_timezone("UTC"), &is_kept)
                }
                other => filter(column(other.name()), &is_kept),
            }
        });
        RecordBatch::try_new(Arc::clone(&plan.schema), columns.collect::<Result<_, _>>()?)
    }
}

/// The rows of a batch in the order of the plan.
pub(super) fn sort(batch: &RecordBatch, plan: &DatasetPlan) -> Result<RecordBatch, ArrowError> {
    let column = |column: &Column| batch.column_by_name(column.name()).cloned();
    let columns: Vec<ArrayRef> = plan.sort.iter().filter_map(column).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_unstable_by(|&one, &other| keys.row(one as usize).cmp(&keys.row(other as usize)));
    take_record_batch(batch, &UInt32Array::from(order))
}
