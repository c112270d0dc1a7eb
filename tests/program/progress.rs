//! The progress of a run.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bellwether::error::{Error, ErrorKind};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, CancellationToken, Control, Event, Options, Progress, Summary};
use bellwether::time::Clock;
use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::scripted::{Scripted, Step, json};

fn definition(source: &str) -> String {
    format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n")
}

fn run(place: &Place, options: &[&str]) -> Outcome {
    Outcome::of(place.command([&["run", "it"], options].concat()).env("BELLWETHER_API_KEY", "demo"))
}

#[test]
fn progress_summary_and_errors_are_json_on_request() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service.source));
    let outcome = run(&place, &["--log", "json"]).expect_success();
    let events: Vec<Value> = outcome.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stages: Vec<&str> = events.iter().map(|event| event["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["signals", "archive", "dataset"]);
    assert_eq!(events[0]["rows"], 27_632);
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&summary["version"], &summary["rows"]), (&1.into(), &27_632.into()));
    assert!(place.path().join(summary["latest"].as_str().unwrap()).join("it.parquet").exists());

    drop(service);
    let outcome = run(&place, &["--log", "json"]).failed_with(75);
    let error: Value = serde_json::from_str(outcome.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&error["event"], &error["exit_code"]), (&"error".into(), &75.into()));
    assert_eq!(error["because"][0], "Connection refused (os error 111)");
}

#[test]
fn quiet_prints_nothing() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service.source));
    let outcome = run(&place, &["--quiet"]).expect_success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
}

#[test]
fn without_a_terminal_progress_is_a_line_every_few_seconds() {
    let place = Place::new();
    let history = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
        {"date":"2026-11-20","signal":"buy","confidence":0.5}]}}"#;
    let service = Scripted::start(move |request| match request.before {
        0 => vec![Step::Send(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n".to_vec())],
        _ => json("200 OK", history),
    });
    place.define("it", &definition(&service.source()));
    let begun = Instant::now();
    let outcome = run(&place, &[]).expect_success();
    assert!(begun.elapsed() >= Duration::from_secs(7));
    let waiting = "signals: 0 of 1 request, 1 waiting to retry: status 503\n";
    assert!(outcome.stderr.starts_with(waiting), "{}", outcome.stderr);
}

#[test]
fn timings_are_printed_and_traced_on_request() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service.source));
    let message = run(&place, &["--timings", "--trace", "run.json"]).expect_success().stderr;
    let table: Vec<&str> = message.lines().skip_while(|line| !line.starts_with("stage")).collect();
    let names: Vec<&str> = table.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["stage", "signals", "archive", "dataset", "all", "memory"], "{message}");
    let trace: Value = serde_json::from_slice(&fs::read(place.file("run.json")).unwrap()).unwrap();
    let pieces = trace["traceEvents"].as_array().unwrap();
    for expected in ["receive and decode", "settle tickers", "join slab", "encode column"] {
        assert!(pieces.iter().any(|piece| piece["name"] == expected), "{expected}");
    }

    let built = Outcome::of(&mut place.command(["build", "it", "--timings", "--trace", "nowhere/build.json"]));
    assert!(built.failed_with(1).stderr.starts_with("error: cannot write `nowhere/build.json`"));
    let summary = run(&place, &["--log", "json", "--timings"]).expect_success();
    assert!(summary.stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let summary: Value = serde_json::from_str(&summary.stdout).unwrap();
    assert_eq!(summary["stages"].as_array().unwrap().len(), 3);
}

#[test]
fn the_rate_limit_applies_per_host() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let source = format!("{}requests_per_second = 10\n", service.source);
    place.define(
        "it",
        &definition(&source).replace(
            "[signals]",
            "[signals]\nperiods = [\"1d\", \"2d\", \"3d\"]\nregimes = [\"bear\", \"bull\", \"neutral\"]",
        ),
    );
    let begun = Instant::now();
    run(&place, &["-q"]).expect_success();
    assert!(begun.elapsed() >= Duration::from_millis(800), "nine requests need eight pauses");
}

/// The events that an observer gets until it cancels the run at one of them.
fn observe(place: &Place, cancelled_at: &'static str) -> (Result<Summary, Error>, Vec<String>) {
    let plan = Plan::find(place.file("pipelines/it.toml").to_str().expect("a path"), &Project::default())
        .expect("a definition");
    let (seen, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let (events, token) = (Arc::clone(&seen), stop.clone());
    let observer = move |event: &Event<'_>| {
        let line = match event {
            Event::Started(Progress { stage, total, .. }) => format!("{stage} starts: {total:?}"),
            Event::Finished(Progress { stage, done, rows, .. }) => format!("{stage} ends: {done}, {rows}"),
            Event::Resumed { answers } => format!("resumes with {answers}"),
            _ => return,
        };
        if line == cancelled_at {
            token.cancel();
        }
        events.lock().expect("no panic").push(line);
    };
    let options = Options {
        clock: Clock::Fixed("2026-11-20T22:00:00Z".parse().expect("an instant")),
        control: Control { stop, ..Control::observed_by(observer) },
        ..Options::new(place.file("output"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(run::run(plan, options));
    let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
    (outcome, seen)
}

#[test]
fn an_observer_sees_every_stage_and_can_cancel_the_run() {
    let place = Place::new();
    let definition = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\", \"1m\"]\n";
    place.define("it", &format!("{definition}[sentiment]\narticles = false\n"));
    let (outcome, seen) = observe(&place, "archive starts: None");
    assert!(outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted), "{outcome:?}");
    assert_eq!(seen, ["signals starts: Some(2)", "signals ends: 2, 55264", "archive starts: None"]);
    let (outcome, seen) = observe(&place, "");
    let rows = outcome.expect("a dataset").rows;
    let ends = [format!("signals ends: 2, {rows}"), format!("dataset ends: 0, {rows}")];
    let stages = ["signals starts: Some(2)", &ends[0], "archive starts: None", "archive ends: 0, 0"];
    assert_eq!(seen, [&["resumes with 2"], &stages[..], &["dataset starts: None", &ends[1]]].concat());
}
