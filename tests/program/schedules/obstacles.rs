//! What keeps due runs from starting: a failure of `--once`, and of the scheduler that runs, reported once.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::Value;

use super::process::{KEY, Process, define, history, journal, memory, remember_done, wait_until};
use super::status::get;
use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

/// A project with a definition that is due, whose hook keeps what it gets.
fn due() -> (Place, Scripted) {
    let (place, service) = (Place::new(), Scripted::of_histories(|_| json("200 OK", &history())));
    place_due(&place, &service);
    (place, service)
}

fn hourly(place: &Place) -> String {
    let calls = place.file("calls.jsonl");
    let hook = format!("cat >> {0:?}; echo >> {0:?}", calls.display().to_string());
    format!("[schedule]\ncron = \"@hourly\"\n[hooks]\non_failure = [\"sh\", \"-c\", '{hook}']\n")
}

fn place_due(place: &Place, service: &Scripted) {
    define(place, "it", service, &hourly(place));
    once(place).expect_success();
    remember_done(place, "it", Utc::now() - TimeDelta::hours(2));
}

fn once(place: &Place) -> Outcome {
    Outcome::of(place.command(["schedule", "--once", "--metrics", "it.prom"]).envs([KEY]))
}

/// Puts something else in the place of a file or folder, and returns where the original is.
fn replace(place: &Place, path: &str, with: &str) -> (PathBuf, PathBuf) {
    let (path, aside) = (place.file(path), place.file("aside"));
    fs::rename(&path, &aside).expect("as the test expects");
    match with {
        "a folder" => fs::create_dir(&path).expect("as the test expects"),
        text => fs::write(&path, text).expect("as the test expects"),
    }
    (path, aside)
}

#[test]
fn whatever_was_due_and_did_not_start_is_a_failure_with_a_line_a_hook_and_a_metric() {
    // Each with its exit code, and whether the journal can be written.
    for (path, with, code, has_line) in [
        ("pipelines/it.toml", "[signals]\nsectors = 5\n", 2, true),
        ("pipelines/it.toml", "a folder", 1, true),
        ("output/schedule/it.json", "", 1, true),
        ("output/schedule/it.json", "{\"version\":1", 1, true),
        ("output/schedule/it.json", "a folder", 1, true),
        ("output/schedule", "a file", 1, true),
        ("output", "a file", 1, false),
    ] {
        let (place, service) = due();
        let (path, aside) = replace(&place, path, with);
        let case = format!("{} {with:?}", path.display());
        for _ in 0..2 {
            let outcome = once(&place);
            assert_eq!(outcome.code, Some(code), "{case}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("error: "), "{case}: {}", outcome.stderr);
        }
        let records = journal(&place, "it");
        assert_eq!(records.len(), usize::from(has_line), "once: {case}: {records:?}");
        if has_line {
            let record = &records[0];
            assert_eq!((&record["outcome"], &record["exit_code"]), (&"failure".into(), &code.into()), "{case}");
            assert!(record["due"].is_string() && record["run"].is_null(), "{case}: {record}");
            let metrics = fs::read_to_string(place.file("it.prom")).unwrap();
            let counted = "bellwether_runs_total{definition=\"it\",outcome=\"failure\"} 1\n";
            assert!(metrics.contains(counted), "{case}: {metrics}");
            // The hooks of a definition that cannot be read are unknown.
            if !path.starts_with(place.file("pipelines")) {
                let calls = fs::read_to_string(place.file("calls.jsonl")).unwrap();
                let call: Value = serde_json::from_str(calls.lines().next().unwrap()).unwrap();
                assert_eq!((calls.lines().count(), &call), (1, record), "{case}");
            }
            assert_ne!(place.run(["status"]).code, Some(0), "{case}");
        }
        match path.is_dir() {
            true => fs::remove_dir(&path).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        fs::rename(&aside, &path).unwrap();
        // Mended in time, it is run.
        once(&place).expect_success();
        assert!(service.histories() > 0, "{case}");
        place.run(["status"]).expect_success();
    }
}

#[test]
fn a_run_whose_line_cannot_be_written_is_no_success_of_the_scheduler() {
    let (place, service) = due();
    fs::write(place.file("output/journal"), "a file").unwrap();
    let outcome = once(&place).failed_with(1);
    assert!(outcome.stderr.contains("error: cannot write `output/journal`"), "{}", outcome.stderr);
    assert_eq!(service.histories(), 1, "it was run");
    assert_eq!(place.run(["status"]).code, Some(5), "and how it ended is unknown");
}

#[test]
fn nothing_scheduled_is_said_and_exits_with_2() {
    let (place, service) = (Place::new(), Scripted::of_histories(|_| json("200 OK", &history())));
    for arguments in [&["schedule"][..], &["schedule", "--once"]] {
        let shown = place.run(arguments).failed_with(2).stderr;
        assert!(shown.contains("no definition in `pipelines` has a `[schedule]`"), "{shown}");
    }
    define(&place, "it", &service, "");
    for arguments in [&["schedule"][..], &["schedule", "--once"]] {
        let shown = place.run(arguments).failed_with(2).stderr;
        assert!(shown.contains("no definition in `pipelines` has a `[schedule]`"), "{shown}");
    }
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["event"] == kind).count()
}

#[test]
fn a_failed_look_is_reported_once_and_shown_wherever_the_scheduler_is_watched() {
    let (place, _service) = due();
    fs::remove_dir_all(place.file("output/schedule")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process = Process::start(&place, &["--listen", &format!("127.0.0.1:{port}")]);
    wait_until(|| memory(&place, "it").exists());
    wait_until(|| get(port, "/healthz") == (200, "text/plain; charset=utf-8".to_owned(), "ok\n".to_owned()));
    let text = fs::read(memory(&place, "it")).unwrap();
    // A definition whose memory is damaged is read again once it is edited.
    fs::write(memory(&place, "it"), "{").unwrap();
    let definition = fs::read_to_string(place.file("pipelines/it.toml")).unwrap();
    place.define("it", &format!("# edited\n{definition}"));
    wait_until(|| get(port, "/healthz").0 == 503);
    let (_, _, body) = get(port, "/healthz");
    assert!(body.contains("it.json` is damaged"), "{body}");
    // Several looks later.
    thread::sleep(Duration::from_secs(12));
    let served: Value = serde_json::from_str(&get(port, "/status").2).unwrap();
    assert!(served["scheduler"]["failed_looks"].as_u64() > Some(1), "{served}");
    assert!(
        served["disk_free_bytes"].is_u64() && served["reasons"][0].as_str().unwrap().contains("it.json"),
        "{served}"
    );
    let metrics = get(port, "/metrics").2;
    assert!(!metrics.contains("bellwether_scheduler_failed_looks 0"), "{metrics}");
    for name in ["scheduler_start_timestamp_seconds", "scheduler_last_look_timestamp_seconds", "disk_free_bytes"] {
        assert!(metrics.contains(&format!("\nbellwether_{name} ")), "{name}: {metrics}");
    }
    // Another process sees the same.
    let outcome = place.run(["status", "--json"]);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_ne!(outcome.code, Some(0), "{found}");
    let fault = &found["scheduler"]["faults"][0];
    assert!(fault["definition"] == "it" && fault["reason"].as_str().unwrap().contains("damaged"), "{found}");
    let shown = place.run(["status"]).stdout;
    assert!(shown.contains("scheduler running since "), "{shown}");
    // Mended.
    fs::write(memory(&place, "it"), text).unwrap();
    wait_until(|| get(port, "/healthz").0 == 200);
    // The folder of definitions is away.
    fs::rename(place.file("pipelines"), place.file("aside")).unwrap();
    wait_until(|| get(port, "/healthz").0 == 503);
    thread::sleep(Duration::from_secs(6));
    fs::rename(place.file("aside"), place.file("pipelines")).unwrap();
    wait_until(|| get(port, "/healthz").0 == 200);
    let (code, events) = process.stop("-TERM");
    assert_eq!(code, Some(0), "{events:?}");
    let counts = ["broken", "look_failed", "recovered"].map(|kind| count(&events, kind));
    assert_eq!(counts, [1, 1, 2], "{events:?}");
    let broken = events.iter().find(|event| event["event"] == "broken").unwrap();
    assert!(broken["error"].to_string().contains("it.json` is damaged"), "with its cause: {broken}");
    // It has ended, and nothing is said of it.
    assert!(!place.run(["status"]).stdout.contains("scheduler running"));
}

#[test]
fn a_run_in_progress_is_neither_overdue_nor_stale_however_long_it_takes() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let service = Scripted::of_histories(move |request| {
        wait_until(|| request.before == 0 || gate.load(Ordering::SeqCst));
        json("200 OK", &history())
    });
    let place = Place::new();
    define(&place, "it", &service, "");
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    define(&place, "it", &service, "[schedule]\ncron = \"* * * * * *\"\ndeadline = \"1s\"\n");
    once(&place).expect_success();
    // Due after the run by hand.
    thread::sleep(Duration::from_secs(2));
    let mut process = place.command(["schedule", "--once"]).envs([KEY]).spawn().unwrap();
    wait_until(|| service.histories() == 2);
    // Well past the deadline of the second that it is for.
    thread::sleep(Duration::from_secs(3));
    let found: Value = serde_json::from_str(&place.run(["status", "--json"]).expect_success().stdout).unwrap();
    let one = &found["definitions"][0];
    assert!(one["is_running"] == true && one["running_since"].is_string() && one["overdue"].is_null(), "{one}");
    let shown = place.run(["status"]).expect_success().stdout;
    assert!(shown.contains("  running   since ") && shown.contains("(process "), "{shown}");
    is_open.store(true, Ordering::SeqCst);
    assert!(process.wait().unwrap().success());
    assert_eq!(journal(&place, "it").last().unwrap()["outcome"], "success");
    // Nothing runs it any more.
    wait_until(|| place.run(["status"]).code == Some(3));
    let found: Value = serde_json::from_str(&place.run(["status", "--json"]).failed_with(3).stdout).unwrap();
    assert!(
        found["definitions"][0]["is_running"] == false && found["definitions"][0]["overdue"].is_string(),
        "{found}"
    );
}

#[test]
fn the_counter_of_runs_never_falls_while_a_definition_is_broken_or_its_journal_grows() {
    let (place, service) = due();
    let counted = |outcome: &Outcome| {
        let metrics = fs::read_to_string(place.file("it.prom")).unwrap();
        let name = "bellwether_runs_total{definition=\"it\",outcome=\"success\"} ";
        let line = metrics.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{} {metrics}", outcome.stderr))[name.len()..].parse::<u64>().unwrap()
    };
    assert_eq!(counted(&once(&place).expect_success()), 1);
    let text = fs::read_to_string(place.file("pipelines/it.toml")).unwrap();
    place.define("it", "[signals]\n");
    assert_eq!(counted(&once(&place).failed_with(2)), 1);
    place.define("it", &text);
    // A journal that has grown, as an older version of the program left it.
    let path = place.file("output/journal/it.jsonl");
    let line = fs::read_to_string(&path).unwrap();
    let lines = (2 << 20) / line.len();
    fs::write(&path, line.repeat(lines)).unwrap();
    for more in 1..4 {
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
        assert_eq!(counted(&once(&place).expect_success()), (lines + more) as u64);
    }
    assert!(place.file("output/journal/it.00000001.jsonl").exists());
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20, "each run wrote its line alone");
    assert!(service.histories() > 3);
}
