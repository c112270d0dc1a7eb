//! Datasets for other programs: published or built in memory, complete or a selection, as batches or as a frame.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatchReader;
use bellwether::error::{Error, ErrorKind};
use bellwether::interface::Ticker;
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::project::Project;
use chrono::NaiveDate;
use tokio::runtime::Runtime;

use crate::support::program::{DemoService, Outcome, Place};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A place with a published dataset of two sectors.
fn published_place(output: &str) -> Place {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n";
    let lineage = "[dataset]\nadd = [\"observed_at\", \"revisions\", \"backfilled\", \"source\"]\n";
    place.define("it", &format!("[source]\n{}{signals}{lineage}[output]\n{output}", service.source));
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    place
}

fn project(place: &Place) -> Project {
    Project::at(place.path()).expect("a project")
}

fn of_version(place: &Place) -> Dataset {
    project(place).dataset("it").expect("a published dataset")
}

fn of_archive(place: &Place) -> Dataset {
    project(place).dataset_from_archive("it", &AdHoc::default()).expect("an archive")
}

/// All rows, with texts instead of dictionaries, which differ between batches.
fn rows(dataset: &Dataset) -> RecordBatch {
    let batches = dataset.batches().expect("files");
    assert_eq!(batches.schema(), dataset.schema());
    let plain = |batch: RecordBatch| {
        let column = |column: &ArrayRef| match column.data_type() {
            DataType::Dictionary(..) => cast(column, &DataType::Utf8).expect("names"),
            _ => Arc::clone(column),
        };
        let schema = batch.schema();
        let columns = batch.columns().iter().map(column);
        let names = schema.fields().iter().map(|field| field.name().clone());
        RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(name, column)| (name, column, true)))
    };
    let plain = batches.map(|batch| plain(batch.expect("rows")).expect("columns")).collect::<Vec<_>>();
    concat_batches(plain[0].schema_ref(), &plain).expect("one schema")
}

#[test]
fn a_published_dataset_equals_one_built_on_the_spot_in_every_format() {
    for output in ["", "format = [\"csv\"]\n", "format = [\"arrow\"]\n", "partition_by = [\"ticker\"]\n"] {
        let place = published_place(output);
        let (version, built) = (rows(&of_version(&place)), rows(&of_archive(&place)));
        assert!(version.num_rows() > 10_000);
        assert_eq!(version, built, "{output}");
    }
}

#[test]
fn a_project_runs_a_definition_by_its_name() {
    let place = Place::new();
    place.define("it", "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"utilities\"]\nperiods = [\"5d\"]\n");
    let runtime = Runtime::new().expect("a runtime");
    let refused = runtime.block_on(project(&place).run("other")).expect_err("no such definition");
    assert!(refused.to_string().contains("no definition `other`"), "{refused}");
    let summary = runtime.block_on(project(&place).run("it")).expect("a run");
    assert_eq!(summary.rows, rows(&of_version(&place)).num_rows() as u64);
    assert_eq!(rows(&of_version(&place)), rows(&of_archive(&place)));
}

#[test]
fn a_selection_matches_a_scan_of_all_rows() {
    let place = published_place("row_group_rows = 5000\n");
    let all = rows(&of_version(&place));
    let tickers: BTreeSet<Ticker> = ["XOM", "NEE", "CVX"].map(|ticker| ticker.parse().expect("a ticker")).into();
    let columns = ["confidence", "ticker", "news_mean_7d"].map(str::to_owned).to_vec();
    for (tickers, from, to) in [
        (Some(tickers.clone()), None, None),
        (None, Some(day("2026-01-05")), Some(day("2026-02-03"))),
        (Some(tickers), Some(day("2026-11-20")), None),
    ] {
        let is_meant = |row: &usize| {
            let ticker = all.column(0).as_string::<i32>().value(*row);
            let date = all.column(1).as_primitive::<TimestampMicrosecondType>().value_as_datetime(*row);
            let date = date.expect("a date").date();
            tickers.as_ref().is_none_or(|tickers| tickers.iter().any(|meant| meant.as_str() == ticker))
                && from.is_none_or(|from| date >= from)
                && to.is_none_or(|to| date < to)
        };
        let meant: Vec<RecordBatch> = (0..all.num_rows()).filter(is_meant).map(|row| all.slice(row, 1)).collect();
        let expected = concat_batches(all.schema_ref(), &meant).expect("rows");
        let expected = expected.project(&[5, 0, all.schema().index_of("news_mean_7d").expect("a column")]);
        let expected = expected.expect("columns");
        for dataset in [of_version(&place), of_archive(&place)] {
            let part = Selection { columns: Some(columns.clone()), from, to, ..Selection::default() };
            let selection = Selection { tickers: tickers.clone(), ..part };
            let selected = dataset.select(selection).expect("columns that exist");
            let batches = selected.batches().expect("files").collect::<Result<Vec<_>, _>>().expect("rows");
            let found = concat_batches(&selected.schema(), &batches).expect("one schema");
            assert_eq!(found.num_rows(), expected.num_rows());
            assert!(found.columns() == expected.columns(), "{tickers:?} {from:?} {to:?}");
        }
    }
    let of_no_column = Selection { columns: Some(vec!["tickr".to_owned()]), ..Selection::default() };
    for dataset in [of_version(&place), of_archive(&place)] {
        let refusal = dataset.select(of_no_column.clone()).expect_err("no such column").to_string();
        assert!(refusal.starts_with("no column `tickr`; the columns are `ticker`, `date`, "), "{refusal}");
    }
    let of = |tickers: &[&str]| Selection { tickers: Some(set(tickers)), ..Selection::default() };
    for dataset in [of_version(&place), of_archive(&place)] {
        let refused = |tickers: &[&str]| dataset.select(of(tickers)).expect_err("no such ticker").to_string();
        assert_eq!(refused(&["XOM", "XON"]), "no signals for ticker `XON` (did you mean `XOM`?)");
        assert_eq!(refused(&["XOM", "Z1", "Z2"]), "no signals for 2 tickers: Z1, Z2");
    }
}

fn day(day: &str) -> NaiveDate {
    day.parse().expect("a day")
}

fn set(tickers: &[&str]) -> BTreeSet<Ticker> {
    tickers.iter().map(|ticker| ticker.parse().expect("a ticker")).collect()
}

/// A cell of a matrix: its name, the date and the ticker.
type Cell = (String, i64, String);

/// The signals and confidences of long rows as numbers, as in matrices.
fn cells(rows: &RecordBatch) -> BTreeMap<Cell, f64> {
    let text = |name: &str| rows.column_by_name(name).expect("a column").as_string::<i32>().clone();
    let [tickers, periods, regimes, signals] = ["ticker", "period", "regime", "signal"].map(text);
    let confidences = rows.column_by_name("confidence").expect("a column").as_primitive::<Float64Type>();
    let dates = rows.column_by_name("date").expect("a column").as_primitive::<TimestampMicrosecondType>();
    let mut cells = BTreeMap::new();
    for row in 0..rows.num_rows() {
        let signal = if signals.value(row) == "buy" { 1.0 } else { -1.0 };
        for (value, number) in [("signal", signal), ("confidence", confidences.value(row))] {
            let name = format!("{}-{}/{value}", periods.value(row), regimes.value(row));
            cells.insert((name, dates.value(row), tickers.value(row).to_owned()), number);
        }
    }
    cells
}

/// The values of matrices.
fn cells_of_matrices(matrices: &BTreeMap<String, Dataset>) -> BTreeMap<Cell, f64> {
    let mut cells = BTreeMap::new();
    for (name, matrix) in matrices {
        for batch in matrix.batches().expect("a file") {
            let batch = batch.expect("rows");
            let dates = batch.column(0).as_primitive::<TimestampMicrosecondType>();
            for (column, field) in batch.columns().iter().zip(batch.schema().fields()).skip(1) {
                let numbers = cast(column, &DataType::Float64).expect("numbers");
                for (date, number) in dates.values().iter().zip(numbers.as_primitive::<Float64Type>()) {
                    let cell = (name.clone(), *date, field.name().clone());
                    number.and_then(|number| cells.insert(cell, number));
                }
            }
        }
    }
    cells
}

#[test]
fn wide_matrices_have_the_values_of_the_long_rows_in_every_format() {
    for format in ["parquet", "arrow", "csv"] {
        let wide = "layout = \"wide\"\nvalues = [\"signal\", \"confidence\"]\n";
        let place = published_place(&format!("format = [\"{format}\"]\n{wide}"));
        let Published::Wide(matrices) = Published::find(&place.file("output/datasets"), "it").expect("a version")
        else {
            panic!("the version is wide");
        };
        let names: Vec<&str> = matrices.keys().map(String::as_str).collect();
        assert_eq!(names, ["1m-neutral/confidence", "1m-neutral/signal", "5d-neutral/confidence", "5d-neutral/signal"]);
        let expected = cells(&rows(&of_archive(&place)));
        let whole = cells_of_matrices(&matrices);
        assert_eq!(whole.len(), expected.len());
        assert!(whole == expected, "{format}");

        let (tickers, from, to) = (set(&["XOM", "NEE"]), day("2026-01-05"), day("2026-02-03"));
        let selection = Selection { tickers: Some(tickers), from: Some(from), to: Some(to), ..Selection::default() };
        let part =
            |(name, matrix): (&String, &Dataset)| (name.clone(), matrix.select(selection.clone()).expect("tickers"));
        let part: BTreeMap<String, Dataset> = matrices.iter().map(part).collect();
        let schema = part["5d-neutral/signal"].schema();
        let columns: BTreeSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(columns, BTreeSet::from(["NEE", "XOM", "date"]));
        let micros = |day: NaiveDate| day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        let is_meant = |(_, date, ticker): &Cell| {
            ["NEE", "XOM"].contains(&ticker.as_str()) && (micros(from)..micros(to)).contains(date)
        };
        let expected: BTreeMap<Cell, f64> = expected.into_iter().filter(|(cell, _)| is_meant(cell)).collect();
        assert!(!expected.is_empty() && cells_of_matrices(&part) == expected, "{format}");

        for (name, width) in [("5d-neutral/signal", 3), ("5d-neutral/confidence", 3)] {
            let frame = part[name].frame().expect("a frame");
            assert_eq!(frame.shape(), (frame.height(), width), "{name}");
            assert!(frame.height() > 15, "{name}");
        }

        let of_none = Selection { tickers: Some(set(&["XON"])), ..Selection::default() };
        let refusal = matrices["5d-neutral/signal"].select(of_none).expect_err("no such ticker").to_string();
        assert_eq!(refusal, "no signals for ticker `XON` (did you mean `XOM`?)");
    }
}

#[test]
fn showing_an_unknown_ticker_or_column_is_refused() {
    let place = published_place("");
    let refused = |arguments: &[&str]| place.run(["show", "it"].iter().chain(arguments)).failed_with(2).stderr;
    let refusal = refused(&["--ticker", "XON"]);
    assert!(refusal.starts_with("error: no signals for ticker `XON` (did you mean `XOM`?)\n"), "{refusal}");
    let refusal = refused(&["--columns", "tickr"]);
    assert!(refusal.starts_with("error: no column `tickr`; the columns are `ticker`, "), "{refusal}");
}

#[test]
fn a_dropped_reader_stops_the_build_and_a_failed_build_reports_its_error() {
    let place = published_place("");
    let dataset = of_archive(&place);
    drop(dataset.batches().expect("an archive").next().expect("a batch").expect("rows"));
    for entry in fs::read_dir(place.file("output/archive/vendor")).expect("an archive").flatten() {
        let signals = entry.path().join("signals.parquet");
        if signals.exists() {
            fs::write(signals, "something else").expect("a file");
        }
    }
    let failure = of_archive(&place).batches().expect("an archive").find_map(Result::err).expect("damaged rows");
    let arrow::error::ArrowError::ExternalError(failure) = failure else { panic!("{failure}") };
    assert!(failure.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Damaged), "{failure}");
}

#[test]
fn a_frame_has_the_rows_of_the_batches_and_show_prints_them() {
    for format in ["parquet", "arrow"] {
        let place = published_place(&format!("format = [\"{format}\"]\n"));
        let (frame, all) = (of_version(&place).frame().expect("a frame"), rows(&of_version(&place)));
        assert_eq!(frame, of_archive(&place).frame().expect("a frame"));
        assert_eq!(frame.shape(), (all.num_rows(), all.num_columns()));
        let shown = |arguments: &[&str]| place.run(["show", "it"].iter().chain(arguments)).expect_success().stdout;
        let columns = ["--columns", "ticker,date,period,signal,confidence,observed_at"];
        fs::write(place.file("newest"), shown(&columns)).expect("a file");
        fs::write(place.file("tail"), shown(&[&["--tail", "7"], &columns[..]].concat())).expect("a file");
        let of_xom = ["--ticker", "XOM", "--from", "2026-11-01", "--to", "2026-11-05", "--head", "9"];
        fs::write(place.file("some"), shown(&[&of_xom, &columns[..]].concat())).expect("a file");
        crate::support::python::check("check_show.py", [place.path().as_os_str(), format.as_ref()]);
        let sample = shown(&["--sample", "4"]);
        assert!(sample.lines().count() == 6 && sample == shown(&["--sample", "4"]), "{sample}");
        assert!(shown(&["--head", "0"]).ends_with("\nno rows\n"));
    }
}
