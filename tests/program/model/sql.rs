//! Printed SQL statements against builds: random definitions and archives, as of random instants, run by DuckDB.

use std::fs;

use bellwether::definition::DefinitionFile;
use bellwether::error::ErrorKind;
use bellwether::harness::{pack, prune_packed};
use bellwether::plan::{AdHoc, Plan, Vintage};
use bellwether::run::{self, BuildOptions, CancellationToken, Control, SqlOptions};
use bellwether::sql::Dialect;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::vendor::TICKERS;
use super::{World, packs, sequences};
use crate::support::python;
use crate::support::random::Random;
use crate::support::{choices, window_statistics};

/// A random choice of values, as a TOML list.
fn some_of(random: &mut Random, values: &[&str], least: usize) -> String {
    let mut values = values.to_vec();
    random.shuffle(&mut values);
    values.truncate(random.between(least, values.len()));
    format!("{values:?}")
}

/// A random definition: everything that determines its dataset.
fn definition(random: &mut Random) -> String {
    let mut text = String::new();
    let sources = random.pick(&["\"articles\"", "\"articles\"", "\"articles\", \"summary\"", "\"summary\"", ""]);
    if sources.contains("articles") && random.one_in(2) {
        text.push_str("duplicates = \"keep\"\n");
    }
    if sources.contains("articles") && random.one_in(3) {
        text.push_str("complete = true\n");
    }
    if !sources.is_empty() && random.one_in(4) {
        text.push_str(&format!("tickers = {}\n", some_of(random, &TICKERS, 1)));
    }
    if sources.is_empty() {
        text.push_str("articles = false\n");
    } else {
        let lag = random.pick(&["0d", "1d", "1d", "2d", "40d"]);
        let availability = random.pick(&["dated", "observed"]);
        text.push_str(&format!("[join]\nsources = [{sources}]\nlag = \"{lag}\"\navailability = \"{availability}\"\n"));
    }
    if sources.contains("articles") {
        let windows = some_of(random, &["1d", "2d", "30d", "150d", "400d"], 1);
        let all = choices("Statistic");
        let statistics = some_of(random, &all.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        let has_windows = window_statistics().iter().any(|name| statistics.contains(name));
        text.push_str(&format!("stats = {statistics}\n"));
        if statistics.contains("decay") {
            text.push_str(&format!("half_lives = {}\n", some_of(random, &["1d", "3d", "50d"], 1)));
        }
        if has_windows {
            text.push_str(&format!("windows = {windows}\n"));
        }
    }
    if random.one_in(2) {
        text.push_str("[filter]\n");
        text.push_str(random.pick(&[
            "",
            "periods = [\"5d\"]\n",
            "sectors = [\"energy\"]\nperiods = [\"15d\", \"5d\"]\n",
        ]));
        text.push_str(random.pick(&["", "from = \"2005-03-01\"\n", "to = \"2006-06-30\"\n"]));
        text.push_str(random.pick(&["", "", "signal = \"buy\"\n", "signal = \"sell\"\n"]));
        text.push_str(random.pick(&["", "", "min_confidence = 0.5\n", "min_confidence = 0.25\n"]));
    }
    let columns = [
        "first_observed_at",
        "observed_at",
        "revisions",
        "backfilled",
        "source",
        "id",
        "sector",
        "sector_latest",
        "watched_until",
    ];
    let columns = if random.one_in(2) { some_of(random, &columns, 1) } else { some_of(random, &columns[4..], 1) };
    let rename = random.pick(&["", "rename = { ticker = \"asset\", date = \"order\", confidence = \"a \\\"b`\" }\n"]);
    let sort = some_of(random, &["date", "ticker", "regime", "period", "signal", "confidence"], 1);
    let vintage = random.pick(&["latest", "first"]);
    let live_within = random.pick(&["0d", "3d", "400d"]);
    text.push_str(&format!("[dataset]\nadd = {columns}\n{rename}[output]\nsort = {sort}\nvintage = \"{vintage}\"\n"));
    if columns.contains("backfilled") {
        text.push_str(&format!("live_within = \"{live_within}\"\n"));
    }
    if columns.contains("\"id\"") {
        text.push_str("[identity]\nfile = \"IDENTITY\"\n");
    }
    text
}

/// One ticker becomes another, a third one is only named on some days, and an id is also a ticker.
const IDENTITY: &str =
    "ticker,from,to,id\nAA,,2005-12-31,it's\nBRK.B,2006-01-01,,it's\nBRK.B,2005-03-01,2005-06-30,B\n";

/// What a definition says of the signals besides, and the line that goes for it.
fn of_signals(random: &mut Random) -> [&'static str; 2] {
    const PERIODS: &str = "periods = [\"15d\", \"5d\"]\n";
    random.pick(&[
        ["", ""],
        ["", ""],
        ["exclude = \"AA\"\n", ""],
        ["exclude = [\"B\", \"BRK.B\"]\n", ""],
        ["pairs = [\"5d neutral\"]\n", PERIODS],
        ["pairs = [\"15d neutral\", \"5d neutral\"]\nexclude = \"B\"\n", PERIODS],
    ])
}

/// The statements and builds of one archive.
pub(super) struct Cases {
    dialect: Dialect,
    listed: Vec<serde_json::Value>,
}

impl Cases {
    /// Builds a dataset and prints its statement.
    fn add(&mut self, world: &World, [signals, text]: [&str; 2], ad_hoc: AdHoc) {
        let number = self.listed.len();
        let plan = || -> Plan {
            let text = format!("{signals}{text}");
            Plan::of(DefinitionFile::new(format!("it{number}.toml").into(), text).expect("a definition"))
                .expect("a plan")
        };
        let archive = world.output().join("archive");
        let options = BuildOptions { ad_hoc: ad_hoc.clone(), ..BuildOptions::new(archive.clone()) };
        let built = world.runtime.block_on(run::build(plan(), world.output(), options));
        let dataset = match built {
            Ok(summary) => Some(summary.dataset.join(format!("it{number}.parquet"))),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{error:?}: {}\n{signals}{text}", world.story),
        };
        let (location, control) = (None, Control::default());
        let options = SqlOptions { archive, location, ad_hoc, dialect: self.dialect, control };
        let statement = match run::sql(plan(), options) {
            Ok(statement) => statement,
            Err(error) if error.kind() == ErrorKind::NotFound && dataset.is_none() => return,
            Err(error) => panic!("{error:?}: {}\n{signals}{text}", world.story),
        };
        let path = world.place.file(&format!("{number}.sql"));
        fs::write(&path, statement + &format!("-- {}", format!("{signals}{text}").replace('\n', "\n-- ")))
            .expect("a file");
        self.listed.push(json!({ "sql": path, "dataset": dataset }));
    }

    /// Tries definitions on the archive, as of now and as of an earlier instant.
    pub(super) fn check(world: &mut World, definitions: usize, dialect: Dialect) {
        let mut cases = Self { dialect, listed: Vec::new() };
        let instants: Vec<DateTime<Utc>> =
            world.model.pulls.iter().filter_map(|pull| DateTime::from_timestamp_micros(pull.at)).collect();
        let identity = world.place.file("identity.csv");
        fs::write(&identity, IDENTITY).expect("a file");
        for _ in 0..definitions {
            let [more, instead] = of_signals(&mut world.random);
            let signals = world.definition().replace(instead, "").replace("[signals]\n", &format!("[signals]\n{more}"));
            let text = definition(&mut world.random);
            let mut text = text.replace("IDENTITY", identity.to_str().expect("a path"));
            if more.contains("[\"5d neutral\"]") {
                text = text.replace("periods = [\"15d\", \"5d\"]", "periods = [\"5d\"]");
            }
            cases.add(world, [&signals, &text], AdHoc::default());
            let at = world.random.pick(&instants);
            let earlier = at - TimeDelta::microseconds(1);
            let as_of = if earlier > instants[0] && world.random.one_in(3) { earlier } else { at };
            let vintage = world.random.pick(&[None, Some(Vintage::First), Some(Vintage::Latest)]);
            cases.add(world, [&signals, &text], AdHoc { as_of: Some(as_of), vintage, ..AdHoc::default() });
        }
        let path = world.place.file("cases.json");
        fs::write(&path, serde_json::to_vec(&cases.listed).expect("JSON")).expect("a file");
        let arguments = [dialect.as_str(), path.to_str().expect("a path")];
        match dialect {
            Dialect::DuckDb => python::check("check_sql.py", arguments),
            Dialect::Spark => python::check_with_spark("check_sql.py", arguments),
        }
    }
}

#[test]
fn a_printed_statement_matches_a_build_for_any_definition_and_archive() {
    for seed in sequences(3) {
        let mut world = World::new(1_000 + seed, true);
        let pulls = world.random.between(2, 12);
        (0..pulls).for_each(|pull| world.go_on(pull));
        Cases::check(&mut world, 12, Dialect::DuckDb);
    }
}

#[test]
fn a_printed_statement_reads_packs_and_runs() {
    let mut world = World::new(77, true);
    (0..40).for_each(|pull| world.go_on(pull));
    assert!(!packs(&world.folder()).is_empty(), "{}", world.story);
    Cases::check(&mut world, 6, Dialect::DuckDb);
    pack(&world.place.file("output/archive"), 3, &CancellationToken::new()).expect("it packs");
    Cases::check(&mut world, 6, Dialect::DuckDb);
    prune_packed(&world.place.file("output/archive")).expect("it prunes");
    Cases::check(&mut world, 6, Dialect::DuckDb);
}

#[test]
fn spark_matches_a_build_for_any_definition_of_a_packed_archive() {
    let mut world = World::new(78, true);
    (0..40).for_each(|pull| world.go_on(pull));
    assert!(!packs(&world.folder()).is_empty(), "{}", world.story);
    Cases::check(&mut world, 2, Dialect::Spark);
}
