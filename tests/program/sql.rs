//! `bellwether sql`: the printed statement against the same build.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bellwether::time::to_record;
use chrono::Utc;
use serde_json::json;

use crate::joins::{KEY, definition, two_sectors};
use crate::support::choices;
use crate::support::program::{Outcome, Place, builds};
use crate::support::python;
use crate::support::scripted::{Scripted, json as answer};

/// Statements in a dialect, and the files of the same builds.
struct Cases {
    dialect: &'static str,
    listed: Vec<serde_json::Value>,
}

impl Cases {
    fn of(dialect: &'static str) -> Self {
        Self { dialect, listed: Vec::new() }
    }

    /// Builds a dataset with some options, and prints its statement with the same ones.
    fn add(&mut self, place: &Place, name: &str, options: &[&str]) -> String {
        let before = builds(place, name);
        // Another format than the definition's makes an ad hoc build.
        let build = ["build", name, "-q", "--format", "parquet"];
        place.run(build.iter().chain(options)).expect_success();
        let built = builds(place, name).into_iter().find(|build| !before.contains(build));
        let folder = built.unwrap_or_else(|| place.file(&format!("output/datasets/{name}/latest")));
        let statement = ["sql", name, "--dialect", self.dialect];
        let statement = place.run(statement.iter().chain(options)).expect_success().stdout;
        let path = place.file(&format!("{}.sql", self.listed.len()));
        fs::write(&path, &statement).expect("a file");
        self.listed.push(json!({ "sql": path, "dataset": folder.join(format!("{name}.parquet")) }));
        statement
    }

    /// Compares the rows of all statements with those of the builds.
    fn check(&self) {
        let place = Place::new();
        let path = place.file("cases.json");
        fs::write(&path, serde_json::to_vec(&self.listed).expect("JSON")).expect("a file");
        let arguments = [self.dialect, path.to_str().expect("a path")];
        match self.dialect {
            "spark" => python::check_with_spark("check_sql.py", arguments),
            _ => python::check("check_sql.py", arguments),
        }
    }
}

fn shipped_definition(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines").join(name).with_extension("toml")
}

#[test]
fn the_sql_of_the_shipped_definitions_computes_their_datasets() {
    let (place, mut cases) = (Place::new(), Cases::of("duckdb"));
    for name in ["demo", "nightly", "notebook"] {
        place.define(name, &fs::read_to_string(shipped_definition(name)).expect("a definition"));
        place.run(["run", name, "-q"]).expect_success();
        let statement = cases.add(&place, name, &[]);
        assert!(statement.lines().count() <= 210, "{statement}");
    }
    cases.check();
}

/// The statistics of the news, all of them.
fn statistics() -> String {
    format!("stats = {:?}\nhalf_lives = [\"2d\", \"30d\"]", choices("Statistic"))
}

/// A run with other articles.
fn other_articles() -> Place {
    let (place, service) = (Place::new(), two_sectors(1));
    place.define("other", &definition(&service, &format!("[join]\nwindows = [\"9d\"]\n{}\n", statistics())));
    Outcome::of(place.command(["run", "other", "-q"]).envs([KEY])).expect_success();
    place
}

/// Adds the run of another place to an archive in the states that an object store has during an upload, and while an
/// abandoned upload is cleared.
fn leave_uploads(archive: &Path, other: &Place) {
    let runs =
        fs::read_dir(other.file("output/archive/vendor")).expect("an archive").map(|entry| entry.expect("an entry"));
    let run = runs.map(|entry| entry.path()).find(|path| path.join("run.json").exists()).expect("a run");
    for name in ["run=20251101T000000Z-aaaa", "run=20251101T000000Z-bbbb"] {
        let folder = archive.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        for entry in fs::read_dir(&run).expect("a run") {
            let path = entry.expect("an entry").path();
            fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a copy");
        }
        fs::remove_file(folder.join("run.json")).expect("a seal");
    }
    let note = "{\"cleared_at\":\"2025-11-02T00:00:00.000000Z\"}";
    fs::write(archive.join("run=20251101T000000Z-bbbb/run.json"), note).expect("a note");
}

/// Messy data with every kind of lag, window and filter.
fn messy_data(cases: &mut Cases, vintages: &[&[&str]]) -> Place {
    // Before the other runs: otherwise its articles would be later than the instants of the statements.
    let other = other_articles();
    let (place, service) = (Place::new(), two_sectors(0));
    let all = &statistics();
    for (name, join, sentiment, rest) in [
        ("days", "lag = \"2d\"", "", "[output]\nsort = [\"date\", \"confidence\"]\n"),
        ("same", "lag = \"0d\"", "duplicates = \"keep\"", "[filter]\nsignal = \"sell\"\nmin_confidence = 0.3\n"),
        ("later", "lag = \"3d\"", "", "[filter]\nfrom = \"2025-11-10\"\nto = \"2026-01-15\"\n"),
        ("seen", "availability = \"observed\"\nlag = \"1d\"", "", "[filter]\nsectors = [\"y\"]\n"),
    ] {
        let rest =
            format!("[sentiment]\n{sentiment}\n[join]\n{join}\nwindows = [\"1d\", \"9d\", \"120d\"]\n{all}\n{rest}");
        place.define(name, &definition(&service, &rest));
        Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
        for vintage in vintages {
            cases.add(&place, name, vintage);
        }
    }
    leave_uploads(&place.file("output/archive/vendor"), &other);
    place
}

/// Half billionths are rounded away from zero, negative sums beyond 2^53 are rounded once, and scores too large for
/// exact integers have no mean or deviation.
fn odd_scores(cases: &mut Cases) -> Place {
    let scores: [&[&str]; 9] = [
        &["0.0000000005", "-0.0000000005", "0.0000000015", "0.1234567895"],
        &["-9007199.254740993", "-0.1", "-0.2"],
        &["-999999.999999999", "999999.123456789", "0.3", "-0.7"],
        &["8999999999", "-1.5"],
        &["9e9", "1"],
        &["1e300", "-1e300", "0.25"],
        &["1e6", "2"],
        &["0.1", "0.2", "0.3", "null"],
        &["-0.30000000000000004"],
    ];
    let service = Scripted::start(move |request| {
        if !request.target.contains("news_articles") {
            let dates: Vec<String> = (1..=scores.len() + 3)
                .map(|day| format!(r#"{{"date":"2025-11-{day:02}","signal":"buy","confidence":0.5}}"#))
                .collect();
            let history = r#"{"ticker":"AAA","regime":"bear","period":"5d","predictions":["#;
            return answer("200 OK", &format!("{{\"AAA\":{history}{}]}}}}", dates.join(",")));
        }
        let mut articles = Vec::new();
        for (day, scores) in scores.iter().enumerate() {
            for (number, score) in scores.iter().enumerate() {
                let date = format!("2025-11-{:02}", day + 1);
                articles.push(format!(r#"{{"date":"{date}","title":"{number}","score":{score},"link":"l"}}"#));
            }
        }
        answer("200 OK", &format!("[{}]", articles.join(",")))
    });
    let place = Place::new();
    place.define(
        "it",
        &format!(
            "[source]\n{}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
             [join]\nwindows = [\"1d\", \"2d\", \"5d\"]\n{}\n",
            service.source(),
            statistics()
        ),
    );
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    cases.add(&place, "it", &[]);
    place
}

#[test]
fn duckdb_matches_messy_data_and_odd_scores_to_the_last_bit() {
    let mut cases = Cases::of("duckdb");
    let _places = [messy_data(&mut cases, &[&[], &["--vintage", "first"]]), odd_scores(&mut cases)];
    cases.check();
}

#[test]
fn spark_matches_messy_data_and_odd_scores_to_the_last_bit() {
    let mut cases = Cases::of("spark");
    let _places = [messy_data(&mut cases, &[&["--vintage", "first"]]), odd_scores(&mut cases)];
    cases.check();
}

#[test]
fn a_statement_contains_the_documented_archive_query() {
    let place = Place::new();
    // Without sectors, nothing of the past is asked for.
    let columns = "dataset.columns = [\"ticker\", \"date\", \"period\", \"regime\", \"signal\", \"confidence\"]\n";
    let sectors = "signals.sectors = [\"utilities\"]\ndataset.kind = \"signals\"\n";
    place.define("it", &format!("source.service = \"demo\"\n{sectors}{columns}"));
    place.run(["run", "it", "-q"]).expect_success();
    let now = to_record(Utc::now());
    let options = ["--as-of", &now, "--archive", "s3://bucket/archive/"];
    let statement = place.run(["sql", "it"].iter().chain(&options)).expect_success().stdout;
    let documentation = include_str!("../../crates/bellwether/src/archive/mod.rs");
    let query = documentation.split("//! ```sql\n").nth(1).and_then(|rest| rest.split("//! ```").next());
    let query = query.expect("a query").replace("//! ", "");
    let query =
        query.replace("output/archive/acme/", "s3://bucket/archive/demo/").replace("2026-03-31T23:59:59Z", &now);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = words(&query).split("from ( ").nth(1).and_then(|rest| rest.split(" ) where").next().map(str::to_owned));
    let known = known.expect("the observations of each cell, numbered");
    // Only a store has folders without a seal.
    let statement = words(&statement)
        .replace("union_by_name = true, filename = true)", "union_by_name = true)")
        .replace("parse_dirpath(filename) in (select folder from sealed) and ", "");
    assert!(statement.contains(&known), "{known}\n{statement}");
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let place = Place::new();
    let shared = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"utilities\"]\n[sentiment]\nhistorical = true\n";
    for (name, rest, expected) in [
        ("wide", "[output]\nlayout = \"wide\"\n", "SQL cannot compute a dataset with `layout = \"wide\"`"),
        (
            "zone",
            "[dates]\nnaive = \"America/New_York\"\n",
            "SQL cannot compute dates with `naive = \"America/New_York\"`",
        ),
        (
            "historical",
            "[join]\nsources = [\"historical\"]\nhistorical = [\"score\"]\n",
            "SQL cannot compute `historical_score`",
        ),
    ] {
        place.define(name, &format!("{shared}{rest}"));
        place.run(["run", name, "-q"]).expect_success();
        let outcome = place.run(["sql", name]).failed_with(1);
        assert!(outcome.stdout.is_empty(), "{}", outcome.stdout);
        assert!(outcome.stderr.contains(expected) && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    }
    // A statement is text, and this path is not.
    let odd = place.path().join(OsStr::from_bytes(b"project-\xff"));
    fs::create_dir(&odd).expect("a folder");
    for folder in ["output", "pipelines"] {
        fs::rename(place.file(folder), odd.join(folder)).expect("a folder");
    }
    let outcome = Outcome::of(place.command(["sql", "wide"]).current_dir(&odd)).failed_with(2);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains("which is not UTF-8"), "{}", outcome.stderr);
}

#[test]
fn unsupported_datasets_are_refused_before_connecting_to_a_cluster() {
    let place = Place::new();
    let shared = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"utilities\"]\n";
    place.define("it", shared);
    place.define("text", &format!("{shared}[output]\nformat = \"csv\"\n"));
    place.define("named", &format!("{shared}[dataset.rename]\nticker = \"asset\"\n"));
    place.run(["run", "it", "-q"]).expect_success();
    let refused = |words: &[&str], expected: &str| {
        let outcome = place.run(["build"].iter().chain(words)).failed_with(2);
        assert!(
            outcome.stderr.contains(expected) && outcome.stderr.contains("hint: "),
            "{words:?}: {}",
            outcome.stderr
        );
        assert!(!outcome.stderr.contains("my-token"), "{}", outcome.stderr);
    };
    let store = format!("file://{}", place.file("store").display());
    let on = ["--engine", "spark://127.0.0.1:1", "--output"];
    if cfg!(feature = "spark") {
        refused(&["it", "--engine", "http://127.0.0.1", on[2], &store], "not the address of a cluster");
        refused(&["it", "--engine", "spark://host/;token=my-token", on[2], &store], "an address with a token");
        refused(&["it", on[0], on[1], on[2], "file.parquet"], "`--output` is the address of a store");
        refused(&["text", on[0], on[1], on[2], &store], "Spark cannot write a dataset with `format = \"csv\"`");
        let renamed = "Spark cannot write a dataset that leaves out or renames columns";
        refused(&["named", on[0], on[1], on[2], &store], renamed);
        refused(&["it", on[0], on[1], on[2], &store, "--from", "2026-01-01"], "Spark cannot write an ad hoc build");
        let outcome = place.run(["build", "it", on[0], on[1], on[2], &store]).failed_with(75);
        assert!(outcome.stderr.contains("cannot reach `spark://127.0.0.1:1`"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: check that a Spark Connect server listens"), "{}", outcome.stderr);
    } else {
        refused(&["it", on[0], on[1], on[2], &store], "this build has no client of Spark");
    }
}
