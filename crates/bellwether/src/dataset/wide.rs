//! The rows of a dataset as matrices: dates down, tickers across, one per period, regime and value.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;

use super::external_sort::join_failed;
use crate::columns::Rows;
use crate::error::Result;
use crate::interface::{Period, Regime, Signal};
use crate::plan::Column;
use crate::tables::{self, TypedRows};

/// Matrices being filled. Rows come ticker by ticker.
#[derive(Debug)]
pub struct Wide {
    /// The columns that become matrices.
    values: Vec<String>,
    /// The column that dates the rows: that of dates, or of the sessions of entry.
    stamp: Column,
    matrices: BTreeMap<(Period, Regime), Vec<PairHistory>>,
}

/// The values of one ticker in one period and regime.
#[derive(Debug)]
struct PairHistory {
    ticker: String,
    /// Shared: most tickers have the same dates as the one before.
    dates: Arc<Vec<i64>>,
    /// A column per value.
    values: Vec<ArrayRef>,
}

impl Wide {
    /// Empty matrices for some columns.
    pub fn new(values: &[String], stamp: Column) -> Self {
        Self { values: values.to_vec(), stamp, matrices: BTreeMap::new() }
    }

    /// Adds rows of a long dataset, sorted by ticker and date.
    ///
    /// # Errors
    ///
    /// Never in practice: the columns are those that the plan names.
    pub fn add(&mut self, rows: &Rows) -> Result<()> {
        rows.flat().and_then(|rows| self.add_rows(&rows)).map_err(join_failed)
    }

    fn add_rows(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let typed = TypedRows(rows);
        let (tickers, dates) = (typed.texts(Column::Ticker.name()), typed.instants(self.stamp.name()));
        let periods = typed.choices::<Period>(Column::Period.name());
        let regimes = typed.choices::<Regime>(Column::Regime.name());
        let values = self.values.iter().map(|name| matrix_values(name, typed));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let mut start = 0;
        while start < rows.num_rows() {
            let ticker = tickers.value(start);
            let end = (start..rows.num_rows()).find(|&row| tickers.value(row) != ticker).unwrap_or(rows.num_rows());
            let mut by_pair: BTreeMap<(Period, Regime), Vec<u32>> = BTreeMap::new();
            for row in start..end {
                // What has no session cannot be traded. Of two dates with one session, the later one counts.
                if dates.is_null(row) {
                    continue;
                }
                let pair = periods[row].zip(regimes[row]).expect("a dataset holds known spellings only");
                let rows = by_pair.entry(pair).or_default();
                rows.pop_if(|last| dates.value(*last as usize) == dates.value(row));
                rows.push(row as u32);
            }
            for (pair, indices) in by_pair {
                let indices = UInt32Array::from(indices);
                let own: Vec<i64> = indices.values().iter().map(|&row| dates.value(row as usize)).collect();
                let values = values.iter().map(|column| take(column, &indices, None)).collect::<Result<_, _>>()?;
                let histories = self.matrices.entry(pair).or_default();
                let dates = match histories.last() {
                    Some(last) if *last.dates == own => Arc::clone(&last.dates),
                    _ => Arc::new(own),
                };
                histories.push(PairHistory { ticker: ticker.to_owned(), dates, values });
            }
            start = end;
        }
        Ok(())
    }

    /// Delivers every matrix, by period, regime and value.
    ///
    /// # Errors
    ///
    /// If `deliver` fails.
    pub fn finish(self, mut deliver: impl FnMut(Period, Regime, &str, &RecordBatch) -> Result<()>) -> Result<()> {
        for ((period, regime), histories) in self.matrices {
            let mut dates: Vec<i64> = Vec::new();
            for history in &histories {
                if dates != *history.dates {
                    dates.extend_from_slice(&history.dates);
                    dates.sort_unstable();
                    dates.dedup();
                }
            }
            for (index, value) in self.values.iter().enumerate() {
                deliver(period, regime, value, &matrix(&dates, &histories, index).map_err(join_failed)?)?;
            }
        }
        Ok(())
    }
}

fn matrix(dates: &[i64], histories: &[PairHistory], value: usize) -> Result<RecordBatch, ArrowError> {
    let mut fields = vec![Field::new(Column::Date.name(), tables::date(), false)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(TimestampMicrosecondArray::from(dates.to_vec()))];
    for history in histories {
        let values = &history.values[value];
        let index_of = |date: &i64| history.dates.binary_search(date).ok().map(|index| index as u32);
        let indices: UInt32Array = dates.iter().map(index_of).collect();
        fields.push(Field::new(&history.ticker, values.data_type().clone(), true));
        columns.push(take(values, &indices, None)?);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The values of a column in a matrix: a signal is 1 for buy and -1 for sell.
fn matrix_values(name: &str, rows: TypedRows<'_>) -> Result<ArrayRef, ArrowError> {
    if name == Column::Signal.name() {
        let sign = |signal: Option<Signal>| Some(if signal? == Signal::Buy { 1.0 } else { -1.0 });
        return Ok(Arc::new(rows.choices(name).into_iter().map(sign).collect::<Float64Array>()));
    }
    let column = rows.column(name);
    match column.data_type() {
        // A dictionary would repeat the names for each ticker.
        DataType::Dictionary(..) => arrow::compute::cast(column, &DataType::Utf8),
        _ => Ok(Arc::clone(column)),
    }
}
