//! Since when a run counts: from its seal on. As of an instant means what could have been built then.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bellwether::time::to_record;
use chrono::Utc;

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, Step, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

const REST: &str = "[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\", \"15d\"]\n[sentiment]\narticles = false\n\
                    [output]\nformat = \"csv\"\n";

/// A service whose answers change with every run, and take their time: those for 15 days longer.
struct Slow {
    service: Scripted,
    number: Arc<AtomicUsize>,
}

impl Slow {
    fn start() -> Self {
        let number = Arc::new(AtomicUsize::new(1));
        let current = Arc::clone(&number);
        let service = Scripted::of_histories(move |request| {
            let period = if request.target.contains("15d") { "15d" } else { "5d" };
            let confidence = current.load(Ordering::SeqCst) as f64 / 100.0;
            let entry = format!(r#"{{"date":"2026-11-20T00:00:00","signal":"buy","confidence":{confidence}}}"#);
            let body = format!(
                r#"{{"XOM":{{"ticker":"XOM","regime":"neutral","period":"{period}","predictions":[{entry}]}}}}"#
            );
            let wait = Duration::from_millis(if period == "15d" { 400 } else { 1 });
            [vec![Step::Wait(wait)], json("200 OK", &body)].concat()
        });
        Self { service, number }
    }
}

fn rows_of(build: &Path) -> String {
    fs::read_to_string(build.join("it.csv")).expect("rows")
}

/// The rows as of an instant or of a version; `None` if nothing was known.
fn build(place: &Place, as_of: &str) -> Option<String> {
    let outcome = place.run(["build", "it", "--as-of", as_of, "--format", "csv", "--output", "-", "-q"]);
    (outcome.code == Some(0)).then_some(outcome.stdout)
}

/// Builds as of the current instant all the time while runs happen, one is killed and resumed, and they are packed.
#[test]
fn what_is_built_as_of_an_instant_while_a_run_is_under_way_is_what_is_built_later() {
    let (place, slow) = (Place::new(), Slow::start());
    place.define("it", &format!("[source]\n{}{REST}", slow.service.source()));
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    let is_over = AtomicBool::new(false);
    let built: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            // Bounded, should a run hang.
            for _ in 0..400 {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let now = to_record(Utc::now());
                if let Some(rows) = build(&place, &now) {
                    built.lock().unwrap().push((now, rows));
                }
            }
        });
        for number in 2..6 {
            slow.number.store(number, Ordering::SeqCst);
            if number == 3 {
                let mut command = place.command(["run", "it", "-q"]);
                let mut run = command.envs([KEY]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                thread::sleep(Duration::from_millis(300));
                let _ = run.kill();
                let _ = run.wait();
            }
            Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
            if number == 4 {
                place.pack();
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let built = built.into_inner().unwrap();
    assert!(built.len() > 3, "{} builds", built.len());
    for (as_of, rows) in &built {
        let again = build(&place, as_of).expect("it was built before");
        assert_eq!(&again, rows, "as of {as_of}");
        // Both signals are of one run.
        let confidence = |line: &str| line.split(',').find(|text| text.starts_with("0.0")).map(str::to_owned);
        let confidences: Vec<_> = rows.lines().skip(1).map(confidence).collect();
        assert!(confidences.windows(2).all(|pair| pair[0] == pair[1]), "a mixture as of {as_of}:\n{rows}");
    }
}

#[test]
fn an_instant_in_the_future_is_refused_and_today_means_now() {
    let place = Place::new();
    place.define("it", &format!("[source]\nservice = \"demo\"\n{REST}"));
    place.run(["run", "it"]).expect_success();
    let future = ["2100-12-31", "2100-12-31T00:00:00Z"];
    for as_of in future {
        for command in [
            &["build", "it", "--as-of", as_of][..],
            &["sql", "it", "--as-of", as_of],
            &["audit", "revisions", "it", "--from", as_of],
            &["report", "it", "--as-of", as_of],
        ] {
            let outcome = place.run(command);
            assert!(outcome.code != Some(0), "{command:?}");
            assert!(outcome.stderr.contains("future"), "{command:?}: {}", outcome.stderr);
        }
    }
    let today = Utc::now().date_naive().to_string();
    let built = place.run(["build", "it", "--as-of", &today]);
    // Around midnight, today may be yesterday by now.
    assert!(built.code == Some(0), "{}", built.stderr);
}

#[test]
fn a_version_is_rebuilt_with_its_runs_and_its_definition() {
    let (place, slow) = (Place::new(), Slow::start());
    place.define("it", &format!("[source]\n{}{REST}", slow.service.source()));
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    let link = fs::read_link(place.file("output/datasets/it/latest")).unwrap();
    let version = link.to_str().unwrap().to_owned();
    let rows = rows_of(&place.file("output/datasets/it").join(&version));
    slow.number.store(2, Ordering::SeqCst);
    let edited = REST.replace("[\"5d\", \"15d\"]", "[\"5d\"]");
    place.define("it", &format!("[source]\n{}{edited}", slow.service.source()));
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    assert_ne!(rows_of(&place.file("output/datasets/it/latest")), rows);
    let rebuilt = build(&place, &version).expect("it is rebuilt");
    assert_eq!(rebuilt, rows);
    let unknown = place.run(["build", "it", "--as-of", "20200101T000000Z-abcd"]);
    assert!(unknown.code != Some(0) && !unknown.stderr.is_empty(), "{}", unknown.stderr);
}
