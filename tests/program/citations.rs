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
    format!(
        "description = \"Energy & {{50 %}}\"\n[source]\n{source}[signals]\nsectors = [\"utilities\"]\n{dataset}{output}"
    )
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

fn document(place: &Place, dataset: &str, format: &str) -> Value {
    serde_json::from_str(&cite(place, &[dataset, "--format", format]).stdout).expect("JSON")
}

/// The words of the command in a citation, without the program.
fn command(bibtex: &str) -> Vec<String> {
    let (_, rest) = bibtex.split_once("\\texttt{bellwether ").expect("a command");
    let words = rest.split_once('}').expect("its end").0.replace("\\_", "_");
    words.split(' ').map(str::to_owned).collect()
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
    run(&place, "2026-11-20", "sort = [\"date\"]\n");
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
    elsewhere.run(["archive", "forget", &words[3], "--reason", "a test"]).expect_success();
    let refused = elsewhere.run(&words).failed_with(1).stderr;
    assert!(refused.contains(&format!("`{}`", words[3])) && refused.contains("forgotten"), "{refused}");
    let mut older = record(&version);
    assert_eq!(older.as_object_mut().unwrap().remove("rebuilt_as_of"), Some(Value::from(state.as_str())));
    fs::write(version.join("dataset.json"), older.to_string()).unwrap();
    let cited = cite(&place, &[&name]);
    assert_eq!(command(&cited.stdout)[3], *older["version"].as_str().unwrap());
    assert!(cited.stderr.starts_with("note: the command works where this version is kept"), "{}", cited.stderr);
}

#[test]
fn a_citation_says_what_the_record_says_in_each_form() {
    let place = Place::new();
    let version = run(&place, "2026-11-20", "license = \"CC-BY-4.0\"\n");
    let record = record(&version);
    let text = |name: &str| record[name].as_str().unwrap();
    let (name, run) = (text("version"), text("rebuilt_as_of"));
    let command = format!("bellwether build it --as-of {run}");

    let bibtex = cite(&place, &["it"]).stdout;
    assert!(bibtex.starts_with(&format!("@misc{{it-{name},\n")) && bibtex.ends_with("}\n"), "{bibtex}");
    for part in [
        "author       = {{vendor}}",
        "title        = {{it: Energy \\& \\textbraceleft{}50 \\%\\textbraceright{}}}",
        &format!("year         = {{{}}}", &text("built_at")[..4]),
        &format!("version      = {{{name}}}"),
        "license      = {CC-BY-4.0}",
        &format!("As of {}.", text("as_of")),
        &format!("BLAKE3 of the content: {}", text("content")),
        &command,
    ] {
        assert!(bibtex.contains(part), "{part}\n{bibtex}");
    }
    assert_eq!(bibtex.matches('{').count(), bibtex.matches('}').count());

    // The required members of DataCite 4.6, and what is theirs of a citation.
    let datacite = document(&place, "it", "datacite");
    assert_eq!(datacite["schemaVersion"], "http://datacite.org/schema/kernel-4");
    assert_eq!(datacite["types"]["resourceTypeGeneral"], "Dataset");
    assert_eq!(
        (&datacite["creators"][0]["name"], &datacite["publisher"]["name"]),
        (&"vendor".into(), &"vendor".into())
    );
    assert_eq!(datacite["titles"][0]["title"], "it: Energy & {50 %}");
    assert_eq!(datacite["publicationYear"], text("built_at")[..4]);
    assert_eq!((&datacite["version"], &datacite["dates"][1]["date"]), (&record["version"], &record["as_of"]));
    assert_eq!(datacite["rightsList"][0]["rightsUri"], "https://spdx.org/licenses/CC-BY-4.0.html");
    assert_eq!(datacite["alternateIdentifiers"][0]["alternateIdentifier"], record["content"]);
    assert!(datacite["descriptions"][1]["description"].as_str().unwrap().ends_with(&command), "{datacite}");

    // The required members of Croissant 1.0, and the files.
    let croissant = document(&place, "it/latest", "croissant");
    for (member, expected) in [
        ("@type", "sc:Dataset"),
        ("conformsTo", "http://mlcommons.org/croissant/1.0"),
        ("name", "it"),
        ("license", "https://spdx.org/licenses/CC-BY-4.0.html"),
        ("datePublished", text("built_at")),
        ("version", name),
        ("citeAs", &bibtex),
        ("url", &format!("urn:bellwether:dataset:it:{name}")),
    ] {
        assert_eq!(croissant[member], expected, "{member}");
    }
    assert_eq!(croissant["creator"]["name"], "vendor");
    assert!(croissant["description"].as_str().unwrap().contains(&command), "{croissant}");
    for file in croissant["distribution"].as_array().unwrap() {
        let path = version.join(file["contentUrl"].as_str().unwrap());
        let printed = Outcome::of(Command::new("sha256sum").arg(&path)).expect_success().stdout;
        assert_eq!(printed.split(' ').next(), file["sha256"].as_str(), "{path:?}");
    }
    let columns: Vec<&str> =
        record["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let fields = croissant["recordSet"][0]["field"].as_array().unwrap();
    let sources: Vec<&str> =
        fields.iter().map(|field| field["source"]["extract"]["column"].as_str().unwrap()).collect();
    assert_eq!(sources, columns);

    // A file that is not the one of the record is not cited by a digest.
    fs::write(version.join("it.csv"), "changed").unwrap();
    let damaged = place.run(["cite", "it", "--format", "croissant"]).failed_with(1).stderr;
    assert!(damaged.contains("it.csv") && damaged.contains("BLAKE3"), "{damaged}");
    cite(&place, &["it", "--format", "datacite"]);
}

#[test]
fn without_a_license_none_is_invented_and_one_that_is_none_is_refused_at_its_place() {
    let place = Place::new();
    let version = run(&place, "2026-11-20", "");
    let croissant = cite(&place, &["it", "--format", "croissant"]);
    assert!(croissant.stderr.starts_with("note: Croissant requires a license"), "{}", croissant.stderr);
    assert_eq!(serde_json::from_str::<Value>(&croissant.stdout).unwrap().get("license"), None);
    assert_eq!(document(&place, "it", "datacite")["rightsList"], Value::Array(Vec::new()));
    let bibtex = cite(&place, &["it"]);
    assert!(!bibtex.stdout.contains("license") && bibtex.stderr.is_empty(), "{bibtex:?}");
    assert_eq!(record(&version).get("license"), None);
    place.define("wrong", "source.service = \"demo\"\nsignals.sectors = \"energy\"\ndataset.license = \"all mine\"\n");
    let refused = place.run(["check", "wrong"]).failed_with(2).stderr;
    assert!(refused.contains("not the identifier of a license") && refused.contains(":3:"), "{refused}");
    // A file that rows depend on is not kept with them.
    fs::write(place.file("ids.csv"), "ticker,from,to,id\nXOM,,,exxon\n").expect("a file");
    let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
    place.define("it", &format!("{}[identity]\nfile = \"ids.csv\"\n", text.replace("\"revisions\"", "\"id\"")));
    place.run(["build", "it", "-q"]).expect_success();
    let noted = cite(&place, &["it"]).stderr;
    assert!(noted.contains("does not keep \"ids.csv\" of `identity.file`"), "{noted}");
    let unknown = place.run(["cite", "other"]).failed_with(1).stderr;
    assert!(unknown.starts_with("error: no version `other` in `output/datasets`"), "{unknown}");
}
