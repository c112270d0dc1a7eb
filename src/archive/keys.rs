//! The series of rows: read from the columns that name them.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch};
use arrow::datatypes::Int8Type;

use super::by_ticker::ticker;
use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::SeriesKey;
use crate::turns::Turns;

/// Each stretch of rows of one series.
pub(super) fn ranges(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = Spelled::<Period>::of(rows, "period");
    let regimes = Spelled::<Regime>::of(rows, "regime");
    let sources = Spelled::<Endpoint>::of(rows, "source");
    let named = ["ticker", "period", "regime", "source"].into_iter().filter_map(|name| rows.column_by_name(name));
    let turns = named.map(|column| Turns::of(column)).reduce(|one, other| &one | &other);
    let turns = turns.ok_or("the rows name no series")?;
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for (start, end) in turns.runs() {
        let (period, regime) = (periods.get(start)?, regimes.get(start)?);
        let source = sources.get(start)?.ok_or("a row has no source")?;
        let symbol = ticker(rows, start);
        let last = ranges.last_mut().filter(|(last, _)| last.ticker.as_str() == symbol);
        let ticker = match last {
            // One name may stand under two codes.
            Some((last, range)) if (last.period, last.regime, last.source) == (period, regime, source) => {
                range.end = end;
                continue;
            }
            Some((last, _)) => last.ticker.clone(),
            None => symbol.parse().map_err(|_| format!("`{symbol}` is no ticker"))?,
        };
        ranges.push((SeriesKey { ticker, period, regime, source }, start..end));
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
