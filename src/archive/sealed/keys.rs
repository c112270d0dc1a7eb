//! Series keys, read from the columns of rows.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int32Type};

use super::rows::ticker;
use crate::columns::Boundaries;
use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::SeriesKey;

/// Contiguous rows of each series.
pub(in crate::archive) fn ranges(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = ParsedDictionary::<Period>::of(rows, "period");
    let regimes = ParsedDictionary::<Regime>::of(rows, "regime");
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for (start, end) in boundaries(rows)?.runs() {
        let (period, regime) = (periods.get(start)?, regimes.get(start)?);
        let source = sources.get(start)?.ok_or("a row has no source")?;
        let symbol = ticker(rows, start);
        let last = ranges.last_mut().filter(|(last, _)| last.ticker.as_str() == symbol);
        let ticker = match last {
            // One name may have two dictionary codes.
            Some((last, range)) if (last.period, last.regime, last.source) == (period, regime, source) => {
                range.end = end;
                continue;
            }
            Some((last, _)) => last.ticker.clone(),
            None => symbol.parse().map_err(|_| format!("`{symbol}` is not a ticker"))?,
        };
        ranges.push((SeriesKey { ticker, period, regime, source }, start..end));
    }
    Ok(ranges)
}

/// Boundaries between series.
pub(in crate::archive) fn boundaries(rows: &RecordBatch) -> Result<Boundaries, Reason> {
    let named = ["ticker", "period", "regime", "source"].into_iter().filter_map(|name| rows.column_by_name(name));
    let boundaries = named.map(|column| Boundaries::of(column)).reduce(|one, other| &one | &other);
    boundaries.ok_or_else(|| "a row has no series".into())
}

/// Ranks of the series of some rows: by ticker, period, regime and source. Missing and unknown values rank first.
pub(in crate::archive) fn ranks(rows: &RecordBatch, of: &[usize]) -> Vec<u64> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>();
    let code = |row: usize| tickers.keys().value(row) as usize;
    // The dictionary may have many more names than these rows use, and duplicates.
    let (mut codes, mut ticker_ranks) = (Vec::new(), vec![None; names.len()]);
    for &row in of {
        if ticker_ranks[code(row)].replace(0).is_none() {
            codes.push(code(row));
        }
    }
    codes.sort_unstable_by_key(|&code| names.value(code));
    for (rank, alike) in (0_u64..).zip(codes.chunk_by(|&one, &other| names.value(one) == names.value(other))) {
        alike.iter().for_each(|&code| ticker_ranks[code] = Some(rank));
    }
    let periods = ParsedDictionary::<Period>::of(rows, "period");
    let regimes = ParsedDictionary::<Regime>::of(rows, "regime");
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let rank = |row: usize| {
        let period = periods.get(row).ok().flatten().map_or(0, |period| period.index() as u64);
        let regime = regimes.get(row).ok().flatten().map_or(0, |regime| regime as u64);
        let source = sources.get(row).ok().flatten().map_or(0, |source| source as u64);
        (ticker_ranks[code(row)].unwrap_or_default() << 24) | (period << 16) | (regime << 8) | source
    };
    of.iter().map(|&row| rank(row)).collect()
}

/// A dictionary column, parsed. A column that does not exist is null in every row.
struct ParsedDictionary<'a, T> {
    column: Option<&'a DictionaryArray<Int8Type>>,
    /// The parsed entries. Unused ones may be invalid: a reader may have added some.
    meanings: Vec<Option<T>>,
    name: &'a str,
}

impl<'a, T: FromStr + Copy> ParsedDictionary<'a, T> {
    fn of(rows: &'a RecordBatch, name: &'a str) -> Self {
        let column = rows.column_by_name(name).map(|column| column.as_dictionary::<Int8Type>());
        let spellings = column.iter().flat_map(|column| column.values().as_string::<i32>().iter());
        Self { column, meanings: spellings.map(|text| text?.parse().ok()).collect(), name }
    }

    fn get(&self, row: usize) -> Result<Option<T>, Reason> {
        let Some(column) = self.column.filter(|column| column.keys().is_valid(row)) else { return Ok(None) };
        let code = column.keys().value(row) as usize;
        let unknown = || format!("`{}` is not a {}", column.values().as_string::<i32>().value(code), self.name);
        self.meanings[code].map(Some).ok_or_else(|| unknown().into())
    }
}
