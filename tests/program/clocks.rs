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
    let shown = ahead.strip_prefix(place.path()).unwrap().display();
    let hint = format!("move `{shown}` out of the archive, and go on without it with `--new-archive`\n");
    assert!(stderr.ends_with(&hint), "{stderr}");
    assert_eq!(service.count(), 0);

    // Follows the hint. The version of that run remains, so its absence has to be meant.
    fs::rename(&ahead, place.file("ahead")).unwrap();
    let stderr = run().failed_with(1).stderr;
    assert!(stderr.starts_with("error: `output/archive/vendor` lacks 1 run: 21300115T"), "{stderr}");
    assert!(stderr.contains("`bellwether run NAME --new-archive`"), "{stderr}");
    assert_eq!(service.count(), 0);
    Outcome::of(place.command(["run", "it", "-q", "--new-archive"]).envs([KEY])).succeeded();
    let expected = "ticker,date,period,regime,signal,confidence\nXOM,2026-11-20T00:00:00,15d,neutral,buy,0.5\n";
    let rows = || fs::read_to_string(place.file("output/datasets/it/latest/it.csv")).unwrap();
    assert_eq!(rows(), expected);

    // Later observations do not change what is known as of now.
    fs::rename(place.file("ahead"), &ahead).unwrap();
    let as_of = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).to_rfc3339();
    let known = place.run(["build", "it", "--as-of", &as_of, "--format", "csv", "--output", "-"]);
    // With `--output -`, the archive is the default one.
    assert_eq!(known.succeeded().stdout, expected);
}

#[test]
fn a_packed_run_from_the_future_cannot_be_moved_alone() {
    let place = Place::new();
    for today in [14, 15] {
        Day::new(day(2130, 1, today)).run(&place);
    }
    place.run(["archive", "compact"]).succeeded();
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    for is_pruned in [false, true] {
        if is_pruned {
            place.run(["archive", "prune"]).succeeded();
        }
        let stderr = Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).failed_with(1).stderr;
        assert!(
            stderr.contains("hint: set the clock if it is behind; if it is correct, a clock was ahead during a run that is now packed"),
            "{stderr}"
        );
        assert!(!stderr.contains("move `"), "{stderr}");
    }
    assert_eq!(service.count(), 0);
}
