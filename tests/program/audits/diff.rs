//! Two versions of a dataset, compared by `diff` and by DuckDB.

use std::fs;

use crate::support::program::{DemoService, Outcome, Place, builds};
use crate::support::python;
use crate::support::rows::read;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// The folders of a dataset's versions, oldest first. Names have a resolution of one second.
fn versions(place: &Place, name: &str) -> Vec<String> {
    let entries = fs::read_dir(place.file(&format!("output/datasets/{name}"))).expect("a dataset");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<String> = names.filter(|version| version != "latest").collect();
    names.sort_by_cached_key(|version| {
        let record = fs::read(place.file(&format!("output/datasets/{name}/{version}/dataset.json"))).expect("a record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        record["built_at"].as_str().expect("an instant").to_owned()
    });
    names
}

#[test]
fn changes_between_two_versions_are_found_in_every_format() {
    let place = Place::new();
    let mut source = String::new();
    for today in ["2026-10-01", "2026-11-20"] {
        let service = DemoService::start(&place, &["--today", today]);
        source = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\", \"1m\"]\n", service.source);
        place.define("it", &source);
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
        // The names of versions have a resolution of one second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    let [before, after] = &versions(&place, "it")[..] else { panic!("two versions") };
    let (earlier, later) = (format!("it/{before}"), format!("it/{after}"));
    let diff = |arguments: &[&str]| place.run(["diff"].iter().chain(arguments));
    let stdout = diff(&[&earlier, "it", "--output", "rows.parquet"]).expect_success().stdout;
    let files = [before, after].map(|version| place.file(&format!("output/datasets/it/{version}/it.parquet")));
    python::check("check_diff.py", [&files[0], &files[1], &place.file("rows.parquet")]);

    // The same from other formats, folders and orders; equal versions have no differences.
    let sorted = "[output]\nformat = \"csv\"\nsort = [\"date\"]\n";
    let folders = "[output]\nformat = \"arrow\"\npartition_by = [\"regime\", \"ticker\"]\n";
    for (name, output) in [("sorted", sorted), ("folders", folders), ("text", "[output]\nformat = \"csv\"\n")] {
        place.define(name, &format!("{source}{output}"));
        place.run(["build", name, "-q"]).expect_success();
        let same = diff(&[&later, name, "--exit-code"]).expect_success().stdout;
        assert!(same.ends_with("no differences\n"), "{name}: {same}");
        let other = diff(&[&earlier, name]).expect_success().stdout;
        assert_eq!(other.split_once("\n\n").map(|(_, rest)| rest), stdout.split_once("\n\n").map(|(_, rest)| rest));
    }
    let differing = diff(&[&earlier, &later, "--exit-code"]).failed_with(3);
    assert_eq!((differing.stdout, differing.stderr.as_str()), (stdout, ""));
    let folder = place.file(&format!("output/datasets/it/{after}"));
    diff(&["it", folder.to_str().expect("a path"), "--exit-code"]).expect_success();

    let refused = |one: &str, other: &str, expected: &str| {
        let stderr = diff(&[one, other]).failed_with(1).stderr;
        assert!(stderr.contains(expected) && stderr.contains("\nhint: "), "{stderr}");
    };
    refused("it/20200101T000000Z-0000", "it", &format!("hint: known names: {earlier}, {later}; the folder"));
    refused("nobody", "it", "hint: known names: folders, it, sorted, text;");
    for (name, more) in [("wide", "[output]\nlayout = \"wide\"\n"), ("few", "[join]\nwindows = [\"7d\"]\n")] {
        place.define(name, &format!("{source}{more}"));
        place.run(["build", name, "-q"]).expect_success();
    }
    refused("it", "wide", "is wide");
    refused("it", "few", "different columns: `news_count_1d`");
    // A name alone means its latest version and the one before it.
    assert_eq!(diff(&["it"]).expect_success().stdout, diff(&[&earlier, "it"]).expect_success().stdout);
    let alone = diff(&["text"]).failed_with(2).stderr;
    assert!(alone.starts_with("error: no version of `text` to compare with\nhint: "), "{alone}");
    let damaged = place.file(&format!("output/datasets/it/{after}/it.parquet"));
    fs::write(&damaged, "no rows").expect("a file");
    refused(&earlier, &later, &format!("`{}` is damaged", fs::canonicalize(&damaged).unwrap().display()));
}

#[test]
fn every_type_of_column_reads_the_same_from_every_format() {
    let place = Place::new();
    let columns =
        "[dataset]\nadd = [\"first_observed_at\", \"observed_at\", \"revisions\", \"backfilled\", \"source\"]\n";
    let formats = ["parquet", "csv", "arrow"];
    for today in ["2026-10-01", "2026-11-20"] {
        let service = DemoService::start(&place, &["--today", today]);
        let signals =
            "[signals]\nsectors = [\"utilities\"]\n[join]\nstats = [\"count\", \"mean\", \"last\", \"days_since\"]\n";
        for format in formats {
            let output = format!("[output]\nformat = \"{format}\"\n{columns}");
            place.define(format, &format!("[source]\n{}{signals}{output}", service.source));
        }
        Outcome::of(place.command(["run", "parquet", "-q"]).envs([KEY])).expect_success();
        place.run(["build", "csv", "-q"]).expect_success();
        place.run(["build", "arrow", "-q"]).expect_success();
    }
    let folders = formats.map(|format| (format, versions(&place, format)));
    let mut answers = Vec::new();
    for (before, earlier) in &folders {
        for (after, later) in &folders {
            let [earlier, later] = [format!("{before}/{}", earlier[0]), format!("{after}/{}", later[1])];
            let rows = format!("{before}-{after}.csv");
            let stdout = place.run(["diff", &earlier, &later, "--output", &rows]).expect_success().stdout;
            let tables = stdout.split_once("\n\n").expect("tables").1.to_owned();
            answers.push((tables, fs::read(place.file(&rows)).expect("rows")));
            let same = place.run(["diff", &format!("{before}/{}", folders[0].1[1]), &later]);
            assert!(before != &"parquet" || same.expect_success().stdout.ends_with("\nno differences\n"));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{}", answers[0].0);
    assert!(answers[0].0.contains("observed_at"), "{}", answers[0].0);
}

#[test]
fn a_share_names_its_total() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let signals = "[signals]\nsectors = [\"utilities\"]\n";
    place.define("it", &format!("[source]\n{}{signals}", service.source));
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    for part in [["--from", "2026-02-01"], ["--to", "2026-08-01"]] {
        place.run(["build", "it", "-q"].iter().chain(&part)).expect_success();
    }
    let name = |path: std::path::PathBuf| format!("it/builds/{}", path.file_name().unwrap().to_str().unwrap());
    let [late, early] = &builds(&place, "it").into_iter().map(name).collect::<Vec<_>>()[..] else {
        panic!("two builds")
    };
    let count = |name: &str| read(&place.file(&format!("output/datasets/{name}/it.parquet"))).num_rows();
    let (all, before, after) = (count("it/latest"), count(late), count(early));
    let both = before + after - all;
    let message = place.run(["diff", late, early]).expect_success().stdout;
    for (what, count, of) in [
        ("added", after - both, (after, "after")),
        ("removed", before - both, (before, "before")),
        ("changed", 0, (both, "in both")),
    ] {
        let line = message.lines().find(|line| line.starts_with(what)).expect("a line");
        let share = if count == 0 { "0 %".to_owned() } else { format!("{:.1} %", count as f64 / of.0 as f64 * 100.0) };
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ").replace(',', "");
        assert_eq!(words, format!("{what} {count} {share} of {} rows {}", of.0, of.1), "{message}");
    }
}
