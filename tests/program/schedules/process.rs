//! Real scheduler processes: with schedules of seconds, two at once, killed, stopped, and told to look.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::support::program::{Outcome, Place, drained};
use crate::support::python;
use crate::support::scripted::{Scripted, Step, json};

pub(crate) const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "sched-canary-4711");

/// What a scheduler remembers of the definition `energy`.
const MEMORY: &str = "output/schedule/energy.json";

/// A history that ends today.
pub(crate) fn history() -> String {
    let today = Utc::now().date_naive();
    format!(
        "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[\
         {{\"date\":\"{today}T00:00:00+00:00\",\"signal\":\"buy\",\"confidence\":0.5}}]}}}}"
    )
}

pub(crate) fn define(place: &Place, name: &str, service: &Scripted, more: &str) {
    let text = format!(
        "[source]\n{}patience = \"1s\"\n[signals]\nsectors = [\"{name}\"]\n[sentiment]\narticles = false\n{more}",
        service.source()
    );
    place.define(name, &text);
}

/// A scheduler as a process, killed when it is dropped.
pub(super) struct Process(pub(super) Child);

impl Process {
    pub(super) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(["schedule", "--log", "json"]);
        command.args(arguments).envs([KEY]).stdout(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().expect("the program starts"))
    }

    pub(super) fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &self.0.id().to_string()])
                .status()
                .expect("as the test expects")
                .success()
        );
    }

    /// Stops it, and returns its exit code and its events.
    pub(super) fn stopped(mut self, signal: &str) -> (Option<i32>, Vec<Value>) {
        self.signal(signal);
        let status = self.0.wait().expect("as the test expects");
        let text = drained(self.0.stderr.take());
        (
            status.code(),
            text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect(),
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The records in the journal of a definition.
pub(crate) fn journal(place: &Place, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.file(&format!("output/journal/{name}.jsonl"))).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("as the test expects")).collect()
}

pub(super) fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it never came to be");
        thread::sleep(Duration::from_millis(20));
    }
}

fn instants(records: &[Value], key: &str) -> Vec<String> {
    records.iter().map(|record| record[key].as_str().expect("as the test expects").to_owned()).collect()
}

/// With `BELLWETHER_SCHEDULE_SECONDS=180` it takes that long at least.
#[test]
fn two_schedulers_on_one_folder_run_every_due_second_once_and_never_together() {
    let seconds = env::var("BELLWETHER_SCHEDULE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let at_once = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counted = Arc::clone(&at_once);
    let service = Scripted::of_histories(move |_| {
        let now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
        counted.1.fetch_max(now, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(50));
        counted.0.fetch_sub(1, Ordering::SeqCst);
        json("200 OK", &history())
    });
    let place = Place::new();
    define(&place, "energy", &service, "[schedule]\ncron = \"*/5 * * * * *\"\n");
    define(
        &place,
        "utilities",
        &service,
        "[schedule]\ncron = \"*/10 * * * * *\"\ntimezone = \"Australia/Lord_Howe\"\n",
    );
    place.define("broken", "[schedule]\ncron = \"never\"\n");
    let processes = [
        Process::start(&place, &["--listen", "127.0.0.1:0"]),
        Process::start(&place, &["--metrics", "bellwether.prom"]),
    ];
    thread::sleep(Duration::from_secs(seconds));
    wait_until(|| journal(&place, "utilities").len() > 1 && journal(&place, "energy").len() > 2);
    let mut broken = 0;
    for process in processes {
        let (code, events) = process.stopped("-TERM");
        assert_eq!(code, Some(0), "{events:?}");
        broken += events.iter().filter(|event| event["event"] == "broken").count();
        for event in &events {
            assert!(event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
            assert!(["info", "warn", "error"].contains(&event["level"].as_str().unwrap()), "{event}");
            assert!(!event.to_string().contains(KEY.1), "{event}");
        }
    }
    assert_eq!(broken, 2, "once by each process");
    for (name, step) in [("energy", 5), ("utilities", 10)] {
        let records: Vec<Value> =
            journal(&place, name).into_iter().filter(|record| record["outcome"] != "interrupted").collect();
        assert!(records.iter().all(|record| record["outcome"] == "success"), "{records:?}");
        let due = instants(&records, "due");
        assert_eq!(due.iter().collect::<BTreeSet<_>>().len(), due.len(), "each due time once: {due:?}");
        let second = |time: &String| time[17..19].parse::<u32>().unwrap();
        assert!(due.iter().all(|time| second(time) % step == 0), "{due:?}");
        assert!(due.is_sorted(), "{due:?}");
        // Each run has ended before the next one started, and joins its folder in the archive.
        let (started, ended) = (instants(&records, "started_at"), instants(&records, "ended_at"));
        assert!(ended.iter().zip(&started[1..]).all(|(ended, started)| ended <= started), "{started:?} {ended:?}");
        assert!(started.iter().zip(&due).all(|(started, due)| started >= due));
        assert!(records.iter().all(|record| record["run"].as_str().is_some_and(|run| run.len() == 21)));
    }
    // Each definition asks for its own sector: two of them may be at work at once, in the two processes.
    assert!(at_once.1.load(Ordering::SeqCst) <= 2);
    python::check("check_metrics.py", [place.file("bellwether.prom")]);
}

#[test]
fn a_killed_scheduler_runs_the_due_time_once_after_a_restart() {
    let service = Scripted::of_histories(|asked| match asked.before {
        0 => vec![Step::Wait(Duration::from_secs(60))],
        _ => json("200 OK", &history()),
    });
    let place = Place::new();
    // The next due time after the first one is far away.
    define(&place, "energy", &service, "[schedule]\ncron = \"*/2 * * * * *\"\ncatch_up = \"1d\"\n");
    let mut process = Process::start(&place, &[]);
    wait_until(|| service.histories() == 1);
    process.0.kill().unwrap();
    process.0.wait().unwrap();
    assert!(journal(&place, "energy").is_empty());
    let before = done(&place);
    // Several times were missed: the newest one is run, once.
    remember_done(&place, Utc::now() - TimeDelta::hours(1));
    let outcome = Outcome::of(place.command(["schedule", "--once", "--log", "json"]).envs([KEY])).succeeded();
    assert!(outcome.stderr.contains("\"event\":\"missed\""), "{}", outcome.stderr);
    let records = journal(&place, "energy");
    assert_eq!((records.len(), &records[0]["outcome"]), (1, &"success".into()));
    assert!(done(&place) > before);
    assert_eq!(service.histories(), 2);
}

/// What a scheduler remembers.
fn memory(place: &Place) -> Value {
    let text = fs::read(place.file(MEMORY)).expect("it was written");
    serde_json::from_slice(&text).expect("JSON")
}

/// Up to which time the schedule of the definition is done, as it is remembered.
fn done(place: &Place) -> String {
    memory(place)["done"].as_str().expect("an instant").to_owned()
}

/// Lets everything since an instant be due.
fn remember_done(place: &Place, instant: DateTime<Utc>) {
    let mut memory = memory(place);
    memory["done"] = instant.to_rfc3339_opts(SecondsFormat::Micros, true).into();
    fs::write(place.file(MEMORY), memory.to_string()).expect("it can be written");
}

#[test]
fn a_run_published_before_a_crash_is_not_repeated() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    let place = Place::new();
    // Due two minutes ago, and then not for a day.
    let due = (Utc::now() - TimeDelta::minutes(2)).duration_trunc(TimeDelta::minutes(1)).unwrap();
    let cron = due.format("%-M %-H * * *");
    define(&place, "energy", &service, &format!("[schedule]\ncron = \"{cron}\"\ntimezone = \"UTC\"\n"));
    let once = || Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).succeeded();
    // A definition owes nothing when it is first seen.
    once();
    assert_eq!(service.histories(), 0);
    remember_done(&place, due - TimeDelta::hours(1));
    let memory = fs::read(place.file(MEMORY)).unwrap();
    once();
    assert_eq!((service.histories(), journal(&place, "energy").len()), (1, 1));
    // As if it had been killed after it published, and before it could write that down.
    let as_if_killed = || {
        fs::write(place.file(MEMORY), &memory).unwrap();
        fs::remove_file(place.file("output/journal/energy.jsonl")).unwrap();
    };
    as_if_killed();
    let told = once().stderr;
    assert!(told.contains(&format!("already covers {}", due.format("%Y-%m-%d %H:%M UTC"))), "{told}");
    assert_eq!((service.histories(), journal(&place, "energy").len()), (1, 0));
    assert!(done(&place) >= due.to_rfc3339_opts(SecondsFormat::Micros, true), "and it is remembered");
    // A run that was archived and not published does not stand for it.
    fs::write(place.file(MEMORY), &memory).unwrap();
    fs::remove_dir_all(place.file("output/datasets")).unwrap();
    once();
    assert_eq!((service.histories(), journal(&place, "energy").len()), (2, 1));
}

#[test]
fn a_stop_interrupts_the_run_and_a_hangup_reloads_the_definitions() {
    let service = Scripted::of_histories(|asked| match asked.before {
        0 => vec![Step::Wait(Duration::from_secs(60))],
        _ => json("200 OK", &history()),
    });
    let place = Place::new();
    define(&place, "energy", &service, "[schedule]\ncron = \"*/2 * * * * *\"\n");
    let process = Process::start(&place, &[]);
    wait_until(|| service.histories() == 1);
    // Picked up while a run is in progress; and what is broken leaves the others alone.
    place.define("broken", "[schedule]\ncron = \"x\"\n");
    place.define(
        "added",
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"@yearly\"\n",
    );
    process.signal("-HUP");
    wait_until(|| place.file("output/schedule/added.json").exists());
    let begun = Instant::now();
    let (code, events) = process.stopped("-TERM");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(code, Some(0));
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"stopping") && kinds.contains(&"broken"), "{kinds:?}");
    let broken = events.iter().find(|event| event["event"] == "broken").unwrap();
    let problems = broken["error"]["problems"].as_array().unwrap();
    let is_it = |problem: &&Value| problem["message"] == "a schedule has five fields, found 1";
    let problem = problems.iter().find(is_it).unwrap_or_else(|| panic!("{broken}"));
    assert_eq!((&problem["line"], &problem["column"]), (&2.into(), &8.into()), "{problem}");
    assert_eq!(journal(&place, "energy")[0]["outcome"], "interrupted");
    Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).succeeded();
    assert_eq!(journal(&place, "energy")[1]["outcome"], "success");
}

#[test]
fn the_scheduler_waits_for_a_manual_run_to_end() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let service = Scripted::of_histories(move |asked| {
        wait_until(|| asked.before > 0 || gate.load(Ordering::SeqCst));
        json("200 OK", &history())
    });
    let place = Place::new();
    define(&place, "energy", &service, "[schedule]\ncron = \"*/2 * * * * *\"\nretry_after = \"1s\"\n");
    let once = || Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).succeeded();
    once();
    let mut by_hand = place.command(["run", "energy", "-q"]).envs([KEY]).spawn().unwrap();
    wait_until(|| service.histories() == 1);
    wait_until(|| once().stderr.contains("another run is in progress, retry at "));
    assert_eq!(service.histories(), 1);
    is_open.store(true, Ordering::SeqCst);
    assert!(by_hand.wait().unwrap().success());
    wait_until(|| {
        once();
        service.histories() == 2
    });
    assert_eq!(journal(&place, "energy").len(), 2, "the run by hand, and the one of the scheduler");
}
