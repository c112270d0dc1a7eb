//! One dataset or version that is fetched, and verification that reads less than everything.

use std::fs;

use super::{Machine, definition, folder_store};
use crate::support::program::{DemoService, Place};
use crate::support::stub_store::StubStore;

#[test]
fn one_dataset_or_one_older_version_is_fetched() {
    let (_folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.place.define("other", &definition(&service.source));
    machine.run(&["run", "it"]).expect_success();
    let latest = |machine: &Machine| {
        let link = fs::read_link(machine.place.file("output/datasets/it/latest")).expect("a link");
        link.display().to_string()
    };
    let older = latest(&machine);
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["build", "other"]).expect_success();
    let newest = latest(&machine);

    let fresh = Machine::new(&definition(&service.source), &url, []);
    let message = fresh.run(&["store", "pull", "it"]).expect_success().stdout;
    assert!(message.contains(" and 1 version, "), "{message}");
    assert_eq!(latest(&fresh), newest);
    assert!(!fresh.place.file("output/datasets/other").exists());
    assert_eq!(fresh.folders(), machine.folders());
    let wanted = format!("it/{older}");
    let message = fresh.run(&["store", "pull", &wanted]).expect_success().stdout;
    assert!(message.starts_with("fetched 1 version, "), "{message}");
    assert!(fresh.place.file(&format!("output/datasets/{wanted}/dataset.json")).exists());
    assert_eq!(latest(&fresh), newest, "an older version does not become the latest");
    assert_eq!(fresh.run(&["store", "pull", &wanted]).expect_success().stdout, "already up to date\n");
    fresh.run(&["verify"]).expect_success();

    // Without a definition, and without any version.
    let bare = Machine::new("", &url, []);
    fs::remove_dir_all(bare.place.file("pipelines")).unwrap();
    bare.run(&["store", "pull", &wanted]).expect_success();
    assert_eq!(latest(&bare), older);
    assert!(bare.folders().is_empty());
    for (wanted, what) in
        [("it/20200101T000000Z-aaaa", "version `it/20200101T000000Z-aaaa`"), ("none", "version of `none`")]
    {
        let message = bare.run(&["store", "pull", wanted]).failed_with(1).stderr;
        assert!(message.contains(&format!("has no {what}\n")), "{message}");
    }
}

#[test]
fn a_store_is_verified_by_sizes_without_reading_the_rest() {
    let stub = StubStore::start(1000, |_| None);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    for _ in 0..2 {
        machine.run(&["run", "it"]).expect_success();
    }
    let runs: Vec<String> = machine.folders().iter().map(|name| name["run=".len()..].to_owned()).collect();
    let reads = |arguments: &[&str]| {
        let before = stub.requests().len();
        let outcome = machine.run(arguments);
        let read = stub.requests()[before..].iter().filter(|request| !request.key.is_empty()).count();
        (outcome, read)
    };
    let (all, everything) = reads(&["verify", "--store"]);
    all.expect_success();
    assert!(everything > 10, "{everything}");
    let (sizes, read) = reads(&["verify", "--store", "--sizes"]);
    sizes.expect_success();
    assert_eq!(read, 1, "`latest.json` alone");

    let key = |run: &str, file: &str| format!("team/a/archive/vendor/run={run}/{file}");
    let check = |arguments: &[&str], noticed: bool| {
        let outcome = machine.run(&[&["verify", "--store"], arguments].concat());
        assert_eq!(outcome.code, Some(i32::from(noticed)), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    };
    for key in runs.iter().map(|run| key(run, "signals.parquet")) {
        let bytes = stub.object(&key).unwrap();
        let mut damaged = bytes.clone();
        damaged[20] ^= 1;
        stub.put(&key, &damaged, 0);
        check(&[], true);
        check(&["--sizes"], false);
        stub.put(&key, &bytes[1..], 0);
        check(&["--sizes"], true);
        stub.put(&key, &bytes, 0);
        check(&[], false);
    }
}
