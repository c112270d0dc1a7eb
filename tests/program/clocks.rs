//! Clocks that are behind the archive, or far from those of the service and the store.

use std::fs;

use crate::support::days::Day;
use crate::support::program::{Outcome, Place};
use crate::support::rows::sealed_run;
use crate::support::scripted::{Scripted, json, reply};
use crate::support::service::day;
use crate::support::stub_store::StubStore;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5}]}}"#;

#[test]
fn a_clock_behind_the_newest_run_stops_the_run_with_a_hint() {
    let place = Place::new();
    // With a clock that was far ahead.
    Day::new(day(2130, 1, 15)).run(&place);
    let ahead = sealed_run(&place);
    let csv = "[output]\nformat = \"csv\"\n[sentiment]\narticles = false\n";
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n{csv}", service.source()));
    let run = || Outcome::of(place.command(["run", "it", "-q"]).envs([KEY]));

    let stderr = run().failed_with(1).stderr;
    assert!(stderr.starts_with("error: the clock says 20"), "{stderr}");
    assert!(stderr.contains("Z, but the newest run in the archive was sealed at 2130-01-"), "{stderr}");
    let name = ahead.file_name().unwrap().to_str().unwrap().strip_prefix("run=").unwrap().to_owned();
    let hint = format!("take it back with `bellwether forget {name} --reason TEXT`\n");
    assert!(stderr.ends_with(&hint), "{stderr}");
    assert_eq!(service.count(), 0);

    // Follows the hint.
    place.run(["forget", &name, "--reason", "the clock was ahead"]).expect_success();
    let message = Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    let note = format!("run `{name}` is left out, forgotten at ");
    assert!(message.stdout.contains(&note) || message.stderr.contains(&note), "{}{}", message.stdout, message.stderr);
    let expected = "ticker,date,period,regime,signal,confidence,score,sector\nXOM,2026-11-20T00:00:00,15d,neutral,buy,0.5,0.5,energy\n";
    let rows = || fs::read_to_string(place.file("output/datasets/it/latest/it.csv")).unwrap();
    assert_eq!(rows(), expected);
    assert!(ahead.join("signals.parquet").exists(), "nothing is removed");
}

#[test]
fn a_packed_run_from_the_future_is_forgotten_like_any_other() {
    let place = Place::new();
    for today in [14, 15] {
        Day::new(day(2130, 1, today)).run(&place);
    }
    place.pack();
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    place.prune_packed();
    let mut forgotten = Vec::new();
    loop {
        let outcome = Outcome::of(place.command(["run", "it", "-q"]).envs([KEY]));
        if outcome.code == Some(0) {
            break;
        }
        let stderr = outcome.failed_with(1).stderr;
        assert_eq!(service.count(), 0);
        let name = stderr.split("bellwether forget ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a hint");
        place.run(["forget", name, "--reason", "the clock was ahead"]).expect_success();
        forgotten.push(name.to_owned());
    }
    assert_eq!(forgotten.len(), 2, "{forgotten:?}");
    let message = place.run(["verify"]).expect_success().stdout;
    assert_eq!(message.matches("is left out, forgotten at ").count(), 2, "{message}");
    // Their rows are still in the pack, and count nowhere.
    let known = place.run(["build", "it", "--format", "csv", "--output", "-"]).expect_success().stdout;
    assert!(known.contains("\nXOM,2026-11-20T00:00:00,15d,neutral,buy,0.5,"), "{known}");
    assert_eq!(known.lines().count(), 2, "{known}");
}

/// A service whose clock is ahead by some seconds, with another header.
fn service_ahead(seconds: i64, header: &'static str) -> Scripted {
    Scripted::of_histories(move |_| {
        let date = (chrono::Utc::now() + chrono::TimeDelta::seconds(seconds)).format("%a, %d %b %Y %H:%M:%S GMT");
        reply("200 OK", &format!("Content-Type: application/json\r\nDate: {date}\r\n{header}"), HISTORY.as_bytes())
    })
}

fn define(place: &Place, service: &Scripted) {
    let csv = "[output]\nformat = \"csv\"\n[sentiment]\narticles = false\n";
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n{csv}", service.source()));
}

/// The files of an archive that hold answers or rows.
fn observations(place: &Place) -> usize {
    let names = ["run.json", "answers.jsonl"];
    let is_written = |path: &std::path::PathBuf| {
        let bytes = || fs::metadata(place.file("").join(path)).expect("a file").len();
        names.iter().any(|name| path.ends_with(name)) && bytes() > 0
    };
    place.files().iter().filter(|path| is_written(path)).count()
}

#[test]
fn no_answer_is_dated_by_a_clock_that_is_far_from_the_services() {
    for (ahead, said) in [
        (-400 * 86_400 - 60, "400 days ahead of"),
        (400 * 86_400 + 60, "400 days behind"),
        (-6 * 60 - 5, "6 minutes ahead of"),
        (6 * 60 + 5, "6 minutes behind"),
        (3 * 3_600 + 5, "3 hours behind"),
    ] {
        let (place, service) = (Place::new(), service_ahead(ahead, ""));
        define(&place, &service);
        let stderr = Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).failed_with(75).stderr;
        assert!(stderr.starts_with(&format!("error: this machine's clock is {said} that of 127.0.0.1:")), "{stderr}");
        assert_eq!(observations(&place), 0, "{:?}", place.files());
        // The next run with a right clock needs no option.
        let service = service_ahead(0, "");
        define(&place, &service);
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    }
    // A few minutes are tolerated, and a cache may answer what is older.
    for (ahead, header) in [(-290, ""), (290, ""), (-86_400, "Age: 86400\r\n")] {
        let (place, service) = (Place::new(), service_ahead(ahead, header));
        define(&place, &service);
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    }
}

#[test]
fn a_run_begins_only_if_the_stores_clock_agrees_and_then_trusts_it() {
    let store = StubStore::start(1000, |_| None);
    let (place, service) = (Place::new(), service_ahead(0, ""));
    define(&place, &service);
    let run = || {
        let mut command = place.command(["run", "it", "-q"]);
        Outcome::of(command.envs([KEY]).envs(store.environment()).env("BELLWETHER_STORE", store.url("team/a")))
    };
    for (ahead, said) in [(-400 * 86_400, "399 days ahead of"), (3_700, "1 hour behind")] {
        store.set_ahead(ahead);
        let stderr = run().failed_with(75).stderr;
        assert!(stderr.starts_with(&format!("error: this machine's clock is {said} that of `s3://")), "{stderr}");
        assert_eq!((service.count(), observations(&place)), (0, 0));
    }
    store.set_ahead(60);
    run().expect_success();
    // Two clocks against one: that of the service is wrong.
    store.set_ahead(0);
    let service = service_ahead(-86_400, "");
    define(&place, &service);
    run().expect_success();
}
