//! Speed of what puts rows in order by hand, beside what Arrow has for it.
//!
//! Run with `cargo bench -p bellwether --bench order`. Each line gives rows per second, on one core.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::Field;
use arrow::row::{RowConverter, SortField};
use bellwether::harness;
use bellwether::interface::{Endpoint, Period, Regime};
use bellwether::tables::{Change, Changes, SeriesKey, Table};
use chrono::{DateTime, TimeDelta};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const TICKERS: usize = 50;
const DAYS: usize = 1260;

/// Nights after the first run.
const NIGHTS: usize = 20;

/// A row of this many is rewritten, one of them each night.
const REWRITTEN: usize = 200 * NIGHTS;

/// Observations of signals: a first run, and the nights after it, which add a day and rewrite a few others.
static OBSERVED: LazyLock<Vec<RecordBatch>> = LazyLock::new(|| (0..=NIGHTS).map(observe).collect());

/// What a night observes.
fn observe(night: usize) -> RecordBatch {
    let instant = DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + night as i64);
    let first = DAYS - NIGHTS;
    let of_ticker = |ticker: usize| {
        let is_rewritten = |day: &usize| night > 0 && (ticker * DAYS + day) % REWRITTEN == night;
        let rewritten = (0..first).filter(is_rewritten).map(|day| (day, Change::Revised));
        let added = if night == 0 { 0..first } else { first + night - 1..first + night };
        let (days, kinds): (Vec<usize>, _) = rewritten.chain(added.map(|day| (day, Change::Added))).unzip();
        let key = SeriesKey {
            ticker: format!("T{ticker:02}").parse().expect("a ticker"),
            period: Period::all().next(),
            regime: Some(Regime::Neutral),
            table: Some(Table::Signals),
        };
        let source = Endpoint::SignalsHistoryAll;
        Changes { key, source, observed_at: instant, sealed_at: instant, kinds, rows: signals(&days, night) }
    };
    Table::Signals.batch(&(0..TICKERS).map(of_ticker).collect::<Vec<_>>()).expect("observations")
}

/// Signals of some days.
fn signals(days: &[usize], night: usize) -> RecordBatch {
    let schema = Table::Signals.open_row_schema();
    let dates = days.iter().map(|day| *day as i64 * 86_400_000_000);
    let confidences = days.iter().map(|day| ((day * 7 + night) % 100) as f64 / 100.0);
    let column = |field: &Arc<Field>| -> ArrayRef {
        match field.name().as_str() {
            "date" => Arc::new(TimestampMicrosecondArray::from_iter_values(dates.clone())),
            "confidence" => Arc::new(Float64Array::from_iter_values(confidences.clone())),
            _ => new_null_array(field.data_type(), days.len()),
        }
    };
    RecordBatch::try_new(schema.clone(), schema.fields().iter().map(column).collect()).expect("the columns of signals")
}

fn key_columns(rows: &RecordBatch) -> Vec<ArrayRef> {
    let column = |name| rows.column_by_name(name).expect("a column of signals").clone();
    ["ticker", "period", "regime", "date", "observed_at"].map(column).to_vec()
}

fn by_lexsort(columns: &[ArrayRef]) -> UInt32Array {
    let columns: Vec<SortColumn> =
        columns.iter().map(|values| SortColumn { values: values.clone(), options: None }).collect();
    lexsort_to_indices(&columns, None).expect("columns that have an order")
}

fn by_rows(columns: &[ArrayRef]) -> UInt32Array {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields).expect("types that have an order");
    let rows = converter.convert_columns(columns).expect("columns of these types");
    let mut keyed: Vec<_> = rows.iter().enumerate().collect();
    keyed.sort_unstable_by_key(|&(_, row)| row);
    keyed.into_iter().map(|(index, _)| index as u32).collect()
}

/// Observations by series, cell and time.
fn observations(bencher: Bencher<'_, '_>, order: impl Fn(&[RecordBatch]) -> RecordBatch) {
    let count: usize = OBSERVED.iter().map(RecordBatch::num_rows).sum();
    let expected = harness::order_observations(&OBSERVED).expect("observations");
    assert_eq!(order(&OBSERVED).column(3), expected.column(3));
    bencher.counter(ItemsCount::new(count)).bench_local(|| order(&OBSERVED));
}

fn concat_and_take(batches: &[RecordBatch], order: impl Fn(&[ArrayRef]) -> UInt32Array) -> RecordBatch {
    let rows = concat_batches(batches[0].schema_ref(), batches).expect("batches of one schema");
    take_record_batch(&rows, &order(&key_columns(&rows))).expect("rows of the batch")
}

#[divan::bench]
fn observations_merged(bencher: Bencher<'_, '_>) {
    observations(bencher, |batches| harness::order_observations(batches).expect("observations"));
}

#[divan::bench]
fn observations_by_lexsort(bencher: Bencher<'_, '_>) {
    observations(bencher, |batches| concat_and_take(batches, by_lexsort));
}

#[divan::bench]
fn observations_by_row_converter(bencher: Bencher<'_, '_>) {
    observations(bencher, |batches| concat_and_take(batches, by_rows));
}

/// The rows of a slab, of some tickers with fifteen signals a day, sorted by date first.
fn rows_of_slab(bencher: Bencher<'_, '_>, order: impl Fn(&[Vec<u64>], &[ArrayRef]) -> UInt32Array) {
    const SIGNALS: u64 = 15;
    let count = 3 * DAYS as u64 * SIGNALS;
    let day = |row: u64| row / SIGNALS % DAYS as u64;
    let number = |of: &dyn Fn(u64) -> u64| -> Vec<u64> { (0..count).map(of).collect() };
    let columns = [
        number(&day),
        number(&|row| row / SIGNALS / DAYS as u64),
        number(&|row| row % SIGNALS / 3),
        number(&|row| row % 3),
    ];
    let arrays: Vec<ArrayRef> =
        columns.iter().map(|column| -> ArrayRef { Arc::new(UInt64Array::from(column.clone())) }).collect();
    assert_eq!(order(&columns, &arrays).values().to_vec(), harness::order_rows(&columns));
    bencher.counter(ItemsCount::new(count)).bench_local(|| order(&columns, &arrays));
}

#[divan::bench]
fn rows_by_digits(bencher: Bencher<'_, '_>) {
    rows_of_slab(bencher, |columns, _| harness::order_rows(columns).into());
}

#[divan::bench]
fn rows_by_lexsort(bencher: Bencher<'_, '_>) {
    rows_of_slab(bencher, |_, arrays| by_lexsort(arrays));
}

#[divan::bench]
fn rows_by_row_converter(bencher: Bencher<'_, '_>) {
    rows_of_slab(bencher, |_, arrays| by_rows(arrays));
}
