//! The JSON output of commands, validated against the schemas that the program prints.

use std::fs;

use serde_json::Value;

use crate::support::program::Place;
use crate::support::python;

const DEMO: &str = "source.service = \"demo\"\nsignals.sectors = [\"utilities\"]\n";

/// Checks a document against the schema that is printed for it.
pub(crate) fn check(place: &Place, name: &str, document: &str) {
    let schema = place.run(["schema", "--for", name]).expect_success().stdout;
    let files = [("schema.json", schema.as_str()), ("document.json", document)].map(|(file, text)| {
        let path = place.file(file);
        fs::write(&path, text).expect("a file");
        path
    });
    python::check("check_document.py", files);
}

#[test]
fn every_json_command_prints_one_document_that_matches_its_schema() {
    let place = Place::new();
    place.define("demo", DEMO);
    place.define("wrong", "source.service = \"demo\"\nsignals.sectors = 3\n");
    place.run(["run", "demo", "-q"]).expect_success();
    place.run(["build", "demo", "--ticker", "NEE", "-q"]).expect_success();
    let run = crate::support::rows::sealed_run(&place);
    let run = run.file_name().unwrap().to_str().unwrap().trim_start_matches("run=").to_owned();
    let build = crate::support::program::only_build(&place, "demo");
    let build = format!("demo/builds/{}", build.file_name().unwrap().to_str().unwrap());
    let address = format!("file://{}", place.file("store").display());
    let store = format!("--store={address}");
    let saved = place.file("old.json");
    fs::write(&saved, "{}").unwrap();
    let saved = saved.to_str().unwrap();
    let table = place.file("rows.csv");
    let table = table.to_str().unwrap();
    let of_sector = "signals-history-all?sector=utilities";
    let own = place.file("own.csv");
    fs::write(&own, "ticker,date,confidence,close\nNEE,2026-01-05,0.5,80\n").unwrap();
    let own = own.to_str().unwrap();
    let commands: [(&str, &[&str], i32); 31] = [
        ("audit leak", &["demo"], 0),
        ("audit quality", &["demo"], 0),
        ("audit quality", &[], 0),
        ("audit revisions", &["demo"], 0),
        ("audit skill", &["demo"], 0),
        ("audit sources", &[], 0),
        ("audit table", &[own, "demo"], 0),
        ("build", &["demo"], 0),
        ("build", &["demo", "--output", table], 0),
        ("check", &["demo"], 0),
        ("check", &["demo", "wrong", "missing"], 2),
        ("cite", &["demo"], 0),
        ("diff", &["demo", &build], 0),
        ("doctor", &["demo"], 0),
        ("import", &["demo", saved, "--request", of_sector, "--observed-at", "2026-01-05"], 0),
        ("prune", &["--dry-run"], 0),
        ("prune --store", &[&address], 0),
        ("list datasets", &[], 0),
        ("list runs", &[], 0),
        ("list sectors", &["demo"], 0),
        ("list tickers", &["demo"], 0),
        ("report", &["demo", "--text"], 0),
        ("status", &["demo"], 0),
        ("status", &["demo", "wrong"], 5),
        ("store push", &[&store], 0),
        ("store pull", &[&store], 0),
        ("verify", &[], 0),
        ("verify", &["--repair"], 0),
        ("verify --store", &[&address], 0),
        ("verify --store", &[&address, "--repair"], 0),
        ("forget", &[&run, "--reason", "a test"], 0),
    ];
    check(&place, "list runs RUN", &place.run(["list", "runs", &run, "--json"]).expect_success().stdout);
    let mut seen = vec!["list runs RUN"];
    for (command, arguments, code) in commands {
        let words = command.split(' ').chain(arguments.iter().copied()).chain(["--json"]);
        let outcome = place.run(words).failed_with(code);
        assert_eq!(outcome.stdout.lines().count(), 1, "{command}: {}", outcome.stdout);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stdout));
        assert_eq!(document["version"], 1, "{command}");
        check(&place, command, &outcome.stdout);
        seen.push(command);
    }
    let run = place.run(["run", "demo", "--log", "json"]).expect_success();
    check(&place, "run", &run.stdout);
    run.stderr.lines().for_each(|event| check(&place, "events", event));
    assert!(run.stderr.contains("\"event\":\"finished\""), "{}", run.stderr);
    seen.extend(["run", "events"]);
    let removed = place.run(["prune", &build, "--json"]).expect_success().stdout;
    let removed = serde_json::from_str::<Value>(&removed).unwrap()["removed"][0]["path"].clone();
    assert!(removed.as_str().unwrap().ends_with(&build), "{removed}");
    // Every schema belongs to a command above.
    let unknown = place.run(["schema", "--for", "x"]).failed_with(2).stderr;
    let (_, names) = unknown.split_once("use one of ").expect("the names");
    for name in names.split(',').map(|name| name.trim().trim_matches('`')) {
        assert!(seen.contains(&name), "{name} is not tried");
    }
}

#[test]
fn a_failure_with_json_is_an_object_with_its_exit_code() {
    let place = Place::new();
    let outcome = place.run(["list", "runs", "--json"]).failed_with(1);
    assert_eq!(outcome.stdout, "");
    let error: Value = serde_json::from_str(&outcome.stderr).unwrap();
    assert_eq!((&error["event"], &error["exit_code"]), (&"error".into(), &1.into()));
    assert!(error["hint"].as_str().unwrap().contains("bellwether run"), "{error}");
}

#[test]
fn a_build_tells_of_its_version_or_file_in_json_and_of_rows_on_standard_output_nothing() {
    let place = Place::new();
    place.define("demo", DEMO);
    let run = place.run(["run", "demo", "--log", "json"]).expect_success().stdout;
    let message = |arguments: &[&str]| -> Value {
        let outcome = place.run([&["build", "demo", "--json"], arguments].concat()).expect_success();
        serde_json::from_str(&outcome.stdout).expect("a document")
    };
    let run: Value = serde_json::from_str(&run).unwrap();
    let file = place.file("rows.csv").display().to_string();
    assert_eq!(message(&["--vintage", "first"])["rows"], run["rows"]);
    let saved = message(&["--output", &file]);
    assert_eq!((&saved["file"], &saved["rows"]), (&file.as_str().into(), &run["rows"]));
    assert_eq!(saved["bytes"], fs::metadata(&file).unwrap().len());
    let refusal = place.run(["build", "demo", "--output", "-", "--format", "csv", "--json"]).failed_with(2);
    assert_eq!(refusal.stdout, "");
    assert!(refusal.stderr.contains("no room for `--json`"), "{}", refusal.stderr);
}

#[test]
fn json_and_text_have_the_same_numbers() {
    let place = Place::new();
    place.define("demo", DEMO);
    place.run(["run", "demo", "-q"]).expect_success();
    let message = |arguments: &[&str]| -> Value {
        serde_json::from_str(&place.run(arguments).expect_success().stdout).expect("a document")
    };
    let rows = crate::support::rows::read(&place.file("output/datasets/demo/latest/demo.parquet")).num_rows();
    assert_eq!(message(&["list", "datasets", "--json"])["versions"][0]["rows"], rows);
    assert_eq!(message(&["report", "--text", "demo", "--json"])["signals"]["count"], rows);
    let plan = message(&["check", "demo", "--json"]);
    let columns = plan["definitions"][0]["plan"]["columns"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().map(|it| it["name"].as_str().unwrap()).collect();
    let file = crate::support::rows::read(&place.file("output/datasets/demo/latest/demo.parquet"));
    let fields: Vec<String> = file.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, fields);
    let leak = message(&["audit", "leak", "demo", "--json"]);
    assert!(leak["trials"].as_array().unwrap().iter().all(|trial| trial["outcome"] != "leak"), "{leak}");
}
