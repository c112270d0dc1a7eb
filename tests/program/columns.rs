//! The columns of a dataset, their order and their names, in every format and command; and the sectors of tickers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{Outcome, Place, only_build};
use crate::support::python;
use crate::support::rows::{columns, distinct, read};
use crate::support::scripted::{Scripted, ScriptedRequest, json as answer};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

const SIGNALS: &str =
    "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\nsignals.periods = \"5d\"\n";

/// The columns that a factor tool expects.
const FACTOR: &str = "[dataset]\ncolumns = [\"date\", \"ticker\", \"news_mean_7d\", \"confidence\", \"sector\", \"signal\"]\n\
    [dataset.rename]\ndate = \"timestamp\"\nticker = \"asset\"\nconfidence = \"factor\"\nsector = \"group\"\n";

fn run(place: &Place, name: &str) {
    Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
}

fn record(place: &Place, name: &str) -> Value {
    let record = place.file(&format!("output/datasets/{name}/latest/dataset.json"));
    serde_json::from_slice(&fs::read(record).expect("a record")).expect("JSON")
}

#[test]
fn columns_are_the_same_in_every_format_and_command() {
    let place = Place::new();
    place.define("all", &format!("{SIGNALS}dataset.add = \"sector\"\n"));
    run(&place, "all");
    let formats = "[output]\nformat = [\"parquet\", \"csv\", \"arrow\"]\n";
    place.define("factor", &format!("{SIGNALS}{FACTOR}{formats}"));
    let plan = place.run(["check", "factor"]).expect_success().stdout;
    assert!(plan.contains("\ncolumns: 6\n  timestamp     timestamp, microseconds, no time zone\n  asset "), "{plan}");
    assert!(plan.contains("\nsorted by: asset, timestamp\n"), "{plan}");
    place.run(["build", "factor", "-q"]).expect_success();
    for format in ["parquet", "csv", "arrow"] {
        let piped = place.command(["build", "factor", "--format", format, "--output", "-"]).output().unwrap();
        assert!(piped.status.success());
        fs::write(place.file(&format!("piped.{format}")), piped.stdout).unwrap();
    }
    let statement = place.run(["sql", "factor"]).expect_success().stdout;
    fs::write(place.file("factor.sql"), statement).unwrap();
    let folders = "partition_by = [\"sector\", \"ticker\"]\n";
    place.define("folders", &format!("{SIGNALS}{FACTOR}{formats}{folders}"));
    place.run(["build", "folders", "-q"]).expect_success();
    python::check("check_columns.py", [place.path()]);

    let record = record(&place, "factor");
    assert_eq!(record["key"], json!(["asset", "timestamp"]));
    assert_eq!(record["sort"], json!(["asset", "timestamp"]));
    assert_eq!(
        record["columns"][0],
        json!({ "name": "timestamp", "column": "date", "type": "timestamp, microseconds, no time zone", "nullable": false })
    );
    assert_eq!(record["columns"][5], json!({ "name": "signal", "type": "text", "nullable": false }));
    // Commands that read a version use the new names. The service ends its histories with the current day.
    let latest = fs::canonicalize(place.file("output/datasets/factor/latest")).unwrap();
    let dates = distinct(&read(&latest.join("factor.parquet")), "timestamp");
    let day = |from_last: usize| &dates[dates.len() - from_last][.."2026-11-20".len()];
    let shown = place.run(["show", "factor", "--ticker", "XOM", "--from", day(2), "--columns", "asset,factor"]);
    let shown = shown.expect_success().stdout;
    assert!(shown.starts_with("asset  factor\nXOM  ") && shown.lines().count() == 3, "the last two days: {shown}");
    let shown = place.run(["show", "folders", "--ticker", "XOM", "--from", day(2)]).expect_success().stdout;
    assert!(shown.lines().count() == 3 && shown.contains("energy"), "{shown}");
    place.run(["build", "factor", "--to", day(20), "-q"]).expect_success();
    let build = only_build(&place, "factor");
    let differences = place.run(["diff".into(), build, latest]).expect_success().stdout;
    assert!(differences.contains("added") && !differences.contains("removed     1"), "{differences}");
    assert!(differences.contains("changed      0"), "{differences}");
}

#[test]
fn matrices_have_the_names_of_their_columns() {
    let place = Place::new();
    let wide = "[dataset.rename]\ndate = \"day\"\nconfidence = \"factor\"\n[output]\nlayout = \"wide\"\nvalues = [\"confidence\", \"news_mean_7d\"]\n";
    place.define("wide", &format!("{SIGNALS}{wide}"));
    run(&place, "wide");
    let folder = place.file("output/datasets/wide/latest/5d-neutral");
    let factor = read(&folder.join("factor.parquet"));
    assert_eq!(factor.schema().field(0).name(), "day");
    assert!(factor.column_by_name("XOM").is_some() && folder.join("news_mean_7d.parquet").exists());
    assert_eq!(record(&place, "wide")["columns"][1]["name"], "factor");
}

#[test]
fn columns_that_cannot_be_are_refused_where_they_stand() {
    let place = Place::new();
    let cases = [
        ("columns = [\"date\", \"tickr\"]", "no column `tickr`", "did you mean `ticker`?", 20),
        ("columns = [\"date\", \"date\"]", "duplicate column `date`", "remove one", 20),
        (
            "columns = \"date\"\nadd = \"sector\"",
            "`add` has no effect together with `columns`",
            "name the columns in `columns`",
            7,
        ),
        ("rename = { tickr = \"a\" }", "no column `tickr` to rename", "did you mean `ticker`?", 20),
        ("rename = { ticker = \"date\" }", "duplicate column `date`", "remove one", 21),
        ("rename = { ticker = \"\" }", "no name for a column", "use 1 to 64 characters", 21),
        ("columns = [\"date\"]\nrename = { ticker = \"a\" }", "no column `ticker` to rename", "the columns are", 21),
        (
            "columns = \"date\"\n[output]\npartition_by = \"ticker\"",
            "`columns` leaves out `ticker`",
            "add it to `columns`",
            16,
        ),
        (
            "columns = \"date\"\n[output]\nlayout = \"wide\"",
            "`columns` has no effect on a wide dataset",
            "`values`",
            11,
        ),
        ("[output]\ncolumns = \"revisions\"", "unknown key `columns` in `[output]`", "`add` in `[dataset]`", 1),
    ];
    for (text, expected, hint, column) in cases {
        place.define("odd", &format!("{SIGNALS}[dataset]\n{text}\n"));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {expected}\n")) && shown.contains(hint), "{text}\n{shown}");
        assert!(
            shown.lines().any(|line| line.starts_with(" --> ") && line.ends_with(&format!(":{column}"))),
            "{shown}"
        );
    }
    let periods = "signals.periods = \"5d\"\n";
    let several = SIGNALS.replace(periods, "signals.periods = [\"5d\", \"1m\"]\n");
    place.define("loose", &format!("{several}dataset.columns = [\"date\", \"ticker\", \"confidence\"]\n"));
    let shown = place.run(["check", "loose"]).expect_success();
    assert!(shown.stderr.contains("`columns` leaves out a column that tells rows apart"), "{}", shown.stderr);
    run(&place, "loose");
    assert_eq!(record(&place, "loose")["key"], Value::Null);
    let version = fs::canonicalize(place.file("output/datasets/loose/latest")).unwrap();
    place.run(["build", "loose", "--to", "2026-11-01", "-q"]).expect_success();
    let shown = place.run(["diff".into(), only_build(&place, "loose"), version]).failed_with(1).stderr;
    assert!(shown.contains("have no key: `columns` in its definition leaves out one of its columns\n"), "{shown}");
}

/// The histories of some tickers: a signal of the first day, and from the second day on one of that day.
fn histories(tickers: &[&str], period: &str, is_first: bool) -> String {
    let entry = |day: u32| format!("{{\"date\":\"2026-11-{day}T00:00:00\",\"signal\":\"buy\",\"confidence\":0.5}}");
    let entries = if is_first { entry(20) } else { format!("{},{}", entry(20), entry(23)) };
    let history = |ticker: &&str| {
        format!(
            "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"period\":\"{period}\",\"regime\":\"neutral\",\"predictions\":[{entries}]}}"
        )
    };
    format!("{{{}}}", tickers.iter().map(history).collect::<Vec<_>>().join(","))
}

/// A service whose two sectors list `TWO`. On the second day `OLD` leaves the first sector, and `MOVED` goes from the first
/// to the second.
fn moving_sectors() -> Scripted {
    Scripted::of_histories(|ScriptedRequest { target, before }| {
        let is_first = *before == 0;
        let period = if target.contains("period=5d") { "5d" } else { "15d" };
        let listed: &[&str] = match (target.contains("sector=alpha"), is_first) {
            (true, true) => &["ONE", "TWO", "OLD", "MOVED"],
            (true, false) => &["ONE", "TWO"],
            (false, true) => &["TWO", "THREE"],
            (false, false) => &["TWO", "THREE", "MOVED"],
        };
        answer("200 OK", &histories(listed, period, is_first))
    })
}

/// The sectors of each ticker's rows, when they were first seen and now.
fn sectors(path: &Path) -> BTreeMap<String, Vec<[String; 2]>> {
    let mut found: BTreeMap<String, Vec<[String; 2]>> = BTreeMap::new();
    for [ticker, sector, latest] in columns(&read(path), ["ticker", "sector", "sector_latest"]) {
        found.entry(ticker).or_default().push([sector, latest]);
    }
    found
}

const OF_SECTORS: &str = "[signals]\nsectors = [\"beta\", \"alpha\"]\n[dataset]\nadd = [\"sector\", \"sector_latest\"]\n\
                          [checks]\nuniverse = 1\n";

#[test]
fn a_row_has_the_sector_of_its_ticker_when_it_was_seen() {
    let (place, service) = (Place::new(), moving_sectors());
    place.define("it", &format!("[source]\n{}{OF_SECTORS}", service.source()));
    run(&place, "it");
    let first = place.run(["list", "runs", "--json"]).expect_success().stdout;
    let first: Value = serde_json::from_str(&first).unwrap();
    let sealed = first["runs"][0]["sealed_at"].as_str().unwrap().to_owned();
    let latest = place.file("output/datasets/it/latest/it.parquet");
    let [alpha, beta] = ["alpha", "beta"];
    let of = |sectors: [(&str, &[[&str; 2]]); 5]| -> BTreeMap<String, Vec<[String; 2]>> {
        sectors
            .map(|(ticker, rows)| (ticker.to_owned(), rows.iter().map(|row| row.map(str::to_owned)).collect()))
            .into()
    };
    let before = of([
        ("MOVED", &[[alpha, alpha]]),
        ("OLD", &[[alpha, alpha]]),
        ("ONE", &[[alpha, alpha]]),
        ("THREE", &[[beta, beta]]),
        ("TWO", &[[alpha, alpha]]),
    ]);
    assert_eq!(sectors(&latest), before);
    run(&place, "it");
    let after = of([
        ("MOVED", &[[alpha, beta], [beta, beta]]),
        ("OLD", &[[alpha, alpha]]),
        ("ONE", &[[alpha, alpha], [alpha, alpha]]),
        ("THREE", &[[beta, beta], [beta, beta]]),
        ("TWO", &[[alpha, alpha], [alpha, alpha]]),
    ]);
    assert_eq!(sectors(&latest), after);
    place.run(["build", "it", "--as-of", &sealed, "-q"]).expect_success();
    assert_eq!(sectors(&only_build(&place, "it").join("it.parquet")), before);
    // A filter selects a ticker by any of its sectors, and the columns do not change.
    let filtered = OF_SECTORS.replace("[checks]", "[filter]\nsectors = \"beta\"\n[checks]");
    place.define("beta", &format!("[source]\n{}{filtered}", service.source()));
    place.run(["build", "beta", "-q"]).expect_success();
    let mut selected = after;
    selected.retain(|ticker, _| ["MOVED", "THREE", "TWO"].contains(&ticker.as_str()));
    assert_eq!(sectors(&place.file("output/datasets/beta/latest/beta.parquet")), selected);
}

#[test]
fn a_ticker_that_moves_to_the_sector_of_another_definition_keeps_its_past() {
    let (place, service) = (Place::new(), moving_sectors());
    let of =
        |sector: &str| format!("[source]\n{}{}", service.source(), OF_SECTORS.replace("\"beta\", \"alpha\"", sector));
    place.define("alpha", &of("\"alpha\""));
    place.define("beta", &of("\"beta\""));
    for name in ["alpha", "alpha", "beta", "beta", "alpha"] {
        run(&place, name);
    }
    let all = |path: &Path| sectors(path).into_keys().collect::<Vec<_>>();
    assert_eq!(all(&place.file("output/datasets/alpha/latest/alpha.parquet")), ["MOVED", "OLD", "ONE", "TWO"]);
    place.run(["build", "alpha", "--vintage", "first", "-q"]).expect_success();
    assert_eq!(all(&only_build(&place, "alpha").join("alpha.parquet")), ["MOVED", "OLD", "ONE", "TWO"]);
    place.run(["show", "alpha", "--ticker", "MOVED"]).expect_success();
}

#[test]
fn a_listing_that_the_definition_does_not_ask_for_any_more_keeps_no_ticker_in_its_sector() {
    let (place, service) = (Place::new(), moving_sectors());
    let both = OF_SECTORS.replace("[dataset]", "periods = [\"15d\", \"5d\"]\n[dataset]");
    place.define("it", &format!("[source]\n{}{both}", service.source()));
    run(&place, "it");
    place.define("it", &format!("[source]\n{}{OF_SECTORS}", service.source()));
    run(&place, "it");
    let found = sectors(&place.file("output/datasets/it/latest/it.parquet"));
    assert_eq!(found["MOVED"], [["alpha", "beta"], ["beta", "beta"]].map(|row| row.map(str::to_owned)));
}

#[test]
fn a_ticker_outside_all_sectors_has_none_and_is_noted() {
    let place = Place::new();
    let definition = "source.service = \"demo\"\n[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\", \"NEE\"]\n[dataset]\nadd = [\"sector\", \"sector_latest\"]\n";
    place.define("alone", definition);
    let shown = Outcome::of(place.command(["run", "alone"]).envs([KEY])).expect_success().stdout;
    assert!(shown.contains("note      no sector lists 2 tickers: NEE, XOM\n"), "{shown}");
    let rows = read(&place.file("output/datasets/alone/latest/alone.parquet"));
    assert!(distinct(&rows, "sector").is_empty(), "none is known");
    // Another definition with the same archive requests a sector.
    place.define("energy", "source.service = \"demo\"\nsignals.sectors = \"energy\"\n");
    run(&place, "energy");
    let shown = place.run(["build", "alone"]).expect_success().stdout;
    assert!(shown.contains("note      no sector lists 1 ticker: NEE\n"), "{shown}");
    let rows = read(&place.file("output/datasets/alone/latest/alone.parquet"));
    // It was not known when the signals were first seen.
    assert_eq!((distinct(&rows, "sector").len(), distinct(&rows, "sector_latest")), (0, vec!["energy".to_owned()]));
}

#[test]
fn categories_of_arrow_are_the_names_that_occur() {
    let place = Place::new();
    let definition = SIGNALS.replace("\"5d\"", "[\"5d\", \"1m\"]");
    let more = "signals.regimes = \"bull\"\ndataset.add = \"source\"\noutput.format = \"arrow\"\n";
    place.define("it", &format!("{definition}{more}"));
    run(&place, "it");
    let piped = place.command(["build", "it", "--output", "-"]).output().expect("the program starts");
    assert!(piped.status.success());
    fs::write(place.file("piped.arrow"), piped.stdout).expect("what was piped");
    python::check("check_categories.py", [place.path()]);
}
