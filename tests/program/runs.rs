//! Successful runs: their output matches the answers of the service.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::program::{DemoService, Outcome, Place, drain};
use crate::support::python;
use crate::support::scripted::{Scripted, Step, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A small definition against a test's service.
fn small(source: &str, rest: &str) -> String {
    format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n{rest}")
}

fn check_dataset(place: &Place, name: &str, definition: &Path, service: &DemoService) {
    let folder = place.file("output/datasets").join(name).join("latest");
    let addresses = [service.address("base_url"), service.address("sentiment_base_url")].map(Path::new);
    python::check("check_dataset.py", [&folder, definition, addresses[0], addresses[1], Path::new("demo")]);
}

#[test]
fn the_demo_needs_no_key_or_network_and_matches_the_raw_answers() {
    let place = Place::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/demo.toml");
    fs::create_dir(place.file("pipelines")).unwrap();
    fs::copy(&shipped, place.file("pipelines/demo.toml")).unwrap();
    let outcome = place.run(["run", "demo", "--fresh"]).expect_success();
    for word in
        ["rows  ", "tickers  ", "dates  ", "rejected  0 records\n", "size  ", "report  ", "polars.read_parquet("]
    {
        assert!(outcome.stdout.contains(word), "{}", outcome.stdout);
    }
    for stage in ["signals: 27 requests, ", "articles: 155 requests, ", "archive: ", "dataset: "] {
        assert!(outcome.stderr.contains(stage), "{}", outcome.stderr);
    }
    // The same universe: the demo's is that of the day on which the run started.
    let dataset = fs::read_to_string(place.file("output/datasets/demo/latest/dataset.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&dataset).unwrap();
    let seal =
        place.file("output/archive/demo").join(format!("run={}", run["runs"][0].as_str().unwrap())).join("run.json");
    let seal: serde_json::Value = serde_json::from_str(&fs::read_to_string(seal).unwrap()).unwrap();
    let today = &seal["started_at"].as_str().unwrap()[..10];
    let service = DemoService::start(&place, &["--today", today]);
    check_dataset(&place, "demo", &shipped, &service);
}

#[test]
fn the_demo_begins_with_what_its_vendor_rewrote_since() {
    let place = Place::new();
    let first = place.run(["run", "demo"]).expect_success().stdout;
    let note = "note      the demo begins with 2 runs of earlier days, 4 weeks apart; `--fresh` begins today\n";
    assert!(first.ends_with(note), "{first}");
    let runs = |place: &Place| {
        let listed = place.run(["list", "runs", "--json"]).expect_success().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        listed["runs"].as_array().unwrap().len()
    };
    assert_eq!(runs(&place), 3);
    let audit = place.run(["audit", "revisions", "demo", "--json"]).expect_success().stdout;
    let audit: serde_json::Value = serde_json::from_str(&audit).unwrap();
    assert!(audit["signals"]["total"]["revised"].as_u64().unwrap() > 100, "{audit}");
    // What is there is not contradicted.
    let second = place.run(["run", "demo"]).expect_success().stdout;
    assert!(!second.contains("earlier days"), "{second}");
    assert_eq!(runs(&place), 4);
}

#[test]
fn every_format_lag_window_and_order_matches_the_raw_answers() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20", "--seed", "7"]);
    let rest = "periods = [\"1m\", \"10d\", \"2d\"]\nregimes = [\"bear\", \"neutral\"]\n[sentiment]\nsummary = true\n\
                [join]\nlag = \"0d\"\nwindows = [\"3d\", \"90d\"]\n\
                [output]\nformat = [\"parquet\", \"csv\", \"arrow\"]\nsort = [\"period\", \"date\"]\n";
    place.define("odd", &small(&service.source, rest));
    Outcome::of(place.command(["run", "odd", "--quiet"]).envs([KEY])).expect_success();
    check_dataset(&place, "odd", &place.file("pipelines/odd.toml"), &service);
}

#[test]
fn the_same_answers_give_the_same_rows_on_any_number_of_threads() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("same", &small(&service.source, "periods = [\"1d\", \"2d\"]\n[output]\nformat = \"csv\"\n"));
    let mut seen = Vec::new();
    for threads in ["1", "2", "7"] {
        let threads = [("RAYON_NUM_THREADS", threads)];
        Outcome::of(place.command(["run", "same", "-q"]).envs([KEY]).envs(threads)).expect_success();
        seen.push(fs::read(place.file("output/datasets/same/latest/same.csv")).unwrap());
    }
    assert!(seen[0] == seen[1] && seen[0] == seen[2]);
}

#[test]
fn a_run_sends_exactly_the_planned_requests() {
    let place = Place::new();
    let service = Scripted::start(|request| match request.target.as_str() {
        target if target.starts_with("/a/signals-history-all?sector=energy") => json("200 OK", HISTORY),
        target if target.starts_with("/b/news_articles/BRK.B?") => json("200 OK", "[]"),
        _ => json("404 Not Found", "{}"),
    });
    place.define("asks", &small(&service.source(), "[rejects]\nmax_share = 1\n"));
    Outcome::of(place.command(["run", "asks", "-q"]).envs([KEY])).expect_success();
    let expected = [
        "/a/signals-history-all?sector=energy&period=15d&regime=neutral&api_key=demo",
        "/b/news_articles/BRK.B?api_key=demo",
    ];
    assert_eq!(service.targets(), expected);
}

const HISTORY: &str = r#"{"BRK.B":{"ticker":"BRK.B","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5},
    {"date":"2026-11-19T00:00:00+00:00","signal":"hold","confidence":0.5},
    {"date":"2026-02-30T00:00:00+00:00","signal":"buy","confidence":0.5},
    {"date":"2026-11-18T19:00:00-05:00","signal":"sell","confidence":1},
    {"date":"2026-11-19T00:00:00","signal":"buy","confidence":0.25}]},
  "../../x\n":{"ticker":"../../x\n","regime":"neutral","period":"15d","predictions":[]}}"#;

#[test]
fn invalid_records_are_rejected_and_their_neighbours_are_kept() {
    let place = Place::new();
    let news = "[{\"date\":\"2026-11-19\",\"title\":\"a, \\\"b\\\"\\u00e9\",\"score\":\"0.5\",\"link\":\"https://a\"},\
                {\"date\":\"2026-11-18\",\"title\":\"c\",\"score\":null,\"link\":\"https://b\"},\
                {\"date\":\"2026-11-18\",\"title\":\"d\",\"score\":\"good\",\"link\":\"https://c\"},\
                {\"date\":\"2026-11-20\",\"title\":\"e\",\"score\":1,\"link\":\"https://d\"}]";
    let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
        true => json("200 OK", HISTORY),
        false => json("200 OK", news),
    });
    let rest = "[rejects]\nmax_share = 0.7\n[sentiment]\ncomplete = true\n[join]\nwindows = [\"1d\", \"2d\"]\n\
                [output]\nformat = \"csv\"\n";
    place.define("some", &small(&service.source(), rest));
    let outcome = Outcome::of(place.command(["run", "some"]).envs([KEY])).expect_success();
    assert!(outcome.stdout.contains("rejected  5 records\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("1 of 3 articles without a score: "), "{}", outcome.stdout);
    let rows = fs::read_to_string(place.file("output/datasets/some/latest/some.csv")).unwrap();
    // Of the two entries for the 19th, one with an offset, the first one counts. An article without a score is counted
    // but not part of the mean.
    let expected = "\
ticker,date,period,regime,signal,confidence,score,\
news_count_1d,news_mean_1d,news_min_1d,news_max_1d,news_count_2d,news_mean_2d,news_min_2d,news_max_2d,\
news_last_score,news_last_date,sector
BRK.B,2026-11-19T00:00:00,15d,neutral,sell,1.0,-1.0,1,,,,1,,,,,2026-11-18T00:00:00,energy
BRK.B,2026-11-20T00:00:00,15d,neutral,buy,0.5,0.5,1,0.5,0.5,0.5,2,0.5,0.5,0.5,0.5,2026-11-19T00:00:00,energy
";
    assert_eq!(rows, expected);
}

#[test]
fn a_published_version_stays_and_latest_moves() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("twice", &small(&service.source, ""));
    let run = || Outcome::of(place.command(["run", "twice", "-q"]).envs([KEY])).expect_success();
    let folder = place.file("output/datasets/twice");
    run();
    let first = fs::read_link(folder.join("latest")).unwrap();
    let rows = fs::read(folder.join(&first).join("twice.parquet")).unwrap();
    run();
    let second = fs::read_link(folder.join("latest")).unwrap();
    assert_ne!(first, second);
    assert!(rows == fs::read(folder.join(&first).join("twice.parquet")).unwrap());
    assert!(folder.join(second).join("dataset.json").exists());
}

#[test]
fn an_interrupted_run_stops_cleanly_and_leaves_no_partial_files() {
    // By a user, by a scheduler, and by a closed terminal.
    ["-INT", "-TERM", "-HUP"].into_iter().for_each(interrupted_by);
}

#[test]
fn a_run_under_nohup_survives_a_hangup() {
    let place = Place::new();
    let service =
        Scripted::of_histories(|_| [vec![Step::Wait(Duration::from_secs(1))], json("200 OK", HISTORY)].concat());
    place.define("some", &small(&service.source(), "[rejects]\nmax_share = 1\n"));
    let mut command = std::process::Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_bellwether")).args(["run", "some", "-q"]).current_dir(place.path()).envs([KEY]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let request = Instant::now();
    while service.targets().is_empty() {
        assert!(request.elapsed() < Duration::from_secs(30), "nothing was requested");
        std::thread::yield_now();
    }
    assert!(std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

fn interrupted_by(signal: &str) {
    let place = Place::new();
    let service = Scripted::start(|_| vec![Step::Wait(Duration::from_secs(20))]);
    place.define("slow", &small(&service.source(), ""));
    let mut child = place
        .command(["run", "slow"])
        .envs([KEY])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a file of the test");
    let request = Instant::now();
    while service.targets().is_empty() {
        assert!(request.elapsed() < Duration::from_secs(30), "nothing was requested");
        std::thread::yield_now();
    }
    let killed = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .expect("a file of the test");
    assert!(killed.success());
    let status = child.wait().expect("a file of the test");
    assert_eq!(status.code(), Some(130), "{signal}");
    assert_eq!(drain(child.stdout.take()), "");
    assert_eq!(
        drain(child.stderr.take()),
        "error: interrupted; nothing was published, and what was fetched is kept for the next run\n"
    );
    let files = ["output/archive/.locks/slow", "output/journal/slow.jsonl", "pipelines/slow.toml"];
    assert_eq!(place.files(), files.map(Path::new));
}
