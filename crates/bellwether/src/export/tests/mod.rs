//! Publications of small datasets, read back.

mod content;
mod csv;
mod files;
mod folders;
mod matrices;
mod retention;
mod reuse;
mod streams;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int8Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use chrono::{DateTime, Utc};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::{Dataset, Provenance, Publication};
use crate::definition::DefinitionFile;
use crate::error::Result;
use crate::interface::{Period, Regime};
use crate::plan::{AdHoc, Column, Format, Plan, ServiceIdentity, WrittenColumns};
use crate::process::cancel::CancellationToken;
use crate::tables::{choice, choices, date, instant};

/// 2026-11-20T00:00:00.
const DAY: i64 = 1_795_132_800_000_000;
const DAY_MICROS: i64 = 86_400_000_000;

/// A row of a dataset.
#[derive(Clone, Copy)]
struct Signal {
    ticker: &'static str,
    date: i64,
    period: &'static str,
    regime: &'static str,
}

fn schema() -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    Arc::new(Schema::new(vec![
        field("ticker", DataType::Utf8),
        field("date", date()),
        field("period", choice()),
        field("regime", choice()),
        field("signal", choice()),
        field("confidence", DataType::Float64),
        Field::new("news_mean_7d", DataType::Float64, true),
        field("news_count_7d", DataType::Int32),
        field("observed_at", instant()),
        field("backfilled", DataType::Boolean),
    ]))
}

/// Signals whose columns are functions of the row number.
fn rows(signals: &[Signal]) -> RecordBatch {
    let periods: Vec<&str> = Period::all().map(Period::as_str).collect();
    let code = |names: &[&str], name: &str| names.iter().position(|known| *known == name).unwrap() as i8;
    let numbers = || (0..signals.len()).map(|row| row as i32);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(signals.iter().map(|signal| signal.ticker))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(signals.iter().map(|signal| signal.date))),
        choices(
            Int8Array::from_iter_values(signals.iter().map(|signal| code(&periods, signal.period))),
            periods.clone(),
        ),
        choices(
            Int8Array::from_iter_values(signals.iter().map(|signal| code(&["bear", "bull", "neutral"], signal.regime))),
            Regime::ALL.map(Regime::as_str),
        ),
        choices(Int8Array::from_iter_values(numbers().map(|row| (row % 2) as i8)), ["buy", "sell"]),
        Arc::new(Float64Array::from_iter_values(numbers().map(|row| f64::from(row) / 8.0))),
        Arc::new(numbers().map(|row| (row % 3 != 0).then(|| f64::from(row) - 0.5)).collect::<Float64Array>()),
        Arc::new(Int32Array::from_iter_values(numbers())),
        Arc::new(
            TimestampMicrosecondArray::from_iter_values(numbers().map(|row| DAY + i64::from(row))).with_timezone("UTC"),
        ),
        Arc::new(numbers().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// Every ticker on each day, with two periods and two regimes, sorted by key.
fn signals(tickers: &[&'static str], days: i64) -> Vec<Signal> {
    let mut signals = Vec::new();
    for &ticker in tickers {
        for date in (0..days).map(|day| DAY + day * DAY_MICROS) {
            for (period, regime) in [("15d", "bear"), ("15d", "neutral"), ("5d", "bear"), ("5d", "neutral")] {
                signals.push(Signal { ticker, date, period, regime });
            }
        }
    }
    signals
}

/// A plan for the rows above.
fn plan(formats: &[Format]) -> Plan {
    let text = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n";
    let mut plan = Plan::of(DefinitionFile::new("demo.toml".into(), text.into()).unwrap()).unwrap();
    plan.dataset.schema = schema();
    plan.dataset.sort = Column::KEY.to_vec();
    plan.dataset.written = WrittenColumns::all(&plan.dataset.schema, &Column::KEY, &Column::KEY);
    plan.files.formats = formats.to_vec();
    plan
}

fn moment(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn provenance() -> Provenance {
    Provenance {
        name: "demo".to_owned(),
        service: ServiceIdentity::demo(),
        definition: "the = \"definition\"\n".to_owned(),
        ad_hoc: AdHoc::default(),
        basis: "the basis".to_owned(),
        runs: vec!["one".to_owned(), "two".to_owned()],
        rebuilt_as_of: None,
        as_of: moment("2026-11-20T21:30:00Z"),
        watched: None,
        built_at: moment("2026-11-21T08:00:00Z"),
    }
}

fn publish_as(folder: &Path, plan: &Plan, provenance: Provenance, batches: &[RecordBatch]) -> Result<Dataset> {
    let mut publication = Publication::begin(folder, plan, provenance, &CancellationToken::new())?;
    for batch in batches {
        publication.write(&batch.clone().into())?;
    }
    assert_eq!(publication.rows(), batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>());
    publication.complete(plan, || Ok(b"{}".to_vec()))?.publish()
}

fn publish(folder: &Path, plan: &Plan, batches: &[RecordBatch]) -> Result<Dataset> {
    publish_as(folder, plan, provenance(), batches)
}

/// The rows of a Parquet file.
fn parquet_rows(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    // The metadata of the file is not part of its rows.
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let batches = reader.build().unwrap().map(|batch| batch.unwrap().with_schema(schema.clone()).unwrap());
    concat_batches(&schema, &batches.collect::<Vec<RecordBatch>>()).unwrap()
}

fn record(dataset: &Dataset) -> Value {
    serde_json::from_slice(&std::fs::read(dataset.path.join("dataset.json")).unwrap()).unwrap()
}

/// Everything in a folder, recursively, hidden entries included.
fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in crate::disk::file::entries(folder).unwrap() {
        let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
        if entry.is_dir() && !entry.is_symlink() {
            found.extend(tree(&entry).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found
}
