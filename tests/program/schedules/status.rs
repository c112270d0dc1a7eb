//! The status: verdicts and exit codes, as text, JSON, page and metrics, and over HTTP.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use chrono::{Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::Value;

use super::process::{KEY, Process, define, history, wait_until};
use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::scripted::{Scripted, json};
use crate::support::tools::{PYTHON, needs};

/// The day on which data is this many trading days old.
fn day_of_age(trading_days: u32) -> NaiveDate {
    let (mut day, mut left) = (Utc::now().date_naive(), trading_days);
    while left > 0 {
        if !matches!(day.weekday(), Weekday::Sat | Weekday::Sun) {
            left -= 1;
        }
        day -= TimeDelta::days(1);
    }
    day
}

fn service() -> Scripted {
    Scripted::of_histories(|request| {
        let day = |age: u32| history().replace(&Utc::now().date_naive().to_string(), &day_of_age(age).to_string());
        match request.target.split("sector=").nth(1).and_then(|rest| rest.split('&').next()) {
            Some("failing") if request.before > 1 => json("503 Service Unavailable", ""),
            Some("failing") if request.before > 0 => json("403 Forbidden", "{}"),
            Some("stale") => json("200 OK", &day(3)),
            Some("limit") => json("200 OK", &day(2)),
            _ => json("200 OK", &history()),
        }
    })
}

fn run(place: &Place, name: &str) -> Outcome {
    Outcome::of(place.command(["run", name, "-q"]).envs([KEY]))
}

fn status(place: &Place, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command(["status"]).args(arguments))
}

fn as_json(place: &Place, arguments: &[&str], code: i32) -> Value {
    let outcome = status(place, &[arguments, &["--json"]].concat()).failed_with(code);
    serde_json::from_str(&outcome.stdout).expect("as the test expects")
}

#[test]
fn fresh_stale_failing_and_unknown_each_have_an_exit_code_and_a_reason() {
    let (place, service) = (Place::new(), service());
    for name in ["fresh", "limit", "stale", "failing"] {
        define(&place, name, &service, "");
        run(&place, name).expect_success();
    }
    define(&place, "unrun", &service, "");
    place.define("broken", "[signals]\n");
    run(&place, "failing").failed_with(1);
    // It may come right later, but that is not known yet.
    run(&place, "failing").failed_with(75);
    for (name, verdict, code, reason) in [
        ("fresh", "fresh", 0, ""),
        ("limit", "fresh", 0, ""),
        ("stale", "stale", 3, "3 trading days"),
        ("failing", "failing", 3, " with status 403"),
        ("unrun", "not_run", 5, "no version has been published"),
        ("broken", "unknown", 5, "no service"),
    ] {
        let printed = as_json(&place, &[name], code);
        assert_eq!((&printed["version"], &printed["verdict"]), (&1.into(), &verdict.into()), "{name}: {printed}");
        let one = &printed["definitions"][0];
        let reasons = one["reasons"].as_array().unwrap();
        assert_eq!(reasons.is_empty(), reason.is_empty(), "{one}");
        assert!(reason.is_empty() || reasons[0].as_str().unwrap().contains(reason), "{one}");
    }
    assert_eq!(as_json(&place, &[], 3)["definitions"].as_array().unwrap().len(), 6);
    assert_eq!(as_json(&place, &["fresh", "unrun"], 5)["verdict"], "not_run");
    let fresh = &as_json(&place, &["fresh"], 0)["definitions"][0];
    assert_eq!((&fresh["rows"], &fresh["tickers"], &fresh["versions"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!(fresh["newest_date"], Utc::now().date_naive().to_string());
    assert!(
        fresh["last_success"]["run"].is_string()
            && fresh["fetched_at"].is_string()
            && fresh["bytes"].as_u64() > Some(0)
    );
    // A line for all, then each of them, the worst first.
    let text = status(&place, &[]).failed_with(3).stdout;
    assert!(
        text.starts_with("2 of 5 fresh; failing: failing; stale: stale; unknown: broken; not run yet: unrun\n\n"),
        "{text}"
    );
    let named = text.lines().filter(|line| line.contains(" is ") && !line.starts_with(' '));
    let names: Vec<&str> = named.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["failing", "stale", "broken", "fresh", "limit", "unrun"], "{text}");
    let text = status(&place, &["fresh"]).expect_success().stdout;
    assert!(text.starts_with("fresh is fresh\n") && text.contains(", up to date\n"), "{text}");
    let text = status(&place, &["failing"]).failed_with(3).stdout;
    assert!(
        text.starts_with("failing is failing\n  because   the run of ") && text.contains("\n  success   "),
        "{text}"
    );
    status(&place, &["nothing"]).failed_with(2);
}

#[test]
fn examples_that_nobody_ran_leave_the_status_of_the_others_alone() {
    let (place, service) = (Place::new(), service());
    define(&place, "example", &service, "");
    define(&place, "scheduled", &service, "[schedule]\ncron = \"@yearly\"\n");
    // Nothing was run: nothing can be told.
    assert_eq!(as_json(&place, &[], 5)["verdict"], "not_run");
    let text = status(&place, &[]).failed_with(5).stdout;
    assert!(
        text.starts_with("Nothing has run yet; not run yet: example, scheduled\n\nexample is not run yet\n"),
        "{text}"
    );
    define(&place, "fresh", &service, "");
    run(&place, "fresh").expect_success();
    assert_eq!(as_json(&place, &[], 0)["verdict"], "fresh");
    let text = status(&place, &[]).expect_success().stdout;
    assert!(text.starts_with("All fresh; not run yet: example, scheduled\n\n"), "{text}");
    // Who asks for one by its name wants data of it.
    assert_eq!(as_json(&place, &["fresh", "example"], 5)["verdict"], "not_run");
    // One whose archive or journal was there before is not one that nobody ran.
    fs::remove_dir_all(place.file("output/datasets")).unwrap();
    assert_eq!(as_json(&place, &["fresh"], 5)["verdict"], "unknown");
}

#[test]
fn stale_data_fails_the_run_and_leaves_the_published_version() {
    let (place, service) = (Place::new(), service());
    define(&place, "stale", &service, "[checks]\nmax_age = \"3 trading days\"\n");
    run(&place, "stale").expect_success();
    let latest = || fs::read_link(place.file("output/datasets/stale/latest")).unwrap();
    let before = latest();
    define(&place, "stale", &service, "[checks]\nmax_age = \"2 trading days\"\n");
    let shown = run(&place, "stale").failed_with(4).stderr;
    assert!(shown.contains(&format!("the newest date is {}, 3 trading days", day_of_age(3))), "{shown}");
    assert!(shown.contains("above the limit of 2 trading days\nhint: the archive keeps what was fetched"), "{shown}");
    assert_eq!(latest(), before);
    assert_eq!(fs::read_dir(place.file("output/datasets/stale")).unwrap().count(), 2, "nothing half built is left");
    assert_eq!(as_json(&place, &["stale"], 3)["verdict"], "failing");
}

#[test]
fn a_run_missing_at_its_deadline_is_stale() {
    let (place, service) = (Place::new(), service());
    define(&place, "it", &service, "[schedule]\ncron = \"* * * * * *\"\ndeadline = \"1s\"\n");
    run(&place, "it").expect_success();
    // No scheduler has seen it yet.
    assert_eq!(as_json(&place, &["it"], 0)["verdict"], "fresh");
    Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
    wait_until(|| status(&place, &["it"]).code == Some(3));
    let printed = as_json(&place, &["it"], 3);
    assert!(
        printed["definitions"][0]["reasons"][0].as_str().unwrap().contains("is `bellwether schedule` running?"),
        "{printed}"
    );
}

/// The status, content type and body of an answer.
pub(super) fn get(port: u16, path: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("as the test expects");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("as the test expects");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("as the test expects");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("as the test expects");
    let (head, body) = text.split_once("\r\n\r\n").expect("as the test expects");
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    (head[9..12].parse().expect("as the test expects"), kind.to_owned(), body.to_owned())
}

#[test]
fn the_scheduler_serves_status_a_page_and_metrics_that_prometheus_parses() {
    needs!(PYTHON);
    let (place, service) = (Place::new(), service());
    for name in ["fresh", "failing"] {
        define(&place, name, &service, "[schedule]\ncron = \"@yearly\"\n");
        run(&place, name).expect_success();
    }
    run(&place, "failing").failed_with(1);
    place.run(["report", "fresh"]).expect_success();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let process = Process::start(&place, &["--listen", &address, "--metrics", "all.prom"]);
    wait_until(|| TcpStream::connect(&address).is_ok() && place.file("all.prom").exists());
    assert_eq!(get(port, "/healthz"), (200, "text/plain; charset=utf-8".to_owned(), "ok\n".to_owned()));
    let (code, kind, body) = get(port, "/status");
    assert_eq!((code, kind.as_str()), (200, "application/json"));
    let printed: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(printed["verdict"], "failing");
    let (code, kind, page) = get(port, "/");
    assert_eq!((code, kind.as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.contains("1 of 2 fresh") && page.contains("href=\"/reports/fresh\""), "{page}");
    assert_eq!(get(port, "/reports/fresh").0, 200);
    for missing in ["/reports/none", "/reports/..%2f..%2fkey", "/nothing"] {
        assert_eq!(get(port, missing).0, 404, "{missing}");
    }
    let of_address = python::output("check_metrics.py", [format!("http://{address}/metrics")]);
    let of_file = python::output("check_metrics.py", [place.file("all.prom")]);
    let one: Vec<(String, Value, f64)> = serde_json::from_str(&of_address).unwrap();
    let value = |name: &str, label: &str, of: &str| {
        let is_it = |sample: &&(String, Value, f64)| sample.0 == name && sample.1[label] == of;
        one.iter().find(is_it).unwrap_or_else(|| panic!("{name} {of}: {of_address}")).2
    };
    assert_eq!(value("bellwether_dataset_rows", "definition", "fresh"), 1.0);
    assert_eq!(value("bellwether_data_age_trading_sessions", "definition", "fresh"), 0.0);
    let failed = |sample: &&(String, Value, f64)| {
        sample.0 == "bellwether_runs_total" && sample.1["definition"] == "failing" && sample.1["outcome"] == "failure"
    };
    assert_eq!(one.iter().find(failed).unwrap().2, 1.0);
    let names = |text: &str| -> Vec<String> {
        let samples: Vec<(String, Value, f64)> = serde_json::from_str(text).unwrap();
        samples.into_iter().map(|(name, labels, _)| format!("{name}{labels}")).collect()
    };
    assert_eq!(names(&of_address), names(&of_file));
    assert_eq!(process.stop("-INT").0, Some(0));
    // A second scheduler on the same address fails with a message.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let outcome = place.run(["schedule", "--listen", &taken.local_addr().unwrap().to_string()]).failed_with(1);
    assert!(outcome.stderr.contains("error: cannot listen on 127.0.0.1:"), "{}", outcome.stderr);
}

#[test]
fn metrics_files_are_written_atomically_and_failures_only_warn() {
    let (place, service) = (Place::new(), service());
    define(&place, "fresh", &service, "");
    let run = |file: &str| Outcome::of(place.command(["run", "fresh", "-q", "--metrics", file]).envs([KEY]));
    assert_eq!(run("it.prom").expect_success().stderr, "");
    python::check("check_metrics.py", [place.file("it.prom")]);
    let shown = run("no/such/folder/it.prom").expect_success().stderr;
    assert!(shown.starts_with("warning: cannot write the metrics: "), "{shown}");
    assert!(place.files().iter().all(|path| !path.to_string_lossy().contains(".prom-")), "nothing is left behind");
}

#[test]
fn the_status_page_is_self_contained_and_matches_the_journal() {
    let (place, service) = (Place::new(), service());
    define(&place, "fresh", &service, "");
    define(&place, "stale", &service, "");
    define(&place, "an-example-that-nobody-has-run-yet", &service, "");
    place.define("broken", "[signals]\n");
    for name in ["fresh", "fresh", "stale"] {
        run(&place, name).expect_success();
    }
    // Text from the service is escaped.
    let journal = place.file("output/journal/stale.jsonl");
    let line = fs::read_to_string(&journal).unwrap();
    let mut record: Value = serde_json::from_str(&line).unwrap();
    record["outcome"] = "failure".into();
    record["reasons"] =
        vec!["<script>alert(1)</script>\u{202e} in /a/path/of/many/parts/that/fits/on/no/line.parquet"].into();
    fs::write(&journal, format!("{record}\n{{\"cut off")).unwrap();
    fs::write(place.file("status.html"), "mine").unwrap();
    let refused = status(&place, &["--html", "status.html"]).failed_with(1).stderr;
    assert!(refused.starts_with("error: `status.html` already exists\nhint: "), "{refused}");
    assert_eq!(fs::read_to_string(place.file("status.html")).unwrap(), "mine");
    status(&place, &["--html", "status.html", "--force"]).failed_with(3);
    let page = fs::read_to_string(place.file("status.html")).unwrap();
    assert!(!page.contains(">Report</a>"), "none was drawn");
    place.run(["report", "fresh"]).expect_success();
    status(&place, &["--html", "status.html", "--force"]).failed_with(3);
    let page = fs::read_to_string(place.file("status.html")).unwrap();
    assert!(page.contains("1 of 3 fresh") && !page.contains("<script>alert") && !page.contains('\u{202e}'), "{page}");
    assert_eq!(page.matches("data-head=\"Started\"").count(), 3);
    let report = format!("file://{}", place.path().canonicalize().unwrap().join("output/reports/fresh.html").display());
    assert!(page.contains(&report), "{report}");
    assert!(Path::new(report.trim_start_matches("file://")).exists());
    python::check("check_status_page.py", [place.file("status.html")]);
    // A truncated line is ignored, and the next record starts on a new line.
    run(&place, "stale").expect_success();
    let printed = fs::read_to_string(&journal).unwrap();
    assert_eq!(printed.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 2);
}

#[test]
fn folders_the_key_and_the_log_format_can_come_from_the_environment() {
    let (place, service) = (Place::new(), service());
    define(&place, "fresh", &service, "");
    fs::write(place.file("key"), format!("{}\n", KEY.1)).unwrap();
    let mut command = place.command(["run", "fresh"]);
    command.env("BELLWETHER_API_KEY_FILE", place.file("key")).env("BELLWETHER_DATA", "elsewhere");
    command.env("BELLWETHER_ARCHIVE", "archived").env("BELLWETHER_LOG", "json").env("BELLWETHER_METRICS", "it.prom");
    let outcome = Outcome::of(&mut command).expect_success();
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(summary["version"], 1);
    let run = summary["archive"].as_str().unwrap().strip_prefix("archived/vendor/run=").unwrap().to_owned();
    let events: Vec<Value> = outcome.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!events.is_empty() && events.iter().all(|event| event["run"] == run.as_str() && event["level"] == "info"));
    assert!(place.file("elsewhere/datasets/fresh/latest").exists() && place.file("it.prom").exists());
    let targets = service.targets();
    assert!(targets.iter().all(|target| target.contains(KEY.1)), "{targets:?}");
}
