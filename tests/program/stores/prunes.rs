//! A store does not grow for ever: what newer versions and packs replaced a day ago is removed on request, and not sent again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::{Machine, definition, files_below, folder_store};
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::stub_store::StubStore;

const TWO_DAYS: u64 = 2 * 24 * 60 * 60;

/// Lets two days pass for the objects of a store in a folder.
fn age(store: &Path) {
    for file in files_below(store) {
        let file = File::open(store.join(file)).expect("a file");
        // Of two versions of one second, the first in the store is the first.
        let then = file.metadata().and_then(|of| of.modified()).expect("a time") - Duration::from_secs(TWO_DAYS);
        file.set_modified(then).expect("a file");
    }
}

/// What `prune --store` says it removed, or would remove.
fn prune(machine: &Machine, options: &[&str]) -> Value {
    let arguments = [&["prune", "--store", "--json"], options].concat();
    serde_json::from_str(&machine.run(&arguments).expect_success().stdout).expect("a document")
}

/// The last parts of the places in such a document, of one kind.
fn removed_places(document: &Value, kind: &str) -> BTreeSet<String> {
    let removed = document["removed"].as_array().expect("a list").iter().filter(|folder| folder["kind"] == kind);
    let places = removed.map(|folder| folder["place"].as_str().expect("an address").to_owned());
    places.map(|place| place.rsplit('/').next().expect("a name").to_owned()).collect()
}

/// The names of the entries of a folder that begin with some letters.
fn folders_in(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn keeping(service: &DemoService, keep: usize) -> String {
    format!("{}keep = {keep}\n", definition(&service.source))
}

#[test]
fn versions_that_newer_ones_replaced_are_removed_after_a_day_and_not_sent_again() {
    let (place, (folder, url)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (machine, other) =
        (Machine::new(&keeping(&service, 9), &url, []), Machine::new(&keeping(&service, 9), &url, []));
    for _ in 0..4 {
        machine.run(&["run", "it", "-q"]).expect_success();
        std::thread::sleep(Duration::from_millis(1100));
    }
    other.run(&["store", "pull"]).expect_success();
    let there = folder.path().join("store/datasets/it");
    let all: Vec<String> = folders_in(&there, "2").into_iter().collect();
    assert_eq!(all.len(), 4);
    machine.place.define("it", &keeping(&service, 2));
    assert_eq!(prune(&machine, &[])["removed"], Value::Array(Vec::new()), "a reader may be reading what was replaced");

    age(folder.path());
    let before = files_below(folder.path());
    let listed = prune(&machine, &["--dry-run"]);
    assert_eq!(removed_places(&listed, "version"), all[..2].iter().cloned().collect());
    assert_eq!(files_below(folder.path()), before, "a dry run changes nothing");
    let done = prune(&machine, &[]);
    assert_eq!((&done["removed"], &done["freed"]), (&listed["removed"], &listed["freed"]));
    assert_eq!(folders_in(&there, "2"), all[2..].iter().cloned().collect());
    machine.run(&["verify", "--store"]).expect_success();
    assert_eq!(prune(&machine, &[])["removed"], Value::Array(Vec::new()));

    // This machine has all four versions, and so has one that restored a backup.
    assert_eq!(folders_in(&machine.place.file("output/datasets/it"), "2").len(), 4);
    assert!(machine.run(&["verify", "--store", "--repair"]).expect_success().stdout.contains("verified "));
    for command in
        [&["store", "push"][..], &["verify", "--store", "--repair"], &["run", "it", "-q"], &["store", "push"]]
    {
        machine.run(command).expect_success();
        assert!(folders_in(&there, "2").is_disjoint(&all[..2].iter().cloned().collect()), "{command:?}");
    }
    assert_eq!(other.run(&["store", "pull"]).expect_success().code, Some(0));
    assert_eq!(other.csv(), machine.csv());
}

#[test]
fn versions_without_a_definition_or_a_latest_version_stay() {
    let (place, (folder, url)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&keeping(&service, 1), &url, []);
    for _ in 0..2 {
        machine.run(&["run", "it", "-q"]).expect_success();
    }
    age(folder.path());
    let latest = folder.path().join("store/datasets/it/latest.json");
    fs::rename(&latest, folder.path().join("aside")).unwrap();
    let kept = |document: &Value| document["kept"][0].as_str().expect("a reason").to_owned();
    let document = prune(&machine, &[]);
    assert_eq!(removed_places(&document, "version").len(), 0);
    assert!(kept(&document).starts_with("`it` has no `latest.json`: kept its 2 versions"), "{document}");
    fs::rename(folder.path().join("aside"), &latest).unwrap();
    fs::rename(machine.place.file("pipelines/it.toml"), machine.place.file("it.toml")).unwrap();
    let document = prune(&machine, &[]);
    assert_eq!(removed_places(&document, "version").len(), 0);
    assert_eq!(kept(&document), "`it` has no valid definition here: kept its 2 versions");
    fs::rename(machine.place.file("it.toml"), machine.place.file("pipelines/it.toml")).unwrap();
    assert_eq!(removed_places(&prune(&machine, &[]), "version").len(), 1);
}

#[test]
fn runs_that_a_pack_holds_are_removed_after_a_day_and_every_machine_goes_on() {
    let (place, (folder, url)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let later = DemoService::start(&place, &["--today", "2026-11-21"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    let behind = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it", "-q"]).expect_success();
    behind.run(&["store", "pull"]).expect_success();
    machine.run(&["run", "it", "-q"]).expect_success();
    machine.place.pack();
    machine.run(&["store", "push"]).expect_success();
    let there = folder.path().join("store/archive/vendor");
    let runs = folders_in(&there, "run=");
    assert_eq!((runs.len(), folders_in(&there, "pack=").len()), (2, 1));
    assert_eq!(removed_places(&prune(&machine, &[]), "packed_run").len(), 0, "the pack is new");

    age(folder.path());
    assert_eq!(removed_places(&prune(&machine, &["--dry-run"]), "packed_run"), runs);
    assert_eq!(folders_in(&there, "run="), runs, "a dry run changes nothing");
    assert_eq!(removed_places(&prune(&machine, &[]), "packed_run"), runs);
    assert!(folders_in(&there, "run=").is_empty());
    let left = |name: &str| name.starts_with(".scratch-");
    assert!(!machine.place.files().iter().any(|path| path.iter().any(|part| left(&part.to_string_lossy()))));
    machine.run(&["verify", "--store"]).expect_success();

    // Nobody sends them again, and nobody misses them.
    let status = machine.difference();
    assert_eq!((&status["only_here"], &status["only_there"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(machine.run(&["store", "push"]).expect_success().stdout, "already up to date\n");
    assert!(machine.run(&["verify", "--store", "--repair"]).expect_success().stdout.contains("verified "));
    let fresh = Machine::new(&definition(&later.source), &url, []);
    for machine in [&behind, &fresh, &machine] {
        machine.place.define("it", &definition(&later.source));
        machine.run(&["run", "it", "-q"]).expect_success();
    }
    assert_eq!(folders_in(&there, "run=").len(), 3, "the new runs alone");
    for machine in [&behind, &fresh, &machine] {
        machine.run(&["store", "pull"]).expect_success();
        machine.run(&["build", "it", "-q"]).expect_success();
        machine.run(&["verify"]).expect_success();
        assert!(machine.csv() == fresh.csv());
    }
    machine.run(&["verify", "--store"]).expect_success();
}

#[test]
fn a_pack_that_lacks_a_row_of_a_run_replaces_nothing() {
    let (place, (folder, url)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it", "-q"]).expect_success();
    machine.run(&["run", "it", "-q"]).expect_success();
    machine.place.pack();
    machine.run(&["store", "push"]).expect_success();
    age(folder.path());
    let there = folder.path().join("store/archive/vendor");
    let runs = folders_in(&there, "run=");
    let pack = there.join(folders_in(&there, "pack=").first().expect("a pack"));
    let signals = fs::read(pack.join("signals.parquet")).unwrap();
    fs::write(pack.join("signals.parquet"), &signals[..signals.len() - 1]).unwrap();
    age(folder.path());
    let message = machine.run(&["prune", "--store"]).failed_with(1).stderr;
    assert!(message.contains("signals.parquet"), "{message}");
    assert_eq!(folders_in(&there, "run="), runs);
}

#[test]
fn ages_are_those_of_the_store_s_own_clock() {
    let stub = StubStore::start(1000, |_| None);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&keeping(&service, 1), &stub);
    for _ in 0..2 {
        machine.run(&["run", "it", "-q"]).expect_success();
    }
    assert_eq!(removed_places(&prune(&machine, &[]), "version").len(), 0);
    stub.set_ahead(TWO_DAYS as i64);
    assert_eq!(removed_places(&prune(&machine, &[]), "version").len(), 1);
}

#[test]
fn a_machine_that_fetches_a_run_while_it_is_removed_takes_the_pack() {
    let (place, meddles) = (Place::new(), Arc::new(AtomicBool::new(false)));
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let meddler: Arc<Mutex<Option<Machine>>> = Arc::default();
    let (armed, pruning) = (Arc::clone(&meddles), Arc::clone(&meddler));
    // Another machine prunes just before a file of a run is read.
    let stub = StubStore::start(1000, move |request| {
        let is_file = request.method == "GET" && request.key.contains("/run=") && request.key.ends_with(".parquet");
        if is_file && armed.swap(false, Ordering::SeqCst) {
            let machine = pruning.lock().unwrap();
            Outcome::of(&mut machine.as_ref().unwrap().command(&["prune", "--store"])).expect_success();
        }
        None
    });
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    let behind = Machine::with_stub(&definition(&service.source), &stub);
    machine.run(&["run", "it", "-q"]).expect_success();
    behind.run(&["store", "pull"]).expect_success();
    machine.run(&["run", "it", "-q"]).expect_success();
    machine.place.pack();
    machine.run(&["store", "push"]).expect_success();
    stub.set_ahead(TWO_DAYS as i64);
    *meddler.lock().unwrap() = Some(machine);
    meddles.store(true, Ordering::SeqCst);
    behind.run(&["store", "pull"]).expect_success();
    assert!(!meddles.load(Ordering::SeqCst), "it was pruned");
    assert!(!stub.keys().iter().any(|key| key.contains("/run=")), "{:?}", stub.keys());
    behind.run(&["verify"]).expect_success();
    assert!(behind.folders().iter().any(|folder| folder.starts_with("pack=")));
}
