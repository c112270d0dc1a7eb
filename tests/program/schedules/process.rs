//! Real scheduler processes: with schedules in seconds, in parallel, killed, stopped and reloaded.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use super::hooks::Server;
use crate::support::program::{Outcome, Place, drain};
use crate::support::python;
use crate::support::scripted::{Scripted, Step, json};
use crate::support::tools::{PYTHON, needs};

pub(crate) const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "sched-canary-4711");

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
        "[source]\n{}patience = \"1s\"\n[signals]\nsectors = [\"{name}\"]\n[sentiment]\narticles = false\n\
         [calendar]\nexchange = \"weekdays\"\n{more}",
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
    pub(super) fn stop(mut self, signal: &str) -> (Option<i32>, Vec<Value>) {
        self.signal(signal);
        let status = self.0.wait().expect("as the test expects");
        let text = drain(self.0.stderr.take());
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

pub(super) fn wait_until(is_so: impl FnMut() -> bool) {
    wait_until_within(Duration::from_secs(120), is_so);
}

fn wait_until_within(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < limit, "it never came to be");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The number of runs that a scheduler counts in its metrics, which are read as Prometheus reads them.
fn scraped_runs(address: &str) -> f64 {
    let text = python::output("check_metrics.py", [format!("http://{address}/metrics")]);
    let samples: Vec<(String, Value, f64)> = serde_json::from_str(&text).expect("samples");
    let runs =
        samples.iter().filter(|(name, labels, _)| name == "bellwether_runs_total" && labels["outcome"] == "success");
    runs.map(|(_, _, count)| count).sum()
}

fn instants(records: &[Value], key: &str) -> Vec<String> {
    records.iter().map(|record| record[key].as_str().expect("as the test expects").to_owned()).collect()
}

/// `BELLWETHER_SCHEDULE_SECONDS=180` makes it run for at least that long.
#[test]
fn two_schedulers_on_one_folder_run_every_due_second_once_and_never_together() {
    needs!(PYTHON);
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
    let received = place.file("received.jsonl");
    let hooks = Server::start(&received);
    let address = format!("http://127.0.0.1:{}", hooks.port);
    let hooks = format!("[hooks]\non_success = \"{address}/success\"\nping = \"{address}/ping\"\n");
    define(&place, "energy", &service, &format!("[schedule]\ncron = \"*/5 * * * * *\"\n{hooks}"));
    define(
        &place,
        "utilities",
        &service,
        &format!("[schedule]\ncron = \"*/10 * * * * *\"\ntimezone = \"Australia/Lord_Howe\"\n{hooks}"),
    );
    place.define("broken", "[schedule]\ncron = \"never\"\n");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let processes =
        [Process::start(&place, &["--listen", &listen]), Process::start(&place, &["--metrics", "bellwether.prom"])];
    wait_until(|| TcpStream::connect(&listen).is_ok());
    let mut scraped = 0.0;
    let begun = Instant::now();
    wait_until_within(Duration::from_secs(120 + seconds), || {
        let runs = scraped_runs(&listen);
        assert!(runs >= scraped, "a counter never goes back: {runs} after {scraped}");
        scraped = runs;
        begun.elapsed() > Duration::from_secs(seconds)
            && journal(&place, "utilities").len() > 1
            && journal(&place, "energy").len() > 2
            // The metrics count the runs of the journal, which has grown since this scrape.
            && scraped > 3.0
    });
    let mut broken = 0;
    for process in processes {
        let (code, events) = process.stop("-TERM");
        assert_eq!(code, Some(0), "{events:?}");
        broken += events.iter().filter(|event| event["event"] == "broken").count();
        for event in &events {
            assert!(event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
            assert!(["info", "warn", "error"].contains(&event["level"].as_str().unwrap()), "{event}");
            assert!(!event.to_string().contains(KEY.1), "{event}");
        }
    }
    assert_eq!(broken, 2, "once by each process");
    let calls = fs::read_to_string(&received).unwrap();
    let calls: Vec<Value> = calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut posted: Vec<Value> =
        calls.iter().filter_map(|call| serde_json::from_str(call["body"].as_str()?).ok()).collect();
    assert_eq!(calls.iter().filter(|call| call["path"] == "/ping").count(), posted.len(), "a ping for each success");
    for (name, step) in [("energy", 5), ("utilities", 10)] {
        let records: Vec<Value> =
            journal(&place, name).into_iter().filter(|record| record["outcome"] != "interrupted").collect();
        assert!(records.iter().all(|record| record["outcome"] == "success"), "{records:?}");
        let of_it: Vec<Value> = posted.extract_if(.., |record| record["definition"] == name).collect();
        assert_eq!(of_it, records, "the hook got each record once");
        let due = instants(&records, "due");
        assert_eq!(due.iter().collect::<BTreeSet<_>>().len(), due.len(), "each due time once: {due:?}");
        let second = |time: &String| time[17..19].parse::<u32>().unwrap();
        assert!(due.iter().all(|time| second(time) % step == 0), "{due:?}");
        assert!(due.is_sorted(), "{due:?}");
        // Runs do not overlap, and each has a folder in the archive.
        let (started, ended) = (instants(&records, "started_at"), instants(&records, "ended_at"));
        assert!(ended.iter().zip(&started[1..]).all(|(ended, started)| ended <= started), "{started:?} {ended:?}");
        assert!(started.iter().zip(&due).all(|(started, due)| started >= due));
        assert!(records.iter().all(|record| record["run"].as_str().is_some_and(|run| run.len() == 21)));
    }
    assert_eq!(posted, [] as [Value; 0]);
    // Each definition requests its own sector, so the two processes may run two of them at once.
    assert!(at_once.1.load(Ordering::SeqCst) <= 2);
    python::check("check_metrics.py", [place.file("bellwether.prom")]);
}

#[test]
fn a_killed_scheduler_runs_the_due_time_once_after_a_restart() {
    let service = Scripted::of_histories(|request| match request.before {
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
    let before = done_until(&place, "energy");
    // Of several missed times, only the newest one is run.
    remember_done(&place, "energy", Utc::now() - TimeDelta::hours(1));
    let outcome = Outcome::of(place.command(["schedule", "--once", "--log", "json"]).envs([KEY])).expect_success();
    assert!(outcome.stderr.contains("\"event\":\"missed\""), "{}", outcome.stderr);
    let records = journal(&place, "energy");
    assert_eq!((records.len(), &records[0]["outcome"]), (1, &"success".into()));
    assert!(done_until(&place, "energy") > before);
    assert_eq!(service.histories(), 2);
}

/// The file with the scheduler's state of a definition.
pub(super) fn memory(place: &Place, name: &str) -> PathBuf {
    place.file(&format!("output/schedule/{name}.json"))
}

fn memory_of(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&fs::read(memory(place, name)).expect("it was written")).expect("JSON")
}

/// The time up to which a definition's schedule is done, according to the state.
fn done_until(place: &Place, name: &str) -> String {
    memory_of(place, name)["done"].as_str().expect("an instant").to_owned()
}

/// Makes everything since an instant due.
pub(super) fn remember_done(place: &Place, name: &str, instant: DateTime<Utc>) {
    let mut remembered = memory_of(place, name);
    remembered["done"] = instant.to_rfc3339_opts(SecondsFormat::Micros, true).into();
    fs::write(memory(place, name), remembered.to_string()).expect("it can be written");
}

#[test]
fn a_run_published_before_a_crash_is_not_repeated() {
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    let place = Place::new();
    // Due two minutes ago, and not again for a day.
    let due = (Utc::now() - TimeDelta::minutes(2)).duration_trunc(TimeDelta::minutes(1)).unwrap();
    let cron = due.format("%-M %-H * * *");
    define(&place, "energy", &service, &format!("[schedule]\ncron = \"{cron}\"\ntimezone = \"UTC\"\n"));
    let once = || Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
    // A new definition has no missed times.
    once();
    assert_eq!(service.histories(), 0);
    remember_done(&place, "energy", due - TimeDelta::hours(1));
    let before = fs::read(memory(&place, "energy")).unwrap();
    once();
    assert_eq!((service.histories(), journal(&place, "energy").len()), (1, 1));
    // As if it had been killed between publishing and recording it.
    let as_if_killed = || {
        fs::write(memory(&place, "energy"), &before).unwrap();
        fs::remove_file(place.file("output/journal/energy.jsonl")).unwrap();
    };
    as_if_killed();
    let printed = once().stderr;
    assert!(printed.contains(&format!("already covers {}", due.format("%Y-%m-%d %H:%M UTC"))), "{printed}");
    assert_eq!((service.histories(), journal(&place, "energy").len()), (1, 0));
    assert!(done_until(&place, "energy") >= due.to_rfc3339_opts(SecondsFormat::Micros, true), "and it is remembered");
    // A run that was archived but not published does not count.
    fs::write(memory(&place, "energy"), &before).unwrap();
    fs::remove_dir_all(place.file("output/datasets")).unwrap();
    once();
    assert_eq!((service.histories(), journal(&place, "energy").len()), (2, 1));
}

const YEARLY: &str =
    "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"@yearly\"\n";

#[test]
fn no_more_definitions_run_at_once_than_allowed_and_by_default_one() {
    for (arguments, limit) in [(&[][..], 1), (&["--jobs", "2"], 2)] {
        let at_once = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let counted = Arc::clone(&at_once);
        let service = Scripted::of_histories(move |_| {
            let now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
            counted.1.fetch_max(now, Ordering::SeqCst);
            // As many as allowed are at work at some time; one more would have time to come.
            wait_until(|| counted.1.load(Ordering::SeqCst) >= limit);
            thread::sleep(Duration::from_millis(100));
            counted.0.fetch_sub(1, Ordering::SeqCst);
            json("200 OK", &history())
        });
        let place = Place::new();
        let names = ["energy", "materials", "utilities"];
        names.iter().for_each(|name| define(&place, name, &service, "[schedule]\ncron = \"@hourly\"\n"));
        let once = || Outcome::of(place.command(["schedule", "--once"]).args(arguments).envs([KEY])).expect_success();
        once();
        names.iter().for_each(|name| remember_done(&place, name, Utc::now() - TimeDelta::hours(2)));
        once();
        assert!(names.iter().all(|name| journal(&place, name).len() == 1));
        assert_eq!(at_once.1.load(Ordering::SeqCst), limit, "{arguments:?}");
    }
}

#[test]
fn a_stop_interrupts_the_run_and_a_hangup_reloads_the_definitions() {
    let service = Scripted::of_histories(|request| match request.before {
        0 if request.target.contains("sector=utilities") => vec![Step::Wait(Duration::from_secs(60))],
        _ => json("200 OK", &history()),
    });
    let place = Place::new();
    let text = format!(
        "[source]\n{}connections = 1\n[signals]\nsectors = [\"energy\", \"utilities\"]\n[sentiment]\narticles = false\n\
         [schedule]\ncron = \"*/2 * * * * *\"\n",
        service.source()
    );
    place.define("energy", &text);
    let process = Process::start(&place, &[]);
    wait_until(|| service.histories() == 2);
    // Reloaded while a run is in progress; a broken definition does not affect the others.
    place.define("broken", "[schedule]\ncron = \"x\"\n");
    place.define("added", YEARLY);
    wait_until(|| memory(&place, "added").exists());
    // Without a signal that takes up to five seconds. After one, the next look is five seconds later.
    let until_seen = |name: &str| {
        let begun = Instant::now();
        place.define(name, YEARLY);
        process.signal("-HUP");
        wait_until(|| memory(&place, name).exists());
        begun.elapsed()
    };
    let quickest = ["one", "two", "three", "four"].map(until_seen).into_iter().min();
    assert!(quickest < Some(Duration::from_secs(4)), "{quickest:?}");
    let begun = Instant::now();
    let (code, events) = process.stop("-TERM");
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
    // The others are run; that one is broken is the exit code.
    Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).failed_with(2);
    let records = journal(&place, "energy");
    assert_eq!(records[1]["outcome"], "success");
    assert_ne!(records[1]["run"], records[0]["run"]);
    let request: Vec<bool> = service.targets().iter().map(|target| target.contains("sector=utilities")).collect();
    assert_eq!(request, [false, true, false, true], "it was due again since the first answer");
}

#[test]
fn the_scheduler_waits_for_a_manual_run_to_end() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let service = Scripted::of_histories(move |request| {
        wait_until(|| request.before > 0 || gate.load(Ordering::SeqCst));
        json("200 OK", &history())
    });
    let place = Place::new();
    define(&place, "energy", &service, "[schedule]\ncron = \"*/2 * * * * *\"\nretry_after = \"1s\"\n");
    let once = || Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
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
