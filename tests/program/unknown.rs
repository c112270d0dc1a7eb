//! Unknown is not zero: what was never asked for, refused or cut off is null, in builds and in SQL. And what falls apart by
//! date is noticed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::Place;
use crate::support::python;
use crate::support::rows::{columns, numbers, read};
use crate::support::scripted::{self, Scripted};

const TICKERS: [&str; 5] = ["CUT", "LATE", "LISTED", "NONE", "OTHER"];

/// The evening of a day in 2026.
fn evening(day: &str) -> DateTime<Utc> {
    format!("2026-03-{day}T21:00:00Z").parse().expect("an instant")
}

fn articles(days: &[&str]) -> String {
    let article = |day: &&str| json!({ "date": format!("2026-03-{day}"), "title": day, "score": 0.5, "link": "l" });
    Value::Array(days.iter().map(article).collect()).to_string()
}

/// A service whose signals are dated from the 3rd to the 10th, and on the second day on the 11th as well.
fn service(day: Arc<AtomicUsize>) -> Scripted {
    Scripted::start(move |request| {
        let is_second = day.load(Ordering::SeqCst) > 0;
        let Some((_, ticker)) = request.target.split_once("news_articles/") else {
            let dates = (3..=if is_second { 11 } else { 10 }).map(|day| format!("2026-03-{day:02}"));
            let entries: Vec<Value> =
                dates.map(|date| json!({ "date": date, "signal": "buy", "confidence": 0.5 })).collect();
            let history =
                |ticker| json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries });
            let all: BTreeMap<&str, Value> = TICKERS.map(|ticker| (ticker, history(ticker))).into();
            return scripted::json("200 OK", &json!(all).to_string());
        };
        match ticker.split('?').next().expect("a ticker") {
            "CUT" => scripted::json("200 OK", &articles(&["08", "05"])),
            // Nothing was listed before, so there was nothing.
            "LATE" if is_second => scripted::json("200 OK", &articles(&["10"])),
            "LATE" | "NONE" => scripted::json("200 OK", "[]"),
            "LISTED" if is_second => scripted::json("404 Not Found", "{}"),
            "LISTED" => scripted::json("200 OK", "[]"),
            _ => scripted::json("200 OK", &articles(&["04"])),
        }
    })
}

fn definition(service: &Scripted, sentiment: &str) -> String {
    format!(
        "[source]\n{}api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
         [checks]\nmissing = \"warn\"\n[sentiment]\n{sentiment}[join]\nwindows = [\"1d\", \"3d\"]\nstats = [\"count\", \"mean\"]\n",
        service.source()
    )
}

/// The count of a window of each day, with `-` where it is unknown.
fn counts(place: &Place, name: &str, column: &str) -> BTreeMap<String, String> {
    let rows = read(&place.file(&format!("output/datasets/{name}/latest/{name}.parquet")));
    let shown = numbers(&rows, column).map(|count| count.map_or_else(|| "-".to_owned(), |count| count.to_string()));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for ([ticker], count) in columns(&rows, ["ticker"]).into_iter().zip(shown) {
        found.entry(ticker).or_default().push_str(&count);
    }
    found
}

#[test]
fn a_window_is_unknown_unless_the_vendor_told_of_it() {
    let (place, day) = (Place::new(), Arc::new(AtomicUsize::new(0)));
    let service = service(Arc::clone(&day));
    fs::write(place.file("key"), "demo").expect("a key");
    let asked = "tickers = [\"CUT\", \"LATE\", \"LISTED\", \"NONE\"]\n";
    place.define("it", &definition(&service, asked));
    place.define("whole", &definition(&service, &format!("{asked}complete = true\n")));
    place.define("other", &definition(&service, "tickers = \"OTHER\"\n"));
    let runtime = Runtime::new().expect("a runtime");
    let run = |name: &str, now: DateTime<Utc>| {
        let project = Project::at(place.path()).expect("a project");
        let options = Options { clock: Clock::Fixed(now), ..Options::new(place.file("output")) };
        runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options)).expect("it runs");
    };
    let expect = |name: &str, column: &str, expected: [&str; 5]| {
        let found = counts(&place, name, column);
        let expected: BTreeMap<String, String> =
            TICKERS.iter().zip(expected).map(|(ticker, counts)| ((*ticker).to_owned(), counts.to_owned())).collect();
        assert_eq!(found, expected, "{name}, {column}");
    };
    run("other", evening("10"));
    run("it", evening("10") + TimeDelta::minutes(10));
    // What lists tell of begins after the day of their oldest article. Nobody asked for the news of the last ticker here.
    expect("it", "news_count_1d", ["----0010", "00000000", "00000000", "00000000", "--------"]);
    expect("it", "news_count_3d", ["------11", "00000000", "00000000", "00000000", "--------"]);
    expect("other", "news_count_1d", ["--------", "--------", "--------", "--------", "---00000"]);

    day.store(1, Ordering::SeqCst);
    run("it", evening("12"));
    // The news of a ticker is refused now, and was last known on the 10th.
    expect("it", "news_count_1d", ["----00100", "000000001", "00000000-", "000000000", "---------"]);
    run("whole", evening("13"));
    expect("whole", "news_count_1d", ["000100100", "000000001", "00000000-", "000000000", "---------"]);

    let cases: Vec<Value> = ["it", "whole", "other"]
        .map(|name| {
            let statement = place.run(["sql", name]).expect_success().stdout;
            let sql = place.file(&format!("{name}.sql"));
            fs::write(&sql, statement).expect("a file");
            place.run(["build", name, "-q"]).expect_success();
            json!({ "sql": sql, "dataset": place.file(&format!("output/datasets/{name}/latest/{name}.parquet")) })
        })
        .into();
    fs::write(place.file("cases.json"), json!(cases).to_string()).expect("a file");
    python::check("check_sql.py", ["duckdb", place.file("cases.json").to_str().expect("a path")]);

    // How much is unknown is said where people look.
    let plan = place.run(["check", "it"]).expect_success().stdout;
    let column = plan.lines().find(|line| line.contains("news_count_1d")).expect("the column");
    assert!(column.ends_with("may be null, unknown for 31.1 % of the latest version"), "{plan}");
    let plan: Value =
        serde_json::from_str(&place.run(["check", "it", "--json"]).expect_success().stdout).expect("JSON");
    let of = |name: &str| {
        let columns = plan["definitions"][0]["plan"]["columns"].as_array().expect("columns");
        columns.iter().find(|column| column["name"] == name).expect("the column")["unknown"].clone()
    };
    assert_eq!((of("news_count_1d"), of("ticker")), (json!(14.0 / 45.0), Value::Null));
    let quality = place.run(["audit", "quality", "it"]).expect_success().stdout;
    assert!(quality.contains("unknown") && !quality.contains("seems to cut them off"), "{quality}");
    let summary = place.run(["report", "--text", "it"]).expect_success().stdout;
    assert!(summary.contains("News is unknown for"), "{summary}");
}

/// Some tickers are dated in UTC, others in New York.
fn two_clocks() -> Scripted {
    Scripted::of_histories(|_| {
        let history = |(ticker, offset): (&str, &str)| {
            let dates = (2..7).map(|day| format!("2026-03-{day:02}T00:00:00{offset}"));
            let entries: Vec<Value> =
                dates.map(|date| json!({ "date": date, "signal": "buy", "confidence": 0.5 })).collect();
            (ticker.to_owned(), json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries }))
        };
        let all: BTreeMap<String, Value> = [("AAA", "Z"), ("BBB", "Z"), ("NYC", "-05:00")].map(history).into();
        scripted::json("200 OK", &json!(all).to_string())
    })
}

#[test]
fn tickers_that_are_dated_by_another_clock_are_noticed_with_the_remedy() {
    let (place, service) = (Place::new(), two_clocks());
    fs::write(place.file("key"), "demo").expect("a key");
    let definition = |rest: &str| {
        format!(
            "[source]\n{}api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
             [dataset]\nkind = \"signals\"\n{rest}",
            service.source()
        )
    };
    place.define("it", &definition(""));
    place.define("wall", &definition("[dates]\nnaive = \"wall\"\n"));
    let finding = "1 of 3 tickers are dated at 05:00, others at 00:00: a day's signals are on two dates; `naive = \"wall\"` in \
                   `[dates]` dates signals as they are written";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&place.run(["run", "it"]).expect_success().stdout).contains(finding));
    assert!(words(&place.run(["check", "it"]).expect_success().stderr).contains(finding));
    assert!(words(&place.run(["audit", "quality", "it"]).expect_success().stdout).contains(finding));
    for command in [&["run", "wall"][..], &["check", "wall"], &["audit", "quality", "wall"]] {
        let shown = place.run(command).expect_success();
        assert!(!shown.stdout.contains("two dates") && !shown.stderr.contains("two dates"), "{}", shown.stdout);
    }
}
