//! Series keys, read from the columns of rows.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int32Type};

use super::rows::ticker;
use crate::columns::Boundaries;
use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::{SeriesKey, Table};

/// Contiguous rows of each series of a table.
pub(in crate::archive) fn ranges(table: Table, rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    ranges_of(rows, &boundaries(rows)?, |_| Ok(Some(table)))
}

/// Contiguous rows of each series, in a file with series of all tables, whose operations tell which.
pub(in crate::archive) fn ranges_of_any(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let table = |row| Ok(Table::of(sources.get(row)?.ok_or("a row has no operation")?));
    ranges_of(rows, &boundaries_in(rows, &["ticker", "period", "regime", "source"])?, table)
}

fn ranges_of(
    rows: &RecordBatch,
    boundaries: &Boundaries,
    table: impl Fn(usize) -> Result<Option<Table>, Reason>,
) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = ParsedDictionary::<Period>::of(rows, "period");
    let regimes = ParsedDictionary::<Regime>::of(rows, "regime");
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for (start, end) in boundaries.runs() {
        let (period, regime, table) = (periods.get(start)?, regimes.get(start)?, table(start)?);
        let symbol = ticker(rows, start);
        let last = ranges.last_mut().filter(|(last, _)| last.ticker.as_str() == symbol);
        let ticker = match last {
            // One name may have two dictionary codes.
            Some((last, range)) if (last.period, last.regime, last.table) == (period, regime, table) => {
                range.end = end;
                continue;
            }
            Some((last, _)) => last.ticker.clone(),
            None => symbol.parse().map_err(|_| format!("`{symbol}` is not a ticker"))?,
        };
        ranges.push((SeriesKey { ticker, period, regime, table }, start..end));
    }
    Ok(ranges)
}

/// Boundaries between series of a table.
pub(in crate::archive) fn boundaries(rows: &RecordBatch) -> Result<Boundaries, Reason> {
    boundaries_in(rows, &["ticker", "period", "regime"])
}

fn boundaries_in(rows: &RecordBatch, columns: &[&str]) -> Result<Boundaries, Reason> {
    let named = columns.iter().filter_map(|name| rows.column_by_name(name));
    let boundaries = named.map(|column| Boundaries::new(column)).reduce(|one, other| &one | &other);
    boundaries.ok_or_else(|| "a row has no series".into())
}

/// Ranks of the series of some rows of a table: by ticker, period and regime. Missing and unknown values rank first.
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
    let rank = |row: usize| {
        let period = periods.get(row).ok().flatten().map_or(0, |period| period.index() as u64);
        let regime = regimes.get(row).ok().flatten().map_or(0, |regime| regime as u64);
        (ticker_ranks[code(row)].unwrap_or_default() << 16) | (period << 8) | regime
    };
    of.iter().map(|&row| rank(row)).collect()
}

/// A dictionary column, parsed. A column that does not exist is null in every row.
pub(in crate::archive) struct ParsedDictionary<'a, T> {
    column: Option<&'a DictionaryArray<Int8Type>>,
    /// The parsed entries. Unused ones may be invalid: a reader may have added some.
    meanings: Vec<Option<T>>,
    name: &'a str,
}

impl<'a, T: FromStr + Copy> ParsedDictionary<'a, T> {
    pub(in crate::archive) fn of(rows: &'a RecordBatch, name: &'a str) -> Self {
        let column = rows.column_by_name(name).map(|column| column.as_dictionary::<Int8Type>());
        let spellings = column.iter().flat_map(|column| column.values().as_string::<i32>().iter());
        Self { column, meanings: spellings.map(|text| text?.parse().ok()).collect(), name }
    }

    pub(in crate::archive) fn get(&self, row: usize) -> Result<Option<T>, Reason> {
        let Some(column) = self.column.filter(|column| column.keys().is_valid(row)) else { return Ok(None) };
        let code = column.keys().value(row) as usize;
        let unknown = || format!("`{}` is not a {}", column.values().as_string::<i32>().value(code), self.name);
        self.meanings[code].map(Some).ok_or_else(|| unknown().into())
    }
}
