//! Datasets to which nothing is joined: of news, with a row for each article as it was known, and of all vintages, with a row
//! for each value that a signal had.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::{take, take_record_batch};
use arrow::datatypes::Int8Type;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::copies::Copies;
use super::external_sort::ExternalSort;
use super::live::is_backfilled;
use super::naive;
use super::signals::{SeriesNames, choice_column, instants, scores};
use super::{Counts, join_failed};
use crate::columns::Rows;
use crate::error::Result;
use crate::interface::{Period, Regime, Sector, Signal, Ticker};
use crate::plan::{Column, DatasetPlan, Duplicates, NaiveRule};
use crate::process::cancel::CancellationToken;
use crate::process::in_order::in_order;
use crate::sessions::day_of;
use crate::tables::{Past, SeriesKey, Table, TypedRows};

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
    // The archive keeps the tickers and dates in order, and whole dates together; only another clock can change that.
    let is_in_order = plan.sort == Column::KEY_OF_ARTICLES && plan.dates == NaiveRule::Utc;
    let mut sorting = ExternalSort::new(plan, is_in_order, scratch, stop)?;
    let (mut copies, mut counts) = (Copies::default(), Counts::default());
    for cells in cells {
        let batch = article_rows(&cells?, (&tickers, past.as_ref()), plan, &mut copies, &mut counts);
        let batch = batch.and_then(|batch| sort(&batch, plan)).map_err(join_failed)?;
        sorting.add(batch.into(), &mut deliver)?;
    }
    sorting.finish(&mut deliver)?;
    Ok(counts)
}

/// The rows of known articles that are selected, in the columns of the plan.
fn article_rows(
    cells: &RecordBatch,
    (selected, past): (&HashSet<Ticker>, Option<&Past>),
    plan: &DatasetPlan,
    copies: &mut Copies,
    counts: &mut Counts,
) -> Result<RecordBatch, ArrowError> {
    let typed = TypedRows(cells);
    let dates = naive::dates_of(cells, plan.dates);
    let copies: ArrayRef = match plan.dates {
        NaiveRule::Utc => Arc::clone(typed.column("copy")),
        _ => Arc::new(copies.number_all(cells, &dates)?),
    };
    let (tickers, repeats, scores) = (Tickers::new(typed), typed.whole("repeats").values(), typed.reals("score"));
    let (written, first) = (typed.instants("date").values(), typed.instants("first_observed_at").values());
    let observed = typed.instants("observed_at").values();
    let days = plan.filter.dates();
    let mut rows = Vec::new();
    for row in 0..cells.num_rows() {
        let is_member = |ticker: &&Ticker| selected.contains(*ticker) && plan.filter.has_member(ticker, dates[row]);
        let Some(ticker) = tickers.of_row(row).filter(is_member).filter(|_| days.contains(&dates[row])) else {
            continue;
        };
        let is_repeated = repeats[row] > 0 && plan.duplicates == Duplicates::Once;
        let is_backfilled = is_backfilled(written[row], first[row], plan);
        counts.seen_live += u64::from(!is_repeated && !is_backfilled);
        counts.articles.count((!is_repeated).then(|| scores.is_valid(row).then(|| scores.value(row))));
        if !is_repeated {
            let (date, first, observed) = (dates[row], first[row], observed[row]);
            rows.push(Selected { row: row as u32, ticker, date, first, observed, until: None, is_backfilled });
        }
    }
    let kept: UInt32Array = rows.iter().map(|row| row.row).collect::<Vec<u32>>().into();
    let columns = plan.columns.iter().map(|&wanted| match wanted {
        Column::Copy => take(&copies, &kept, None),
        Column::WatchedUntil => {
            let until = |row: &Selected<'_>| {
                let ticker = row.ticker.clone();
                past?.watched_until(&SeriesKey { table: Some(Table::Articles), ticker, period: None, regime: None })
            };
            let until = rows.iter().map(until).collect::<TimestampMicrosecondArray>();
            Ok(Arc::new(until.with_timezone("UTC")) as ArrayRef)
        }
        _ => match common(wanted, &rows, plan, past) {
            Some(values) => Ok(values),
            None => take(typed.column(wanted.name()), &kept, None),
        },
    });
    RecordBatch::try_new(Arc::clone(&plan.schema), columns.collect::<Result<_, _>>()?)
}

/// The input of a dataset of all vintages.
pub struct Observations<'a, Values> {
    /// The values of signals over time, in whole tickers, in the order of their cells.
    pub values: Values,
    /// The series that are selected.
    pub series: HashSet<SeriesKey>,
    /// The names that they have.
    pub names: SeriesNames,
    /// The past of the archive, if the dataset depends on it.
    pub past: Option<Past>,
    /// Cancels the build.
    pub stop: &'a CancellationToken,
}

/// Builds a dataset of all vintages and delivers its rows, batch by batch, in the order of the plan.
///
/// # Errors
///
/// If the values cannot be read, if `deliver` fails, or once the token is cancelled.
pub fn observations<V: Iterator<Item = Result<RecordBatch>>>(
    sources: Observations<'_, impl FnOnce() -> Result<V> + Send>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let Observations { values, series, names, past, stop } = sources;
    // The archive has its tickers in order.
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut sorting = ExternalSort::new(plan, is_ticker_first, scratch, stop)?;
    let mut counts = Counts::default();
    in_order(
        values,
        |values| {
            let (batch, counted) = value_rows(&values, &series, &names, past.as_ref(), plan).map_err(join_failed)?;
            Ok((sort(&batch, plan).map_err(join_failed)?, counted))
        },
        |(batch, counted)| {
            counts += counted;
            sorting.add(batch.into(), &mut deliver)
        },
    )?;
    sorting.finish(&mut deliver)?;
    Ok(counts)
}

/// The selected values of some tickers, in the columns of the plan.
fn value_rows(
    values: &RecordBatch,
    series: &HashSet<SeriesKey>,
    names: &SeriesNames,
    past: Option<&Past>,
    plan: &DatasetPlan,
) -> Result<(RecordBatch, Counts), ArrowError> {
    let typed = TypedRows(values);
    let tickers = Tickers::new(typed);
    let (rows, counts) = select_values(typed, &tickers, series, plan);
    let kept: UInt32Array = rows.iter().map(|row| row.row).collect::<Vec<u32>>().into();
    let signals = choice_column(typed.column("signal"), &Signal::ALL.map(Signal::as_str));
    let columns = plan.columns.iter().map(|&wanted| match wanted {
        Column::Period => take(&choice_column(typed.column("period"), &names.periods), &kept, None),
        Column::Regime => take(&choice_column(typed.column("regime"), &names.regimes), &kept, None),
        Column::Signal => take(&signals, &kept, None),
        Column::Confidence => take(typed.column("confidence"), &kept, None),
        Column::Score => take(&scores(&signals, typed.column("confidence")), &kept, None),
        Column::KnownFrom => Ok(instants(rows.iter().map(|row| row.observed).collect())),
        Column::KnownUntil => {
            let until = rows.iter().map(|row| row.until);
            Ok(Arc::new(until.collect::<TimestampMicrosecondArray>().with_timezone("UTC")) as ArrayRef)
        }
        Column::FirstObservedAt => Ok(instants(rows.iter().map(|row| row.first).collect())),
        _ => common(wanted, &rows, plan, past)
            .ok_or_else(|| ArrowError::SchemaError(format!("no value says its {}", wanted.name()))),
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok((RecordBatch::try_new(Arc::clone(&plan.schema), columns)?, counts))
}

/// The value of a cell before the next one.
struct LastValue {
    signal: Signal,
    confidence: f64,
    until: Option<i64>,
    /// Its index among those that are selected, if it is.
    place: Option<usize>,
}

/// The values that the plan selects.
fn select_values<'t>(
    rows: TypedRows<'_>,
    tickers: &'t Tickers<'_>,
    members: &HashSet<SeriesKey>,
    plan: &DatasetPlan,
) -> (Vec<Selected<'t>>, Counts) {
    let (written, until, offsets) = (rows.instants("date"), rows.instants("seen_until"), rows.offsets());
    let (from, confidences) = (rows.instants("seen_from").values(), rows.reals("confidence").values());
    let (periods, regimes) = (meanings::<Period>(rows.column("period")), meanings::<Regime>(rows.column("regime")));
    let signals = meanings::<Signal>(rows.column("signal"));
    let days = plan.filter.dates();
    let (mut selected, mut counts): (Vec<Selected<'_>>, Counts) = (Vec::new(), Counts::default());
    let mut series: Option<(&Ticker, Period, Regime, bool)> = None;
    // The dates of the series, each with the cell that has it: of several, the first one counts, as in every dataset.
    let mut cells: HashMap<i64, i64> = HashMap::new();
    let mut cell: Option<(i64, i64)> = None;
    let mut last: Option<LastValue> = None;
    for row in 0..written.len() {
        let said = (tickers.of_row(row), periods[row], regimes[row], signals[row]);
        let (Some(ticker), Some(period), Some(regime), Some(signal)) = said else { continue };
        let (confidence, from) = (confidences[row], from[row]);
        if series.is_none_or(|(of, its, regime_of, _)| (of, its, regime_of) != (ticker, period, regime)) {
            let table = Some(Table::Signals);
            let key = SeriesKey { table, ticker: ticker.clone(), period: Some(period), regime: Some(regime) };
            series = Some((ticker, period, regime, members.contains(&key)));
            (cell, last) = (None, None);
            cells.clear();
        }
        if written.is_null(row) || series.is_none_or(|(.., is_member)| !is_member) {
            continue;
        }
        let written = written.value(row);
        if cell.is_none_or(|(date, _)| date != written) {
            (cell, last) = (Some((written, from)), None);
        }
        let first = cell.map_or(0, |(_, first)| first);
        let date = plan.dates.face(written, offsets.is_valid(row).then(|| offsets.value(row)));
        let until = until.is_valid(row).then(|| until.value(row));
        // A value that another row repeats, with an offset or unknown fields that differ, goes on.
        if let Some(before) = &mut last
            && (before.signal, before.confidence) == (signal, confidence)
            && before.until == Some(from)
        {
            before.until = until;
            if let Some(place) = before.place {
                selected[place].until = until;
            }
            continue;
        }
        if *cells.entry(date).or_insert(written) != written {
            counts.repeated_signals += u64::from(last.is_none());
            last = Some(LastValue { signal, confidence, until, place: None });
            continue;
        }
        let is_selected =
            days.contains(&date) && plan.filter.has_member(ticker, date) && plan.filter.takes_value(signal, confidence);
        last = Some(LastValue { signal, confidence, until, place: is_selected.then_some(selected.len()) });
        if is_selected {
            let is_backfilled = is_backfilled(written, first, plan);
            counts.seen_live += u64::from(!is_backfilled);
            selected.push(Selected { row: row as u32, ticker, date, first, observed: from, until, is_backfilled });
        }
    }
    (selected, counts)
}

/// The values of a column of a closed set.
fn meanings<T: std::str::FromStr + Copy>(column: &ArrayRef) -> Vec<Option<T>> {
    let column = column.as_dictionary::<Int8Type>();
    let spelled: Vec<Option<T>> = column.values().as_string::<i32>().iter().map(|name| name?.parse().ok()).collect();
    column.keys().iter().map(|key| spelled[key? as usize]).collect()
}

/// The tickers of some rows.
struct Tickers<'a> {
    parsed: Vec<Option<Ticker>>,
    keys: &'a [i32],
}

impl<'a> Tickers<'a> {
    fn new(rows: TypedRows<'a>) -> Self {
        let tickers = rows.symbols("ticker");
        let names = tickers.values().as_string::<i32>().iter();
        Self { parsed: names.map(|name| name?.parse().ok()).collect(), keys: tickers.keys().values() }
    }

    fn of_row(&self, row: usize) -> Option<&Ticker> {
        self.parsed[self.keys[row] as usize].as_ref()
    }
}

/// A row that is selected.
struct Selected<'a> {
    /// Its row among those of the archive.
    row: u32,
    ticker: &'a Ticker,
    /// Its naive date.
    date: i64,
    /// When its cell was first seen.
    first: i64,
    /// When its value was seen, and until when it was known.
    observed: i64,
    until: Option<i64>,
    is_backfilled: bool,
}

/// The columns that rows of both kinds have, by their ticker and by when they were seen; none for others.
fn common(wanted: Column, rows: &[Selected<'_>], plan: &DatasetPlan, past: Option<&Past>) -> Option<ArrayRef> {
    Some(match wanted {
        Column::Ticker => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.ticker.as_str()))),
        Column::Date => Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.date))),
        Column::Id => {
            let ids = rows.iter().map(|row| plan.identity.id(row.ticker, day_of(row.date)));
            Arc::new(ids.collect::<StringArray>())
        }
        Column::Sector => {
            let sector = |row: &Selected<'_>| past?.sector_at(row.ticker, past?.seal_time(row.first));
            Arc::new(rows.iter().map(|row| sector(row).map(Sector::as_str)).collect::<StringArray>())
        }
        Column::SectorLatest => {
            let sectors = rows.iter().map(|row| past?.latest_sector(row.ticker).map(Sector::as_str));
            Arc::new(sectors.collect::<StringArray>())
        }
        Column::Backfilled => {
            Arc::new(BooleanArray::from(rows.iter().map(|row| row.is_backfilled).collect::<Vec<bool>>()))
        }
        Column::Claimed => {
            let is_claimed = |row: &Selected<'_>| past.is_some_and(|past| past.is_claimed(row.observed, i64::MAX));
            Arc::new(BooleanArray::from(rows.iter().map(is_claimed).collect::<Vec<bool>>()))
        }
        _ => return None,
    })
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
