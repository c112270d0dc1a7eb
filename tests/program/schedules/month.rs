//! A month of a scheduler with an injected clock, on a service that goes from day to day and revises its past.
//!
//! The clock changes in the zone of the schedule, the service is down for hours, the machine sleeps over a due time, the
//! definition is edited, a second scheduler works on the same folder. What became of it is compared with runs by hand at
//! the same instants, by another route: each due time ran once, no two runs overlapped, and the datasets are the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bellwether::archive::Interrupted;
use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{CancellationToken, Control, Observer, Options, WhenHeld, run};
use bellwether::schedule::{Outcome, RunRecord, ScheduleEvent, Scheduler, SchedulerOptions, Watcher};
use bellwether::time::Clock;
use chrono::{DateTime, Datelike, TimeDelta, Utc, Weekday};
use tokio::runtime::Builder;

use super::arithmetic::at;
use crate::support::program::Place;
use crate::support::scripted::{Scripted, json};

/// A service whose day is that of a clock.
struct World {
    clock: &'static AtomicI64,
    is_down: Arc<AtomicBool>,
    service: Scripted,
    /// The number of requests being answered, and the most at once.
    at_once: Arc<(AtomicUsize, AtomicUsize)>,
    place: Place,
}

impl World {
    fn new(start: DateTime<Utc>) -> Self {
        let clock: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(start.timestamp_micros())));
        let (is_down, at_once) =
            (Arc::new(AtomicBool::new(false)), Arc::new((AtomicUsize::new(0), AtomicUsize::new(0))));
        let (down, counted) = (Arc::clone(&is_down), Arc::clone(&at_once));
        let service = Scripted::of_histories(move |_| {
            let now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
            counted.1.fetch_max(now, Ordering::SeqCst);
            let answer = match down.load(Ordering::SeqCst) {
                true => json("503 Service Unavailable", "{}"),
                false => json(
                    "200 OK",
                    &history(
                        DateTime::from_timestamp_micros(clock.load(Ordering::SeqCst)).expect("as the test expects"),
                    ),
                ),
            };
            counted.0.fetch_sub(1, Ordering::SeqCst);
            answer
        });
        let place = Place::new();
        fs::write(place.file("key"), "demo").expect("as the test expects");
        Self { clock, is_down, service, at_once, place }
    }

    fn text(&self, schedule: &str) -> String {
        format!(
            "[source]\n{}api_key_file = {:?}\npatience = \"1s\"\n[signals]\nsectors = [\"energy\"]\n\
             [sentiment]\narticles = false\n[output]\nformat = \"csv\"\nkeep = 90\n{schedule}",
            self.service.source(),
            self.place.file("key"),
        )
    }

    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.clock.load(Ordering::SeqCst)).expect("as the test expects")
    }

    fn set(&self, instant: DateTime<Utc>) {
        self.clock.store(instant.timestamp_micros(), Ordering::SeqCst);
    }

    fn scheduler(&self, told: &Arc<Told>) -> Scheduler {
        Scheduler::new(SchedulerOptions {
            definitions: self.place.file("pipelines"),
            data: self.place.file("output"),
            archive: self.place.file("output/archive"),
            store: None,
            jobs: NonZeroUsize::new(2).expect("as the test expects"),
            clock: Clock::Set(self.clock),
            watcher: Arc::clone(told) as Arc<dyn Watcher>,
            stop: CancellationToken::new(),
        })
    }

    /// The contents of the versions of a dataset, by when they were built.
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

/// Two tickers up to the day, with the signals of the last three days revised every day.
fn history(now: DateTime<Utc>) -> String {
    let mut text = String::from("{");
    for (number, ticker) in ["XOM", "CVX"].into_iter().enumerate() {
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

/// What a scheduler told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Watcher for Told {
    fn watch(&self, event: &ScheduleEvent<'_>) {
        self.0.lock().expect("as the test expects").push(format!("{event:?}"));
    }

    fn observer(&self, _: &str) -> Option<Arc<dyn Observer>> {
        None
    }
}

impl Told {
    fn count(&self, what: &str) -> usize {
        self.0.lock().expect("as the test expects").iter().filter(|event| event.starts_with(what)).count()
    }
}

/// Goes from one time to the next, as a scheduler does that sleeps until then; no later than an instant.
async fn until(world: &World, schedulers: &mut [&mut Scheduler], end: DateTime<Utc>, records: &mut Vec<RunRecord>) {
    loop {
        for scheduler in schedulers.iter_mut() {
            records.extend(scheduler.once().await.expect("as the test expects"));
        }
        let next = schedulers.iter().filter_map(|scheduler| scheduler.next()).min();
        // Work that was left because another scheduler had it is looked at again a little later.
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

#[test]
fn an_eventful_month_runs_each_due_time_once_and_publishes_what_a_quiet_one_does() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let start = at("2026-02-20T12:00:00Z");
    let world = World::new(start);
    world.place.define("it", &world.text(NIGHTLY));
    world.place.define("broken", "[schedule]\ncron = \"x\"\n");
    let told = Arc::new(Told::default());
    let mut records = Vec::new();
    runtime.block_on(async {
        let mut one = world.scheduler(&told);
        // A first start owes nothing.
        assert!(one.once().await.unwrap().is_empty());
        until(&world, &mut [&mut one], at("2026-02-24T12:00:00Z"), &mut records).await;
        // Down for less than the deadline: from 7:00 to 8:15, over the due time 7:30.
        world.set(at("2026-02-25T07:00:00Z"));
        world.is_down.store(true, Ordering::SeqCst);
        until(&world, &mut [&mut one], at("2026-02-25T08:15:00Z"), &mut records).await;
        world.is_down.store(false, Ordering::SeqCst);
        until(&world, &mut [&mut one], at("2026-02-26T07:00:00Z"), &mut records).await;
        // Down for longer: the run of the 26th is given up, that of the 27th is done.
        world.is_down.store(true, Ordering::SeqCst);
        until(&world, &mut [&mut one], at("2026-02-26T12:00:00Z"), &mut records).await;
        world.is_down.store(false, Ordering::SeqCst);
        until(&world, &mut [&mut one], at("2026-02-28T12:00:00Z"), &mut records).await;
        // The machine sleeps over a due time, and wakes within twelve hours.
        world.set(at("2026-03-01T15:00:00Z"));
        until(&world, &mut [&mut one], at("2026-03-02T12:00:00Z"), &mut records).await;
        // It sleeps for three days: the last time is caught up once, the others are skipped.
        world.set(at("2026-03-05T11:11:11Z"));
        until(&world, &mut [&mut one], at("2026-03-06T12:00:00Z"), &mut records).await;
        // It sleeps for longer than is caught up: nothing is owed.
        world.set(at("2026-03-07T20:00:00Z"));
        // Through the change of the clock on March 8, where 2:30 does not exist.
        until(&world, &mut [&mut one], at("2026-03-10T12:00:00Z"), &mut records).await;
        // Edited: the new expression owes nothing, and its first time is the next one.
        world.place.define("it", &world.text(&NIGHTLY.replace("30 2 *", "0 6 *")));
        until(&world, &mut [&mut one], at("2026-03-13T12:00:00Z"), &mut records).await;
        // Another process takes over in the middle, and later both are there.
        drop(one);
        let (mut one, mut two) = (world.scheduler(&told), world.scheduler(&told));
        until(&world, &mut [&mut one], at("2026-03-15T12:00:00Z"), &mut records).await;
        for _ in 0..6 {
            let next = one.next().unwrap_or_else(|| world.now() + TimeDelta::days(1));
            world.set(next.max(world.now() + TimeDelta::seconds(6)));
            let (of_one, of_two) = tokio::join!(one.once(), two.once());
            records.extend(of_one.unwrap().into_iter().chain(of_two.unwrap()));
        }
    });
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
        // At the first instant after the gap, and then an hour earlier in UTC.
        "03-08 07:00",
        "03-09 06:30",
        "03-10 06:30",
        // Six o'clock.
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
    assert_eq!(world.at_once.1.load(Ordering::SeqCst), 1, "no two runs at once");
    assert_eq!(told.count("Broken"), 3, "once for each scheduler");
    assert_eq!(told.count("Missed"), 2, "two times in the three days, and one on the 7th");

    // The same instants by hand, with nothing in the way.
    let calm = World::new(start);
    runtime.block_on(async {
        for record in records.iter().filter(|record| record.outcome == Outcome::Success) {
            calm.set(record.started_at);
            let plan = Plan::of(DefinitionFile::new("it.toml".into(), calm.text("")).unwrap()).unwrap();
            let options = Options {
                data: calm.place.file("output"),
                archive: calm.place.file("output/archive"),
                clock: Clock::Set(calm.clock),
                interrupted: Interrupted::Resume,
                when_held: WhenHeld::Fail,
                store: None,
                control: Control::default(),
            };
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
    world.place.define("it", &world.text(NIGHTLY));
    let told = Arc::new(Told::default());
    runtime.block_on(async {
        let mut scheduler = world.scheduler(&told);
        scheduler.once().await.unwrap();
        for (by_hand, expected) in [("2026-11-20T07:45:00Z", 0), ("2026-11-21T07:15:00Z", 1)] {
            world.set(at(by_hand));
            let plan = Plan::of(DefinitionFile::new("it.toml".into(), world.text(NIGHTLY)).unwrap()).unwrap();
            let data = world.place.file("output");
            let options = Options { clock: Clock::Set(world.clock), ..Options::new(data) };
            run(plan, options).await.unwrap();
            world.set(at(by_hand) + TimeDelta::hours(1));
            let records = world.scheduler(&told).once().await.unwrap();
            assert_eq!(records.len(), expected, "{by_hand}");
        }
    });
    assert_eq!(told.count("AlreadyRun"), 1);
}
