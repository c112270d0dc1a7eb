//! Whose data it is: services never meet, a definition that asks another service says so, and an archive that is gone is
//! not a new one.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::sealed_folders;
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

const REST: &str = "[signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\n[sentiment]\narticles = false\n";

/// Two signals of a ticker that the demo has as well.
fn history(confidence: &str) -> String {
    let of = |date: &str| format!(r#"{{"date":"{date}T00:00:00","signal":"buy","confidence":{confidence}}}"#);
    let entries = format!("{},{}", of("2026-11-19"), of("2026-11-20"));
    format!(r#"{{"XOM":{{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[{entries}]}}}}"#)
}

fn vendor(confidence: &'static str) -> Scripted {
    Scripted::of_histories(move |_| json("200 OK", &history(confidence)))
}

/// The addresses of a service, without a name.
fn addresses(service: &Scripted) -> String {
    service.source().replace("name = \"vendor\"\n", "")
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command([&["run"], arguments].concat()).envs([KEY]))
}

fn rows(place: &Place, dataset: &str) -> u64 {
    let record = fs::read(place.file(&format!("output/datasets/{dataset}/latest/dataset.json"))).expect("a record");
    serde_json::from_slice::<Value>(&record).expect("JSON")["rows"].as_u64().expect("a number")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn the_demo_and_two_vendors_share_a_folder_and_a_store_and_never_meet() {
    let place = Place::new();
    let (one, other) = (vendor("0.5"), vendor("0.25"));
    place.define("demo", &format!("[source]\nservice = \"demo\"\n{REST}"));
    place.define("mine", &format!("[source]\nname = \"acme\"\n{}{REST}", addresses(&one)));
    place.define("theirs", &format!("[source]\n{}{REST}", addresses(&other)));
    fs::create_dir(place.file("store")).unwrap();
    let store = format!("file://{}", place.file("store").display());
    let on_store = |arguments: &[&str]| {
        let environment = [KEY, ("BELLWETHER_STORE", store.as_str())];
        Outcome::of(place.command(arguments).envs(environment)).expect_success()
    };
    for name in ["demo", "mine", "theirs", "mine", "demo"] {
        on_store(&["run", name]);
    }
    assert_eq!((rows(&place, "mine"), rows(&place, "theirs")), (2, 2));
    assert!(rows(&place, "demo") > 1000);
    let services = names(&place.file("output/archive"));
    assert!(services.len() == 3 && services.contains(&"acme".to_owned()), "{services:?}");
    assert_eq!(names(&place.file("store/archive")), services);
    let first = place.run(["build", "mine", "--vintage", "first"]).expect_success().stdout;
    assert!(first.contains("rows      2"), "{first}");
    for name in ["mine", "theirs", "demo"] {
        let audit = place.run(["audit", "revisions", name]).expect_success().stdout;
        assert!(!audit.contains("rewritten"), "{audit}");
    }
    let ambiguous = place.run(["audit", "revisions"]).failed_with(2).stderr;
    assert!(ambiguous.contains("--service"), "{ambiguous}");
    place.run(["audit", "revisions", "--service", "acme"]).expect_success();
    place.run(["verify"]).expect_success();
    on_store(&["verify", "--store", "mine"]);

    // Another machine fetches the same from the store.
    let second = Place::new();
    second.define("mine", &format!("[source]\nname = \"acme\"\n{}{REST}", addresses(&one)));
    let environment = [KEY, ("BELLWETHER_STORE", store.as_str())];
    Outcome::of(second.command(["run", "mine"]).envs(environment)).expect_success();
    assert_eq!(names(&second.file("output/archive")), ["acme"]);
    assert_eq!(rows(&second, "mine"), 2);
}

#[test]
fn seeds_of_the_demo_are_different_services() {
    let place = Place::new();
    let start = |seed: &str| DemoService::start(&place, &["--today", "2026-11-20", "--seed", seed]);
    let (one, other) = (start("1"), start("2"));
    for (name, service) in [("one", &one), ("other", &other)] {
        place.define(name, &format!("[source]\n{}{REST}", service.source.replace("name = \"vendor\"\n", "")));
        run(&place, &[name]).expect_success();
    }
    assert_eq!(names(&place.file("output/archive")).len(), 2);
    // Under one name, the second is noticed.
    place.define(
        "one",
        &format!("[source]\nname = \"both\"\n{}{REST}", other.source.replace("name = \"vendor\"\n", "")),
    );
    run(&place, &["one"]).failed_with(2);
}

#[test]
fn a_definition_whose_service_changed_is_refused_until_the_service_is_named() {
    let place = Place::new();
    let (before, after) = (vendor("0.5"), vendor("0.75"));
    place.define("it", &format!("[source]\n{}{REST}", addresses(&before)));
    run(&place, &["it"]).expect_success();
    let service = names(&place.file("output/archive")).remove(0);
    place.define("it", &format!("[source]\n{}{REST}", addresses(&after)));
    let refused = run(&place, &["it"]).failed_with(2).stderr;
    assert!(refused.contains(&format!("name = \"{service}\"")), "{refused}");
    assert_eq!(after.count(), 0, "nothing is fetched before");
    assert_eq!(names(&place.file("output/archive")), [service.as_str()]);
    place.define("it", &format!("[source]\nname = \"{service}\"\n{}{REST}", addresses(&after)));
    run(&place, &["it"]).expect_success();
    let changes = place.run(["audit", "revisions", "it"]).expect_success().stdout;
    assert!(changes.contains("revised"), "the history goes on: {changes}");
}

#[test]
fn an_archive_or_a_run_that_is_gone_is_missed_until_told_otherwise() {
    let place = Place::new();
    let service = vendor("0.5");
    place.define("it", &format!("[source]\n{}{REST}", service.source()));
    run(&place, &["it"]).expect_success();
    run(&place, &["it"]).expect_success();
    let archive = place.file("output/archive/vendor");
    let runs = sealed_folders(&archive);

    // A lifecycle rule removes the first run.
    let (gone, aside) = (archive.join(&runs[0]), place.file("aside"));
    fs::rename(&gone, &aside).unwrap();
    let run_name = runs[0].strip_prefix("run=").unwrap();
    for command in [&["verify"][..], &["doctor", "it"]] {
        let outcome = Outcome::of(place.command(command).envs([KEY])).failed_with(1);
        let said = outcome.stdout + &outcome.stderr;
        assert!(said.contains(run_name) || said.contains("lacks"), "{command:?}: {said}");
    }
    let asked = service.count();
    let refused = run(&place, &["it"]).failed_with(1).stderr;
    assert!(refused.contains(run_name) && refused.contains("--new-archive"), "{refused}");
    assert_eq!(service.count(), asked, "nothing is fetched before");
    fs::rename(&aside, &gone).unwrap();
    run(&place, &["it"]).expect_success();

    // An unmounted volume.
    fs::rename(place.file("output/archive"), &aside).unwrap();
    let refused = run(&place, &["it"]).failed_with(1).stderr;
    assert!(refused.contains("output/archive/vendor") && refused.contains("--new-archive"), "{refused}");
    run(&place, &["it", "--new-archive"]).expect_success();
    run(&place, &["it"]).expect_success();
    assert_eq!(names(&archive).len(), 2);
}

#[test]
fn a_store_that_lost_a_run_is_noticed() {
    let place = Place::new();
    let service = vendor("0.5");
    place.define("it", &format!("[source]\n{}{REST}", service.source()));
    fs::create_dir(place.file("store")).unwrap();
    let store = format!("file://{}", place.file("store").display());
    let on_store =
        |arguments: &[&str]| Outcome::of(place.command(arguments).envs([KEY, ("BELLWETHER_STORE", store.as_str())]));
    on_store(&["run", "it"]).expect_success();
    on_store(&["run", "it"]).expect_success();
    on_store(&["verify", "--store"]).expect_success();
    let there = place.file("store/archive/vendor");
    let first = names(&there).remove(0);
    fs::rename(there.join(&first), place.file("aside")).unwrap();
    let found = on_store(&["verify", "--store"]).failed_with(1);
    assert!((found.stdout + &found.stderr).contains(first.strip_prefix("run=").unwrap()));
    fs::rename(place.file("aside"), there.join(&first)).unwrap();
    // All of it, with the versions still there.
    fs::rename(&there, place.file("aside")).unwrap();
    let found = on_store(&["verify", "--store"]).failed_with(1);
    assert!((found.stdout + &found.stderr).contains("was built from run"));
}
