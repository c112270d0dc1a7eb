//! `bellwether sql`: the printed statement against the build that it stands for.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::joins::{KEY, definition, two_sectors};
use crate::support::program::{Outcome, Place, builds};
use crate::support::python;
use crate::support::scripted::{Scripted, json as answer};

/// Statements in a dialect, and the files that were built for them.
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
        // A format other than that of the definition makes an ad hoc build.
        let build = ["build", name, "-q", "--format", "parquet"];
        place.run(build.iter().chain(options)).succeeded();
        let built = builds(place, name).into_iter().find(|build| !before.contains(build));
        let folder = built.unwrap_or_else(|| place.file(&format!("output/datasets/{name}/latest")));
        let statement = ["sql", name, "--dialect", self.dialect];
        let statement = place.run(statement.iter().chain(options)).succeeded().stdout;
        let path = place.file(&format!("{}.sql", self.listed.len()));
        fs::write(&path, &statement).expect("a file");
        self.listed.push(json!({ "sql": path, "dataset": folder.join(format!("{name}.parquet")) }));
        statement
    }

    /// Compares the rows of all statements with those that were built.
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

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines").join(name).with_extension("toml")
}

#[test]
fn the_sql_of_the_shipped_definitions_computes_their_datasets() {
    let (place, mut cases) = (Place::new(), Cases::of("duckdb"));
    for name in ["demo", "nightly", "notebook"] {
        place.define(name, &fs::read_to_string(shipped(name)).expect("a definition"));
        place.run(["run", name, "-q"]).succeeded();
        let statement = cases.add(&place, name, &[]);
        assert!(statement.lines().count() <= 110, "{statement}");
    }
    cases.check();
}

/// Messy data with every kind of lag, window and filter.
fn messy_data(cases: &mut Cases) -> Place {
    let (place, service) = (Place::new(), two_sectors(0));
    let all = "stats = [\"count\", \"mean\", \"min\", \"max\", \"std\", \"last\", \"days_since\"]";
    for (name, join, sentiment, rest) in [
        ("days", "lag = \"2d\"", "", "[output]\nsort = [\"date\", \"confidence\"]\n"),
        ("same", "lag = \"0d\"", "duplicates = \"keep\"", ""),
        ("trading", "lag = \"3 trading days\"", "", "[filter]\nfrom = \"2025-11-10\"\nto = \"2026-01-15\"\n"),
        ("seen", "availability = \"observed\"\nlag = \"1 trading day\"", "", "[filter]\nsectors = [\"y\"]\n"),
    ] {
        let rest =
            format!("[sentiment]\n{sentiment}\n[join]\n{join}\nwindows = [\"1d\", \"9d\", \"120d\"]\n{all}\n{rest}");
        place.define(name, &definition(&service, &rest));
        Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).succeeded();
        cases.add(&place, name, &[]);
        cases.add(&place, name, &["--vintage", "first"]);
    }
    place
}

/// Halves of a billionth are rounded away from zero, sums of negative numbers beyond 2^53 are rounded once, and scores too
/// large for exact integers have no mean or deviation.
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
    let service = Scripted::start(move |asked| {
        if !asked.target.contains("news_articles") {
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
             [join]\nwindows = [\"1d\", \"2d\", \"5d\"]\nstats = [\"count\", \"mean\", \"min\", \"max\", \"std\"]\n",
            service.source()
        ),
    );
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).succeeded();
    cases.add(&place, "it", &[]);
    place
}

#[test]
fn duckdb_matches_messy_data_and_odd_scores_to_the_last_bit() {
    let mut cases = Cases::of("duckdb");
    let _places = [messy_data(&mut cases), odd_scores(&mut cases)];
    cases.check();
}

#[test]
fn spark_matches_messy_data_and_odd_scores_to_the_last_bit() {
    let mut cases = Cases::of("spark");
    let _places = [messy_data(&mut cases), odd_scores(&mut cases)];
    cases.check();
}

#[test]
fn a_statement_contains_the_documented_archive_query() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"utilities\"]\n");
    place.run(["run", "it", "-q"]).succeeded();
    let options = ["--as-of", "2100-01-01T00:00:00Z", "--archive", "s3://bucket/archive/"];
    let statement = place.run(["sql", "it"].iter().chain(&options)).succeeded().stdout;
    let documentation = include_str!("../../src/archive/mod.rs");
    let query = documentation.split("//! ```sql\n").nth(1).and_then(|rest| rest.split("//! ```").next());
    let query = query.expect("a query").replace("//! ", "");
    let query = query
        .replace("output/archive/", "s3://bucket/archive/")
        .replace("2026-03-31T23:59:59Z", "2100-01-01T00:00:00.000000Z");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = words(&query).split("from ( ").nth(1).and_then(|rest| rest.split(" ) where").next().map(str::to_owned));
    let known = known.expect("the observations of each cell, numbered");
    assert!(words(&statement).contains(&known), "{known}\n{statement}");
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
        place.run(["run", name, "-q"]).succeeded();
        let outcome = place.run(["sql", name]).failed_with(1);
        assert!(outcome.stdout.is_empty(), "{}", outcome.stdout);
        assert!(outcome.stderr.contains(expected) && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    }
}
