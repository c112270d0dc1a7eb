//! Every file of state, absent, unreadable, empty, cut off and garbled: nothing is called fresh without a basis.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;
use tempfile::TempDir;

use super::process::{KEY, define, history, journal, remember_done};
use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

/// What happens to a file or folder.
const DAMAGES: [&str; 5] = ["absent", "unreadable", "empty", "cut", "garbled"];

/// A definition that a scheduler has run once, and is fresh.
fn fresh() -> (Place, Scripted) {
    let (place, service) = (Place::new(), Scripted::of_histories(|_| json("200 OK", &history())));
    define(&place, "it", &service, "[schedule]\ncron = \"@hourly\"\n");
    let once = || Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
    once();
    remember_done(&place, "it", Utc::now() - TimeDelta::hours(2));
    once();
    assert_eq!(status(&place, 0)["verdict"], "fresh");
    (place, service)
}

fn status(place: &Place, code: i32) -> Value {
    let outcome = place.run(["status", "--json"]).failed_with(code);
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// Everything below a folder, without what links lead to.
fn all_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        found.push(path.clone());
        if path.is_dir() && !path.is_symlink() {
            all_below(&path, found);
        }
    }
}

/// Damages a file, a folder or a link, whose original is aside. Returns whether that is possible.
fn damage(path: &Path, aside: &Path, damage: &str) -> bool {
    let is_folder = aside.is_dir() && !aside.is_symlink();
    match damage {
        "absent" => {}
        // Root reads whatever its mode is: something else in its place.
        "unreadable" if is_folder => fs::write(path, "a file").expect("as the test expects"),
        "unreadable" => fs::create_dir(path).expect("as the test expects"),
        "empty" if is_folder => fs::create_dir(path).expect("as the test expects"),
        "empty" => fs::write(path, "").expect("as the test expects"),
        _ if is_folder || aside.is_symlink() => return false,
        "cut" => {
            let text = fs::read(aside).expect("as the test expects");
            fs::write(path, &text[..text.len() / 2]).expect("as the test expects");
        }
        _ => fs::write(path, b"\x00garbage{\n".repeat(30)).expect("as the test expects"),
    }
    true
}

fn remove(path: &Path) {
    match path.is_dir() && !path.is_symlink() {
        true => fs::remove_dir_all(path).expect("as the test expects"),
        false => drop(fs::remove_file(path)),
    }
}

#[test]
fn no_file_of_state_can_be_damaged_or_gone_and_its_definition_still_be_fresh() {
    let (place, _service) = fresh();
    let elsewhere = TempDir::new_in(place.path().parent().unwrap()).unwrap();
    let mut all = Vec::new();
    all_below(place.path(), &mut all);
    // What no verdict is based on: locks, which say only whether a run is in progress, and unfinished runs.
    let is_hidden = |path: &Path| path.iter().any(|name| name == ".locks" || name == ".partial");
    all.retain(|path| !is_hidden(path));
    let names: Vec<String> =
        all.iter().map(|path| path.strip_prefix(place.path()).unwrap().display().to_string()).collect();
    for known in ["pipelines/it.toml", "output/archive/vendor", "output/journal/it.jsonl", "output/schedule/it.json"] {
        assert!(names.iter().any(|name| name == known), "{known}: {names:?}");
    }
    for file in ["run.json", "signals.parquet", "dataset.json", "facts.json", "it.parquet", "latest"] {
        assert!(all.iter().any(|path| path.ends_with(file)), "{file}: {names:?}");
    }
    let aside = elsewhere.path().join("aside");
    for path in &all {
        for kind in DAMAGES {
            fs::rename(path, &aside).unwrap();
            if damage(path, &aside, kind) {
                let outcome = place.run(["status", "--json"]);
                let found: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
                let reasons = [&found["reasons"], &found["definitions"][0]["reasons"]];
                let has_reason = reasons.iter().any(|of| of.as_array().is_some_and(|of| !of.is_empty()));
                assert_eq!(outcome.code, Some(5), "{} {kind}: {found}", path.display());
                // Without the whole folder, a project is as if nothing had ever been run.
                let is_as_new = path.ends_with("output") && found["verdict"] == "not_run";
                let is_told = (found["verdict"] == "unknown" || is_as_new) && has_reason;
                assert!(is_told, "{} {kind}: {found}", path.display());
            }
            remove(path);
            fs::rename(&aside, path).unwrap();
        }
    }
    assert_eq!(status(&place, 0)["verdict"], "fresh", "restored");
}

#[test]
fn a_failing_definition_does_not_become_fresh_when_its_journal_cannot_be_read() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.before {
        0 => json("200 OK", &history()),
        _ => json("403 Forbidden", "{}"),
    });
    define(&place, "it", &service, "");
    let run = || Outcome::of(place.command(["run", "it", "-q"]).envs([KEY]));
    run().expect_success();
    run().failed_with(1);
    assert_eq!(status(&place, 3)["verdict"], "failing");
    let journal = place.file("output/journal/it.jsonl");
    fs::rename(&journal, place.file("aside")).unwrap();
    fs::create_dir(&journal).unwrap();
    let found = status(&place, 5);
    assert!(found["definitions"][0]["reasons"][0].as_str().unwrap().contains("it.jsonl`"), "{found}");
    fs::remove_dir(&journal).unwrap();
    let found = status(&place, 5);
    assert!(found["definitions"][0]["reasons"][0].as_str().unwrap().contains("it.jsonl` is gone"), "{found}");
    // Only the line of the failure is missing, as after a run that was killed.
    let text = fs::read_to_string(place.file("aside")).unwrap();
    fs::write(&journal, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let found = status(&place, 5);
    assert!(found["definitions"][0]["reasons"][0].as_str().unwrap().contains("has no line in"), "{found}");
}

#[test]
fn data_folders_that_share_an_archive_do_not_miss_each_others_lines() {
    let (place, _service) = fresh();
    let kept = ["--archive", "output/archive", "--data"];
    let with = |command: &[&str], data| {
        Outcome::of(place.command([command, &kept[..], &[data]].concat()).envs([KEY])).expect_success().stdout
    };
    with(&["run", "it", "-q"], "other");
    for data in ["output", "other"] {
        let status: Value = serde_json::from_str(&with(&["status", "--json"], data)).unwrap();
        assert_eq!(status["verdict"], "fresh", "{data}: {status}");
    }
    // Its own line is missed.
    fs::write(place.file("other/journal/it.jsonl"), "").unwrap();
    Outcome::of(place.command([&["status"], &kept[..], &["other"]].concat()).envs([KEY])).failed_with(5);
}

#[test]
fn what_a_wrong_clock_remembered_as_done_is_done_when_it_comes() {
    let (place, _service) = fresh();
    remember_done(&place, "it", Utc::now() + TimeDelta::days(3));
    let stays = journal(&place, "it").len();
    Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
    assert_eq!(journal(&place, "it").len(), stays, "this hour's run is in the archive");
    let memory: Value = serde_json::from_slice(&fs::read(place.file("output/schedule/it.json")).unwrap()).unwrap();
    let done: DateTime<Utc> = memory["done"].as_str().unwrap().parse().unwrap();
    assert!(done <= Utc::now(), "{memory}");
    // Without it, the hour that has come is run.
    fs::remove_dir_all(place.file("output/archive")).unwrap();
    fs::remove_dir_all(place.file("output/datasets")).unwrap();
    fs::remove_file(place.file("output/journal/it.jsonl")).unwrap();
    remember_done(&place, "it", Utc::now() + TimeDelta::days(3));
    Outcome::of(place.command(["schedule", "--once"]).envs([KEY])).expect_success();
    assert_eq!(journal(&place, "it").len(), 1);
}

#[test]
fn a_clock_that_went_back_and_a_project_without_definitions_are_unknown() {
    let (place, _service) = fresh();
    let path = place.file("output/journal/it.jsonl");
    let mut record = journal(&place, "it").remove(0);
    record["ended_at"] = (Utc::now() + TimeDelta::hours(2)).to_rfc3339_opts(SecondsFormat::Micros, true).into();
    fs::write(&path, format!("{record}\n")).unwrap();
    let found = status(&place, 5);
    assert!(found["definitions"][0]["reasons"][0].as_str().unwrap().contains("the clock is wrong"), "{found}");

    let empty = Place::new();
    for (made, reason) in [(false, "there is no folder `pipelines`"), (true, "there are no definitions in `pipelines`")]
    {
        if made {
            fs::create_dir_all(empty.file("pipelines")).unwrap();
        } else {
            let _ = fs::remove_dir_all(empty.file("pipelines"));
        }
        let found = status(&empty, 5);
        assert_eq!((&found["verdict"], &found["reasons"][0]), (&"unknown".into(), &reason.into()), "{found}");
        let text = empty.run(["status"]).failed_with(5).stdout;
        assert!(text.contains(reason), "{text}");
        let page = empty.run(["status", "--html", "-"]).failed_with(5).stdout;
        assert!(page.contains(reason), "{page}");
    }
}
