//! `show`: wide datasets, the past, and rows for other programs.

use std::fs;
use std::process::Command;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use serde_json::Value;

use crate::support::program::{Outcome, Place};
use crate::support::python::check;
use crate::support::rows::{read, sealed_run};
use crate::support::terminal::Window;
use crate::support::tools::PYTHON;

/// A definition of some tickers of the demo.
fn define(place: &Place, name: &str, tickers: &str, rest: &str) {
    let text = format!("source.service = \"demo\"\nsignals.tickers = [{tickers}]\n{rest}");
    place.define(name, &text);
}

fn show_text(place: &Place, arguments: &[&str]) -> String {
    place.run(["show"].iter().chain(arguments)).expect_success().stdout
}

/// The lines of JSON.
fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn a_matrix_of_a_wide_dataset_is_shown_as_its_file_has_it() {
    let place = Place::new();
    let wide = "signals.periods = [\"5d\", \"1m\"]\ndataset.kind = \"signals\"\n[output]\nlayout = \"wide\"\n\
        values = [\"signal\", \"confidence\"]\n";
    define(&place, "wide", "\"XOM\", \"NEE\"", wide);
    place.run(["run", "wide", "-q"]).expect_success();
    // Published, and built on the spot.
    for past in [&[][..], &["--as-of", &run_of(&place)]] {
        let show = |arguments: &[&'static str]| [&["wide"], arguments, past].concat();
        let table = show_text(&place, &show(&["--tail", "2"]));
        assert!(table.starts_with("date  ") && table.lines().count() == 5, "{table}");
        let line =
            "`1m-neutral/confidence`, the first of 4 matrices; `--period`, `--regime` and `--columns` choose another\n";
        assert!(table.ends_with(line), "{table}");
        let one = show(&["--period", "5d", "--columns", "signal", "--ticker", "NEE", "--head", "1000000"]);
        let table = show_text(&place, &one);
        assert!(table.ends_with("`5d-neutral/signal`\n"), "{table}");
        let rows = objects(&show_text(&place, &[&one[..], &["--format", "json"]].concat()));
        let csv = show_text(&place, &[&one[..], &["--format", "csv"]].concat());
        let file = read(&place.file("output/datasets/wide/latest/5d-neutral/signal.parquet"));
        let signals = cast(file.column_by_name("NEE").expect("a ticker"), &DataType::Float64).expect("numbers");
        let signals = signals.as_primitive::<Float64Type>();
        let expected: Vec<Value> = signals.iter().map(Value::from).collect();
        assert!(expected.len() > 100 && expected.contains(&1.0.into()) && expected.contains(&(-1.0).into()));
        assert_eq!(rows.iter().map(|row| row["NEE"].clone()).collect::<Vec<_>>(), expected);
        let of_csv = csv.lines().skip(1).map(|line| line.split_once(',').expect("two columns"));
        let expected = signals.iter().map(|signal| signal.map_or(String::new(), |signal| format!("{signal:?}")));
        assert!(csv.starts_with("date,NEE\n"), "{csv}");
        assert!(of_csv.clone().map(|(_, signal)| signal.to_owned()).eq(expected));
        assert!(of_csv.map(|(date, _)| date).eq(rows.iter().map(|row| row["date"].as_str().expect("a date"))));
        let refused = place.run(["show"].iter().chain(&show(&["--format", "csv"]))).failed_with(2).stderr;
        assert!(refused.starts_with("error: several matrices are selected"), "{refused}");
        let refused = place.run(["show"].iter().chain(&show(&["--columns", "nope"]))).failed_with(2).stderr;
        assert!(refused.contains("column `nope`"), "{refused}");
    }
}

/// The name of the only run.
fn run_of(place: &Place) -> String {
    let run = sealed_run(place);
    run.file_name().and_then(|name| name.to_str()).expect("a name").trim_start_matches("run=").to_owned()
}

#[test]
fn the_past_is_shown_as_a_build_of_it_and_nothing_is_published() {
    let place = Place::new();
    define(&place, "it", "\"NEE\"", "");
    place.run(["run", "it", "-q"]).expect_success();
    let first = run_of(&place);
    let version = fs::read_link(place.file("output/datasets/it/latest")).expect("a link");
    let version = version.to_str().expect("a name").to_owned();
    let before = show_text(&place, &["it", "--head", "1000000", "--format", "csv"]);
    define(&place, "it", "\"XOM\"", "");
    place.run(["run", "it", "-q"]).expect_success();
    let files = place.files();
    let now = show_text(&place, &["it", "--head", "1000000", "--format", "csv"]);
    assert!(now.contains("\nXOM,") && !now.contains("NEE"));
    for as_of in [&first, &version] {
        let shown = show_text(&place, &["it", "--as-of", as_of, "--head", "1000000", "--format", "csv"]);
        let built =
            place.run(["build", "it", "--as-of", as_of, "--output", "-", "--format", "csv"]).expect_success().stdout;
        assert!(shown == before && built == before, "{as_of}");
    }
    // A selection, and a table.
    let some = ["it", "--as-of", &first, "--columns", "ticker,signal", "--tail", "3"];
    assert!(show_text(&place, &some).starts_with("ticker  signal\nNEE     "));
    let unknown = place.run(["show", "it", "--as-of", "20200101T000000Z-0000"]).failed_with(2).stderr;
    assert!(unknown.starts_with("error: no version `20200101T000000Z-0000` of `it`, and no run of this name\n"));
    let early = place.run(["show", "it", "--as-of", "2020-01-01"]);
    assert!(early.code != Some(0) && early.stderr.contains("2020-01-01"), "{early:?}");
    place.run(["show", "nothing", "--as-of", &first]).failed_with(2);
    assert_eq!(place.files(), files);
}

#[test]
fn null_is_empty_in_csv_and_null_in_json_and_a_closed_pipe_is_no_failure() {
    let place = Place::new();
    define(&place, "it", "\"NEE\"", "join.windows = \"7d\"\njoin.stats = \"mean\"\n");
    place.run(["run", "it", "-q"]).expect_success();
    let file = read(&place.file("output/datasets/it/latest/it.parquet"));
    let means = file.column_by_name("news_mean_7d").expect("a column").as_primitive::<Float64Type>();
    assert!(means.null_count() > 0 && means.null_count() < means.len());
    let all = ["it", "--columns", "news_mean_7d,signal", "--head", "1000000", "--format"];
    let json = show_text(&place, &[&all[..], &["json"]].concat());
    assert!(objects(&json).iter().all(|row| row.as_object().is_some_and(|row| row.len() == 2)), "null is a member");
    // As texts: a parser of JSON may round.
    let of_json = json.lines().map(|line| line.strip_prefix("{\"news_mean_7d\":").expect("the first member"));
    let of_json = of_json.map(|line| line.split_once(',').expect("another member").0);
    let of_json: Vec<Option<f64>> = of_json.map(|mean| (mean != "null").then(|| mean.parse().expect(mean))).collect();
    assert!(of_json == means.iter().collect::<Vec<_>>(), "{json}");
    let csv = show_text(&place, &[&all[..], &["csv"]].concat());
    let of_csv = csv.lines().skip(1).map(|line| line.split_once(',').expect("two columns").0);
    assert!(of_csv.map(|mean| mean.parse::<f64>().ok()).eq(means.iter()), "{csv}");
    // All rows, unless some are asked for.
    let whole = show_text(&place, &["it", "--format", "json"]);
    assert_eq!(whole.lines().count(), file.num_rows());
    assert!(show_text(&place, &["it"]).ends_with(&format!("\n10 of {} rows\n", "1,255")), "{whole}");
    assert_eq!(show_text(&place, &["it", "--format", "json", "--tail", "3"]).lines().count(), 3);
    assert_eq!(show_text(&place, &["it", "--format", "csv", "--head", "0"]).lines().count(), 1);
    for format in ["table", "csv", "json"] {
        let line = "set -o pipefail; \"$0\" show it --head 1000000 --format \"$1\" | head -c 1";
        let mut command = Command::new("bash");
        command.args(["-c", line, env!("CARGO_BIN_EXE_bellwether"), format]).current_dir(place.path());
        let closed = Outcome::of(&mut command).expect_success();
        assert_eq!((closed.stdout.len(), &*closed.stderr), (1, ""), "{format}");
    }
}

#[test]
fn any_file_of_rows_is_shown_with_what_else_opens_it() {
    let place = Place::new();
    define(&place, "it", "\"NEE\"", "[output]\nformat = [\"parquet\", \"csv\", \"csv.gz\", \"csv.zst\", \"arrow\"]\n");
    place.run(["run", "it", "-q"]).expect_success();
    let version = show_text(&place, &["it", "--columns", "ticker,date,signal,confidence", "--tail", "7"]);
    let folder = place.file("output/datasets/it/latest");
    for (ending, others) in [
        ("parquet", "`tw it.parquet` and `duckdb -c \"from 'it.parquet'\"` open it as well\n"),
        ("csv", "`tw it.csv` and `duckdb -c \"from 'it.csv'\"` open it as well\n"),
        ("csv.gz", "`duckdb -c \"from 'it.csv.gz'\"` opens it as well\n"),
        ("csv.zst", "`duckdb -c \"from 'it.csv.zst'\"` opens it as well\n"),
        ("arrow", "`tw it.arrow` opens it as well\n"),
    ] {
        let name = format!("it.{ending}");
        fs::copy(folder.join(&name), place.file(&name)).expect("a file");
        let some = ["--columns", "ticker,date,signal,confidence", "--tail", "7"];
        let shown = show_text(&place, &[&[&*name], &some[..]].concat());
        assert_eq!(shown, version.clone() + others, "{name}");
        let part = ["--ticker", "NEE", "--from", "2026-11-02", "--format", "csv"];
        let part = |name: &str| show_text(&place, &[&[name], &part[..], &["--columns", "date,confidence"]].concat());
        assert_eq!(part(&name), part("it"), "{name}");
        let refused = place.run(["show", &name, "--as-of", "2026-11-02"]).failed_with(2).stderr;
        assert!(refused.starts_with("error: a file has no past"), "{refused}");
    }
    fs::write(place.file("it's \"odd\".csv"), "a,b\n1,x\n").expect("a file");
    let expected = "a  b\n1  x\n`tw` and `duckdb` open it as well\n";
    assert_eq!(show_text(&place, &["it's \"odd\".csv"]), expected);
    let refused = place.run(["show", "none.parquet"]).failed_with(1).stderr;
    assert!(refused.contains("`none.parquet`") && refused.contains("No such file"), "{refused}");
    fs::write(place.file("bad.parquet"), "PAR1 and no more").expect("a file");
    let refused = place.run(["show", "bad.parquet"]).failed_with(1).stderr;
    assert!(refused.starts_with("error: cannot read rows from `bad.parquet`\n  because: "), "{refused}");
    fs::write(place.file("empty.csv"), "").expect("a file");
    let refused = place.run(["show", "empty.csv"]).failed_with(1).stderr;
    assert_eq!(refused, "error: cannot read rows from `empty.csv`\n  because: it has no columns\n");
    fs::write(place.file("rows.txt"), "a\n1\n").expect("a file");
    let refused = place.run(["show", "rows.txt"]).failed_with(2).stderr;
    assert!(refused.starts_with("error: cannot tell the format of `rows.txt`"), "{refused}");
    fs::write(place.file("odd.csv"), "date,ticker\nsoon,XOM\n").expect("a file");
    let refused = place.run(["show", "odd.csv", "--from", "2026-01-01"]).failed_with(2).stderr;
    assert!(refused.starts_with("error: cannot select dates: the column `date` of `odd.csv` has none"), "{refused}");
}

#[test]
fn files_of_polars_pandas_and_arrow_are_shown_as_they_are() {
    let place = Place::new();
    check("check_files.py", [place.path()]);
    for name in ["polars.parquet", "pandas.parquet", "stream.arrow", "file.arrow", "plain.csv"] {
        let shown = show_text(&place, &[name, "--format", "csv"]);
        let expected = fs::read_to_string(place.file(&format!("{name}.expected"))).expect("what it has");
        assert_eq!(shown, expected, "{name}");
        let some = objects(&show_text(&place, &[name, "--ticker", "CVX", "--from", "2026-11-02", "--format", "json"]));
        assert!(some.len() == 1 && some[0]["ticker"] == "CVX" && some[0]["count"] == 3, "{name}: {some:?}");
    }
    let nested = show_text(&place, &["nested.parquet"]);
    assert!(nested.starts_with("list    big\n[1, 2]  18446744073709551615\nnull    null\n"), "{nested}");
}

#[test]
fn headlines_use_the_width_that_there_is() {
    if !PYTHON.is_there() {
        return;
    }
    let place = Place::new();
    let title = "The quick brown fox jumps over the lazy dog and runs away from here at once";
    fs::write(place.file("x.csv"), format!("ticker,title,score\nXOM,{title},0.5\n")).expect("a file");
    // A gap of two follows the ticker and the title.
    let lines = |width: usize| Window::of(&width.to_string()).run(&place, ["show", "x.csv"]).lines;
    let room = |width: usize| width - "ticker".len() - "score".len() - 4;
    for width in [60, 70, 80] {
        let shortened: String = title.chars().take(room(width) - 1).chain(['…']).collect();
        assert_eq!(lines(width)[1], format!("XOM     {shortened}    0.5"), "{width}");
    }
    assert_eq!(lines(100)[1], format!("XOM     {title}    0.5"));
    let shortened: String = title.chars().take(39).chain(['…']).collect();
    assert!(show_text(&place, &["x.csv"]).contains(&format!("XOM     {shortened}    0.5\n")), "no terminal");
}
