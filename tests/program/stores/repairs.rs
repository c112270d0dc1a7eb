//! What is damaged or missing in a store or on a machine is noticed, and mended with the copy of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Machine, definition, files_below, folder_store};
use crate::support::bucket::Bucket;
use crate::support::program::{DemoService, Place};
use crate::support::stub_store::StubStore;
use crate::support::tools::{PYTHON, needs};

/// What may become of a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    OneBit,
    CutOff,
    Emptied,
    Replaced,
    Gone,
}

const DAMAGES: [Damage; 5] = [Damage::OneBit, Damage::CutOff, Damage::Emptied, Damage::Replaced, Damage::Gone];

impl Damage {
    /// The bytes of a file with this damage; none if it is gone.
    fn of(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        match self {
            Self::OneBit => {
                // In the record of a version, a digest: how it describes its columns has none.
                let late = bytes.len() - 40;
                bytes[late] ^= 1;
            }
            Self::CutOff => bytes.truncate(bytes.len() / 2),
            Self::Emptied => bytes.clear(),
            Self::Replaced => bytes = b"<script>somebody wrote here</script>".to_vec(),
            Self::Gone => return None,
        }
        Some(bytes)
    }

    fn apply(self, path: &Path) {
        match self.of(&fs::read(path).expect("a file")) {
            Some(bytes) => {
                // A file of a version may have other names.
                fs::remove_file(path).expect("a file");
                fs::write(path, bytes).expect("a file");
            }
            None => fs::remove_file(path).expect("a file"),
        }
    }
}

/// The contents of every file below a folder, without what was set aside, caches and locks.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_kept = |path: &PathBuf| {
        let text = path.display().to_string();
        !text.starts_with("damaged/")
            && !["/.damaged/", "/.seals/", ".lock", "/.partial/"].iter().any(|it| text.contains(it))
    };
    let files = files_below(folder).into_iter().filter(is_kept);
    files.map(|path| (path.clone(), fs::read(folder.join(path)).expect("a file"))).collect()
}

/// The files of a folder that a record seals, and what names the latest version.
fn sealed_files(folder: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &PathBuf| path.iter().any(|part| part.to_string_lossy().starts_with('.'));
    files_below(folder).into_iter().filter(|path| !is_hidden(path)).collect()
}

/// Checks a command that fails, and what it prints.
#[track_caller]
fn check_noticed(machine: &Machine, arguments: &[&str], what: &str) {
    let outcome = machine.run(arguments);
    assert_ne!(outcome.code, Some(0), "{what}: {arguments:?} notices nothing: {}", outcome.stdout);
}

#[test]
fn any_damage_in_a_store_is_noticed_and_mended_by_a_machine_that_has_the_file() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let store = folder.path().join("store");
    let intact = contents(&store);
    let files = sealed_files(&store);
    assert_eq!(files.len(), 9 + 3 + 1, "a run, a version and `latest.json`: {files:?}");
    for file in &files {
        for damage in DAMAGES {
            let what = format!("{damage:?} of {}", file.display());
            damage.apply(&store.join(file));
            let damaged = contents(&store);
            check_noticed(&machine, &["verify", "--store"], &what);
            assert_eq!(contents(&store), damaged, "{what}: a verification changes nothing");
            let message = machine.run(&["verify", "--store", "--repair"]).expect_success().stdout;
            assert!(message.contains("sent `") || message.contains("rebuilt `"), "{what}: {message}");
            assert!(contents(&store) == intact, "{what} is not mended: {message}");
            let again = machine.run(&["verify", "--store", "--repair"]).expect_success().stdout;
            assert!(again.starts_with("verified "), "{what}: {again}");
            assert!(contents(&store) == intact, "{what}: the second repair changes something");
        }
    }
    machine.run(&["verify", "--store"]).expect_success();
    // Nothing was deleted: every damaged object that was there is below `damaged/`.
    for file in &files {
        let is_it = |path: &&PathBuf| path.starts_with("damaged") && path.ends_with(file);
        let aside: BTreeSet<Vec<u8>> =
            files_below(&store).iter().filter(is_it).map(|path| fs::read(store.join(path)).expect("a file")).collect();
        let bytes = &intact[file];
        assert!(DAMAGES.iter().filter_map(|damage| damage.of(bytes)).all(|damaged| aside.contains(&damaged)));
    }
}

#[test]
fn any_damage_on_a_machine_is_noticed_and_mended_from_a_store() {
    let (_folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let output = machine.place.file("output");
    let run = |name: &str| format!("archive/vendor/{}/{name}", machine.folders()[0]);
    let version = fs::read_link(output.join("datasets/it/latest")).unwrap();
    let version = |name: &str| format!("datasets/it/{}/{name}", version.display());
    let intact = contents(&output);
    let files: Vec<PathBuf> = sealed_files(&output);
    assert!(files.contains(&run("run.json").into()) && files.contains(&version("facts.json").into()), "{files:?}");
    let files = files.into_iter().filter(|path| {
        let text = path.display().to_string();
        (text.starts_with("archive/vendor/run=") || text.starts_with("datasets/it/2")) && !text.contains("/.")
    });
    for file in files {
        for damage in DAMAGES {
            let what = format!("{damage:?} of {}", file.display());
            damage.apply(&output.join(&file));
            check_noticed(&machine, &["verify"], &what);
            let refused = machine.run(&["verify", "--store", "--repair"]).failed_with(1).stderr;
            assert!(refused.contains("hint: run `bellwether verify --repair` first"), "{what}: {refused}");
            let message = machine.run(&["verify", "--repair"]).expect_success().stdout;
            assert!(message.contains("fetched `"), "{what}: {message}");
            assert!(contents(&output) == intact, "{what} is not mended: {message}");
            let again = machine.run(&["verify", "--repair"]).expect_success().stdout;
            assert!(again.starts_with("verified "), "{what}: {again}");
            assert!(contents(&output) == intact, "{what}: the second repair changes something");
            machine.run(&["verify"]).expect_success();
        }
    }
    machine.run(&["show", "it"]).expect_success();
}

#[test]
fn what_neither_has_is_set_aside_and_blocks_no_machine() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let store = folder.path().join("store");
    let run = machine.folders().remove(0);
    let there = store.join("archive/vendor").join(&run);
    let here = machine.place.file("output/archive/vendor").join(&run);
    Damage::OneBit.apply(&there.join("signals.parquet"));
    Damage::OneBit.apply(&here.join("signals.parquet"));
    // Another machine cannot even fetch what is intact.
    let fresh = Machine::new(&definition(&service.source), &url, []);
    fresh.run(&["store", "pull"]).failed_with(1);
    let repair = |arguments: &[&str]| -> Value {
        serde_json::from_str(&machine.run(arguments).failed_with(1).stdout).expect("JSON")
    };
    let local = repair(&["verify", "--repair", "--json"]);
    assert_eq!(local["repaired"][0]["kind"], "set_aside", "{local:#}");
    assert!(local["repaired"][0]["reason"].to_string().contains("restore it from a backup"), "{local:#}");
    assert!(local["faults"].to_string().contains("`bellwether verify --store --repair`"), "{local:#}");
    let document = repair(&["verify", "--store", "--repair", "--json"]);
    assert_eq!(document["repaired"][0]["kind"], "set_aside", "{document:#}");
    assert!(document["repaired"][1].is_null(), "{document:#}");
    let left = document["faults"].to_string();
    assert!(left.contains(&format!("it was built from run `{}`, which is missing", &run["run=".len()..])), "{left}");
    assert!(!there.exists() && !here.exists());
    let moved: Vec<PathBuf> = files_below(&store).into_iter().filter(|path| path.starts_with("damaged")).collect();
    assert_eq!(moved.len(), 9, "{moved:?}");
    assert!(machine.place.file("output/archive/vendor/.damaged").join(&run).join("signals.parquet").exists());
    // The loss is known, and accepted on request alone.
    fresh.run(&["store", "pull"]).expect_success();
    let message = fresh.run(&["run", "it"]).failed_with(1).stderr;
    assert!(message.contains("lacks 1 run"), "{message}");
    fresh.run(&["run", "it", "--new-archive"]).expect_success();
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["verify"]).expect_success();
}

#[test]
fn a_repair_sends_again_what_the_store_lost() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let store = folder.path().join("store");
    let intact = contents(&store);
    let files =
        sealed_files(&store).into_iter().filter(|path| !path.ends_with("run.json") && !path.ends_with("dataset.json"));
    for file in files {
        for damage in [Damage::CutOff, Damage::Gone] {
            if file.ends_with("latest.json") && matches!(damage, Damage::CutOff) {
                continue;
            }
            damage.apply(&store.join(&file));
            machine.run(&["verify", "--store", "--sizes"]).failed_with(1);
            machine.run(&["verify", "--store", "--repair"]).expect_success();
            assert!(contents(&store) == intact, "{damage:?} of {}", file.display());
        }
    }
    assert_eq!(machine.run(&["store", "push"]).expect_success().stdout, "already up to date\n");
}

#[test]
fn a_repair_sends_a_run_again_whose_record_is_gone_and_a_file_of_which_is_damaged() {
    let (place, (folder, store)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &store, []);
    machine.run(&["run", "it"]).expect_success();
    let run = folder.path().join("store/archive/vendor").join(&machine.folders()[0]);
    Damage::Gone.apply(&run.join("run.json"));
    Damage::CutOff.apply(&run.join("signals.parquet"));
    let told = machine.run(&["store", "push"]);
    assert!(told.code != Some(0) && told.stderr.contains("`bellwether verify --store --repair`"), "{}", told.stderr);
    machine.run(&["verify", "--store", "--repair"]).expect_success();
    machine.run(&["verify", "--store"]).expect_success();
    let other = Machine::new(&definition(&service.source), &store, []);
    other.run(&["store", "pull"]).expect_success();
    assert_eq!(other.folders(), machine.folders());
}

#[test]
fn a_bucket_is_repaired_like_a_folder() {
    needs!(PYTHON);
    let bucket = Bucket::start();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_bucket(&definition(&service.source), &bucket);
    machine.run(&["run", "it"]).expect_success();
    // A run of which only a damaged copy is left. The server lets nobody else replace an object.
    for name in ["run.json", "signals.parquet"] {
        bucket.put(&format!("team/a/archive/vendor/run=20261101T000000Z-aaaa/{name}"), &[b'x'; 300]);
    }
    machine.run(&["verify", "--store"]).failed_with(1);
    let message = machine.run(&["verify", "--store", "--repair"]).expect_success().stdout;
    assert!(message.starts_with("moved aside `s3://"), "{message}");
    machine.run(&["verify", "--store"]).expect_success();
    let aside = bucket.keys().into_iter().filter(|key| key.starts_with("team/a/damaged/")).count();
    assert_eq!(aside, 2);
}

#[test]
fn a_repair_that_is_interrupted_anywhere_is_finished_by_the_next_one() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::support::stub_store::StoreFault;

    let (seen, failing) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
    let script = {
        let (seen, failing) = (Arc::clone(&seen), Arc::clone(&failing));
        move |request: &crate::support::stub_store::StoreRequest| {
            let is_change = request.method != "GET" && !request.key.contains(".probe");
            let number = if is_change { seen.fetch_add(1, Ordering::SeqCst) } else { 0 };
            let is_failing = is_change && number >= failing.load(Ordering::SeqCst);
            is_failing.then_some(StoreFault::Refused("403 Forbidden", ""))
        }
    };
    let stub = StubStore::start(1000, script);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    machine.run(&["run", "it"]).expect_success();
    let of = |stub: &StubStore| -> Vec<(String, Vec<u8>)> {
        let keys = stub.keys().into_iter().filter(|key| !key.contains("/damaged/"));
        keys.map(|key| (key.clone(), stub.object(&key).unwrap())).collect()
    };
    let intact = of(&stub);
    let damage = || {
        for (name, damage) in [
            ("signals.parquet", "x"),
            ("requests.parquet", ""),
            ("run.json", "{"),
            ("it.csv", ""),
            ("latest.json", "{"),
        ] {
            let (key, _) = intact.iter().find(|(key, _)| key.ends_with(name)).unwrap();
            stub.put(key, damage.as_bytes(), 0);
        }
    };
    for number in 0.. {
        damage();
        seen.store(0, Ordering::SeqCst);
        failing.store(number, Ordering::SeqCst);
        let interrupted = machine.run(&["verify", "--store", "--repair"]);
        failing.store(u64::MAX, Ordering::SeqCst);
        machine.run(&["verify", "--store", "--repair"]).expect_success();
        assert!(of(&stub) == intact, "after it failed at change {number}: {:?}", stub.keys());
        if interrupted.code == Some(0) {
            assert!(number > 10, "{number} changes");
            break;
        }
    }
}

#[test]
fn a_pack_stands_in_for_a_damaged_run_and_runs_for_a_damaged_pack() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (_folder, url) = folder_store();
    let machine = Machine::new(&definition(&service.source), &url, []);
    let run = |arguments: &[&str]| {
        let mut command = machine.place.command(arguments);
        crate::support::program::Outcome::of(command.env("BELLWETHER_API_KEY", "demo"))
    };
    run(&["run", "it"]).expect_success();
    run(&["run", "it"]).expect_success();
    let csv = machine.csv();
    machine.place.pack();
    let archive = machine.place.file("output/archive/vendor");
    for (kind, stand_in) in
        [("run=", "other folders here have its rows"), ("pack=", "other folders here have its rows")]
    {
        let folder = machine.folders().into_iter().find(|name| name.starts_with(kind)).unwrap();
        Damage::OneBit.apply(&archive.join(&folder).join("signals.parquet"));
        run(&["verify"]).failed_with(1);
        let message = run(&["verify", "--repair"]).expect_success().stdout;
        assert!(message.contains(&format!("moved aside `output/archive/vendor/{folder}`: ")), "{message}");
        assert!(message.contains(stand_in), "{message}");
        run(&["verify"]).expect_success();
        run(&["build", "it"]).expect_success();
        assert!(machine.csv() == csv);
        // The other one is damaged next, with this one intact again.
        fs::rename(archive.join(".damaged").join(&folder), machine.place.file(&folder)).unwrap();
        Damage::OneBit.apply(&machine.place.file(&folder).join("signals.parquet"));
        fs::rename(machine.place.file(&folder), archive.join(&folder)).unwrap();
        run(&["verify"]).expect_success();
    }
}

#[test]
fn an_unreadable_file_is_no_damage() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (_folder, url) = folder_store();
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let run = machine.folders().remove(0);
    let file = machine.place.file("output/archive/vendor").join(&run).join("signals.parquet");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        // Whoever may read everything cannot test this.
        return;
    }
    for command in [&["verify", "--repair"][..], &["verify", "--store", "--repair"]] {
        let outcome = machine.run(command);
        let message = outcome.stdout + &outcome.stderr;
        assert!(command.contains(&"--store") || message.contains("cannot be read"), "{message}");
        assert_eq!(machine.folders(), std::slice::from_ref(&run));
    }
}

#[test]
fn histories_are_not_merged_while_a_run_is_missing() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (_folder, url) = folder_store();
    let machine = Machine::new(&definition(&service.source), &url, []);
    let run = |arguments: &[&str]| {
        let mut command = machine.place.command(arguments);
        crate::support::program::Outcome::of(command.env("BELLWETHER_API_KEY", "demo"))
    };
    for _ in 0..3 {
        run(&["run", "it"]).expect_success();
    }
    let folders = machine.folders();
    let archive = machine.place.file("output/archive/vendor");
    fs::rename(archive.join(&folders[1]), machine.place.file("gone")).unwrap();
    run(&["build", "it"]).failed_with(1);
    assert_eq!(machine.folders(), [folders[0].clone(), folders[2].clone()], "no merge of what cannot be compared");
    fs::rename(machine.place.file("gone"), archive.join(&folders[1])).unwrap();
    run(&["build", "it"]).expect_success();
    assert_eq!(machine.folders(), folders);
}
