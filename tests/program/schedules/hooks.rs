//! Hooks: when they are called, their input, and their time limit.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{KEY, Process, define, history, journal, wait_until};
use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::scripted::{Scripted, json};
use crate::support::tools::{PYTHON, needs};

/// A Python HTTP server that writes request bodies to a file.
pub(super) struct Server {
    process: Child,
    pub(super) port: u16,
}

impl Server {
    pub(super) fn start(file: &Path) -> Self {
        let mut command = python::command(PYTHON, "hook_server.py");
        command.arg(file).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("as the test expects"))
            .read_line(&mut line)
            .expect("as the test expects");
        Self { process, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(place: &Place, name: &str) -> Outcome {
    Outcome::of(place.command(["run", name, "-q"]).envs([KEY, ("OTHER_COPY", KEY.1)]))
}

#[test]
fn each_outcome_calls_its_hook_with_the_record_and_without_the_key() {
    needs!(PYTHON);
    let place = Place::new();
    let received = place.file("received.jsonl");
    let server = Server::start(&received);
    let address = format!("http://127.0.0.1:{}", server.port);
    let service = Scripted::of_histories(|request| match request.target.contains("sector=later") {
        true => json("503 Service Unavailable", "{}"),
        // The service echoes the key in its refusal.
        false if request.target.contains("sector=failing") => {
            json("403 Forbidden", &format!("{{\"detail\":\"{}\"}}", KEY.1))
        }
        false => json("200 OK", &history()),
    });
    let hooks = format!(
        "[hooks]\non_success = \"{address}/success\"\non_failure = \"{address}/failure\"\non_later = \"{address}/later\"\n\
         ping = \"{address}/ping\"\n"
    );
    for (name, code) in [("fine", 0), ("failing", 1), ("later", 75)] {
        define(&place, name, &service, &hooks);
        run(&place, name).failed_with(code);
    }
    let text = fs::read_to_string(&received).unwrap();
    assert!(!text.contains(KEY.1), "{text}");
    let calls: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let printed: Vec<(&str, &str)> =
        calls.iter().map(|call| (call["method"].as_str().unwrap(), call["path"].as_str().unwrap())).collect();
    assert_eq!(printed, [("POST", "/success"), ("GET", "/ping"), ("POST", "/failure"), ("POST", "/later")]);
    for (call, (name, outcome)) in [(0, ("fine", "success")), (2, ("failing", "failure")), (3, ("later", "later"))] {
        let record: Value = serde_json::from_str(calls[call]["body"].as_str().unwrap()).unwrap();
        assert_eq!((&record["definition"], &record["outcome"]), (&name.into(), &outcome.into()));
        assert_eq!(record, journal(&place, name)[0], "the journal has the same record");
        assert_eq!(record["version"], 1);
    }
    let record = &journal(&place, "fine")[0];
    assert_eq!((&record["published"]["rows"], &record["exit_code"]), (&1.into(), &0.into()));
    assert!(place.file(&format!("output/archive/vendor/run={}", record["run"].as_str().unwrap())).is_dir());
    assert!(journal(&place, "failing")[0]["reasons"][0].as_str().unwrap().contains("refused the API key"));
}

#[test]
fn a_hook_command_gets_the_record_on_stdin_and_never_the_key() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    let script = "cat > record.json; env > environment.txt; echo \"$BELLWETHER_OUTCOME $BELLWETHER_RUN\" > said.txt";
    define(&place, "it", &service, &format!("[hooks]\non_success = [\"sh\", \"-c\", {script:?}]\n"));
    let below = place.file("notebooks");
    fs::create_dir(&below).unwrap();
    let mut run = place.command(["run", "it", "-q"]);
    let secrets = [KEY, ("OTHER_COPY", KEY.1), ("AWS_SECRET_ACCESS_KEY", "s3cret"), ("SOME_TOKEN", "s3cret")];
    Outcome::of(run.envs(secrets).current_dir(&below)).expect_success();
    let record: Value = serde_json::from_slice(&fs::read(place.file("record.json")).unwrap()).unwrap();
    assert_eq!(record, journal(&place, "it")[0]);
    let environment = fs::read_to_string(place.file("environment.txt")).unwrap();
    assert!(!environment.contains(KEY.1) && !environment.contains("s3cret"), "{environment}");
    assert!(environment.contains("BELLWETHER_DEFINITION=it\n") && environment.contains("PATH="), "{environment}");
    let said = fs::read_to_string(place.file("said.txt")).unwrap();
    assert_eq!(said, format!("success {}\n", record["run"].as_str().unwrap()));
}

#[test]
fn a_failing_or_hanging_hook_is_reported_and_changes_nothing() {
    needs!(PYTHON);
    let place = Place::new();
    let server = Server::start(&place.file("received.jsonl"));
    let address = format!("http://127.0.0.1:{}", server.port);
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    let cases = [
        ("[\"false\"]".to_owned(), "the hook `on_success` failed: `false` ended with exit status: 1"),
        ("[\"/no/such/program\"]".to_owned(), "the hook `on_success` failed: `/no/such/program` cannot be started: "),
        ("[\"sleep\", \"600\"]".to_owned(), "the hook `on_success` failed: `sleep` did not finish within 1.0 s"),
        (format!("\"{address}/fail?token=t0ken\""), "answered with status 500"),
        (format!("\"{address}/moved/t0ken\""), "answered with status 302"),
        ("\"http://127.0.0.1:1/t0ken\"".to_owned(), "127.0.0.1:1 cannot be reached: "),
    ];
    for (number, (hook, expected)) in cases.into_iter().enumerate() {
        let name = format!("it{number}");
        define(&place, &name, &service, &format!("[hooks]\non_success = {hook}\ntimeout = \"1s\"\n"));
        let begun = Instant::now();
        let outcome = run(&place, &name).expect_success();
        assert!(outcome.stderr.starts_with("warning: ") && outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("t0ken"), "an address may be a secret: {}", outcome.stderr);
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(journal(&place, &name)[0]["outcome"], "success");
    }
    let received = fs::read_to_string(place.file("received.jsonl")).unwrap();
    assert!(!received.contains("followed"), "{received}");
}

#[test]
fn a_hook_is_a_url_or_a_command_and_the_url_is_never_shown() {
    let place = Place::new();
    let check = |hook: &str| {
        place.define(
            "it",
            &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[hooks]\n{hook}\n"),
        );
        place.run(["check", "it"])
    };
    check("on_success = [\"true\"]\non_failure = \"https://example.com/x\"\nping = \"http://127.0.0.1:9/x\"\n")
        .expect_success();
    for (wrong, message) in [
        ("on_success = []", "an empty command"),
        ("on_success = \"notify-send\"", "neither an address nor a list"),
        ("on_failure = \"ftp://example.com\"", "unsupported scheme `ftp`"),
        ("on_later = 5", "`on_later` takes a list or text, not a number"),
        ("timeout = \"soon\"", "`soon` is not a duration"),
        ("on_sucess = [\"true\"]", "unknown key `on_sucess` in `[hooks]`"),
    ] {
        let shown = check(wrong).failed_with(2).stderr;
        assert!(shown.starts_with(&format!("error: {message}")), "{wrong}: {shown}");
    }
}

/// Whether a process runs; one that only waits to be collected does not.
fn is_running(process: &str) -> bool {
    let shown = Command::new("ps").args(["-o", "stat=", "-p", process]).output().expect("ps starts");
    let state = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// A hook that writes its process and those of its children, one in a session of its own, to a file, and takes ten minutes.
fn slow_hook(place: &Place, service: &Scripted, script: &str, timeout: &str, more: &str) {
    let script =
        format!("sleep 600 & one=$!; setsid sleep 600 & echo \"$$ $one $!\" > pids.new; mv pids.new pids; {script}");
    let hook = format!("[hooks]\non_success = [\"sh\", \"-c\", {script:?}]\ntimeout = \"{timeout}\"\n{more}");
    define(place, "it", service, &hook);
}

/// The processes of the slow hook, once it has started.
fn hook_processes(place: &Place) -> Vec<String> {
    wait_until(|| place.file("pids").exists());
    let text = fs::read_to_string(place.file("pids")).expect("it was written");
    let processes: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    assert_eq!(processes.len(), 3, "{text}");
    processes
}

const SCHEDULE: &str = "[schedule]\ncron = \"*/2 * * * * *\"\n";

/// A run, and a scheduler, with the same hook.
fn start(place: &Place, is_scheduled: bool) -> Process {
    if is_scheduled {
        return Process::start(place, &[]);
    }
    let mut command = place.command(["run", "it", "-q", "--log", "json"]);
    Process(command.envs([KEY]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts"))
}

#[test]
fn a_stop_leaves_a_hook_seconds_and_ends_it_with_all_that_it_started() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    for (is_scheduled, script) in [(false, "wait"), (true, "wait"), (false, "trap '' TERM; wait; sleep 600")] {
        let place = Place::new();
        slow_hook(&place, &service, script, "1h", SCHEDULE);
        let process = start(&place, is_scheduled);
        let processes = hook_processes(&place);
        let begun = Instant::now();
        let (code, events) = process.stop("-TERM");
        let took = begun.elapsed();
        // The unit of systemd gives it two minutes, Kubernetes half a minute.
        assert!((4..20).contains(&took.as_secs()), "{script}: {took:?}");
        assert_eq!(code, Some(0), "{events:?}");
        assert!(processes.iter().all(|process| !is_running(process)), "{script}: {processes:?}");
        let text = format!("{events:?}");
        assert!(text.contains("`sh` did not finish within 5.0 s after bellwether was stopped"), "{text}");
        assert_eq!(journal(&place, "it")[0]["outcome"], "success");
    }
}

#[test]
fn a_hook_that_ends_in_time_after_a_stop_is_not_disturbed() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    let place = Place::new();
    define(
        &place,
        "it",
        &service,
        "[hooks]\non_success = [\"sh\", \"-c\", \"touch begun; sleep 2; touch finished\"]\ntimeout = \"1h\"\n",
    );
    let process = start(&place, false);
    wait_until(|| place.file("begun").exists());
    let (code, events) = process.stop("-TERM");
    assert_eq!(code, Some(0), "{events:?}");
    assert!(place.file("finished").exists() && !format!("{events:?}").contains("did not finish"), "{events:?}");
}

#[test]
fn a_second_signal_ends_the_program_and_its_hook_at_once() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    for (is_scheduled, signal) in [(false, "-INT"), (true, "-TERM")] {
        let place = Place::new();
        slow_hook(&place, &service, "trap '' TERM; wait; sleep 600", "1h", SCHEDULE);
        let process = start(&place, is_scheduled);
        let processes = hook_processes(&place);
        process.signal(signal);
        std::thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        let (code, _) = process.stop(signal);
        assert_eq!(code, Some(130));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        wait_until(|| processes.iter().all(|process| !is_running(process)));
    }
}

#[test]
fn a_hook_beyond_its_timeout_leaves_no_process() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    for script in ["wait", "trap '' TERM; wait; sleep 600"] {
        let place = Place::new();
        slow_hook(&place, &service, script, "1s", "");
        let shown = run(&place, "it").expect_success().stderr;
        assert!(shown.contains("`sh` did not finish within 1.0 s"), "{shown}");
        let processes = hook_processes(&place);
        assert!(processes.iter().all(|process| !is_running(process)), "{script}: {processes:?}");
    }
}
