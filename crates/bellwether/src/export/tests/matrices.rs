use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema};
use tempfile::tempdir;

use super::{DAY, DAY_MICROS, parquet_rows, plan, provenance, record, tree};
use crate::export::{Dataset, Publication};
use crate::interface::{Period, Regime};
use crate::plan::{Format, Plan, Shape};
use crate::process::cancel::CancellationToken;
use crate::tables::date;

fn matrix(tickers: &[&str], days: i64) -> RecordBatch {
    let value = |ticker: &&str| Field::new(*ticker, DataType::Float64, true);
    let fields = std::iter::once(Field::new("date", date(), false)).chain(tickers.iter().map(value));
    let values = |place: i64| {
        let value = move |day: i64| ((day + place) % 4 != 0).then_some(day as f64 + place as f64 / 8.0);
        Arc::new((0..days).map(value).collect::<Float64Array>()) as ArrayRef
    };
    let dates = TimestampMicrosecondArray::from_iter_values((0..days).map(|day| DAY + day * DAY_MICROS));
    let columns = std::iter::once(Arc::new(dates) as ArrayRef).chain((0..tickers.len() as i64).map(values));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns.collect()).unwrap()
}

fn wide() -> Plan {
    let mut plan = plan(&[Format::Parquet, Format::Csv]);
    plan.dataset.shape = Shape::Wide(vec!["confidence".to_owned(), "historical_a/b".to_owned()]);
    plan
}

fn build(regimes: &[Regime], days: i64) -> (tempfile::TempDir, Dataset) {
    let folder = tempdir().unwrap();
    let plan = wide();
    let mut publication = Publication::begin(folder.path(), &plan, provenance(), &CancellationToken::new()).unwrap();
    for &regime in regimes {
        for value in ["confidence", "historical_a/b"] {
            publication.write_matrix((Period::default(), regime), value, &matrix(&["AAPL", "XOM"], days)).unwrap();
        }
    }
    assert_eq!(publication.rows(), regimes.len() as u64 * 2 * days as u64);
    let dataset = publication.complete(&plan, || Ok(b"{}".to_vec())).unwrap().publish().unwrap();
    (folder, dataset)
}

#[test]
fn each_period_regime_and_value_has_a_matrix_file() {
    let (_place, dataset) = build(&[Regime::Neutral, Regime::Bear], 10);
    assert_eq!(
        tree(&dataset.path),
        [
            "15d-bear/confidence.csv",
            "15d-bear/confidence.parquet",
            "15d-bear/historical_a%2Fb.csv",
            "15d-bear/historical_a%2Fb.parquet",
            "15d-neutral/confidence.csv",
            "15d-neutral/confidence.parquet",
            "15d-neutral/historical_a%2Fb.csv",
            "15d-neutral/historical_a%2Fb.parquet",
            "dataset.json",
            "facts.json",
        ]
    );
    assert_eq!(dataset.files[0].name, "15d-bear/confidence.parquet");
    assert_eq!(dataset.files[0].rows, 10);
    let read = parquet_rows(&dataset.path.join("15d-neutral/confidence.parquet"));
    assert_eq!(read, matrix(&["AAPL", "XOM"], 10));
    let text = fs::read_to_string(dataset.path.join("15d-bear/confidence.csv")).unwrap();
    assert!(text.starts_with("date,AAPL,XOM\n2026-11-20T00:00:00,,0.125\n2026-11-21T00:00:00,1.0,1.125\n"), "{text}");
    let record = record(&dataset);
    assert_eq!((record["shape"].as_str(), record["rows"].as_u64()), (Some("wide"), Some(40)));
    assert_eq!(record["sort"], serde_json::json!(["date"]));
    let columns: Vec<&str> =
        record["columns"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["date", "confidence", "historical_a/b"]);
}

#[test]
fn matrices_do_not_depend_on_the_order_of_their_input() {
    let (_one, first) = build(&[Regime::Neutral, Regime::Bear], 10);
    let (_other, second) = build(&[Regime::Bear, Regime::Neutral], 10);
    let (_another, longer) = build(&[Regime::Bear, Regime::Neutral], 11);
    assert_eq!(first.content, second.content);
    assert_ne!(first.content, longer.content);
    let names = |dataset: &Dataset| dataset.files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
}

#[test]
fn a_matrix_of_many_tickers_is_written() {
    let folder = tempdir().unwrap();
    let plan = wide();
    let tickers: Vec<String> = (0..3000).map(|number| format!("T{number}")).collect();
    let rows = matrix(&tickers.iter().map(String::as_str).collect::<Vec<_>>(), 20);
    let mut publication = Publication::begin(folder.path(), &plan, provenance(), &CancellationToken::new()).unwrap();
    publication.write_matrix((Period::default(), Regime::Bull), "confidence", &rows).unwrap();
    let dataset = publication.complete(&plan, || Ok(b"{}".to_vec())).unwrap().publish().unwrap();
    assert_eq!(parquet_rows(&dataset.path.join("15d-bull/confidence.parquet")), rows);
}

#[test]
fn a_ticker_with_the_name_of_the_dates_is_refused() {
    let folder = tempdir().unwrap();
    let mut publication = Publication::begin(folder.path(), &wide(), provenance(), &CancellationToken::new()).unwrap();
    let rows = matrix(&["AAPL", "date"], 3);
    let error = publication.write_matrix((Period::default(), Regime::Bull), "confidence", &rows).unwrap_err();
    assert_eq!(error.to_string(), "`date` is the name of a ticker and of the dates beside it");
    assert!(error.hint().unwrap().contains("[dataset.rename]"));
}
