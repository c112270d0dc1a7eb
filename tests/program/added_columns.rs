//! Runs from before a column was added: they are read with null in it, and verified, merged and packed like others.

use std::fs;
use std::path::Path;
use std::process::Command;

use arrow::array::{RecordBatch, new_null_array};
use serde_json::Value;

use crate::hostile::forge::{Forgery, names, rewrite};
use crate::support::days::Day;
use crate::support::program::Place;
use crate::support::python;
use crate::support::service::day;

/// Rows without a column.
fn without(rows: &RecordBatch, column: &str) -> RecordBatch {
    let mut rows = rows.clone();
    rows.remove_column(rows.schema().index_of(column).expect("a column"));
    rows
}

/// Rows with nothing in a column.
fn with_nulls(rows: &RecordBatch, column: &str) -> RecordBatch {
    let index = rows.schema().index_of(column).expect("a column");
    let mut columns = rows.columns().to_vec();
    columns[index] = new_null_array(columns[index].data_type(), rows.num_rows());
    RecordBatch::try_new(rows.schema(), columns).expect("it may be null")
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp starts").success());
}

/// What is known after a run, a merge of two that did not know each other, and a pack of all; the first run lacks two
/// columns, or has nothing in them.
fn known(is_older: bool) -> Vec<String> {
    let days = [18, 19, 20].map(|today| Day::new(day(2026, 11, today)));
    let (one, other) = (Place::new(), Place::new());
    days[0].run(&one);
    let record = fs::read(one.file("output/datasets/days/latest/dataset.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    one.define("days", record["definition"].as_str().expect("text"));
    let archive = one.file("output/archive/vendor");
    let [of_signals, of_requests]: [Forgery; 2] = match is_older {
        true => [|rows| without(rows, "utc_offset_minutes"), |rows| without(rows, "unknown_fields")],
        false => [|rows| with_nulls(rows, "utc_offset_minutes"), |rows| with_nulls(rows, "unknown_fields")],
    };
    let run = archive.join(&names(&archive)[0]);
    rewrite(&run, "signals.parquet", of_signals);
    rewrite(&run, "requests.parquet", of_requests);
    let mut known = Vec::new();
    let mut look = || {
        one.run(["verify"]).expect_success();
        known.push(one.run(["build", "days", "-q", "--format", "csv", "--output", "-"]).expect_success().stdout);
    };
    let has = |kind: &str| names(&archive).iter().any(|name| name.starts_with(kind));
    look();
    copy(&one.file("output"), &other.file("output"));
    days[1].run(&one);
    days[2].run(&other);
    let theirs = other.file("output/archive/vendor");
    let new = names(&theirs).into_iter().find(|name| !archive.join(name).exists()).expect("a run");
    copy(&theirs.join(&new), &archive.join(&new));
    look();
    assert!(has("merge="), "{:?}", names(&archive));
    one.run(["build", "days", "-q"]).expect_success();
    let (statement, cases) = (one.file("days.sql"), one.file("cases.json"));
    fs::write(&statement, one.run(["sql", "days"]).expect_success().stdout).expect("a statement");
    let dataset = one.file("output/datasets/days/latest/days.parquet");
    let case = serde_json::json!([{ "sql": statement, "dataset": dataset }]);
    fs::write(&cases, case.to_string()).expect("a case");
    python::check("check_sql.py", ["duckdb", cases.to_str().expect("text")]);
    one.pack();
    one.prune_packed();
    assert!(has("pack=") && !has("run="), "{:?}", names(&archive));
    look();
    known
}

#[test]
fn a_run_without_an_optional_column_is_read_with_nulls_and_verified_merged_and_packed() {
    let (older, newer) = (known(true), known(false));
    assert_eq!(older.len(), 3);
    for (older, newer) in older.iter().zip(&newer) {
        assert!(older == newer && older.lines().count() > 1_000, "{older}");
    }
}

#[test]
fn a_run_without_another_column_is_damaged() {
    let place = Place::new();
    Day::new(day(2026, 11, 18)).run(&place);
    let archive = place.file("output/archive/vendor");
    rewrite(&archive.join(&names(&archive)[0]), "signals.parquet", |rows| {
        let mut rows = rows.clone();
        rows.remove_column(rows.schema().index_of("confidence").expect("a column"));
        rows
    });
    let outcome = place.run(["verify"]).failed_with(1);
    assert!(outcome.stdout.contains("signals.parquet` is damaged: "), "{outcome:?}");
}
