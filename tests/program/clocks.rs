//! A clock that is behind the archive.

use std::fs;

use crate::support::days::Day;
use crate::support::program::{Outcome, Place};
use crate::support::rows::sealed_run;
use crate::support::scripted::{Scripted, json};
use crate::support::service::day;

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
    let hint = format!("take it back with `bellwether archive forget {name} --reason TEXT`\n");
    assert!(stderr.ends_with(&hint), "{stderr}");
    assert_eq!(service.count(), 0);

    // Follows the hint.
    place.run(["archive", "forget", &name, "--reason", "the clock was ahead"]).succeeded();
    let message = Outcome::of(place.command(["run", "it"]).envs([KEY])).succeeded();
    let note = format!("run `{name}` is left out, forgotten at ");
    assert!(message.stdout.contains(&note) || message.stderr.contains(&note), "{}{}", message.stdout, message.stderr);
    let expected = "ticker,date,period,regime,signal,confidence\nXOM,2026-11-20T00:00:00,15d,neutral,buy,0.5\n";
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
    place.run(["archive", "compact"]).succeeded();
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    place.run(["archive", "prune"]).succeeded();
    let mut forgotten = Vec::new();
    loop {
        let outcome = Outcome::of(place.command(["run", "it", "-q"]).envs([KEY]));
        if outcome.code == Some(0) {
            break;
        }
        let stderr = outcome.failed_with(1).stderr;
        assert_eq!(service.count(), 0);
        let name = stderr.split("archive forget ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a hint");
        place.run(["archive", "forget", name, "--reason", "the clock was ahead"]).succeeded();
        forgotten.push(name.to_owned());
    }
    assert_eq!(forgotten.len(), 2, "{forgotten:?}");
    let message = place.run(["verify"]).succeeded().stdout;
    assert_eq!(message.matches("is left out, forgotten at ").count(), 2, "{message}");
    // Their rows are still in the pack, and count nowhere.
    let known = place.run(["build", "it", "--format", "csv", "--output", "-"]).succeeded().stdout;
    assert!(known.ends_with("\nXOM,2026-11-20T00:00:00,15d,neutral,buy,0.5\n"), "{known}");
    assert_eq!(known.lines().count(), 2, "{known}");
}
