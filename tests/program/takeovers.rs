//! If the archive has nothing new for a dataset, its next version reuses the files of the latest one.

use std::fs;
use std::path::PathBuf;

use bellwether::archive::Archive;
use bellwether::time::to_record;
use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// The digests of a dataset's files, by name, and the version whose files it reuses.
fn latest(place: &Place) -> (Value, Vec<(String, String)>) {
    let folder = place.file("output/datasets/it/latest");
    let record = fs::read(folder.join("dataset.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let text = |file: &Value, key: &str| file[key].as_str().expect("a text").to_owned();
    let files = record["files"].as_array().expect("files").iter();
    let files = files.map(|file| (text(file, "name"), text(file, "blake3")));
    (record["taken_over_from"].clone(), files.collect())
}

fn define(place: &Place, service: &DemoService, more: &str) {
    let rest =
        "[signals]\nsectors = [\"utilities\"]\nperiods = [\"5d\", \"1m\"]\n[output]\nformat = [\"parquet\", \"csv\"]\n";
    place.define("it", &format!("[source]\n{}{rest}{more}", service.source));
}

/// A folder with a definition for a service of a given day.
fn asking(today: &str) -> (Place, DemoService) {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", today]);
    define(&place, &service, "");
    (place, service)
}

fn run(place: &Place) -> Outcome {
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success()
}

fn build(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(["build", "it"].iter().chain(arguments)).expect_success()
}

#[test]
fn an_unchanged_run_reuses_files_that_equal_a_fresh_build() {
    let (place, _service) = asking("2026-11-20");
    let first = run(&place).stdout;
    assert!(!first.contains("files reused"), "{first}");
    let version = fs::read_link(place.file("output/datasets/it/latest")).unwrap();
    let second = run(&place).stdout;
    let note = format!("note      unchanged since version {}; files reused\n", version.display());
    assert!(second.contains(&note), "{second}");
    let lines = |text: &str| -> Vec<String> {
        let kept = ["rows ", "tickers ", "dates ", "bytes "];
        text.lines().filter(|line| kept.iter().any(|name| line.starts_with(name))).map(str::to_owned).collect()
    };
    assert_eq!(lines(&second)[..3], lines(&first)[..3]);
    let (from, taken) = latest(&place);
    assert_eq!(from, version.to_str().unwrap());
    place.run(["verify"]).expect_success();

    // The same runs and the same instant, without an earlier version.
    fs::remove_dir_all(place.file("output/datasets/it")).unwrap();
    build(&place, &[]);
    assert_eq!(latest(&place), (Value::Null, taken));
}

#[test]
fn a_dataset_is_rebuilt_when_any_of_its_inputs_changes() {
    let (place, service) = asking("2026-11-18");
    run(&place);
    let taken_over = || !latest(&place).0.is_null();
    build(&place, &[]);
    assert!(taken_over(), "nothing is new");
    // Each key of the definition that affects the files.
    for more in [
        "compression = \"none\"\n",
        "level = 9\n",
        "row_group_rows = 1000\n",
        "partition_by = [\"period\"]\n",
        "sort = [\"date\"]\n",
        "csv_guard = true\n",
        "[dataset]\nadd = [\"source\"]\n",
        "[dataset]\ncolumns = [\"ticker\", \"date\", \"signal\"]\n",
        "[dataset]\nrename = { ticker = \"asset\" }\n",
        "vintage = \"first\"\n",
    ] {
        define(&place, &service, more);
        build(&place, &[]);
        assert!(!taken_over(), "{more} asks for other files");
        build(&place, &[]);
        assert!(taken_over(), "{more} asks for them again");
    }
    define(&place, &service, "# a remark\n");
    build(&place, &[]);
    assert!(!taken_over(), "the definition is another");
    drop(service);

    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    define(&place, &service, "# a remark\n");
    let before = latest(&place).1;
    run(&place);
    assert!(!taken_over() && latest(&place).1 != before, "two days are new");
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let late = latest(&place).1;
    build(&place, &["--as-of", &to_record(archive.runs()[0].seal().sealed_at)]);
    build(&place, &[]);
    assert!(taken_over() && latest(&place).1 == late, "an ad hoc build in between is nothing to it");

    // The report counts the same rewrites.
    let rewrites = || {
        let page = place.run(["report", "it", "--output", "-"]).expect_success().stdout;
        let section = page.split_once("id=\"rewrites\"").expect("a section of rewrites").1;
        section.split_once("</section>").expect("it ends").0.to_owned()
    };
    let counted = rewrites();
    assert!(counted.contains(" revision"), "{counted}");
    build(&place, &[]);
    assert!(taken_over() && rewrites() == counted);
}

#[test]
fn a_modified_file_is_not_reused() {
    let (place, _service) = asking("2026-11-20");
    run(&place);
    let (_, written) = latest(&place);
    for name in ["it.csv", "it.parquet", "facts.json"] {
        let path: PathBuf = fs::canonicalize(place.file("output/datasets/it/latest")).unwrap().join(name);
        // Another file in its place: earlier versions still have the linked one.
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let message = build(&place, &[]);
        let note = format!("{name}` is damaged: rebuilt the dataset\n");
        assert!(message.stdout.contains(&note), "{}", message.stdout);
        assert_eq!(latest(&place), (Value::Null, written.clone()), "{name}");
    }
}
