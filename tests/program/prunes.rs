//! `prune` removes only what its rules allow, also while runs are in progress.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::program::{Place, only_build};

const DEMO: &str = "source.service = \"demo\"\nsignals.sectors = [\"utilities\"]\nsentiment.articles = false\n";

/// Makes a file or folder old.
fn age(path: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    File::open(path).and_then(|file| file.set_modified(then)).expect("as the test expects");
}

fn write(path: &Path, text: &str, days: u64) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("as the test expects");
    fs::write(path, text).expect("as the test expects");
    age(path, days);
}

fn prune(place: &Place, arguments: &[&str]) -> Value {
    let arguments = ["prune", "--json"].iter().chain(arguments);
    serde_json::from_str(&place.run(arguments).expect_success().stdout).expect("a document")
}

/// The versions of the dataset, oldest first.
fn versions(place: &Place) -> Vec<PathBuf> {
    let folder = fs::read_dir(place.file("output/datasets/demo")).expect("versions");
    let folders = folder.map(|entry| entry.expect("an entry").path());
    let built = |version: &PathBuf| {
        let record: Value =
            serde_json::from_slice(&fs::read(version.join("dataset.json")).expect("a record")).expect("a record");
        record["built_at"].as_str().expect("an instant").to_owned()
    };
    let mut versions: Vec<PathBuf> =
        folders.filter(|path| !path.is_symlink() && path.join("dataset.json").exists()).collect();
    versions.sort_by_key(built);
    versions
}

/// The removed (or listed) paths, relative to the data folder, with their kinds.
fn removed_paths(document: &Value) -> BTreeSet<(String, String)> {
    let of = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().expect("a text").to_owned();
        (text("kind"), text("path").split_once("output/").expect("a path in the data folder").1.to_owned())
    };
    document["removed"].as_array().expect("a list").iter().map(of).collect()
}

fn set(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    expected.iter().map(|(kind, path)| ((*kind).to_owned(), (*path).to_owned())).collect()
}

#[test]
fn pruning_removes_only_what_its_rules_allow() {
    let place = Place::new();
    place.define("demo", DEMO);
    for _ in 0..4 {
        place.run(["run", "demo", "-q"]).expect_success();
    }
    place.run(["build", "demo", "--ticker", "NEE", "-q"]).expect_success();
    place.run(["report", "demo"]).expect_success();
    let data = place.file("output");
    let versions = versions(&place);
    let name = |version: usize| versions[version].file_name().unwrap().to_str().unwrap().to_owned();
    // Of four versions, one is pinned, one has a foreign file, and one is the latest.
    symlink(name(0), data.join("datasets/demo/paper")).unwrap();
    fs::write(versions[1].join("notes.txt"), "mine").unwrap();
    place.define("demo", &format!("{DEMO}output.keep = 1\n"));
    // A reader of `latest` may still be reading what was just replaced.
    let listed = prune(&place, &["--dry-run"]);
    assert_eq!(removed_paths(&listed), BTreeSet::new());
    versions.iter().for_each(|version| age(&version.join("dataset.json"), 1));
    // A dataset without a definition, and one whose definition is broken.
    for other in ["gone", "broken"] {
        let version = data.join(format!("datasets/{other}/20260101T000000Z-0000"));
        fs::create_dir_all(&version).unwrap();
        fs::write(version.join("dataset.json"), "{}").unwrap();
    }
    place.define("broken", "source = 5");
    write(&data.join("evidence/20260101T000000Z-0001.body"), "{", 91);
    write(&data.join("evidence/20260101T000000Z-0003.body"), "{", 89);
    write(&data.join("evidence/notes.body"), "mine", 1000);
    age(&data.join("reports/demo.html"), 91);
    write(&data.join("reports/mine.html"), "<title>mine</title>", 1000);
    write(&data.join(".scratch-20260101T000000Z-0004/sort/0.arrow"), "", 2);
    age(&data.join(".scratch-20260101T000000Z-0004"), 2);
    let interrupted = data.join("archive/demo/.partial/20260101T000000Z-0005");
    write(&interrupted.join("answers.jsonl"), "", 2);
    age(&interrupted, 2);

    let expected = set(&[
        ("version", &format!("datasets/demo/{}", name(2))),
        ("interrupted_run", "archive/demo/.partial/20260101T000000Z-0005"),
        ("leftover", ".scratch-20260101T000000Z-0004"),
        ("evidence", "evidence/20260101T000000Z-0001.body"),
        ("report", "reports/demo.html"),
    ]);
    let before = place.files();
    let listed = prune(&place, &["--dry-run"]);
    assert_eq!((removed_paths(&listed), &listed["dry_run"]), (expected.clone(), &true.into()));
    assert_eq!(place.files(), before, "a dry run changes nothing");
    let kept: Vec<&str> = listed["kept"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept[1].contains("`notes.txt` in it was not made by bellwether"), "{kept:?}");
    assert!(place.run(["status"]).stdout.contains("`bellwether prune` would free "));

    assert_eq!(removed_paths(&prune(&place, &[])), expected);
    for (_, path) in &expected {
        assert!(!data.join(path).exists(), "{path}");
    }
    for stays in [&versions[0], &versions[1], &versions[3], &only_build(&place, "demo")] {
        assert!(stays.join("dataset.json").exists(), "{}", stays.display());
    }
    for stays in ["datasets/gone/20260101T000000Z-0000", "datasets/broken/20260101T000000Z-0000", "reports/mine.html"] {
        assert!(data.join(stays).exists(), "{stays}");
    }
    assert!(data.join("evidence/20260101T000000Z-0003.body").exists() && data.join("evidence/notes.body").exists());
    assert_eq!(removed_paths(&prune(&place, &[])), BTreeSet::new());
    assert_eq!(
        removed_paths(&prune(&place, &["--older-than", "88d"])),
        set(&[("evidence", "evidence/20260101T000000Z-0003.body")])
    );
    place.run(["prune", "--older-than", "0d"]).failed_with(2);
    place.run(["show", "demo"]).expect_success();
}

#[test]
fn packed_runs_go_a_day_after_their_pack_and_every_past_instant_can_still_be_built() {
    let place = Place::new();
    place.define("demo", DEMO);
    let mut instants = Vec::new();
    for _ in 0..3 {
        place.run(["run", "demo", "-q"]).expect_success();
        let runs = place.run(["list", "runs", "--json"]).expect_success().stdout;
        let runs: Value = serde_json::from_str(&runs).unwrap();
        instants.push(runs["runs"].as_array().unwrap().last().unwrap()["sealed_at"].as_str().unwrap().to_owned());
    }
    let as_of = |instant: &String| {
        let file = place.file("as-of.csv");
        place.run(["build", "demo", "--as-of", instant, "--output", file.to_str().unwrap(), "-q"]).expect_success();
        let rows = fs::read(&file).unwrap();
        fs::remove_file(file).unwrap();
        rows
    };
    let before: Vec<Vec<u8>> = instants.iter().map(as_of).collect();
    place.pack();
    assert_eq!(
        removed_paths(&prune(&place, &[])),
        BTreeSet::new(),
        "a reader may have opened the archive before the pack"
    );
    let archive = place.file("output/archive/demo");
    let folders = |kind: &str| -> Vec<PathBuf> {
        let all = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind)).collect()
    };
    let [pack] = &folders("pack=")[..] else { panic!("one pack") };
    age(&pack.join("run.json"), 2);
    assert_eq!(removed_paths(&prune(&place, &[])).len(), 3);
    assert_eq!((folders("run=").len(), folders("pack=").len()), (0, 1));
    assert_eq!(instants.iter().map(as_of).collect::<Vec<_>>(), before);
    place.run(["verify"]).expect_success();
}

#[test]
fn nothing_is_removed_for_a_pack_that_misses_rows() {
    let place = Place::new();
    place.define("demo", DEMO);
    for _ in 0..2 {
        place.run(["run", "demo", "-q"]).expect_success();
    }
    place.pack();
    let archive = place.file("output/archive/demo");
    let all = || fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path()).collect::<BTreeSet<_>>();
    let pack = all().into_iter().find(|path| path.to_str().unwrap().contains("/pack=")).unwrap();
    age(&pack.join("run.json"), 2);
    let signals = pack.join("signals.parquet");
    let length = fs::metadata(&signals).unwrap().len();
    File::options().write(true).open(&signals).unwrap().set_len(length - 1).unwrap();
    let before = all();
    let outcome = place.run(["prune"]).failed_with(1);
    assert!(outcome.stderr.contains("signals.parquet"), "{}", outcome.stderr);
    assert_eq!(all(), before);
}

#[test]
fn runs_succeed_while_their_archive_is_packed_and_pruned() {
    let place = Place::new();
    place.define("demo", &format!("{DEMO}output.keep = 1\n"));
    place.run(["run", "demo", "-q"]).expect_success();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                place.pack();
                place.prune_packed();
                place.run(["prune"]).expect_success();
            }
        });
        // What was listed and is gone was pruned: readers see neither damage nor loss.
        let store = format!("file://{}", place.file("store").display());
        let readers: [&[&str]; 2] = [&["verify"], &["store", "push", "--store", &store]];
        for reader in readers {
            let (place, is_done) = (&place, &is_done);
            let reader: Vec<String> = reader.iter().map(|&word| word.to_owned()).collect();
            scope.spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    place.run(&reader).expect_success();
                }
            });
        }
        let runs = scope.spawn(|| (0..4).map(|_| place.run(["run", "demo", "-q"])).collect::<Vec<_>>());
        let runs = runs.join().unwrap();
        is_done.store(true, Ordering::SeqCst);
        for outcome in runs {
            outcome.expect_success();
        }
    });
    place.pack();
    let runs: Value = serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 5);
    place.run(["verify"]).expect_success();
}

/// The rows of the archive as of each run.
fn built_as_of_each_run(place: &Place) -> Vec<Vec<u8>> {
    let runs: Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).expect("a document");
    let instant = |run: &Value| run["sealed_at"].as_str().expect("an instant").to_owned();
    let instants = runs["runs"].as_array().expect("a list").iter().map(instant);
    let build = |as_of: String| {
        let arguments = ["build", "demo", "--as-of", &as_of, "--format", "csv", "--output", "-"];
        place.command(arguments).output().expect("rows").stdout
    };
    instants.map(build).collect()
}

#[test]
fn a_run_removes_packs_that_a_larger_one_has_replaced_for_a_day_and_nothing_else() {
    let place = Place::new();
    place.define("demo", &format!("{DEMO}output.keep = 1\n"));
    let archive = place.file("output/archive/demo");
    let folders = |prefix: &str| -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)).collect()
    };
    let run = || _ = place.run(["run", "demo", "-q"]).expect_success();
    (0..2).for_each(|_| run());
    place.pack();
    let smaller = folders("pack=").pop_first().unwrap();
    run();
    place.pack();
    let both = folders("pack=");
    let larger = both.iter().find(|pack| **pack != smaller).unwrap();
    let before = built_as_of_each_run(&place);
    assert!(before.len() == 3 && before.iter().all(|rows| !rows.is_empty()));

    run();
    assert_eq!(folders("pack="), both, "other processes may still read it");
    age(&larger.join("run.json"), 2);
    fs::write(smaller.join("notes.txt"), "mine").unwrap();
    run();
    assert_eq!(folders("pack="), both, "a folder with a file of somebody else stays, and the run succeeds");
    fs::remove_file(smaller.join("notes.txt")).unwrap();
    run();
    assert_eq!(folders("pack="), BTreeSet::from([larger.clone()]));
    assert_eq!(folders("run=").len(), 6, "runs stay until they are pruned on request");
    assert_eq!(built_as_of_each_run(&place)[..3], before[..]);
    place.run(["verify"]).expect_success();
}
