//! Live rows are those that could have been used when they were new: seen in time, with all that their features come from.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::{Datelike, NaiveDate, Weekday};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::Place;
use crate::support::python;
use crate::support::rows::{columns, read};
use crate::support::scripted::{self, Scripted};

fn march(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, day).expect("a day")
}

fn is_business_day(day: u32) -> bool {
    !matches!(march(day).weekday(), Weekday::Sat | Weekday::Sun)
}

/// A service that lists a signal of each business day on the next one. Two tickers; the news of the second is refused.
fn service(today: Arc<AtomicU32>) -> Scripted {
    Scripted::start(move |request| {
        let today = today.load(Ordering::SeqCst);
        if request.target.contains("news_articles/BBB") {
            return scripted::json("404 Not Found", "{}");
        }
        if request.target.contains("news_articles/") {
            return scripted::json("200 OK", r#"[{"date":"2026-02-01","title":"t","score":0.5,"link":"l"}]"#);
        }
        let entry = |day: u32| json!({ "date": march(day).to_string(), "signal": "buy", "confidence": 0.5 });
        let entries: Vec<Value> = (2..today).filter(|day| is_business_day(*day)).map(entry).collect();
        let history = |ticker: &str| {
            (ticker.to_owned(), json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries }))
        };
        let all: BTreeMap<String, Value> = ["AAA", "BBB"].map(history).into();
        scripted::json("200 OK", &json!(all).to_string())
    })
}

/// The days of the backfilled rows of a ticker.
fn backfilled_days(place: &Place, name: &str, ticker: &str) -> Vec<u32> {
    let rows = read(&place.file(&format!("output/datasets/{name}/latest/{name}.parquet")));
    let late = columns(&rows, ["ticker", "date", "backfilled"])
        .into_iter()
        .filter(|[of, _, late]| of == ticker && late == "true");
    let day = |date: String| date.split(['-', 'T', ' ']).nth(2).and_then(|day| day.parse().ok()).expect("a day");
    late.map(|[_, date, _]| day(date)).collect()
}

#[test]
fn a_row_is_live_if_it_was_seen_in_time_with_all_that_its_features_come_from() {
    let (place, today) = (Place::new(), Arc::new(AtomicU32::new(0)));
    let service = service(Arc::clone(&today));
    fs::write(place.file("key"), "demo").expect("a key");
    let define = |name: &str, rest: &str| {
        let source = service.source();
        let signals = "api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
                       [checks]\nmissing = \"warn\"\n[dataset]\nadd = \"backfilled\"\n";
        place.define(name, &format!("[source]\n{source}{signals}{rest}"));
    };
    define("it", "[join]\nwindows = \"1d\"\n");
    define("bare", "kind = \"signals\"\n");
    define("calendar", "kind = \"signals\"\n[output]\nlive_within = \"3d\"\n");
    define("some", "[sentiment]\ntickers = \"AAA\"\n[join]\nwindows = \"1d\"\n");
    let runtime = Runtime::new().expect("a runtime");
    let run = |name: &str, day: u32, minute: u32| {
        today.store(day, Ordering::SeqCst);
        let now = march(day).and_hms_opt(21, minute, 0).expect("a time").and_utc();
        let project = Project::at(place.path()).expect("a project");
        let options = Options { clock: Clock::Fixed(now), ..Options::new(place.file("output")) };
        runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options)).expect("it runs");
    };
    // The first run sees two weeks at once. The one with news is down from the 13th to the 20th, and runs on the 23rd.
    for day in (11..24).filter(|day| is_business_day(*day)) {
        run("bare", day, 0);
        if !(13..21).contains(&day) {
            run("it", day, 10);
        }
    }
    run("calendar", 23, 20);
    run("some", 23, 30);
    // 2026-03-11 is a Wednesday: Monday the 9th is two trading days old, and three on Thursday.
    assert_eq!(backfilled_days(&place, "bare", "AAA"), [2, 3, 4, 5, 6]);
    // A signal of Friday is first seen on Monday at 21:00, which is more than three days later.
    assert_eq!(backfilled_days(&place, "calendar", "AAA"), [2, 3, 4, 5, 6, 13, 20]);
    // Others saw the signals from the 12th on in time, but their news was first asked for on the 23rd.
    assert_eq!(backfilled_days(&place, "it", "AAA"), [2, 3, 4, 5, 6, 12, 13, 16, 17, 18]);
    let all: Vec<u32> = (2..23).filter(|day| is_business_day(*day)).collect();
    assert_eq!(backfilled_days(&place, "it", "BBB"), all, "its news was never known");
    assert_eq!(backfilled_days(&place, "some", "BBB"), [2, 3, 4, 5, 6], "its news is not asked for");

    // Statements count in calendar days.
    let four = "[output]\nlive_within = \"4d\"\n";
    define("it", &format!("[join]\nwindows = \"1d\"\n{four}"));
    define("some", &format!("[sentiment]\ntickers = \"AAA\"\n[join]\nwindows = \"1d\"\n{four}"));
    let names = ["it", "calendar", "some"];
    let cases: Vec<Value> = names
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
}
