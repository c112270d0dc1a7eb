//! Which values of a table had been published by the time of decision: compared with a brute force in Python on the files of
//! an archive that saw values revised, withdrawn, listed again and added late.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::time::Clock;
use chrono::{Days, NaiveDate};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::days::evening;
use crate::support::program::Place;
use crate::support::python;
use crate::support::scripted::{self, Scripted};
use crate::support::service::day;

/// The evenings on which the service is asked: the archive knows nothing of those in between.
fn evenings() -> [NaiveDate; 7] {
    [20, 21, 22, 25, 29, 30, 31].map(|date| day(2026, 1, date))
}

/// A number that looks random.
fn mixed(parts: [usize; 4]) -> usize {
    let mix = |state: u64, part: &usize| (state ^ *part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (parts.iter().fold(7, mix) >> 20) as usize
}

/// What the service lists on an evening: dates up to it, some of which have another value each evening or are not listed.
fn history(series: usize, turn: usize) -> Value {
    let today = evenings()[turn];
    let first = day(2026, 1, 5);
    // For two evenings, a series begins later.
    let begins = if series % 3 == 1 && (2..4).contains(&turn) { 6 } else { 0 };
    let mut entries = Vec::new();
    for (number, date) in first.iter_days().take_while(|date| *date <= today).enumerate().skip(begins) {
        // A value changes on some evenings, and sometimes back.
        let changes = (0..=turn).rev().find(|turn| mixed([series, number, *turn, 1]).is_multiple_of(6)).unwrap_or(0);
        let value = mixed([series, number, changes, 2]);
        if value.is_multiple_of(11) || number % 7 == 6 {
            continue;
        }
        let signal = if value.is_multiple_of(2) { "buy" } else { "sell" };
        entries.push(json!({ "date": date.to_string(), "signal": signal, "confidence": (value % 4 + 1) as f64 / 7.0 }));
    }
    Value::Array(entries)
}

/// The news of a ticker on an evening, newest first.
fn news(ticker: usize, turn: usize) -> Value {
    let (today, first) = (evenings()[turn], day(2026, 1, 5));
    let mut articles = Vec::new();
    for (number, date) in first.iter_days().take_while(|date| *date <= today).enumerate() {
        let value = mixed([ticker, number, turn / 2, 3]);
        if !value.is_multiple_of(9) {
            let score = (value % 5) as f64 / 3.0;
            articles.push(json!({ "date": date.to_string(), "title": format!("Of {date}"), "link": "https://it/", "score": score }));
        }
    }
    articles.reverse();
    Value::Array(articles)
}

const TICKERS: [&str; 4] = ["AAA", "BBB", "CCC", "DDD"];

/// An archive of several evenings, and a definition of it.
pub(crate) fn lived() -> Place {
    let (place, turn) = (Place::new(), Arc::new(AtomicUsize::new(0)));
    let now = Arc::clone(&turn);
    let service = Scripted::start(move |request| {
        let turn = now.load(Ordering::SeqCst);
        if let Some((_, rest)) = request.target.split_once("news_articles/") {
            let ticker = TICKERS.iter().position(|ticker| rest.starts_with(ticker)).expect("a ticker");
            return scripted::json("200 OK", &news(ticker, turn).to_string());
        }
        let period = if request.target.contains("period=5d") { "5d" } else { "1m" };
        let of_ticker = |(number, ticker): (usize, &&str)| {
            let series = 2 * number + usize::from(period == "1m");
            let entries = history(series, turn);
            (
                ticker.to_string(),
                json!({ "ticker": ticker, "regime": "bull", "period": period, "predictions": entries }),
            )
        };
        // One ticker is listed later.
        let listed = TICKERS.iter().enumerate().filter(|(number, _)| *number < 3 || turn > 1);
        let answer: serde_json::Map<String, Value> = listed.map(of_ticker).collect();
        scripted::json("200 OK", &Value::Object(answer).to_string())
    });
    fs::write(place.file("key"), "scripted").expect("a key");
    let text = format!(
        "[source]\n{}api_key_file = {:?}\n[signals]\nsectors = \"energy\"\nperiods = [\"5d\", \"1m\"]\nregimes = \"bull\"\n\
         [checks]\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\n",
        service.source(),
        place.file("key")
    );
    let runtime = Runtime::new().expect("a runtime");
    for (number, today) in evenings().into_iter().enumerate() {
        turn.store(number, Ordering::SeqCst);
        let plan = Plan::of(DefinitionFile::new("it.toml".into(), text.clone()).expect("a name")).expect("a plan");
        let options = Options { clock: Clock::Fixed(evening(today)), ..Options::new(place.file("output")) };
        runtime.block_on(run(plan, options)).expect("a run");
    }
    place.define("it", &text);
    place.define("one", &text.replace("[\"5d\", \"1m\"]", "\"5d\""));
    place
}

#[test]
fn every_value_is_judged_as_a_brute_force_over_the_archive_judges_it() {
    let place = lived();
    let arguments = [env!("CARGO_BIN_EXE_bellwether").into(), place.file("."), place.file("output/archive/vendor")];
    python::check("check_table.py", &arguments);
    // The same after packing.
    place.pack();
    place.prune_packed();
    python::check("check_table.py", &arguments);
}

#[test]
fn the_dataset_as_it_was_known_has_no_look_ahead_and_the_revised_one_has() {
    let place = lived();
    let audit = |arguments: &[&str]| -> Value {
        let words = ["audit", "table"].iter().chain(arguments).chain(&["--json"]);
        serde_json::from_str(&place.run(words).expect_success().stdout).expect("JSON")
    };
    // What was first published was known when it was first observed, and is what was known then.
    let built = |vintage: &str, file: &str| {
        place.run(["build", "seen", "--vintage", vintage, "--output", file, "-q"]).expect_success();
    };
    let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
    let seen = format!(
        "{text}[dataset]\nkind = \"signals\"\nadd = \"first_observed_at\"\nrename = {{ confidence = \"ci\" }}\n"
    );
    place.define("seen", &seen);
    built("first", "first.parquet");
    built("latest", "latest.csv");
    let first = audit(&["first.parquet", "seen", "--decided-at", "first_observed_at"]);
    assert!(first["total"]["values"].as_u64() > Some(200), "{first}");
    assert_eq!(first["total"]["known"], first["total"]["values"], "{first}");
    assert_eq!(first["columns"].as_array().map(Vec::len), Some(3), "{first}");
    assert_eq!(first["columns"][1]["name"], "ci", "{first}");
    let verdict = first["verdict"][0].as_str().expect("a sentence");
    assert!(
        verdict.starts_with("All ") && verdict.ends_with("had been published by the time of decision."),
        "{verdict}"
    );
    let latest = audit(&["latest.csv", "seen", "--decided-at", "first_observed_at"]);
    assert!(latest["total"]["late"].as_u64() > Some(20), "{latest}");
    assert_eq!(latest["total"]["never"], 0, "{latest}");
    let limited = |share: &str| {
        let words =
            ["audit", "table", "latest.csv", "seen", "--decided-at", "first_observed_at", "--fail-above", share];
        place.run(words)
    };
    let above = limited("0%").failed_with(3);
    assert!(above.stdout.contains("had not been published by the time of decision: look-ahead."), "{}", above.stdout);
    assert!(above.stderr.contains("were late or never published, above the limit of 0 %"), "{}", above.stderr);
    limited("100%").expect_success();
}

#[test]
fn a_table_that_cannot_be_read_says_why_and_what_to_do() {
    let place = lived();
    let refused = |rows: &str, rest: &[&str], expected: &str| {
        fs::write(place.file("it.csv"), rows).expect("a table");
        let words = ["audit", "table", "it.csv", "it"].iter().chain(rest);
        let outcome = place.run(words);
        assert!(matches!(outcome.code, Some(1 | 2)), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
    };
    let head = "ticker,date,period,regime,confidence\n";
    refused("day,confidence\n", &[], "has no column `ticker`");
    refused("ticker,day,confidence\n", &[], "hint: name the column with `--date COLUMN`");
    refused(
        "ticker,date,period\n",
        &[],
        "has no column `signal`, `confidence` or `score`: it has `ticker`, `date`, `period`",
    );
    refused("ticker,date,confidence\nAAA,2026-01-05,0.5\n", &[], "hint: say it with `--period`, or add the column");
    refused(&format!("{head}AAA,2026-01-05,7w,bull,1\n"), &[], "row 1 of `it.csv`: unknown period `7w`");
    refused(&format!("{head}AAA,2026-01-05,5d,calm,1\n"), &[], "hint: regimes are neutral, bear and bull");
    refused(&format!("{head}AAA,yesterday,5d,bull,1\n"), &[], "row 1 of `it.csv`: `yesterday` is not a valid date");
    refused(&format!("{head}AAA,,5d,bull,1\n"), &[], "row 1 of `it.csv`: no value in `date`");
    refused(&format!("{head},2026-01-05,5d,bull,1\n"), &[], "row 1 of `it.csv`: no ticker");
    refused(&format!("{head}AAA,2026-01-05,5d,bull,high\n"), &[], "row 1 of `it.csv`: `high` is no confidence");
    refused(&format!("{head}AAA,2026-01-05T00:00:00Z,5d,bull,1\n"), &[], "not the dates of signals");
    refused(&format!("{head}AAA,2026-01-05,5d,bull,1\n"), &["--period", "5d"], "`--period` beside the column `period`");
    let timed = "ticker,date,decided_at,confidence\nAAA,2026-01-05,2026-01-05T16:00:00,1\n";
    refused(timed, &["--period", "5d", "--at", "16:00 America/New_York"], "`--at` has no effect: column `decided_at`");
    place.define(
        "plain",
        &format!(
            "{}[dataset]\nkind = \"signals\"\n",
            fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition")
        ),
    );
    let words = ["audit", "table", "it.csv", "plain", "--features"];
    assert!(place.run(words).failed_with(2).stderr.contains("features of the news need a definition that has them"));
    let words = ["audit", "table", "it.txt", "it"];
    assert!(place.run(words).failed_with(2).stderr.contains("tables are read from `.parquet`, `.csv` and `.arrow`"));
    let words = ["audit", "table", "none.csv", "it"];
    assert!(place.run(words).failed_with(1).stderr.contains("none.csv"));
    // The definition's only period is that of the table; a day counts to its end, and says so.
    fs::write(place.file("it.csv"), format!("ticker,date,confidence\nAAA,{},0.5\n", evenings()[0] + Days::new(1)))
        .expect("a table");
    let shown = place.run(["audit", "table", "it.csv", "one"]).expect_success().stdout;
    assert!(shown.contains("decided at the end of the day in `date`, in UTC"), "{shown}");
}
