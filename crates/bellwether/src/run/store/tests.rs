//! A store that is a folder, one operation at a time.
#![expect(clippy::disallowed_methods, reason = "tests remove what they made in folders of their own")]

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use tempfile::{TempDir, tempdir};

use super::TransferCounts;
use super::folder::Sealed;
use super::latest::Latest;
use super::objects::{Store, StoreAccess};
use super::ours::{clear_staged, is_clearing};
use crate::disk::digest;
use crate::disk::file::FileRecord;
use crate::error::{Error, ErrorKind};
use crate::plan::StoreUrl;
use crate::run::observer::Control;

const RUN: &str = "archive/vendor/run=20261120T213000Z-7f3a";

struct Place {
    folder: TempDir,
    url: StoreUrl,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let url: StoreUrl = format!("file://{}/store", folder.path().display()).parse().unwrap();
        let store = Store::open(&url, StoreAccess::Write, &Control::default()).unwrap();
        Self { folder, url, store }
    }

    /// The path of an object.
    fn path(&self, key: &str) -> PathBuf {
        self.folder.path().join("store").join(key)
    }

    fn write(&self, key: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A run in a folder of this machine, with a record and some files.
    fn run(&self, files: &[(&str, Vec<u8>)]) -> (PathBuf, Sealed) {
        let folder = self.folder.path().join("run");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("run.json"), record("ours")).unwrap();
        let described = files.iter().map(|(name, bytes)| {
            fs::write(folder.join(name), bytes).unwrap();
            FileRecord { name: (*name).to_owned(), rows: 1, bytes: bytes.len() as u64, blake3: digest::of(bytes) }
        });
        let files = described.collect();
        (folder, Sealed { at: RUN.to_owned(), files })
    }
}

/// A record that is as long as one is.
fn record(text: &str) -> String {
    format!("{text:300}")
}

fn latest(version: &str, as_of: i64, built_at: i64) -> Latest {
    let instant = |seconds: i64| DateTime::<Utc>::from_timestamp(seconds, 0).unwrap();
    Latest {
        layout: 1,
        name: "energy".to_owned(),
        version: version.to_owned(),
        as_of: instant(as_of),
        built_at: instant(built_at),
        content: "digest".to_owned(),
    }
}

fn is_taken(error: &Error) -> bool {
    error.to_string().ends_with("is already taken by another machine")
}

#[tokio::test]
async fn of_two_versions_the_later_one_is_the_latest_whoever_names_it_first() {
    let names = ["20261120T213000Z-000a", "20261120T213000Z-000b"];
    for (earlier, later) in [
        (latest(names[1], 1, 9), latest(names[0], 2, 8)),
        (latest(names[1], 1, 8), latest(names[0], 1, 9)),
        (latest(names[0], 1, 8), latest(names[1], 1, 8)),
    ] {
        let store = Place::new().store;
        assert_eq!(store.latest("energy").await.unwrap(), None);
        let place = Place::new();
        assert_eq!(place.store.name_latest(&earlier, None).await.unwrap(), None);
        assert_eq!(place.store.name_latest(&earlier, None).await.unwrap(), None, "again");
        assert_eq!(place.store.name_latest(&later, None).await.unwrap(), None);
        assert_eq!(place.store.latest("energy").await.unwrap(), Some(later.clone()));
        assert_eq!(place.store.name_latest(&earlier, None).await.unwrap(), Some(later.clone()));
        assert_eq!(place.store.name_latest(&earlier, Some(&earlier.version)).await.unwrap(), Some(later.clone()));
        assert_eq!(place.store.latest("energy").await.unwrap(), Some(later.clone()), "it stays");
        // Unless it does not count any more.
        assert_eq!(place.store.name_latest(&earlier, Some(&later.version)).await.unwrap(), None);
        assert_eq!(place.store.latest("energy").await.unwrap(), Some(earlier));
    }
}

#[tokio::test]
async fn a_file_that_names_no_version_of_its_dataset_is_damaged() {
    let place = Place::new();
    let valid = latest("20261120T213000Z-7f3a", 1, 1);
    place.store.name_latest(&valid, None).await.unwrap();
    let text = fs::read_to_string(place.path("datasets/energy/latest.json")).unwrap();
    for (from, to, reason) in [
        ("}", "", "EOF while parsing"),
        ("\"layout\":1", "\"layout\":2", "it does not name a version of this dataset in layout 1"),
        ("\"energy\"", "\"other\"", "it does not name a version of this dataset"),
        ("20261120T213000Z-7f3a", "../old", "it does not name a version of this dataset"),
    ] {
        let damaged = text.replacen(from, to, 1);
        assert_ne!(damaged, text);
        place.write("datasets/energy/latest.json", &damaged);
        for error in [
            place.store.latest("energy").await.unwrap_err(),
            place.store.name_latest(&latest("20261121T213000Z-7f3a", 2, 2), None).await.unwrap_err(),
        ] {
            assert!(error.to_string().starts_with("`datasets/energy/latest.json` in `file:"), "{error}");
            assert_eq!(error.kind(), ErrorKind::Damaged);
            assert!(error.in_one_line().contains(reason), "{error:?}");
        }
        assert_eq!(fs::read_to_string(place.path("datasets/energy/latest.json")).unwrap(), damaged, "it stays");
    }
}

#[tokio::test]
async fn an_object_is_read_up_to_a_limit() {
    let place = Place::new();
    place.write("datasets/energy/x", [7; 100]);
    let content = place.store.get("datasets/energy/x", 100).await.unwrap().unwrap();
    assert_eq!(content.bytes, [7; 100].as_slice());
    let error = place.store.get("datasets/energy/x", 99).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error:?}");
    assert!(place.store.get("datasets/energy/none", 100).await.unwrap().is_none());
    // A record has at least 256 bytes: what is shorter may be a note that its folder is cleared.
    let note = "{\"cleared_at\":\"2026-11-20T21:30:00.000000Z\"}";
    assert!(is_clearing(note.as_bytes()));
    place.write(&format!("{RUN}/run.json"), note);
    assert_eq!(place.store.record(RUN).await.unwrap(), None);
    place.write(&format!("{RUN}/run.json"), record("ours"));
    assert_eq!(place.store.record(RUN).await.unwrap().unwrap(), record("ours").as_bytes());
}

#[tokio::test]
async fn a_folder_is_sent_once_and_never_in_place_of_another() {
    let files = [("signals.parquet", vec![1; 40]), ("requests.parquet", vec![2; 7]), ("rejects.parquet", vec![])];
    let place = Place::new();
    let (folder, sealed) = place.run(&files);
    let sizes = RefCell::new(Vec::new());
    let send = || place.store.send(&sealed, &folder, |bytes| sizes.borrow_mut().push(bytes));
    // An interrupted upload left a file.
    let left = place.write(&format!("{RUN}/requests.parquet"), [2; 7]);
    assert!(send().await.unwrap());
    assert!(!send().await.unwrap(), "it was there before");
    sizes.borrow_mut().sort_unstable();
    assert_eq!(*sizes.borrow(), [0, 7, 40], "nothing is sent again");
    for (name, bytes) in &files {
        assert_eq!(fs::read(place.path(&format!("{RUN}/{name}"))).unwrap(), *bytes, "{name}");
    }
    let there = place.path(&format!("{RUN}/run.json"));
    assert_eq!(fs::read_to_string(&there).unwrap(), record("ours"));
    fs::write(&there, record("theirs")).unwrap();
    let error = send().await.unwrap_err();
    assert!(is_taken(&error), "{error:?}");
    fs::write(&there, "{\"cleared_at\":\"2026-11-20T21:30:00.000000Z\"}").unwrap();
    let error = send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Temporary, "{error:?}");
    // Without a record, the files must still be the same.
    fs::remove_file(&there).unwrap();
    fs::write(&left, [3; 7]).unwrap();
    let error = send().await.unwrap_err();
    assert!(is_taken(&error), "{error:?}");
    assert!(!there.exists());
    assert_eq!(fs::read(&left).unwrap(), [3; 7], "it is not overwritten");
}

#[tokio::test]
async fn a_file_that_does_not_match_its_record_is_not_sent_in_one_part_or_in_several() {
    for size in [1_000, (8 << 20) + 5] {
        let place = Place::new();
        let (folder, sealed) = place.run(&[("signals.parquet", vec![1; size])]);
        let mut changed = vec![1; size];
        changed[size - 1] = 2;
        fs::write(folder.join("signals.parquet"), &changed).unwrap();
        let error = place.store.send(&sealed, &folder, |_| {}).await.unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(reason, "it does not match its record, and was not sent");
        assert!(place.store.list("archive").await.unwrap().0.is_empty(), "nothing is there");
        fs::write(folder.join("signals.parquet"), vec![1; size]).unwrap();
        assert!(place.store.send(&sealed, &folder, |_| {}).await.unwrap());
        assert_eq!(fs::read(place.path(&format!("{RUN}/signals.parquet"))).unwrap(), vec![1; size]);
        let fetched = place.folder.path().join("fetched");
        place.store.fetch(&sealed, &fetched, |bytes| assert_eq!(bytes, size as u64)).await.unwrap();
        assert_eq!(fs::read(fetched.join("signals.parquet")).unwrap(), vec![1; size]);
    }
}

#[test]
fn objects_that_a_killed_process_did_not_complete_are_cleared_after_a_day() {
    let place = Place::new();
    let age = |path: &Path, hours: u64| {
        let time = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    let at = |name: &str| format!("{RUN}/{name}");
    let version = "datasets/energy/20261120T213000Z-7f3a";
    let old = [
        at("signals.parquet#1"),
        at("run.json#2"),
        "archive/vendor/forgotten=20261120T213000Z-7f3a/run.json#1".to_owned(),
        "archive/vendor.claimed/run=20261120T213000Z-7f3a/run.json#1".to_owned(),
        "datasets/energy/latest.json#12".to_owned(),
        "datasets/energy/pruned.json#1".to_owned(),
        format!("{version}/dataset.json#1"),
        format!("{version}/energy.parquet#1"),
        format!("{version}/period=5d/energy.parquet#1"),
        format!("{version}/5d-neutral/signal.parquet#1"),
    ];
    let old = old.map(|key| place.write(&key, "x"));
    let fresh = place.write(&at("requests.parquet#1"), "x");
    let others =
        [at("signals.parquet"), at("notes.txt#1"), "other/run.json#1".to_owned()].map(|key| place.write(&key, "x"));
    let deep = place.write(&format!("datasets/energy/{}x#1", "x/".repeat(14)), "x");
    for path in old.iter().chain(&others).chain([&deep]) {
        age(path, 25);
    }
    age(&fresh, 23);
    clear_staged(&place.url).unwrap();
    assert!(old.iter().all(|path| !path.exists()), "{old:?}");
    assert!(others.iter().chain([&fresh, &deep]).all(|path| path.exists()));
}

#[test]
fn what_was_sent_in_several_steps_adds_up() {
    let mut all = TransferCounts { folders: 1, versions: 2, bytes: 3, cleared: 4, notes: 6 };
    all += TransferCounts { folders: 10, versions: 20, bytes: 30, cleared: 40, notes: 60 };
    let sum = TransferCounts { folders: 11, versions: 22, bytes: 33, cleared: 44, notes: 66 };
    assert_eq!(all, sum);
}
