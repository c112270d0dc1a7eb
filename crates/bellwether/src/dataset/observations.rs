//! A dataset of all vintages: a row for each value that a signal had, with when it was known.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Float64Array, Int8Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{NaiveDate, NaiveTime};

use super::articles::sort;
use super::external_sort::ExternalSort;
use super::live::Live;
use super::series_names::{SeriesNames, dictionary};
use super::slab_columns::Ranked;
use super::{Counts, join_failed};
use crate::columns::Rows;
use crate::error::Result;
use crate::interface::{Period, Regime, Sector, Signal, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::process::cancel::{self, CancellationToken};
use crate::process::in_order::in_order;
use crate::sessions::day_of;
use crate::tables::{Past, SeriesKey, Table, choices};

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
    let rows = ObservationRows { plan, series, names, past };
    // The archive has its tickers in order.
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let (mut sorting, mut counts) = (ExternalSort::new(plan, scratch, stop)?, Counts::default());
    in_order(
        values,
        |values| {
            let (batch, counted) = rows.of(&values).map_err(join_failed)?;
            Ok((sort(&batch, plan).map_err(join_failed)?, counted))
        },
        |(batch, counted)| {
            cancel::check(stop)?;
            counts += counted;
            match (batch.num_rows(), is_ticker_first) {
                (0, _) => Ok(()),
                (_, true) => deliver(batch.into()),
                (_, false) => sorting.add(&batch),
            }
        },
    )?;
    sorting.finish(|rows| deliver(rows.into()))?;
    Ok(counts)
}

/// What makes rows of values.
struct ObservationRows<'a> {
    plan: &'a DatasetPlan,
    series: HashSet<SeriesKey>,
    names: SeriesNames,
    past: Option<Past>,
}

/// A value that is selected.
struct Selected {
    /// Its first row among the values of the archive.
    row: usize,
    date: i64,
    from: i64,
    until: Option<i64>,
    /// When the signal was first seen.
    first: i64,
}

/// The value of a cell before the next one.
struct LastValue {
    signal: Signal,
    confidence: f64,
    until: Option<i64>,
    /// Its index among those that are selected, if it is.
    place: Option<usize>,
}

impl ObservationRows<'_> {
    /// The selected values of some tickers, in the columns of the plan.
    fn of(&self, values: &RecordBatch) -> Result<(RecordBatch, Counts), ArrowError> {
        let column = |name: &str| values.column_by_name(name).expect("values over time have the column");
        let tickers: &DictionaryArray<Int32Type> = column("ticker").as_dictionary();
        let parsed: Vec<Option<Ticker>> =
            tickers.values().as_string::<i32>().iter().map(|name| name?.parse().ok()).collect();
        let ticker = |row: usize| parsed[tickers.keys().value(row) as usize].as_ref();
        let [periods, regimes, signals] = ["period", "regime", "signal"].map(&column);
        let (periods, regimes) = (names_of::<Period>(periods), names_of::<Regime>(regimes));
        let signals = names_of::<Signal>(signals);
        let confidences = column("confidence").as_primitive::<Float64Type>().values();
        let (selected, counts) = self
            .select(values, |row| Some((ticker(row)?, periods[row]?, regimes[row]?, signals[row]?, confidences[row])));
        let instants = |instant: &dyn Fn(&Selected) -> Option<i64>| -> ArrayRef {
            Arc::new(selected.iter().map(instant).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        };
        let texts = |text: &dyn Fn(&Selected) -> Option<String>| -> ArrayRef {
            Arc::new(selected.iter().map(text).collect::<StringArray>())
        };
        let past = self.past.as_ref();
        let live = Live { plan: self.plan, past: None };
        let written = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let columns = self.plan.columns.iter().map(|wanted| -> Result<ArrayRef, ArrowError> {
            Ok(match wanted {
                Column::Ticker => texts(&|it| ticker(it.row).map(ToString::to_string)),
                Column::Date => {
                    Arc::new(TimestampMicrosecondArray::from_iter_values(selected.iter().map(|it| it.date)))
                }
                Column::Period => names(selected.iter().map(|it| periods[it.row]), &self.names.periods, Period::as_str),
                Column::Regime => names(selected.iter().map(|it| regimes[it.row]), &self.names.regimes, Regime::as_str),
                Column::Signal => names(selected.iter().map(|it| signals[it.row]), &BTreeSet::new(), Signal::as_str),
                Column::Confidence => {
                    Arc::new(Float64Array::from_iter_values(selected.iter().map(|it| confidences[it.row])))
                }
                Column::Score => {
                    let sign = |row: usize| if signals[row] == Some(Signal::Sell) { -1.0 } else { 1.0 };
                    let scores = selected.iter().map(|it| sign(it.row) * confidences[it.row]);
                    Arc::new(Float64Array::from_iter_values(scores))
                }
                Column::KnownFrom => instants(&|it| Some(it.from)),
                Column::KnownUntil => instants(&|it| it.until),
                Column::FirstObservedAt => instants(&|it| Some(it.first)),
                Column::Sector => texts(&|it| {
                    let past = past?;
                    past.sector_at(ticker(it.row)?, past.seal_time(it.first)).map(Sector::to_string)
                }),
                Column::SectorLatest => texts(&|it| past?.latest_sector(ticker(it.row)?).map(Sector::to_string)),
                Column::Id => {
                    texts(&|it| self.plan.identity.id(ticker(it.row)?, day_of(it.date)).map(ToString::to_string))
                }
                Column::Backfilled => {
                    let late = selected.iter().map(|it| Some(live.is_backfilled(written[it.row], it.first)));
                    Arc::new(late.collect::<BooleanArray>())
                }
                Column::Claimed => {
                    let is_claimed = |it: &Selected| past.is_some_and(|past| past.is_claimed(it.from, i64::MAX));
                    Arc::new(selected.iter().map(|it| Some(is_claimed(it))).collect::<BooleanArray>())
                }
                other => return Err(ArrowError::SchemaError(format!("no value says its {}", other.name()))),
            })
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok((RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?, counts))
    }

    /// The values that the plan selects, by what each row says.
    fn select<'r>(
        &self,
        values: &RecordBatch,
        said: impl Fn(usize) -> Option<(&'r Ticker, Period, Regime, Signal, f64)>,
    ) -> (Vec<Selected>, Counts) {
        let plan = self.plan;
        let column = |name: &str| values.column_by_name(name).expect("values over time have the column");
        let instants = |name: &str| column(name).as_primitive::<TimestampMicrosecondType>();
        let (written, from, until) = (instants("date"), instants("seen_from"), instants("seen_until"));
        let offsets = column("utc_offset_minutes").as_primitive::<Int16Type>();
        let start = |day: Option<NaiveDate>| day.map(|day| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
        let (begin, end) = (start(plan.filter.from), start(plan.filter.to));
        let live = Live { plan, past: None };
        let (mut selected, mut counts): (Vec<Selected>, Counts) = (Vec::new(), Counts::default());
        let mut series: Option<(&Ticker, Period, Regime, bool)> = None;
        // The dates of the series, each with the cell that has it: of several, the first one counts, as in every dataset.
        let mut cells: HashMap<i64, i64> = HashMap::new();
        let mut cell: Option<(i64, i64)> = None;
        let mut last: Option<LastValue> = None;
        for row in 0..values.num_rows() {
            let Some((ticker, period, regime, signal, confidence)) = said(row) else { continue };
            if series.is_none_or(|(of, its, regime_of, _)| (of, its, regime_of) != (ticker, period, regime)) {
                let table = Some(Table::Signals);
                let key = SeriesKey { table, ticker: ticker.clone(), period: Some(period), regime: Some(regime) };
                series = Some((ticker, period, regime, self.series.contains(&key)));
                (cell, last) = (None, None);
                cells.clear();
            }
            if written.is_null(row) || series.is_none_or(|(.., is_member)| !is_member) {
                continue;
            }
            if cell.is_none_or(|(date, _)| date != written.value(row)) {
                (cell, last) = (Some((written.value(row), from.value(row))), None);
            }
            let first = cell.map_or(0, |(_, first)| first);
            let offset = offsets.is_valid(row).then(|| offsets.value(row));
            let date = plan.dates.face(written.value(row), offset);
            let until = until.is_valid(row).then(|| until.value(row));
            // A value that another row repeats, with an offset or unknown fields that differ, goes on.
            if let Some(before) = &mut last
                && (before.signal, before.confidence) == (signal, confidence)
                && before.until == Some(from.value(row))
            {
                before.until = until;
                if let Some(place) = before.place {
                    selected[place].until = until;
                }
                continue;
            }
            if *cells.entry(date).or_insert(written.value(row)) != written.value(row) {
                counts.repeated_signals += u64::from(last.is_none());
                last = Some(LastValue { signal, confidence, until, place: None });
                continue;
            }
            let is_selected = begin.is_none_or(|begin| date >= begin)
                && end.is_none_or(|end| date < end)
                && plan.filter.has_member(ticker, date)
                && plan.filter.takes_value(signal, confidence);
            last = Some(LastValue { signal, confidence, until, place: is_selected.then_some(selected.len()) });
            if is_selected {
                counts.seen_live += u64::from(!live.is_backfilled(written.value(row), first));
                selected.push(Selected { row, date, from: from.value(row), until, first });
            }
        }
        (selected, counts)
    }
}

/// The values of a column of a closed set.
fn names_of<T: std::str::FromStr + Copy>(column: &ArrayRef) -> Vec<Option<T>> {
    let column = column.as_dictionary::<Int8Type>();
    let spelled: Vec<Option<T>> = column.values().as_string::<i32>().iter().map(|name| name?.parse().ok()).collect();
    column.keys().iter().map(|key| spelled[key? as usize]).collect()
}

/// A column of a closed set, of which only some names occur.
fn names<T: Ranked + Ord>(
    values: impl Iterator<Item = Option<T>>,
    occurring: &BTreeSet<T>,
    spelled: fn(T) -> &'static str,
) -> ArrayRef {
    let (names, _) = dictionary(occurring, spelled);
    let code = |value: T| names.binary_search(&spelled(value)).map_or(0, |code| code as i8);
    let codes: Int8Array = values.map(|value| value.map(code)).collect();
    choices(codes, names)
}
