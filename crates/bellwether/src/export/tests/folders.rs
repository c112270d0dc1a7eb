use std::collections::BTreeSet;
use std::fs;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use tempfile::tempdir;

use super::{DAY, DAY_MICROS, Signal, parquet_rows, plan, publish, record, rows, schema, signals, tree};
use crate::export::partitions::{Limits, Partitions};
use crate::export::table::WriteOptions;
use crate::export::{RowEncoding, versions};
use crate::plan::{Codec, Column, Format};
use crate::process::cancel::CancellationToken;

#[test]
fn partition_folders_nest_in_the_given_order_and_their_columns_leave_the_files() {
    let place = tempdir().unwrap();
    let mut plan = plan(Format::ALL);
    plan.files.partition_by = vec![Column::Period, Column::Regime];
    let batch = rows(&signals(&["AAPL", "XOM"], 50));
    let dataset = publish(place.path(), &plan, &[batch.slice(0, 99), batch.slice(99, 301)]).unwrap();
    let mut expected = vec!["dataset.json".to_owned(), "facts.json".to_owned()];
    for folder in
        ["period=15d/regime=bear", "period=15d/regime=neutral", "period=5d/regime=bear", "period=5d/regime=neutral"]
    {
        expected.extend(
            ["arrow", "csv", "csv.gz", "csv.zst", "parquet"].map(|extension| format!("{folder}/demo.{extension}")),
        );
    }
    assert_eq!(tree(&dataset.path), expected);
    let names: Vec<&str> = dataset.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names[..6],
        [
            "period=15d/regime=bear/demo.parquet",
            "period=15d/regime=bear/demo.csv",
            "period=15d/regime=bear/demo.csv.gz",
            "period=15d/regime=bear/demo.csv.zst",
            "period=15d/regime=bear/demo.arrow",
            "period=15d/regime=neutral/demo.parquet",
        ]
    );
    assert!(dataset.files.iter().all(|file| file.rows == 100));
    let read = parquet_rows(&dataset.path.join("period=5d/regime=bear/demo.parquet"));
    let left: Vec<String> = read.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(left[..4], ["ticker", "date", "signal", "confidence"]);
    // Every fourth row from the third on.
    let confidences: Vec<f64> = (0..100).map(|row| f64::from(row * 4 + 2) / 8.0).collect();
    assert_eq!(read.column(3).as_primitive::<Float64Type>().values(), &confidences[..]);
    let record = record(&dataset);
    assert_eq!(record["partition_by"], serde_json::json!(["period", "regime"]));
    assert_eq!(record["rows"], 400);
    assert_eq!(record["columns"].as_array().unwrap().len(), 10);
    let version = versions(place.path()).unwrap().0.remove(0);
    assert_eq!(version.files, dataset.files);
    assert!(version.files.iter().all(|file| version.path.join(&file.name).is_file()));
}

#[test]
fn a_ticker_is_complete_when_the_next_one_starts() {
    let folder = tempdir().unwrap();
    let mut partitions =
        partitions(&folder, &[Column::Date, Column::Ticker], &Column::KEY, Limits { folders: 3, bytes: 1 << 20 });
    // Three days of each of five tickers: fifteen folders, never more than three at once.
    let batch = rows(&signals(&["A", "B", "C", "D", "E"], 3));
    partitions.push(&batch.slice(0, 17)).unwrap();
    assert!(fs::metadata(folder.path().join("date=2026-11-20/ticker=A/demo.parquet")).unwrap().len() > 100);
    partitions.push(&batch.slice(17, 43)).unwrap();
    let finished = partitions.finish().unwrap();
    assert_eq!(finished.len(), 15);
    assert_eq!(finished[1].name, "date=2026-11-20/ticker=B/demo.parquet");
    assert!(finished.iter().all(|file| file.rows == 4));
}

#[test]
fn too_many_partitions_are_refused_with_the_column_and_a_hint() {
    let folder = tempdir().unwrap();
    let by_date = [Column::Date, Column::Ticker, Column::Period, Column::Regime];
    let mut partitions =
        partitions(&folder, &[Column::Period, Column::Ticker], &by_date, Limits { folders: 5, bytes: 1 << 20 });
    let error = partitions.push(&rows(&signals(&["A", "B", "C"], 1))).unwrap_err();
    assert_eq!(error.to_string(), "partitioning by `ticker` needs more than 5 files open at once");
    assert_eq!(error.hint().unwrap(), "sort by `ticker` first, or remove it from `partition_by`");
}

#[test]
fn rows_over_the_memory_limit_are_flushed_early_without_loss() {
    let folder = tempdir().unwrap();
    let limits = Limits { folders: 100, bytes: 40_000 };
    let mut partitions = partitions(&folder, &[Column::Period], &Column::KEY, limits);
    let batch = rows(&signals(&["A", "B", "C", "D"], 300));
    for from in (0..batch.num_rows()).step_by(400) {
        partitions.push(&batch.slice(from, 400)).unwrap();
    }
    let finished = partitions.finish().unwrap();
    let read: Vec<RecordBatch> = finished.iter().map(|file| parquet_rows(&folder.path().join(&file.name))).collect();
    assert_eq!(read.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2400, 2400]);
    let confidences = |batch: &RecordBatch| {
        let column = batch.column_by_name("confidence").unwrap();
        column.as_primitive::<Float64Type>().values().iter().map(|value| (value * 8.0) as u32).collect::<BTreeSet<_>>()
    };
    let all = concat_batches(&read[0].schema(), &read).unwrap();
    assert_eq!(confidences(&all), (0..4800).collect());
}

#[test]
fn dates_and_tickers_unfit_for_a_path_are_escaped() {
    let folder = tempdir().unwrap();
    let mut plan = plan(&[Format::Parquet]);
    plan.files.partition_by = vec![Column::Ticker, Column::Date];
    let of = |ticker, date| Signal { ticker, date, period: "5d", regime: "bear" };
    let half_past_nine = DAY + DAY_MICROS * 19 / 48;
    let rows = rows(&[of("../BTC/USD", DAY), of("BRK.B", DAY), of("BRK.B", half_past_nine)]);
    let dataset = publish(folder.path(), &plan, &[rows]).unwrap();
    let names: Vec<&str> = dataset.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ticker=..%2FBTC%2FUSD/date=2026-11-20/demo.parquet",
            "ticker=BRK.B/date=2026-11-20/demo.parquet",
            "ticker=BRK.B/date=2026-11-20T09%3A30%3A00/demo.parquet",
        ]
    );
}

#[test]
fn more_partitions_than_open_files_are_written() {
    let folder = tempdir().unwrap();
    let limits = Limits { folders: 4096, bytes: 1 << 20 };
    let mut partitions = partitions(&folder, &[Column::Date], &Column::KEY, limits);
    partitions.push(&rows(&signals(&["A", "B"], 2000))).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 200, "{open} files are open");
    let finished = partitions.finish().unwrap();
    assert_eq!(finished.len(), 2000);
    let last = parquet_rows(&folder.path().join(&finished[1999].name));
    assert_eq!(last.num_rows(), 8);
    assert!(last.column_by_name("date").is_none());
    let observed = last.column_by_name("observed_at").unwrap().as_primitive::<TimestampMicrosecondType>();
    assert_eq!(observed.value(0), DAY + 1999 * 4);
}

fn partitions(folder: &tempfile::TempDir, by: &[Column], sort: &[Column], limits: Limits) -> Partitions {
    let encoding = RowEncoding {
        codec: Codec::None,
        sort: vec!["ticker".to_owned()],
        row_group_rows: 1000,
        ..RowEncoding::default()
    };
    let (root, stop) = (folder.path().to_owned(), CancellationToken::new());
    let options = WriteOptions { root, formats: vec![Format::Parquet], encoding, stop };
    let names = |columns: &[Column]| columns.iter().map(|column| column.name().to_owned()).collect::<Vec<_>>();
    Partitions::new(options, "demo", &schema(), (&names(by), &names(sort)), false, limits)
}
