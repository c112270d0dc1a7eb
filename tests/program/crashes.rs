//! Killed at any instant, a run loses nothing that was there and shows nothing that is not whole.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::read;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

fn csv(place: &Place) -> Vec<u8> {
    fs::read(place.file("output/datasets/it/latest/it.csv")).expect("a dataset")
}

/// Every sealed run and every published version is whole.
fn check_whole(place: &Place) {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    for run in folders(&place.file("output/archive")) {
        if run.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run=")) {
            assert!(run.join("run.json").exists(), "{} has no seal", run.display());
            assert!(read(&run.join("signals.parquet")).num_rows() > 0);
        }
    }
    for version in folders(&place.file("output/datasets/it")) {
        if !version.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            assert!(version.join("dataset.json").exists(), "{} has no record", version.display());
        }
    }
}

#[test]
fn a_run_that_is_killed_at_any_instant_is_gone_on_with_and_ends_as_if_it_had_not_been() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let signals = "[signals]\nsectors = [\"energy\"]\nperiods = [\"1d\", \"2d\"]\n";
    let text = format!("[source]\n{}{signals}[output]\nformat = \"csv\"\n", service.source);
    let undisturbed = Place::new();
    undisturbed.define("it", &text);
    Outcome::of(undisturbed.command(["run", "it", "-q"]).envs([KEY])).succeeded();
    place.define("it", &text);
    for kill in 0..24_u64 {
        let mut command = place.command(["run", "it", "-q"]);
        let mut child = command.envs([KEY]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // From before anything is asked to after everything is published.
        thread::sleep(Duration::from_millis(kill * 41 % 900));
        let _ = child.kill();
        child.wait().expect("it ended");
        check_whole(&place);
    }
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).succeeded();
    check_whole(&place);
    assert!(csv(&place) == csv(&undisturbed), "the datasets differ");
    let left = fs::read_dir(place.file("output/archive/.partial")).expect("a folder").count();
    assert_eq!(left, 0, "what was sealed is cleared away");
}
