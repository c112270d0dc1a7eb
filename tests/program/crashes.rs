//! What is on the disk, listed and held against what was written.

use std::fs;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::sealed_run;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

#[test]
fn runs_are_listed_and_a_file_that_is_not_what_was_written_is_named() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).succeeded();
    let folder = sealed_run(&place);
    let name = folder.file_name().unwrap().to_str().unwrap().strip_prefix("run=").unwrap();

    let listed = place.run(["runs"]).succeeded().stdout;
    assert!(listed.lines().nth(1).unwrap().starts_with(name), "{listed}");
    assert!(listed.contains("        23        36,"), "{listed}");
    let shown = place.run(["runs", "show", &name[..15]]).succeeded().stdout;
    assert!(shown.contains("definition  it, BLAKE3 ") && shown.contains("signals.parquet"), "{shown}");
    let missing = place.run(["runs", "show", "x"]).failed_with(1).stderr;
    assert!(missing.starts_with("error: no run `x` in `output/archive`\n"), "{missing}");

    assert_eq!(place.run(["verify"]).succeeded().stdout, "9 files and 752 fingerprints are what was written\n");
    let signals = folder.join("signals.parquet");
    let mut bytes = fs::read(&signals).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&signals, &bytes).unwrap();
    fs::remove_file(folder.join("articles.parquet")).unwrap();
    fs::write(place.file("output/datasets/it/latest/it.parquet"), "").unwrap();
    let outcome = place.run(["verify"]).failed_with(1);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.stdout);
    assert!(lines[0].contains("signals.parquet` is not what was written: its BLAKE3 is "));
    assert!(lines[1].contains("articles.parquet` cannot be read: No such file or directory"));
    assert!(lines[2].contains("it.parquet` has 0 bytes and should have "));
    assert!(outcome.stderr.starts_with("error: 3 files are not what was written\n"), "{}", outcome.stderr);

    let seal = fs::read_to_string(folder.join("run.json")).unwrap();
    fs::write(folder.join("run.json"), seal.replace("\"layout\": 9", "\"layout\": 10")).unwrap();
    let later = place.run(["runs"]).failed_with(1).stderr;
    assert!(later.contains("has layout 10; this version reads layout 9\nhint: use the version"), "{later}");
}
