//! No path is a pattern by accident: folders whose names are patterns of one another, read by real engines.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::scripted::{Scripted, ScriptedRequest, json as answer};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Each folder is a pattern that others match, or has a letter that some engine or language takes for something else.
/// Those that are matched come last: their values are newer.
const FOLDERS: [&str; 12] =
    ["p[1]", "p[!a]", "p[]", "p*", "p?", "p{1,2}", "it's", "two words", "p\"q", "p\\1", "p1", "p2"];

/// A service whose values differ in every run.
fn service() -> Scripted {
    Scripted::start(|ScriptedRequest { before, .. }| {
        let confidence = (before + 1) as f64 / 100.0;
        let history = json!({ "ONE": {
            "ticker": "ONE", "period": "5d", "regime": "neutral",
            "predictions": [{ "date": "2026-11-20T00:00:00", "signal": "buy", "confidence": confidence }],
        }});
        answer("200 OK", &history.to_string())
    })
}

/// Runs a definition in each folder, and returns the output of each run.
fn runs(place: &Place, service: &Scripted, folders: &[&str], output: &str) -> Vec<String> {
    let signals = "[signals]\nsectors = \"alpha\"\nperiods = \"5d\"\n[dataset]\nkind = \"signals\"\n";
    place.define("it", &format!("[source]\n{}{signals}[output]\n{output}", service.source()));
    let run =
        |folder: &&str| Outcome::of(place.command(["run", "it", "--data", folder]).envs([KEY])).expect_success().stdout;
    folders.iter().map(run).collect()
}

fn write(place: &Place, cases: &[Value]) -> String {
    let path = place.file("cases.json");
    fs::write(&path, serde_json::to_vec(cases).expect("JSON")).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// The statement of each folder, and the dataset that it must compute.
fn statements(place: &Place, dialect: &str, folders: &[&str]) -> Vec<Value> {
    let mut cases = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        let printed = place.run(["sql", "it", "--dialect", dialect, "--data", folder]);
        if dialect == "duckdb" && folder.contains('\\') {
            let shown = printed.failed_with(2).stderr;
            assert!(shown.starts_with("error: DuckDB takes `\\` in `/"), "{shown}");
            assert!(shown.ends_with("hint: rename the folder, or name a link to it with `--archive`\n"), "{shown}");
            std::os::unix::fs::symlink(place.file(folder), place.file("link")).expect("a link");
            place.run(["sql", "it", "--archive", "link/archive"]).expect_success();
            continue;
        }
        let path = place.file(&format!("{number}.sql"));
        fs::write(&path, printed.expect_success().stdout).expect("a file");
        cases.push(json!({ "sql": path, "dataset": place.file(folder).join("datasets/it/latest/it.parquet") }));
    }
    cases
}

#[test]
fn duckdb_reads_no_sibling_of_an_archive() {
    let (place, service) = (Place::new(), service());
    runs(&place, &service, &FOLDERS, "");
    let cases = statements(&place, "duckdb", &FOLDERS);
    assert_eq!(cases.len(), FOLDERS.len() - 1);
    python::check("check_sql.py", ["duckdb", &write(&place, &cases)]);
}

#[test]
fn spark_reads_no_sibling_of_an_archive() {
    let (place, service) = (Place::new(), service());
    // It takes seconds for each.
    let folders = ["p[1]", "p{1,2}", "p\\1`", "p1", "p2"];
    runs(&place, &service, &folders, "");
    let cases = statements(&place, "spark", &folders[..3]);
    assert_eq!(cases.len(), 3);
    python::check_with_spark("check_sql.py", ["spark", &write(&place, &cases)]);
}

#[test]
fn the_printed_line_of_python_reads_the_dataset_and_no_other() {
    for format in ["parquet", "csv", "arrow"] {
        let (place, service) = (Place::new(), service());
        let outputs = runs(&place, &service, &FOLDERS, &format!("format = \"{format}\"\n"));
        let line = |output: &String| {
            let line = output.lines().find_map(|line| line.strip_prefix("python")).expect("a line of Python");
            line.trim().to_owned()
        };
        let lines: Vec<String> = outputs.iter().map(line).collect();
        assert!(lines[FOLDERS.len() - 1].contains("(\"p2/datasets/it/latest/it."), "{lines:?}");
        let cases: Vec<Value> = lines
            .iter()
            .zip(1..)
            .map(|(line, number)| json!({ "line": line, "confidence": f64::from(number) / 100.0 }))
            .collect();
        let folder = place.path().to_str().expect("a path").to_owned();
        python::check("check_paths.py", [&folder, &write(&place, &cases)].map(Path::new));
    }
}
