//! An archive of an older layout is migrated: everything that it knew is known afterwards, at every instant.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::python;

/// The cases of one definition, whose text is not kept.
const CASES: [&str; 4] = ["one-run", "packs", "rejects", "operations"];

/// The services of the case `definitions`, with their names there.
const SERVICES: [(&str, &str); 2] = [("127.0.0.1-37441-a", "a"), ("127.0.0.1-34831-a", "b")];

fn archives() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/layout-9")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let (from, to) = {
            let entry = entry.expect("an entry");
            (entry.path(), to.join(entry.file_name()))
        };
        match from.is_dir() && !from.is_symlink() {
            true => copy(&from, &to),
            false if from.is_symlink() => {}
            false => _ = fs::copy(&from, &to).expect("a copy"),
        }
    }
}

/// A project with the archive of a case.
fn project(case: &str) -> Place {
    let place = Place::new();
    copy(&archives().join(case), &place.file("output/archive"));
    if case == "definitions" {
        copy(&archives().join("definitions-project"), place.path());
    }
    place
}

fn migrate(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(["archive", "migrate"].iter().chain(arguments))
}

/// Every file below a folder, with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").to_owned();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// The sealed folders of the services in an archive, with their bytes.
fn migrated_files(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = contents(&place.file("output/archive"));
    let is_sealed = |path: &Path| path.components().count() == 3 && !path.to_string_lossy().starts_with('.');
    all.into_iter().filter(|(path, _)| is_sealed(path)).collect()
}

/// Compares what the archive knows with what the old one did, at every instant.
fn check(place: &Place, case: &str, service: &str, name: Option<&str>) {
    let (archive, case) = (place.file("output/archive"), archives().join(format!("{case}.json")));
    let arguments = [archive.to_string_lossy().into_owned(), case.to_string_lossy().into_owned(), service.to_owned()];
    python::check("check_migration.py", arguments.iter().map(String::as_str).chain(name));
}

#[test]
fn a_migrated_archive_knows_the_same_at_every_instant() {
    for case in CASES {
        let place = project(case);
        let before = contents(&place.file("output/archive"));
        let migrated = migrate(&place, &["--service", "acme"]).expect_success();
        assert!(migrated.stdout.contains("of service `acme`"), "{}", migrated.stdout);
        check(&place, case, "acme", None);
        assert!(contents(&place.file("output/archive/.layout-9")) == before, "the old folders stay as they are");
        place.run(["verify"]).expect_success();
        for audit in ["revisions", "quality", "sources"] {
            place.run(["audit", audit, "--service", "acme"]).expect_success();
        }
        let runs: Value = serde_json::from_str(&place.run(["runs", "--json"]).expect_success().stdout).expect("JSON");
        let runs = runs["runs"].as_array().expect("a list");
        let description: Value =
            serde_json::from_slice(&fs::read(archives().join(format!("{case}.json"))).expect("a case")).expect("JSON");
        assert_eq!(runs.len(), description["runs"].as_array().expect("a list").len(), "{case}");
        assert!(runs.iter().all(|run| run["service"] == "acme"), "{runs:?}");
    }
}

#[test]
fn a_migrated_archive_is_packed_like_any_other() {
    let place = project("packs");
    migrate(&place, &["--service", "acme"]).expect_success();
    place.run(["archive", "compact"]).expect_success();
    place.run(["archive", "prune"]).expect_success();
    place.run(["verify"]).expect_success();
    assert!(migrate(&place, &[]).expect_success().stdout.starts_with("nothing to migrate\n"), "its runs are in a pack");
}

#[test]
fn the_definitions_say_which_service_a_run_asked() {
    let place = project("definitions");
    migrate(&place, &[]).expect_success();
    for (service, name) in SERVICES {
        check(&place, "definitions", service, Some(name));
    }
    let of_definitions = migrated_files(&place);

    // Published versions keep the texts of definitions that were edited or removed.
    let place = project("definitions");
    fs::remove_dir_all(place.file("pipelines")).expect("definitions");
    migrate(&place, &[]).expect_success();
    assert!(migrated_files(&place) == of_definitions);

    // A name that a definition has got since is the one that runs use.
    let place = project("definitions");
    let path = place.file("pipelines/energy.toml");
    let text = fs::read_to_string(&path).expect("a definition");
    fs::write(&path, text.replace("[source]", "[source]\nname = \"vendor\"")).expect("a definition");
    migrate(&place, &[]).expect_success();
    check(&place, "definitions", "vendor", Some("a"));
    check(&place, "definitions", SERVICES[1].0, Some("b"));
}

#[test]
fn listings_are_those_of_each_service() {
    let place = project("definitions");
    migrate(&place, &[]).expect_success();
    // `other` was first answered when the archive already knew the listing of `energy`, which asked the same.
    let other = place.run(["build", "other", "--as-of", "2026-11-25T02:44:30.5Z", "--output", "-", "--format", "csv"]);
    let tickers: Vec<String> = other
        .expect_success()
        .stdout
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next().map(ToOwned::to_owned))
        .collect();
    assert!(["AAA", "DDD"].iter().all(|ticker| tickers.iter().any(|other| other == ticker)), "{tickers:?}");
}

#[test]
fn a_run_whose_definition_is_unknown_needs_a_service() {
    let place = project("operations");
    let before = contents(&place.file("output"));
    let refused = migrate(&place, &[]).failed_with(2);
    assert!(refused.stderr.contains("cannot tell the service of 7 runs"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`20261125T024434Z-c55b` of `it`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--service NAME"), "{}", refused.stderr);
    place.define("it", "[source]\nname = \"acme\"\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n");
    let refused = migrate(&place, &[]).failed_with(2);
    assert!(refused.stderr.contains("--service acme"), "the definition of that name tells: {}", refused.stderr);
    migrate(&place, &["--service", "run=x"]).failed_with(2);
    assert!(contents(&place.file("output")) == before, "nothing was changed");

    // Where definitions tell some, the name is for the rest.
    let place = project("definitions");
    fs::remove_dir_all(place.file("output/datasets")).expect("datasets");
    let refused = migrate(&place, &[]).failed_with(2);
    assert!(refused.stderr.contains("of 2 runs") && refused.stderr.contains("`energy`"), "{}", refused.stderr);
    migrate(&place, &["--service", SERVICES[0].0]).expect_success();
    for (service, name) in SERVICES {
        check(&place, "definitions", service, Some(name));
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    for (case, lines) in [("definitions", 2), ("packs", 1)] {
        let place = project(case);
        let before = contents(&place.file("output"));
        let listed = migrate(&place, &["--dry-run"]).expect_success();
        assert_eq!(listed.stdout.lines().count(), lines, "{}", listed.stdout);
        migrate(&place, &["--dry-run", "--remove-old", "--service", "acme"]).expect_success();
        assert!(contents(&place.file("output")) == before, "{case}");
    }
    let place = project("packs");
    let listed = migrate(&place, &["--dry-run", "--service", "acme"]).expect_success();
    assert_eq!(listed.stdout, "would migrate 20 runs of service `acme`\n");
    let listed = migrate(&place, &["--dry-run"]).expect_success();
    assert!(listed.stdout.contains("cannot tell the service of 20 runs"), "{}", listed.stdout);
}

#[test]
fn an_archive_without_old_runs_has_nothing_to_migrate() {
    let place = Place::new();
    for arguments in [&[][..], &["--dry-run"], &["--remove-old"]] {
        assert_eq!(migrate(&place, arguments).expect_success().stdout, "nothing to migrate\n");
    }
    assert!(!place.file("output").exists(), "nothing was written");
}

#[test]
fn of_two_migrations_at_once_both_succeed() {
    let place = project("packs");
    let start = |_| place.command(["archive", "migrate", "--service", "acme"]).spawn().expect("it starts");
    for mut child in [0, 1].map(start) {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(migrated_files(&place).len(), 20 * 9);
    place.run(["verify"]).expect_success();
}

#[test]
fn an_interrupted_migration_continues_with_the_same_bytes() {
    let whole = project("packs");
    migrate(&whole, &["--service", "acme"]).expect_success();
    let expected = migrated_files(&whole);
    assert_eq!(expected.len(), 20 * 9);

    // Some runs are there, and some old folders are moved.
    let place = project("packs");
    migrate(&place, &["--service", "acme"]).expect_success();
    let archive = place.file("output/archive");
    let old: Vec<PathBuf> =
        fs::read_dir(archive.join(".layout-9")).expect("old folders").map(|it| it.expect("a folder").path()).collect();
    let back = old.iter().find(|path| path.to_string_lossy().contains("pack=")).expect("a pack");
    fs::rename(back, archive.join(back.file_name().expect("a name"))).expect("it moves");
    for run in ["20261125T024423Z-f947", "20261125T024418Z-d3b3", "20261125T024426Z-90fa"] {
        fs::remove_dir_all(archive.join(format!("acme/run={run}"))).expect("a run");
    }
    // The runs that are there tell the service of the others, whatever is named now.
    migrate(&place, &["--service", "acne"]).expect_success();
    assert!(migrated_files(&place) == expected);
    place.run(["verify"]).expect_success();

    // Killed at any instant.
    for millis in [5, 40, 90, 150, 250] {
        let place = project("packs");
        let mut child = place.command(["archive", "migrate", "--service", "acme"]).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(millis));
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        migrate(&place, &["--service", "acme"]).expect_success();
        assert!(migrated_files(&place) == expected, "killed after {millis} ms");
        assert!(migrate(&place, &[]).expect_success().stdout.starts_with("nothing to migrate\n"));
    }
}

#[test]
fn the_bytes_do_not_depend_on_how_the_old_runs_were_packed() {
    let whole = project("definitions");
    migrate(&whole, &[]).expect_success();
    let place = project("definitions");
    let archive = place.file("output/archive");
    // Contained in the other pack; and runs that the pack has too.
    for folder in ["pack=20261125T024430Z-bcf9", "run=20261125T024431Z-3fce", "run=20261125T024431Z-c985"] {
        fs::remove_dir_all(archive.join(folder)).expect("a folder");
    }
    migrate(&place, &[]).expect_success();
    assert!(migrated_files(&place) == migrated_files(&whole));
}

#[test]
fn the_old_folders_are_removed_on_request() {
    let place = project("packs");
    migrate(&place, &["--service", "acme"]).expect_success();
    let expected = migrated_files(&place);
    let old = place.file("output/archive/.layout-9");
    fs::write(old.join("notes.txt"), "mine").expect("a file");
    let refused = migrate(&place, &["--remove-old"]).failed_with(1);
    assert!(refused.stderr.contains("notes.txt"), "{}", refused.stderr);
    fs::remove_file(old.join("notes.txt")).expect("a file");
    let removed = migrate(&place, &["--remove-old"]).expect_success();
    assert!(removed.stdout.contains("removed the old folders"), "{}", removed.stdout);
    assert!(!old.exists());
    assert!(migrated_files(&place) == expected);
    assert_eq!(migrate(&place, &["--remove-old"]).expect_success().stdout, "nothing to migrate\n");

    // At once, but never before the new folders are verified.
    let place = project("one-run");
    migrate(&place, &["--service", "acme", "--remove-old"]).expect_success();
    assert!(!place.file("output/archive/.layout-9").exists());
    check(&place, "one-run", "acme", None);
    let place = project("one-run");
    migrate(&place, &["--service", "acme"]).expect_success();
    let file = place.file("output/archive/acme/run=20261125T024416Z-d30a/signals.parquet");
    fs::write(&file, "damaged").expect("a file");
    migrate(&place, &["--remove-old"]).failed_with(1);
    assert!(place.file("output/archive/.layout-9").exists());
}

#[test]
fn a_damaged_old_archive_is_left_as_it_is() {
    let run = "output/archive/run=20261125T024416Z-d30a";
    for (file, change) in [
        ("signals.parquet", "x"),
        ("requests.parquet", "x"),
        ("listings.parquet", "x"),
        ("rejects.parquet", "x"),
        ("run.json", "x"),
        ("run.json", "{}"),
        ("run.json", "{\"layout\": 8}"),
        ("run.json", "{\"layout\": 11}"),
        ("run.json", "{\"layout\": 9}"),
    ] {
        let place = project("one-run");
        fs::write(place.file(run).join(file), change).expect("a file");
        let before = contents(&place.file(run));
        let refused = migrate(&place, &["--service", "acme"]).failed_with(1);
        assert!(refused.stderr.contains("run=20261125T024416Z-d30a"), "{file}: {}", refused.stderr);
        assert!(refused.stderr.contains("hint: ") && !refused.stderr.contains("panicked"), "{}", refused.stderr);
        assert!(contents(&place.file(run)) == before, "{file}");
        assert!(migrated_files(&place).is_empty(), "{file}");
    }
    let place = project("one-run");
    fs::remove_file(place.file(run).join("articles.parquet")).expect("a file");
    migrate(&place, &["--service", "acme"]).failed_with(1);
    // An edited value has another digest.
    let place = project("one-run");
    let seal = place.file(run).join("run.json");
    fs::write(&seal, fs::read_to_string(&seal).expect("a seal").replace("\"rows\": 60", "\"rows\": 61"))
        .expect("a seal");
    let refused = migrate(&place, &["--service", "acme"]).failed_with(1);
    assert!(refused.stderr.contains("BLAKE3"), "{}", refused.stderr);
}

#[test]
fn commands_on_an_old_archive_name_the_migration() {
    let place = project("definitions");
    for command in [
        &["run", "energy"][..],
        &["build", "energy"],
        &["runs"],
        &["verify"],
        &["audit", "revisions"],
        &["archive", "compact"],
        &["sql", "energy"],
    ] {
        let refused = place.run(command);
        assert_ne!(refused.code, Some(0), "{command:?}");
        assert!(refused.stderr.contains("`bellwether archive migrate`"), "{command:?}: {}", refused.stderr);
    }
}

#[test]
fn runs_and_rebuilds_go_on_with_a_migrated_archive() {
    let place = project("one-run");
    migrate(&place, &["--service", "vendor"]).expect_success();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    let mut run = place.command(["run", "it"]);
    Outcome::of(run.env("BELLWETHER_API_KEY", "demo")).expect_success();
    let seals: Vec<Value> = fs::read_dir(place.file("output/archive/vendor"))
        .expect("runs")
        .map(|entry| entry.expect("a folder").path().join("run.json"))
        .filter(|path| path.exists())
        .map(|path| serde_json::from_slice(&fs::read(path).expect("a seal")).expect("a seal"))
        .collect();
    assert_eq!(seals.len(), 2);
    let new = seals.iter().find(|seal| seal.get("migrated").is_none()).expect("the new run");
    assert_eq!(new["basis"][0]["run"], "20261125T024416Z-d30a");
    place.run(["verify"]).expect_success();

    let place = project("definitions");
    migrate(&place, &[]).expect_success();
    place.run(["build", "energy", "--as-of", "20261125T024430Z-a73e"]).expect_success();
    place.run(["build", "other", "--as-of", "20261125T024430Z-21ff"]).expect_success();
}

#[test]
fn a_store_is_migrated_with_the_same_bytes() {
    let store = Place::new();
    copy(&archives().join("packs"), &store.file("team/archive"));
    let url = format!("file://{}", store.file("team").display());
    let machine = Place::new();
    let run = |place: &Place, arguments: &[&str]| {
        let mut command = place.command(arguments);
        Outcome::of(command.args(["--store", &url]))
    };
    let objects = || contents(&store.file("team/archive"));
    let before = objects();
    for command in [&["store", "status"][..], &["store", "pull"], &["store", "push"], &["store", "verify"]] {
        let refused = run(&machine, command).failed_with(1);
        assert!(refused.stderr.contains("`bellwether store migrate`"), "{command:?}: {}", refused.stderr);
    }
    let refused = run(&machine, &["store", "migrate", "--dry-run"]).expect_success();
    assert!(refused.stdout.contains("cannot tell the service of 20 runs"), "{}", refused.stdout);
    let listed = run(&machine, &["store", "migrate", "--dry-run", "--service", "acme"]).expect_success();
    assert!(listed.stdout.contains("would migrate 20 runs of service `acme`"), "{}", listed.stdout);
    assert!(objects() == before, "nothing was changed");
    run(&machine, &["store", "migrate"]).failed_with(2);

    run(&machine, &["store", "migrate", "--service", "acme"]).expect_success();
    check(&machine, "packs", "acme", None);
    let alone = project("packs");
    migrate(&alone, &["--service", "acme"]).expect_success();
    assert!(migrated_files(&machine) == migrated_files(&alone));
    let after = objects();
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "the old objects stay");
    run(&machine, &["store", "verify"]).expect_success();
    let again = run(&machine, &["store", "migrate"]).expect_success();
    assert!(again.stdout.starts_with("nothing to migrate\n"), "{}", again.stdout);

    // Another machine with the same old archive comes to the same bytes, and a new one fetches them.
    run(&alone, &["store", "push"]).expect_success();
    run(&alone, &["store", "status"]).expect_success();
    let fresh = Place::new();
    run(&fresh, &["store", "pull"]).expect_success();
    check(&fresh, "packs", "acme", None);

    run(&machine, &["store", "migrate", "--remove-old"]).expect_success();
    let left = objects();
    assert!(left.keys().all(|path| path.starts_with("acme")), "{:?}", left.keys());
    assert!(!machine.file("output/archive/.layout-9").exists());
    run(&machine, &["store", "verify"]).expect_success();
}
