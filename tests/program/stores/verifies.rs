//! What each way of verifying a store notices, damage by damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{Machine, definition, files_below, folder_store};
use crate::support::program::{DemoService, Place};

/// The files of a store.
struct Files {
    root: PathBuf,
    whole: BTreeMap<PathBuf, Vec<u8>>,
}

impl Files {
    fn of(root: &Path) -> Self {
        let whole =
            files_below(root).into_iter().map(|name| (name.clone(), fs::read(root.join(name)).expect("a file")));
        Self { whole: whole.collect(), root: root.to_owned() }
    }

    /// Makes the store what it was.
    fn restore(&self) {
        for name in files_below(&self.root) {
            if !self.whole.contains_key(&name) {
                fs::remove_file(self.root.join(name)).expect("a file");
            }
        }
        for (name, bytes) in &self.whole {
            let path = self.root.join(name);
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::create_dir_all(path.parent().expect("a folder")).expect("a file");
                fs::write(path, bytes).expect("a file");
            }
        }
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.whole[Path::new(name)].clone();
        change(&mut bytes);
        fs::write(self.root.join(name), bytes).expect("a file");
    }

    fn remove(&self, name: &str) {
        let path = self.root.join(name);
        if path.is_dir() { fs::remove_dir_all(path).expect("a file") } else { fs::remove_file(path).expect("a file") }
    }
}

#[expect(clippy::ptr_arg, reason = "each damage has the same type")]
fn flip(bytes: &mut Vec<u8>) {
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
}

fn cut(bytes: &mut Vec<u8>) {
    bytes.pop();
}

fn halve(bytes: &mut Vec<u8>) {
    bytes.truncate(bytes.len() / 2);
}

/// Makes a record invalid without another size.
#[expect(clippy::ptr_arg, reason = "each damage has the same type")]
fn close_wrongly(bytes: &mut Vec<u8>) {
    let end = bytes.iter().rposition(|byte| *byte == b'}').expect("an object");
    bytes[end] = b']';
}

/// A damage, and what is said of it by `verify --store`, and by `--sizes` on the machine that has everything and on one that
/// has nothing; nothing where the damage is not noticed.
struct Case<'a> {
    what: &'a str,
    damage: Box<dyn Fn() + 'a>,
    said: [Option<String>; 3],
}

fn case<'a>(what: &'a str, damage: impl Fn() + 'a, said: [Option<String>; 3]) -> Case<'a> {
    Case { what, damage: Box::new(damage), said }
}

#[test]
fn each_damage_of_a_store_is_noticed_by_what_reads_or_measures_it() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    let fresh = Machine::new(&definition(&service.source), &url, []);
    for _ in 0..3 {
        machine.run(&["run", "it"]).expect_success();
        // What is made in one second is new together.
        thread::sleep(Duration::from_millis(1100));
    }
    let runs: Vec<String> = machine.folders().iter().map(|name| name["run=".len()..].to_owned()).collect();
    let files = Files::of(&folder.path().join("store"));
    let names: Vec<&str> = files.whole.keys().map(|name| name.to_str().unwrap()).collect();
    let versions: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_suffix("/dataset.json")).collect();
    let versions: Vec<&str> = versions.iter().map(|name| &name["datasets/it/".len()..]).collect();
    assert_eq!((runs.len(), versions.len()), (3, 3));
    let (last_run, last_version) = (runs[2].as_str(), versions[2]);
    let ways: [(&Machine, &[&str]); 3] = [(&machine, &[]), (&machine, &["--sizes"]), (&fresh, &["--sizes"])];

    // Every file of a folder with a record is verified.
    let is_record = |name: &str| name.ends_with("/run.json") || name.ends_with("/dataset.json");
    let folders: BTreeSet<_> =
        names.iter().filter(|name| is_record(name)).map(|name| Path::new(*name).parent()).collect();
    let is_verified = |name: &str| !is_record(name) && folders.contains(&Path::new(name).parent());
    let all = names.iter().filter(|name| is_verified(name)).count();
    for (machine, way) in ways {
        let message = machine.run(&[&["verify", "--store"], way].concat()).expect_success().stdout;
        let is_like = std::ptr::eq(machine, &fresh);
        assert_eq!(message.contains("only in the store: 3 runs and 3 versions; "), is_like, "{message}");
        assert!(message.ends_with(&format!("verified {all} files\n")), "{way:?}: {message}");
    }

    let of_run = |run: &str, file: &str| format!("archive/vendor/run={run}/{file}");
    let of_version = |version: &str, file: &str| format!("datasets/it/{version}/{file}");
    let latest = "datasets/it/latest.json";
    let describing = names
        .iter()
        .filter(|name| is_verified(name) && !name.ends_with(".csv"))
        .find_map(|name| name.strip_prefix(&format!("datasets/it/{last_version}/")))
        .expect("a file that describes the rows");
    let bytes = |name: &str| files.whole[Path::new(name)].len();
    let one = |said: &str| Some(said.to_owned());
    let name_in_latest = |version: &'static str| {
        let files = &files;
        move || {
            files.change(latest, |bytes| {
                *bytes = String::from_utf8(bytes.clone()).unwrap().replace(last_version, version).into_bytes();
            });
        }
    };
    let (old_rows, new_rows) = (of_run(&runs[0], "signals.parquet"), of_run(last_run, "signals.parquet"));
    let data = of_version(last_version, "it.csv");
    let described = of_version(last_version, describing);
    let sized = |name: &str| Some(format!("{name}`: it has {} bytes, expected {}\n", bytes(name) - 1, bytes(name)));
    let checksum = |name: &str| Some(format!("{name}`: its BLAKE3 checksum is "));
    let missing = |name: &str| Some(format!("{name}`: it is missing\n"));
    let lacking = || Some(format!("it lacks run `{}`, which later runs are based on\n", runs[0]));
    let built_from = |version: &str| {
        let record = of_version(version, "dataset.json");
        Some(format!("{record}`: it was built from run `{}`, which is missing\n", runs[0]))
    };
    let resized = |name: &str| Some(format!("{name}`: it is missing or has another size\n"));
    let other_size = || resized(&described);
    let mismatch = || Some(format!("{described}`: it is missing or does not match its checksum\n"));
    let no_latest = || Some(format!("{latest}`: it is missing, so no machine finds the latest version\n"));
    let (bogus, later_bogus) = ("20200101T000000Z-aaaa", "29200101T000000Z-aaaa");
    let names_missing = |version: &str| Some(format!("{latest}`: it names `{version}`, which is missing\n"));
    let differs = || Some(format!("{latest}`: it differs from the record of its version\n"));
    let older: &'static str = versions[0].to_owned().leak();
    let cases = [
        case("an older file", || files.change(&old_rows, flip), [checksum(&old_rows), None, None]),
        case("a new file", || files.change(&new_rows, flip), [checksum(&new_rows), None, None]),
        case(
            "an older file that is cut off",
            || files.change(&old_rows, cut),
            [one(&old_rows), sized(&old_rows), sized(&old_rows)],
        ),
        case(
            "an older file that is missing",
            || files.remove(&old_rows),
            [missing(&old_rows), missing(&old_rows), missing(&old_rows)],
        ),
        case("the data of a version", || files.change(&data, cut), [one(&data), sized(&data), sized(&data)]),
        case("what describes a version", || files.change(&described, flip), [mismatch(), None, mismatch()]),
        case(
            "what describes a version, cut off",
            || files.change(&described, cut),
            [mismatch(), other_size(), mismatch()],
        ),
        case("what describes a version, missing", || files.remove(&described), [mismatch(), other_size(), mismatch()]),
        case("a run", || files.remove(&format!("archive/vendor/run={}", runs[0])), [(); 3].map(|()| lacking())),
        case(
            "a run that versions were built from",
            || files.remove(&format!("archive/vendor/run={}", runs[0])),
            [built_from(versions[1]), built_from(versions[1]), built_from(versions[1])],
        ),
        case("no latest version", || files.remove(latest), [(); 3].map(|()| no_latest())),
        case("an older version as the latest", name_in_latest(older), [differs(), differs(), differs()]),
        case("a missing version as the latest", name_in_latest(bogus), [(); 3].map(|()| names_missing(bogus))),
        case(
            "a missing later version as the latest",
            name_in_latest(later_bogus),
            [(); 3].map(|()| names_missing(later_bogus)),
        ),
        case(
            "the seal of an older run",
            || files.change(&of_run(&runs[0], "run.json"), close_wrongly),
            [one(&of_run(&runs[0], "run.json")), None, one(&of_run(&runs[0], "run.json"))],
        ),
        case(
            "the seal of an older run, cut off",
            || files.change(&of_run(&runs[0], "run.json"), halve),
            [one(&of_run(&runs[0], "run.json")), resized(&of_run(&runs[0], "run.json")), one("run.json")],
        ),
        case(
            "the record of an older version, cut off",
            || files.change(&of_version(older, "dataset.json"), halve),
            [one("dataset.json"), resized(&of_version(older, "dataset.json")), one("dataset.json")],
        ),
        case(
            "the record of an older version",
            || files.change(&of_version(older, "dataset.json"), close_wrongly),
            [one(&of_version(older, "dataset.json")), None, one(&of_version(older, "dataset.json"))],
        ),
    ];
    for Case { what, damage, said } in cases {
        damage();
        for ((machine, way), said) in ways.iter().zip(said) {
            let outcome = machine.run(&[&["verify", "--store"], *way].concat());
            let told = format!("{what} {way:?}: {}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.code, Some(i32::from(said.is_some())), "{told}");
            assert!(said.is_none_or(|said| outcome.stdout.contains(&said)), "{told}");
        }
        files.restore();
    }
}

#[test]
fn a_record_of_this_machine_that_cannot_be_read_is_no_missing_one() {
    let (_folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::new(&definition(&service.source), &url, []);
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["verify", "--store", "--sizes"]).expect_success();
    let record = machine.place.file("output/datasets/it/latest").canonicalize().unwrap().join("dataset.json");
    fs::remove_file(&record).unwrap();
    machine.run(&["verify", "--store", "--sizes"]).expect_success();
    fs::create_dir(&record).unwrap();
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("dataset.json"), "{message}");
    // Nothing but the sizes relies on it.
    machine.run(&["verify", "--store"]).expect_success();
}
