//! Two concurrent runs of one definition: one proceeds, the other names the lock holder.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::program::{Outcome, Place, drain};
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5}]}}"#;

/// A run in progress: the service answers when the test allows it.
struct RunInProgress {
    place: Place,
    service: Scripted,
    may_answer: Arc<AtomicBool>,
    child: Child,
}

fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came to be");
        thread::sleep(Duration::from_millis(5));
    }
}

impl RunInProgress {
    fn start() -> Self {
        let may_answer = Arc::new(AtomicBool::new(false));
        let of_script = Arc::clone(&may_answer);
        let service = Scripted::of_histories(move |_| {
            wait_until(|| of_script.load(Ordering::SeqCst));
            json("200 OK", HISTORY)
        });
        let place = Place::new();
        for name in ["it", "other"] {
            place.define(name, &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
        }
        let child = spawn(&place, &["run", "it", "-q"]);
        wait_until(|| service.count() == 1);
        Self { place, service, may_answer, child }
    }

    fn let_it_answer(&self) {
        self.may_answer.store(true, Ordering::SeqCst);
    }
}

fn spawn(place: &Place, arguments: &[&str]) -> Child {
    let mut command = place.command(arguments);
    command.envs([KEY]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command(arguments).envs([KEY]))
}

#[test]
fn a_second_run_sends_no_request_and_names_the_lock_holder() {
    let mut first = RunInProgress::start();
    let process = first.child.id();
    for arguments in [&["run", "it"][..], &["run", "it", "--fresh"], &["run", "it", "--wait=1s"]] {
        let stderr = run(&first.place, arguments).failed_with(75).stderr;
        let held = format!("another run of `it` is in progress on `output/archive`: process {process} on `");
        let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with(&held)).collect();
        let waits = arguments.contains(&"--wait=1s");
        assert_eq!(lines.len(), usize::from(waits), "{stderr}");
        assert!(lines.iter().all(|line| line.ends_with("; waiting for it, for up to 1.0 s")), "{stderr}");
        assert!(stderr.contains(&format!("error: {held}")), "{stderr}");
        assert!(stderr.contains("`, since 20") && stderr.contains("Z\nhint: try again when"), "{stderr}");
    }
    assert_eq!(first.service.count(), 1);
    first.let_it_answer();
    assert!(first.child.wait().unwrap().success());
    // Requested once by each, and never at the same time.
    run(&first.place, &["run", "it", "-q"]).expect_success();
}

#[test]
fn a_waiting_run_starts_when_the_other_ends_and_can_be_interrupted() {
    let mut first = RunInProgress::start();
    let mut waiting = spawn(&first.place, &["run", "it", "-q", "--wait"]);
    let mut given_up = spawn(&first.place, &["run", "it", "-q", "--wait"]);
    thread::sleep(Duration::from_millis(700));
    assert!(waiting.try_wait().unwrap().is_none() && given_up.try_wait().unwrap().is_none());
    assert!(Command::new("kill").args(["-INT", &given_up.id().to_string()]).status().unwrap().success());
    assert_eq!(given_up.wait().unwrap().code(), Some(130));
    assert!(drain(given_up.stderr.take()).starts_with("error: interrupted"));
    assert_eq!(first.service.count(), 1);
    first.let_it_answer();
    assert!(first.child.wait().unwrap().success());
    assert!(waiting.wait().unwrap().success(), "{}", drain(waiting.stderr.take()));
    assert_eq!(first.service.histories(), 2);
}

#[test]
fn each_definition_and_each_archive_has_its_own_lock() {
    let mut first = RunInProgress::start();
    let mut other = spawn(&first.place, &["run", "other", "-q"]);
    let mut elsewhere = spawn(&first.place, &["run", "it", "-q", "--data", "elsewhere"]);
    wait_until(|| first.service.count() == 3);
    first.let_it_answer();
    for child in [&mut first.child, &mut other, &mut elsewhere] {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_lock_ends_with_its_process() {
    let mut first = RunInProgress::start();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    first.let_it_answer();
    run(&first.place, &["run", "it", "-q"]).expect_success();
}
