//! The columns common to all files: ticker, change and observation time.

use std::ops::Range;
use std::str::FromStr;

use arrow::array::{Array, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{ArrowNativeType, Float64Type, Int8Type, Int32Type};

use crate::error::Reason;
use crate::interface::{Endpoint, Period, Regime, Signal, Ticker};
use crate::tables::Change;

/// The ticker of a row, the first column of every file.
pub(in crate::archive) fn ticker(batch: &RecordBatch, row: usize) -> &str {
    let dictionary = batch.column(0).as_dictionary::<Int32Type>();
    let code = dictionary.keys().value(row) as usize;
    dictionary.values().as_string::<i32>().value(code)
}

/// Binary search for the first row at which `holds` becomes true.
pub(in crate::archive) fn first_where(rows: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = rows;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// When each row was observed.
pub(in crate::archive) fn observation_times(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("observed_at").expect("every table has the column").as_primitive()
}

/// The kind of change of each row.
pub(in crate::archive) fn changes(rows: &RecordBatch) -> Vec<Change> {
    let column = rows.column_by_name("change").expect("every table has the column");
    let column = column.as_dictionary::<Int8Type>();
    let meaning = |text: Option<&str>| Change::ALL.into_iter().find(|change| Some(change.as_str()) == text);
    let meanings = column.values().as_string::<i32>().iter().map(|text| meaning(text).unwrap_or(Change::Added));
    let meanings: Vec<Change> = meanings.collect();
    column.keys().values().iter().map(|key| meanings[key.as_usize()]).collect()
}

/// Whether every row adds its cell.
pub(in crate::archive) fn are_added(rows: &RecordBatch) -> bool {
    let column = rows.column_by_name("change").expect("every table has the column").as_dictionary::<Int8Type>();
    let is_added = |text: Option<&str>| text == Some(Change::Added.as_str());
    let are_added: Vec<bool> = column.values().as_string::<i32>().iter().map(is_added).collect();
    column.null_count() == 0 && column.keys().values().iter().all(|key| are_added[key.as_usize()])
}

/// Validates rows: closed sets have known spellings, numbers are finite, tickers are valid and sorted.
pub(in crate::archive) fn check(rows: &RecordBatch) -> Result<(), Reason> {
    fn is<T: FromStr>(text: &str) -> bool {
        text.parse::<T>().is_ok()
    }
    let is_change = |text: &str| Change::ALL.iter().any(|change| change.as_str() == text);
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let is_known: &dyn Fn(&str) -> bool = match field.name().as_str() {
            "period" => &is::<Period>,
            "regime" => &is::<Regime>,
            "source" => &is::<Endpoint>,
            "signal" => &is::<Signal>,
            "change" => &is_change,
            _ => continue,
        };
        let column = column.as_dictionary::<Int8Type>();
        let spellings = column.values().as_string::<i32>();
        // A reader may have added spellings that no row uses.
        let unknown: Vec<usize> = (0..spellings.len()).filter(|&code| !is_known(spellings.value(code))).collect();
        let mut keys = column.keys().iter().flatten().map(ArrowNativeType::as_usize);
        if !unknown.is_empty()
            && let Some(key) = keys.find(|key| unknown.contains(key))
        {
            return Err(format!("`{}` is not a {}", spellings.value(key), field.name()).into());
        }
    }
    check_numbers(rows)?;
    check_tickers(rows)
}

/// Checks that tickers are valid and sorted.
fn check_tickers(rows: &RecordBatch) -> Result<(), Reason> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>();
    let mut last = "";
    for alike in tickers.keys().values().chunk_by(|one, next| one == next) {
        let name = names.value(alike[0].as_usize());
        if name < last {
            return Err("its rows are not sorted by ticker".into());
        }
        if name != last && name.parse::<Ticker>().is_err() {
            return Err(format!("`{name}` is not a ticker").into());
        }
        last = name;
    }
    Ok(())
}

/// Checks that every number is finite, as all JSON numbers are.
fn check_numbers(rows: &RecordBatch) -> Result<(), Reason> {
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let Some(numbers) = column.as_primitive_opt::<Float64Type>() else { continue };
        if numbers.values().iter().all(|number| number.is_finite()) {
            continue;
        }
        let is_flaw = |row: &usize| numbers.is_valid(*row) && !numbers.value(*row).is_finite();
        if let Some(row) = (0..numbers.len()).find(is_flaw) {
            let (name, number, ticker) = (field.name(), numbers.value(row), ticker(rows, row));
            return Err(format!("`{name}` of `{ticker}` is {number}: not a finite number").into());
        }
    }
    Ok(())
}
