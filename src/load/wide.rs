//! A long dataset as matrices: dates down, tickers across, one for each period, regime and value.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int8Array, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::{cast, concat_batches, take};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::published::no_value;
use super::{Dataset, Selection};
use crate::error::{Error, Reason, Result};
use crate::interface::{Period, Regime, Signal};
use crate::plan::{Column, ColumnNames};
use crate::tables::date;

/// The rows of one ticker in one period and regime: dates and row numbers.
type DatedRows = Vec<(i64, u32)>;

/// The rows of each ticker in one period and regime.
type RowsByTicker<'a> = BTreeMap<&'a str, DatedRows>;

impl Dataset {
    /// A long dataset as matrices of some of its columns, by the name that a wide version gives them:
    /// `5d-bull/confidence`. Each has a column of dates and a column per ticker. A signal is 1 for buy and -1 for sell.
    ///
    /// Only the key and these columns are read, whichever are selected. All rows are in memory.
    ///
    /// # Errors
    ///
    /// When the dataset does not have its key or one of the columns, and any error of reading it.
    pub fn matrices(&self, values: &[&str]) -> Result<BTreeMap<String, RecordBatch>> {
        let names = self.names();
        let key = Column::KEY.iter().map(|column| names.of(column.name()));
        let values: Vec<&str> = values.iter().copied().filter(|name| !key.clone().any(|key| key == *name)).collect();
        if values.is_empty() {
            return Err(no_value());
        }
        let columns = key.chain(values.iter().copied()).map(str::to_owned).collect();
        let part = self.select(Selection { columns: Some(columns), ..self.selection().clone() })?;
        let batches = part.rows()?.collect::<Result<Vec<_>>>()?;
        let rows = concat_batches(&part.schema(), &batches).map_err(Error::frame)?;
        matrices(&rows, names, &values).map_err(Error::frame)
    }
}

fn matrices(rows: &RecordBatch, names: &ColumnNames, values: &[&str]) -> Result<BTreeMap<String, RecordBatch>, Reason> {
    let columns = values.iter().map(|name| valued(name, names, rows)).collect::<Result<Vec<_>, _>>()?;
    let mut matrices = BTreeMap::new();
    for ((period, regime), tickers) in series(rows, names)? {
        let dates: BTreeSet<i64> = tickers.values().flatten().map(|(date, _)| *date).collect();
        let dates: Vec<i64> = dates.into_iter().collect();
        let places: Vec<UInt32Array> = tickers.values().map(|series| places(&dates, series)).collect();
        for (value, column) in values.iter().zip(&columns) {
            let mut fields = vec![Field::new(names.of(Column::Date.name()), date(), false)];
            fields.extend(tickers.keys().map(|ticker| Field::new(*ticker, column.data_type().clone(), true)));
            let mut matrix: Vec<ArrayRef> = vec![Arc::new(TimestampMicrosecondArray::from(dates.clone()))];
            for places in &places {
                matrix.push(take(column, places, None)?);
            }
            let matrix = RecordBatch::try_new(Arc::new(Schema::new(fields)), matrix)?;
            matrices.insert(format!("{period}-{regime}/{value}"), matrix);
        }
    }
    Ok(matrices)
}

/// The rows by period and regime, and by ticker, each in the order of dates.
fn series<'r>(
    rows: &'r RecordBatch,
    names: &ColumnNames,
) -> Result<BTreeMap<(Period, Regime), RowsByTicker<'r>>, Reason> {
    let column = |column: Column| rows.column_by_name(names.of(column.name())).expect("the column is selected");
    let tickers = column(Column::Ticker).as_string::<i32>();
    let dates = column(Column::Date).as_primitive::<TimestampMicrosecondType>().values();
    let (periods, regimes) = (codes(column(Column::Period)), codes(column(Column::Regime)));
    let mut places: HashMap<(&str, i8, i8), DatedRows> = HashMap::new();
    let mut start = 0;
    let key = |row: usize| (tickers.value(row), periods[row], regimes[row]);
    while start < rows.num_rows() {
        // Most orders keep the rows of a series together.
        let end = (start + 1..rows.num_rows()).find(|&row| key(row) != key(start)).unwrap_or(rows.num_rows());
        let series = places.entry(key(start)).or_default();
        series.extend((start..end).map(|row| (dates[row], row as u32)));
        start = end;
    }
    let mut series: BTreeMap<(Period, Regime), RowsByTicker<'r>> = BTreeMap::new();
    for ((ticker, period, regime), rows) in places {
        let pair = (name(column(Column::Period), period).parse()?, name(column(Column::Regime), regime).parse()?);
        // A name may have several codes, since each batch has its own dictionary.
        series.entry(pair).or_default().entry(ticker).or_default().extend(rows);
    }
    series.values_mut().flat_map(BTreeMap::values_mut).for_each(|rows| rows.sort_unstable());
    Ok(series)
}

/// The row with the value of each date.
fn places(dates: &[i64], series: &DatedRows) -> UInt32Array {
    let mut series = series.iter().peekable();
    let place = |date: &i64| series.next_if(|(own, _)| own == date).map(|(_, row)| *row);
    dates.iter().map(place).collect()
}

fn codes(column: &ArrayRef) -> &[i8] {
    column.as_dictionary::<Int8Type>().keys().values()
}

fn name(column: &ArrayRef, code: i8) -> &str {
    column.as_dictionary::<Int8Type>().values().as_string::<i32>().value(code as usize)
}

/// The values of a column in a matrix. A dictionary would repeat its names for each ticker.
fn valued(name: &str, names: &ColumnNames, rows: &RecordBatch) -> Result<ArrayRef, ArrowError> {
    let column = rows.column_by_name(name).expect("the column is selected");
    if names.own(name) == Column::Signal.name() {
        let texts = cast(column, &DataType::Utf8)?;
        let sign = |text: &str| if text == Signal::Buy.as_str() { 1 } else { -1 };
        return Ok(Arc::new(texts.as_string::<i32>().iter().map(|text| text.map(sign)).collect::<Int8Array>()));
    }
    match column.data_type() {
        DataType::Dictionary(..) => cast(column, &DataType::Utf8),
        _ => Ok(Arc::clone(column)),
    }
}
