//! A month of a scheduler with an injected clock, against a service that advances day by day and revises its past.
//!
//! Daylight saving starts in the schedule's zone, the service is down for hours, the machine sleeps over a due time, a
//! scheduler is killed in the middle of a run, the definition is edited while it runs, and a second scheduler works on
//! the same folder. The outcome is compared with manual runs at the same instants: each due time ran once, no two runs
//! overlapped, and the datasets are equal.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{CancellationToken, Observer, Options, run};
use bellwether::time::Clock;
use bellwether_cli::schedule::{Outcome, RunRecord, ScheduleEvent, Scheduler, SchedulerOptions, Watcher};
use chrono::{DateTime, Datelike, TimeDelta, Utc, Weekday};
use tokio::runtime::Builder;

use super::arithmetic::at;
use super::process::wait_until;
use crate::support::program::Place;
use crate::support::scripted::{Scripted, Step, json};

/// The folder and the instant of a scheduler that is started as a process.
const PROCESS: &str = "BELLWETHER_TEST_SCHEDULER";

/// How the service answers.
enum Mood {
    Well,
    Down,
    /// It leaves this sector without an answer.
    Hangs(&'static str),
    /// It answers well, and takes hours for it.
    Slow,
    /// It answers well, but first the definition of this name gets another text.
    Edits(PathBuf, String),
}

/// The successful requests in order: their instants and sectors.
type Answered = Vec<(DateTime<Utc>, String)>;

/// A service whose current day follows a clock.
struct World {
    clock: &'static AtomicI64,
    mood: Arc<Mutex<Mood>>,
    service: Scripted,
    answered: Arc<Mutex<Answered>>,
    place: Place,
}

impl World {
    fn new(start: DateTime<Utc>) -> Self {
        let clock: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(start.timestamp_micros())));
        let (mood, answered) = (Arc::new(Mutex::new(Mood::Well)), Arc::new(Mutex::new(Vec::new())));
        let (of_service, kept) = (Arc::clone(&mood), Arc::clone(&answered));
        let service = Scripted::of_histories(move |request| {
            let (_, sector) = request.target.split_once("sector=").expect("a sector");
            let (sector, _) = sector.split_once('&').expect("a period");
            let now = instant(clock);
            let mut mood = of_service.lock().expect("as the test expects");
            match &*mood {
                Mood::Down => return json("503 Service Unavailable", "{}"),
                Mood::Hangs(on) if *on == sector => return vec![Step::Wait(Duration::from_secs(60))],
                Mood::Edits(file, text) => {
                    fs::write(file, text).expect("as the test expects");
                    *mood = Mood::Well;
                }
                Mood::Slow => {
                    _ = clock.fetch_add(TimeDelta::hours(2).num_microseconds().expect("few"), Ordering::SeqCst);
                }
                Mood::Hangs(_) | Mood::Well => {}
            }
            kept.lock().expect("as the test expects").push((now, sector.to_owned()));
            json("200 OK", &history(now, sector))
        });
        let place = Place::new();
        fs::write(place.file("key"), "demo").expect("as the test expects");
        Self { clock, mood, service, answered, place }
    }

    /// A definition that asks for some sectors, one after the other.
    fn text(&self, sectors: &[&str], schedule: &str) -> String {
        format!(
            "[source]\n{}api_key_file = {:?}\npatience = \"1s\"\nconnections = 1\n[signals]\nsectors = {sectors:?}\n\
             [sentiment]\narticles = false\n[output]\nformat = \"csv\"\nkeep = 90\n{schedule}",
            self.service.source(),
            self.place.file("key"),
        )
    }

    fn now(&self) -> DateTime<Utc> {
        instant(self.clock)
    }

    fn set(&self, instant: DateTime<Utc>) {
        self.clock.store(instant.timestamp_micros(), Ordering::SeqCst);
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock().expect("as the test expects") = mood;
    }

    fn scheduler(&self, message: &Arc<EventLog>) -> Scheduler {
        scheduler(self.place.path(), self.clock, message)
    }

    /// A scheduler as a process, which runs what is due now.
    fn process(&self) -> Child {
        let message = format!("{} {}", self.clock.load(Ordering::SeqCst), self.place.path().display());
        let mut command = Command::new(std::env::current_exe().expect("as the test expects"));
        command.args(["--exact", "schedules::month::a_scheduler_in_a_process", "--ignored"]);
        command.env(PROCESS, message).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    /// The folder of an interrupted run that has answers, if there is one.
    fn interrupted_run(&self) -> Option<PathBuf> {
        let folders = fs::read_dir(self.place.file("output/archive/vendor/.partial")).into_iter().flatten();
        let mut folders = folders.map(|entry| entry.expect("as the test expects").path());
        folders.find(|folder| fs::metadata(folder.join("answers.jsonl")).is_ok_and(|answers| answers.len() > 0))
    }

    /// The contents of a dataset's versions, by build time.
    fn contents(&self, name: &str) -> BTreeMap<String, String> {
        let folders = fs::read_dir(self.place.file(&format!("output/datasets/{name}"))).expect("as the test expects");
        let versions =
            folders.map(|entry| entry.expect("as the test expects").path()).filter(|path| !path.is_symlink());
        let content = |path: PathBuf| {
            let record: serde_json::Value =
                serde_json::from_slice(&fs::read(path.join("dataset.json")).expect("as the test expects"))
                    .expect("as the test expects");
            let text = |key: &str| record[key].as_str().expect("as the test expects").to_owned();
            (text("built_at"), text("content"))
        };
        versions.map(content).collect()
    }
}

fn instant(clock: &AtomicI64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(clock.load(Ordering::SeqCst)).expect("as the test expects")
}

fn scheduler(folder: &Path, clock: &'static AtomicI64, message: &Arc<EventLog>) -> Scheduler {
    Scheduler::new(SchedulerOptions {
        definitions: folder.join("pipelines"),
        data: folder.join("output"),
        archive: folder.join("output/archive"),
        store: None,
        jobs: NonZeroUsize::new(2).expect("as the test expects"),
        clock: Clock::Set(clock),
        watcher: Arc::clone(message) as Arc<dyn Watcher>,
        stop: CancellationToken::new(),
    })
}

/// Started by the month below, and killed by it.
#[test]
#[ignore = "does nothing unless another test starts it"]
fn a_scheduler_in_a_process() {
    let Ok(message) = std::env::var(PROCESS) else { return };
    let (now, folder) = message.split_once(' ').unwrap();
    let clock: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(now.parse().unwrap())));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let records = runtime.block_on(scheduler(Path::new(folder), clock, &Arc::default()).once()).unwrap();
    panic!("it was not killed: {records:?}");
}

/// Two tickers of a sector up to the day, with the signals of the last three days revised every day.
fn history(now: DateTime<Utc>, sector: &str) -> String {
    let mut text = String::from("{");
    let tickers = match sector {
        "energy" => ["XOM", "CVX"],
        "materials" => ["LIN", "SHW"],
        _ => ["NEE", "DUK"],
    };
    for (number, ticker) in tickers.into_iter().enumerate() {
        let mut entries = Vec::new();
        for back in 0..90 {
            let day = now.date_naive() - TimeDelta::days(back);
            if matches!(day.weekday(), Weekday::Sat | Weekday::Sun) {
                continue;
            }
            let vintage = if back < 3 { i64::from(now.date_naive().num_days_from_ce()) } else { 0 };
            let value = (i64::from(day.num_days_from_ce()) * 7 + vintage * 3 + number as i64) % 100;
            let signal = if value % 2 == 0 { "buy" } else { "sell" };
            entries.push(format!(
                "{{\"date\":\"{day}T00:00:00+00:00\",\"signal\":\"{signal}\",\"confidence\":{}}}",
                value as f64 / 100.0
            ));
        }
        let comma = if number > 0 { "," } else { "" };
        write!(text, "{comma}\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}", entries.join(",")).expect("as the test expects");
    }
    text + "}"
}

/// The events of a scheduler.
#[derive(Default)]
struct EventLog(Mutex<Vec<String>>);

impl Watcher for EventLog {
    fn watch(&self, event: &ScheduleEvent<'_>) {
        self.0.lock().expect("as the test expects").push(format!("{event:?}"));
    }

    fn observer(&self, _: &str) -> Option<Arc<dyn Observer>> {
        None
    }
}

impl EventLog {
    fn count(&self, what: &str) -> usize {
        self.0.lock().expect("as the test expects").iter().filter(|event| event.starts_with(what)).count()
    }
}

/// Advances from one time to the next, as a sleeping scheduler does, up to an instant.
async fn until(world: &World, schedulers: &mut [&mut Scheduler], end: DateTime<Utc>, records: &mut Vec<RunRecord>) {
    loop {
        for scheduler in schedulers.iter_mut() {
            records.extend(scheduler.once().await.expect("as the test expects"));
        }
        let next = schedulers.iter().filter_map(|scheduler| scheduler.next()).min();
        // Work that another scheduler had is checked again a little later.
        let next =
            next.map_or(end, |next| if next <= world.now() { world.now() + TimeDelta::seconds(6) } else { next });
        if next >= end {
            world.set(end);
            return;
        }
        world.set(next);
    }
}

const NIGHTLY: &str =
    "[schedule]\ncron = \"30 2 * * *\"\ntimezone = \"America/New_York\"\ncatch_up = \"12h\"\ndeadline = \"2h\"\n";

/// The sectors of the definition, and those from when it was edited.
const SECTORS: [&[&str]; 2] = [&["energy", "utilities"], &["energy", "utilities", "materials"]];

/// When the run is under way during which the sectors are edited.
const EDITED: &str = "2026-03-06T07:30:00Z";

/// When a scheduler is killed in the middle of a run, and when another one takes it over.
const KILLED: [&str; 2] = ["2026-02-24T07:30:00Z", "2026-02-24T07:41:00Z"];

/// Kills a scheduler, a process of its own, in the middle of the run that is due now. Returns the name of the run.
async fn kill_in_the_middle(world: &World, other: &mut Scheduler) -> String {
    world.set(at(KILLED[0]));
    world.is(Mood::Hangs("utilities"));
    let before = world.service.histories();
    let mut process = world.process();
    wait_until(|| world.service.histories() == before + 2 && world.interrupted_run().is_some());
    assert!(other.once().await.expect("as the test expects").is_empty(), "it is the other's while that lives");
    process.kill().expect("as the test expects");
    assert_eq!(process.wait().expect("as the test expects").code(), None, "it ended by the signal");
    world.is(Mood::Well);
    let journal = fs::read_to_string(world.place.file("output/journal/it.jsonl")).expect("as the test expects");
    assert!(!journal.contains(&KILLED[0][..16]), "it left no word: {journal}");
    world.set(at(KILLED[1]));
    let folder = world.interrupted_run().expect("as the test expects");
    folder.file_name().expect("as the test expects").to_str().expect("as the test expects").to_owned()
}

/// Lives through a month. Returns the records of its runs, and the name of the run that was killed.
async fn eventful_month(world: &World, message: &Arc<EventLog>) -> (Vec<RunRecord>, String) {
    let edits = |sectors: &[&str], schedule: &str| {
        Mood::Edits(world.place.file("pipelines/it.toml"), world.text(sectors, schedule))
    };
    let mut records = Vec::new();
    let mut one = world.scheduler(message);
    // A first start has no missed times.
    assert!(one.once().await.expect("as the test expects").is_empty());
    until(world, &mut [&mut one], at("2026-02-24T07:00:00Z"), &mut records).await;
    let killed = kill_in_the_middle(world, &mut one).await;
    until(world, &mut [&mut one], at("2026-02-24T12:00:00Z"), &mut records).await;
    // Down for less than the deadline: from 7:00 to 8:15, over the due time 7:30.
    world.set(at("2026-02-25T07:00:00Z"));
    world.is(Mood::Down);
    until(world, &mut [&mut one], at("2026-02-25T08:15:00Z"), &mut records).await;
    world.is(Mood::Well);
    until(world, &mut [&mut one], at("2026-02-26T07:00:00Z"), &mut records).await;
    // Down for longer: the run of the 26th is abandoned, that of the 27th succeeds.
    world.is(Mood::Down);
    until(world, &mut [&mut one], at("2026-02-26T12:00:00Z"), &mut records).await;
    world.is(Mood::Well);
    until(world, &mut [&mut one], at("2026-02-28T12:00:00Z"), &mut records).await;
    // The machine sleeps over a due time and wakes within twelve hours.
    world.set(at("2026-03-01T15:00:00Z"));
    until(world, &mut [&mut one], at("2026-03-02T12:00:00Z"), &mut records).await;
    // It sleeps for three days: only the last missed time is run.
    world.set(at("2026-03-05T11:11:11Z"));
    until(world, &mut [&mut one], at("2026-03-06T07:00:00Z"), &mut records).await;
    // Edited while it runs: that run is of the text that it began with.
    world.is(edits(SECTORS[1], NIGHTLY));
    until(world, &mut [&mut one], at("2026-03-06T12:00:00Z"), &mut records).await;
    // It sleeps longer than `catch_up`: no missed time is run.
    world.set(at("2026-03-07T20:00:00Z"));
    // Over the start of daylight saving on March 8, when 2:30 does not exist.
    until(world, &mut [&mut one], at("2026-03-10T06:00:00Z"), &mut records).await;
    // Another expression while it runs: it owes nothing, and its first time is the next one.
    world.is(edits(SECTORS[1], &NIGHTLY.replace("30 2 *", "0 6 *")));
    until(world, &mut [&mut one], at("2026-03-13T12:00:00Z"), &mut records).await;
    // Another process takes over halfway, and later both run.
    drop(one);
    let (mut one, mut two) = (world.scheduler(message), world.scheduler(message));
    until(world, &mut [&mut one], at("2026-03-15T12:00:00Z"), &mut records).await;
    for _ in 0..6 {
        let next = one.next().unwrap_or_else(|| world.now() + TimeDelta::days(1));
        world.set(next.max(world.now() + TimeDelta::seconds(6)));
        let (of_one, of_two) = tokio::join!(one.once(), two.once());
        records.extend(of_one.expect("as the test expects").into_iter().chain(of_two.expect("as the test expects")));
    }
    (records, killed)
}

#[test]
fn an_eventful_month_runs_each_due_time_once_and_publishes_the_same_as_a_quiet_one() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let start = at("2026-02-20T12:00:00Z");
    let world = World::new(start);
    world.place.define("it", &world.text(SECTORS[0], NIGHTLY));
    world.place.define("broken", "[schedule]\ncron = \"x\"\n");
    let message = Arc::new(EventLog::default());
    let (records, killed) = runtime.block_on(eventful_month(&world, &message));
    let due = |outcome: Outcome| -> Vec<String> {
        let of = records.iter().filter(|record| record.outcome == outcome && record.definition == "it");
        of.map(|record| record.due.unwrap().format("%m-%d %H:%M").to_string()).collect()
    };
    let mut expected: Vec<&str> = vec![
        "02-21 07:30",
        "02-22 07:30",
        "02-23 07:30",
        "02-24 07:30",
        "02-25 07:30",
        "02-27 07:30",
        "02-28 07:30",
        "03-01 07:30",
        "03-02 07:30",
        "03-05 07:30",
        "03-06 07:30",
        // At the first instant after the gap, and from then on an hour earlier in UTC.
        "03-08 07:00",
        "03-09 06:30",
        "03-10 06:30",
        // Six o'clock.
        "03-10 10:00",
        "03-11 10:00",
        "03-12 10:00",
        "03-13 10:00",
        "03-14 10:00",
        "03-15 10:00",
    ];
    expected.extend(["03-16 10:00", "03-17 10:00", "03-18 10:00", "03-19 10:00", "03-20 10:00", "03-21 10:00"]);
    assert_eq!(due(Outcome::Success), expected);
    assert_eq!(due(Outcome::Failure), ["02-26 07:30"], "given up at its deadline");
    assert!(due(Outcome::Later).iter().all(|due| ["02-25 07:30", "02-26 07:30"].contains(&due.as_str())));
    assert_eq!(message.count("Broken"), 3, "once for each scheduler");
    assert_eq!(message.count("Missed"), 2, "two times in the three days, and one on the 7th");

    // What the service saw: each run asked for each sector once, and ended before the next one began. The run that was
    // killed had an answer, and only the others were asked for when it was resumed.
    let successes: Vec<&RunRecord> = records.iter().filter(|record| record.outcome == Outcome::Success).collect();
    let sectors = |record: &RunRecord| SECTORS[usize::from(record.started_at > at(EDITED))];
    let mut request = Vec::new();
    for record in &successes {
        let is_resumed = record.run.as_ref() == Some(&killed);
        let when = |sector: &str| if is_resumed && sector == "energy" { at(KILLED[0]) } else { record.started_at };
        request.extend(sectors(record).iter().map(|sector| (when(sector), (*sector).to_owned())));
        assert_eq!(is_resumed, record.started_at == at(KILLED[1]), "{record:?}");
    }
    assert_eq!(*world.answered.lock().unwrap(), request);

    // Manual runs at the same instants, undisturbed.
    let calm = World::new(start);
    runtime.block_on(async {
        for record in &successes {
            calm.set(record.started_at);
            let text = calm.text(sectors(record), "");
            let plan = Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap();
            let options = Options { clock: Clock::Set(calm.clock), ..Options::new(calm.place.file("output")) };
            run(plan, options).await.unwrap();
        }
    });
    let (disturbed, undisturbed) = (world.contents("it"), calm.contents("it"));
    assert_eq!(disturbed.len(), expected.len());
    assert_eq!(disturbed, undisturbed);
}

#[test]
fn only_a_manual_run_after_a_due_time_covers_it() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new(at("2026-11-19T12:00:00Z"));
    world.place.define("it", &world.text(SECTORS[0], NIGHTLY));
    let message = Arc::new(EventLog::default());
    runtime.block_on(async {
        let mut scheduler = world.scheduler(&message);
        scheduler.once().await.unwrap();
        for (by_hand, expected) in [("2026-11-20T07:45:00Z", 0), ("2026-11-21T07:15:00Z", 1)] {
            world.set(at(by_hand));
            let plan =
                Plan::of(DefinitionFile::new("it.toml".into(), world.text(SECTORS[0], NIGHTLY)).unwrap()).unwrap();
            let data = world.place.file("output");
            let options = Options { clock: Clock::Set(world.clock), ..Options::new(data) };
            run(plan, options).await.unwrap();
            world.set(at(by_hand) + TimeDelta::hours(1));
            let records = world.scheduler(&message).once().await.unwrap();
            assert_eq!(records.len(), expected, "{by_hand}");
        }
    });
    assert_eq!(message.count("AlreadyRun"), 1);
}

#[test]
fn a_definition_that_waits_for_another_is_late_and_not_missed() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new(at("2026-11-19T12:00:00Z"));
    let punctual = NIGHTLY.replace("12h", "0s");
    let sectors: Vec<&str> = SECTORS.iter().flat_map(|sectors| sectors.iter().copied()).collect();
    for (name, sector) in ["first", "second", "third", "fourth"].iter().zip(&sectors) {
        // Each has a service of its own: the clock stands still between two of them.
        world.place.define(name, &world.text(&[*sector], &punctual).replace("\"vendor\"", &format!("{name:?}")));
    }
    let message = Arc::new(EventLog::default());
    runtime.block_on(async {
        let mut scheduler = world.scheduler(&message);
        scheduler.once().await.unwrap();
        let due = scheduler.next().unwrap();
        world.set(due);
        world.is(Mood::Slow);
        // Two may run at once, and the others wait for hours.
        let records = scheduler.once().await.unwrap();
        assert_eq!(records.len(), sectors.len().min(4));
        assert!(
            records.iter().all(|record| record.outcome == Outcome::Success && record.due == Some(due)),
            "{records:?}"
        );
    });
}

#[test]
fn a_run_that_is_retried_until_the_next_one_is_due_has_failed() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new(at("2026-11-19T12:00:00Z"));
    world.place.define("it", &world.text(SECTORS[0], "[schedule]\ncron = \"0 * * * *\"\n"));
    let message = Arc::new(EventLog::default());
    let outcomes = runtime.block_on(async {
        let mut scheduler = world.scheduler(&message);
        scheduler.once().await.unwrap();
        world.is(Mood::Down);
        let mut records = Vec::new();
        for hour in 1..4 {
            world.set(at("2026-11-19T12:00:30Z") + TimeDelta::hours(hour));
            records.extend(scheduler.once().await.unwrap());
        }
        records
    });
    let told: Vec<(Outcome, bool)> = outcomes
        .iter()
        .map(|record| (record.outcome, record.reason().is_some_and(|reason| reason.contains("did not answer"))))
        .collect();
    let (later, failure) = ((Outcome::Later, true), (Outcome::Failure, true));
    assert_eq!(told, [later, failure, later, failure, later]);
}
