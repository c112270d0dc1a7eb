//! The series of rows: read from the columns that name them.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, DictionaryArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int32Type};

use super::rows::ticker;
use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::SeriesKey;
use crate::turns::Turns;

/// Each stretch of rows of one series.
pub(in crate::archive) fn ranges(rows: &RecordBatch) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
    let periods = Spelled::<Period>::of(rows, "period");
    let regimes = Spelled::<Regime>::of(rows, "regime");
    let sources = Spelled::<Endpoint>::of(rows, "source");
    let mut ranges: Vec<(SeriesKey, Range<usize>)> = Vec::new();
    for (start, end) in turns(rows)?.runs() {
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

/// Where rows turn to another series.
pub(in crate::archive) fn turns(rows: &RecordBatch) -> Result<Turns, Reason> {
    let named = ["ticker", "period", "regime", "source"].into_iter().filter_map(|name| rows.column_by_name(name));
    let turns = named.map(|column| Turns::of(column)).reduce(|one, other| &one | &other);
    turns.ok_or_else(|| "the rows name no series".into())
}

/// The places of the series of some rows among all that there can be: by ticker, period, regime and source. What a row
/// does not name, and what nobody knows, comes first.
pub(in crate::archive) fn ranks(rows: &RecordBatch, of: &[usize]) -> Vec<u64> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>();
    let code = |row: usize| tickers.keys().value(row) as usize;
    // There may be many more names than these rows have, and one may stand under several codes.
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
    let periods = Spelled::<Period>::of(rows, "period");
    let regimes = Spelled::<Regime>::of(rows, "regime");
    let sources = Spelled::<Endpoint>::of(rows, "source");
    let rank = |row: usize| {
        let period = periods.get(row).ok().flatten().map_or(0, |period| period.index() as u64);
        let regime = regimes.get(row).ok().flatten().map_or(0, |regime| regime as u64);
        let source = sources.get(row).ok().flatten().map_or(0, |source| source as u64);
        (ticker_ranks[code(row)].unwrap_or_default() << 24) | (period << 16) | (regime << 8) | source
    };
    of.iter().map(|&row| rank(row)).collect()
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
