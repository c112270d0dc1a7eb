#![expect(clippy::disallowed_methods, reason = "tests remove what they made in folders of their own")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::tempdir;

use super::{moment, plan, provenance, publish_as, rows, signals};
use crate::error::Result;
use crate::export::{Dataset, Provenance, versions};
use crate::plan::Format;

/// Publishes a version built at an hour of a day.
fn publish(folder: &Path, hour: u32, keep: usize) -> Result<Dataset> {
    let mut plan = plan(&[Format::Csv]);
    plan.files.keep = keep;
    let built_at = moment(&format!("2026-11-21T{hour:02}:00:00Z"));
    publish_as(folder, &plan, Provenance { built_at, ..provenance() }, &[rows(&signals(&["XOM"], 1))])
}

/// The hours of the existing versions.
fn hours(folder: &Path) -> Vec<u32> {
    let hour = |path: &Path| path.file_name().unwrap().to_str().unwrap()[9..11].parse().unwrap();
    versions(folder).unwrap().0.iter().map(|version| hour(&version.path)).collect()
}

#[test]
fn the_newest_versions_are_kept() {
    let folder = tempdir().unwrap();
    for hour in 1..=5 {
        let dataset = publish(folder.path(), hour, 3).unwrap();
        assert_eq!(
            fs::canonicalize(dataset.latest.as_ref().unwrap()).unwrap(),
            fs::canonicalize(&dataset.path).unwrap()
        );
    }
    assert_eq!(hours(folder.path()), [3, 4, 5]);
    publish(folder.path(), 6, 1).unwrap();
    assert_eq!(hours(folder.path()), [6]);
    let names: Vec<_> = crate::disk::file::entries(&folder.path().join("demo")).unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn of_versions_of_one_second_the_last_ones_are_kept() {
    let folder = tempdir().unwrap();
    let plan = plan(&[Format::Csv]);
    // Their names are in any order.
    for tenth in 0..10 {
        let built_at = moment(&format!("2026-11-21T08:00:00.{tenth}Z"));
        let provenance = Provenance { built_at, ..provenance() };
        let mut plan = plan.clone();
        plan.files.keep = 2;
        let last = publish_as(folder.path(), &plan, provenance, &[rows(&signals(&["XOM"], 1))]).unwrap();
        let kept: Vec<_> = versions(folder.path()).unwrap().0.into_iter().map(|version| version.path).collect();
        assert!(kept.len() == 2.min(tenth + 1) && kept.contains(&last.path), "{kept:?}");
    }
}

#[test]
fn a_linked_version_is_kept() {
    let place = tempdir().unwrap();
    let folder = place.path().join("demo");
    let pin = |name: &str, target: &Path| symlink(target, folder.join(name)).unwrap();
    let versions: Vec<Dataset> = (1..=5).map(|hour| publish(place.path(), hour, 10).unwrap()).collect();
    let name = |index: usize| Path::new(versions[index].path.file_name().unwrap()).to_owned();
    pin("paper", &name(0));
    pin("absolute", &fs::canonicalize(&versions[1].path).unwrap());
    pin("file", &name(2).join("demo.csv"));
    pin("again", Path::new("paper"));
    publish(place.path(), 6, 1).unwrap();
    assert_eq!(hours(place.path()), [1, 2, 3, 6]);
    fs::remove_file(folder.join("absolute")).unwrap();
    publish(place.path(), 7, 1).unwrap();
    assert_eq!(hours(place.path()), [1, 3, 7]);
}

#[test]
fn a_version_about_to_become_latest_is_kept() {
    let folder = tempdir().unwrap();
    let slow = publish(folder.path(), 1, 10).unwrap();
    let name = slow.path.file_name().unwrap().to_owned();
    symlink(&name, folder.path().join("demo/.latest-slow")).unwrap();
    publish(folder.path(), 2, 1).unwrap();
    assert_eq!(hours(folder.path()), [1, 2]);
}

#[test]
fn newer_versions_and_foreign_files_are_kept() {
    let folder = tempdir().unwrap();
    publish(folder.path(), 9, 1).unwrap();
    let copy = folder.path().join("demo/copy");
    fs::create_dir(&copy).unwrap();
    let record = folder.path().join("demo/latest/dataset.json");
    fs::copy(record, copy.join("dataset.json")).unwrap();
    fs::create_dir(folder.path().join("demo/20201120T000000Z-7f3a")).unwrap();
    // Its clock is behind.
    let dataset = publish(folder.path(), 8, 1).unwrap();
    assert_eq!(fs::canonicalize(dataset.latest.as_ref().unwrap()).unwrap(), fs::canonicalize(&dataset.path).unwrap());
    assert!(copy.exists() && folder.path().join("demo/20201120T000000Z-7f3a").exists());
    assert_eq!(versions(folder.path()).unwrap().0.len(), 3);
}

#[test]
fn a_version_with_a_foreign_file_is_kept_intact() {
    let folder = tempdir().unwrap();
    let mine = publish(folder.path(), 1, 9).unwrap().path;
    fs::write(mine.join("notes.txt"), "mine").unwrap();
    let linked = publish(folder.path(), 2, 9).unwrap().path;
    symlink(folder.path(), linked.join("elsewhere.csv")).unwrap();
    publish(folder.path(), 3, 9).unwrap();
    publish(folder.path(), 4, 1).unwrap();
    assert_eq!(hours(folder.path()), [1, 2, 4]);
    assert!(mine.join("demo.csv").exists() && mine.join("notes.txt").exists());
    assert!(linked.join("demo.csv").exists() && linked.join("elsewhere.csv").is_symlink());
}

#[test]
fn a_dataset_folder_that_is_a_link_is_refused() {
    let folder = tempdir().unwrap();
    let elsewhere = tempdir().unwrap();
    symlink(elsewhere.path(), folder.path().join("demo")).unwrap();
    let refused = publish(folder.path(), 1, 9).unwrap_err();
    assert!(refused.to_string().ends_with("demo` is a symbolic link, which is not followed"), "{refused}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn leftovers_of_a_killed_publication_are_removed_after_a_day() {
    let place = tempdir().unwrap();
    publish(place.path(), 1, 9).unwrap();
    let folder = place.path().join("demo");
    let left = |name: &str, hours: u64| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("demo.parquet"), "half").unwrap();
        let then = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::open(folder.join(name)).unwrap().set_modified(then).unwrap();
    };
    left(".partial-20261120T213000Z-0001", 25);
    left(".removed-20261120T213000Z-0002", 25);
    left(".partial-20261120T213000Z-0003", 23);
    left(".partial-of-somebody-else", 25);
    left(".removed-20261120T213000Z-0004", 25);
    fs::write(folder.join(".removed-20261120T213000Z-0004/mine.parquet"), "mine").unwrap();
    File::open(folder.join(".removed-20261120T213000Z-0004")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    publish(place.path(), 2, 9).unwrap();
    let hidden: Vec<String> = crate::disk::file::entries(&folder)
        .unwrap()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.starts_with('.'))
        .collect();
    let expected = [".partial-20261120T213000Z-0003", ".partial-of-somebody-else", ".removed-20261120T213000Z-0004"];
    assert_eq!(hidden, expected);
    assert!(!folder.join(".removed-20261120T213000Z-0004/demo.parquet").exists(), "it belongs to the dataset");
    assert_eq!(fs::read(folder.join(".removed-20261120T213000Z-0004/mine.parquet")).unwrap(), b"mine");
}

#[test]
fn obstacles_are_reported_before_anything_is_built() {
    let place = tempdir().unwrap();
    let occupied = |result: Result<Dataset>| match result {
        Err(error) if error.to_string().contains(", expected ") => {
            (error.to_string(), error.hint().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    };
    let before = publish(place.path(), 1, 9).unwrap().latest.unwrap();
    fs::remove_file(&before).unwrap();
    fs::write(&before, "mine").unwrap();
    let (message, hint) = occupied(publish(place.path(), 2, 9));
    assert!(message.ends_with("demo/latest` is a file, expected a link to the newest version"), "{message}");
    assert!(hint.starts_with("move it, or"), "{hint}");
    fs::remove_file(&before).unwrap();
    fs::create_dir(&before).unwrap();
    assert!(occupied(publish(place.path(), 2, 9)).0.contains("is a folder, expected a link"));
    assert_eq!(hours(place.path()), [1]);

    fs::write(place.path().join("file"), "mine").unwrap();
    let (message, _) = occupied(publish(&place.path().join("file"), 1, 9));
    assert!(message.ends_with("/file` is a file, expected a folder"), "{message}");
    let (message, _) = occupied(publish(&place.path().join("file/datasets"), 1, 9));
    assert!(message.ends_with("/file` is a file, expected a folder"), "{message}");
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "mine");
}

#[test]
fn records_of_another_layout_are_refused() {
    let folder = tempdir().unwrap();
    let version = folder.path().join("demo/20261120T213000Z-7f3a");
    fs::create_dir_all(&version).unwrap();
    for layout in [4, 6] {
        fs::write(version.join("dataset.json"), format!("{{\"layout\": {layout}, \"name\": \"demo\"}}")).unwrap();
        let error = versions(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with(&format!("has layout {layout}; this version reads layout 5")), "{error}");
    }
}
