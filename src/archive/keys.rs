//! The series of rows: read from the columns that name them.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int32Type};

use super::by_ticker::ticker;
use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::SeriesKey;

/// Each stretch of rows of one series.
pub(super) fn ranges(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = Spelled::<Period>::of(rows, "period");
    let regimes = Spelled::<Regime>::of(rows, "regime");
    let sources = Spelled::<Endpoint>::of(rows, "source");
    let tickers = rows.column(0).as_dictionary::<Int32Type>().keys().values();
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for row in 0..rows.num_rows() {
        let (period, regime) = (periods.get(row)?, regimes.get(row)?);
        let source = sources.get(row)?.ok_or("a row has no source")?;
        if let Some((key, range)) = ranges.last_mut() {
            let is_same = (key.period, key.regime, key.source) == (period, regime, source);
            // Codes of one batch may stand twice for one name, but not two names for one code.
            if is_same && (tickers[row] == tickers[row - 1] || key.ticker.as_str() == ticker(rows, row)) {
                range.end = row + 1;
                continue;
            }
        }
        let symbol = ticker(rows, row);
        let ticker = match ranges.last() {
            Some((last, _)) if last.ticker.as_str() == symbol => last.ticker.clone(),
            _ => symbol.parse().map_err(|_| format!("`{symbol}` is no ticker"))?,
        };
        ranges.push((SeriesKey { ticker, period, regime, source }, row..row + 1));
    }
    Ok(ranges)
}

/// A column of spellings, by what they spell. A column that is not there says nothing in every row.
struct Spelled<'a, T> {
    column: Option<&'a DictionaryArray<Int8Type>>,
    /// What the spellings mean. Those that no row has may mean nothing: a reader may put some there.
    meanings: Vec<Option<T>>,
    name: &'a str,
}

impl<'a, T: FromStr + Copy> Spelled<'a, T> {
    fn of(rows: &'a RecordBatch, name: &'a str) -> Self {
        let column = rows.column_by_name(name).map(|column| column.as_dictionary::<Int8Type>());
        let spellings = column.iter().flat_map(|column| column.values().as_string::<i32>().iter());
        Self { column, meanings: spellings.map(|text| text?.parse().ok()).collect(), name }
    }

    fn get(&self, row: usize) -> Result<Option<T>, Reason> {
        let Some(column) = self.column.filter(|column| column.keys().is_valid(row)) else { return Ok(None) };
        let code = column.keys().value(row) as usize;
        let unknown = || format!("`{}` is no {}", column.values().as_string::<i32>().value(code), self.name);
        self.meanings[code].map(Some).ok_or_else(|| unknown().into())
    }
}
