//! Citations: what they say of a version, and that the command in them gives the same bytes elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place, only_build};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A definition of a service, with more about its dataset.
fn definition(service: &DemoService, dataset: &str) -> String {
    let dataset = format!("[dataset]\nkind = \"signals\"\nadd = [\"revisions\", \"observed_at\"]\n{dataset}");
    let output = "[output]\nformat = [\"parquet\", \"csv\", \"arrow\"]\n";
    let source = &service.source;
    format!("description = \"Energy, 50 %\"\n[source]\n{source}[signals]\nsectors = [\"utilities\"]\n{dataset}{output}")
}

/// Fetches a day. Returns the version.
fn run(place: &Place, today: &str, dataset: &str) -> PathBuf {
    let service = DemoService::start(place, &["--today", today]);
    place.define("it", &definition(&service, dataset));
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    fs::canonicalize(place.file("output/datasets/it/latest")).expect("a version")
}

fn record(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("dataset.json")).expect("a record")).expect("JSON")
}

/// The data files of a version.
fn files(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    ["it.parquet", "it.csv", "it.arrow"].map(|name| (name, fs::read(folder.join(name)).expect(name))).into()
}

fn cite(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(["cite"].iter().chain(arguments)).expect_success()
}

fn document(place: &Place, dataset: &str) -> Value {
    serde_json::from_str(&cite(place, &[dataset, "--json"]).stdout).expect("JSON")
}

/// The words of the command in a citation, without the program.
fn command(citation: &str) -> Vec<String> {
    let (_, command) = citation.rsplit_once(": bellwether ").expect("a command");
    command.trim_end().split(' ').map(str::to_owned).collect()
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().expect("cp").success());
}

#[test]
fn the_command_of_a_citation_gives_the_same_bytes_in_another_folder_with_the_archive_on_any_number_of_threads() {
    let place = Place::new();
    run(&place, "2026-11-17", "");
    let version = run(&place, "2026-11-18", "");
    let name = format!("it/{}", version.file_name().unwrap().to_str().unwrap());
    // What came later, and another definition by now, change nothing.
    run(&place, "2026-11-20", "rename = { confidence = \"conviction\" }\n");
    let cited = cite(&place, &[&name]);
    assert_eq!(cited.stderr, "");
    let words = command(&cited.stdout);
    let [build, it, as_of, state] = &words[..] else { panic!("{words:?}") };
    assert_eq!([build, it, as_of], ["build", "it", "--as-of"]);
    assert_ne!(*state, record(&version)["version"], "a run, which needs no version");
    let elsewhere = Place::new();
    fs::create_dir(elsewhere.file("output")).unwrap();
    copy(&place.file("output/archive"), &elsewhere.file("output/archive"));
    copy(&place.file("pipelines"), &elsewhere.file("pipelines"));
    let expected = files(&version);
    for threads in ["1", "7"] {
        Outcome::of(elsewhere.command(&words).env("RAYON_NUM_THREADS", threads)).expect_success();
        let built = only_build(&elsewhere, "it");
        assert!(files(&built) == expected, "on {threads} threads");
        assert_eq!(record(&built)["content"], record(&version)["content"]);
        assert_eq!(record(&built)["ad_hoc"]["as-of"][0], state.as_str());
        // The citation of what was built again leads to the same run.
        let again = format!("it/builds/{}", built.file_name().unwrap().to_str().unwrap());
        assert_eq!(command(&cite(&elsewhere, &[&again]).stdout), words);
        fs::remove_dir_all(built).unwrap();
    }
    // A filter stays a filter.
    elsewhere.run(["build", "it", "-q", "--ticker", "NEE,AEP", "--format", "csv"]).expect_success();
    let filtered = only_build(&elsewhere, "it");
    let cited = cite(&elsewhere, &[filtered.to_str().unwrap()]).stdout;
    let words = command(&cited);
    assert_eq!(words[4..], ["--format", "csv", "--ticker", "AEP", "--ticker", "NEE"], "{cited}");
    fs::rename(&filtered, elsewhere.file("before")).unwrap();
    elsewhere.run(&words).expect_success();
    let bytes = |folder: &Path| fs::read(folder.join("it.csv")).unwrap();
    assert!(bytes(&elsewhere.file("before")) == bytes(&only_build(&elsewhere, "it")));

    // A forgotten run stands for nothing any more, and a version of an older program names itself.
    elsewhere.run(["forget", &words[3], "--reason", "a test"]).expect_success();
    let refused = elsewhere.run(&words).failed_with(1).stderr;
    assert!(refused.contains(&format!("`{}`", words[3])) && refused.contains("forgotten"), "{refused}");
    let mut older = record(&version);
    assert_eq!(older.as_object_mut().unwrap().remove("rebuilt_as_of"), Some(Value::from(state.as_str())));
    fs::write(version.join("dataset.json"), older.to_string()).unwrap();
    let cited = cite(&place, &[&name]);
    assert_eq!(command(&cited.stdout)[3], *older["version"].as_str().unwrap());
    assert!(cited.stderr.starts_with("note: the command works only where this version is kept"), "{}", cited.stderr);
}

#[test]
fn a_citation_says_what_the_record_says_as_text_and_as_json() {
    let place = Place::new();
    let version = run(&place, "2026-11-20", "license = \"CC-BY-4.0\"\n");
    let record = record(&version);
    let cited = document(&place, "it");
    let fields = ["description", "license", "as_of", "rows", "content", "bellwether"];
    for field in fields {
        assert!(!record[field].is_null(), "{field}");
        assert_eq!(cited[field], record[field], "{field}");
    }
    let command = format!("bellwether build it --as-of {}", record["rebuilt_as_of"].as_str().unwrap());
    assert_eq!(
        (&cited["name"], &cited["dataset_version"], &cited["service"], &cited["command"]),
        (&"it".into(), &record["version"], &"vendor".into(), &command.clone().into())
    );
    assert_eq!(cited["notes"], Value::Array(Vec::new()));
    let text = cite(&place, &["it/latest"]).stdout;
    for field in fields.into_iter().filter(|field| *field != "rows") {
        assert!(text.contains(record[field].as_str().unwrap()), "{field}: {text}");
    }
    assert!(text.contains(" of service vendor, ") && text.ends_with(&format!(": {command}\n")), "{text}");
}

#[test]
fn without_a_license_none_is_invented_and_a_file_that_is_not_kept_is_named() {
    let place = Place::new();
    let version = run(&place, "2026-11-20", "");
    let cited = cite(&place, &["it"]);
    assert!(!cited.stdout.contains("icense") && cited.stderr.is_empty(), "{cited:?}");
    assert_eq!((document(&place, "it")["license"].clone(), record(&version).get("license")), (Value::Null, None));
    // A file that rows depend on is not kept with them.
    fs::write(place.file("ids.csv"), "ticker,from,to,id\nXOM,,,exxon\n").expect("a file");
    let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
    place.define("it", &format!("{}[identity]\nfile = \"ids.csv\"\n", text.replace("\"revisions\"", "\"id\"")));
    place.run(["build", "it", "-q"]).expect_success();
    let noted = cite(&place, &["it"]).stderr;
    assert!(noted.contains("the command needs \"ids.csv\" of `identity.file`"), "{noted}");
    let unknown = place.run(["cite", "other"]).failed_with(1).stderr;
    assert!(unknown.starts_with("error: no version `other` in `output/datasets`"), "{unknown}");
}
