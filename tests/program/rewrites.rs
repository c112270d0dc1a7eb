//! What a careful researcher would stop at stops a run: a rewritten past, dates that cannot be right, no news at all. It
//! stops the next run as well, until the vendor mends it or the definition allows it.

use std::sync::{Arc, Mutex};

use chrono::{NaiveDate, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::checks::{latest, run};
use crate::support::program::Place;
use crate::support::rows::{numbers, read};
use crate::support::scripted::{self, Scripted};

/// Histories of ten tickers with thirty dates each, and forty articles about each. A test may change them.
#[derive(Clone)]
struct Vendor(Arc<Mutex<Answers>>);

#[derive(Clone, PartialEq)]
struct Answers {
    signals: Map<String, Value>,
    articles: Map<String, Value>,
}

fn day(age: i64) -> NaiveDate {
    Utc::now().date_naive() - TimeDelta::days(age)
}

impl Vendor {
    fn new() -> Self {
        let (mut signals, mut articles) = (Map::new(), Map::new());
        for at in 0..10 {
            let entry = |age: i64| json!({ "date": day(age).to_string(), "signal": "buy", "confidence": 0.01 * (at + 1) as f64 });
            signals.insert(format!("T{at}"), (1..31).map(entry).collect());
            let article = |age: i64| json!({ "date": day(age).to_string(), "title": age.to_string(), "link": format!("http://{at}/{age}"), "score": 0.5 });
            articles.insert(format!("T{at}"), (1..41).map(article).collect());
        }
        Self(Arc::new(Mutex::new(Answers { signals, articles })))
    }

    fn service(&self) -> Scripted {
        let vendor = self.clone();
        Scripted::start(move |request| {
            let Answers { signals, articles } = vendor.answers();
            let Some((_, ticker)) = request.target.split_once("news_articles/") else {
                let history = |(ticker, entries): (&String, &Value)| {
                    let history =
                        json!({ "ticker": ticker, "regime": "neutral", "period": "15d", "predictions": entries });
                    (ticker.clone(), history)
                };
                let all: Map<String, Value> = signals.iter().map(history).collect();
                return scripted::json("200 OK", &Value::Object(all).to_string());
            };
            let ticker = ticker.split('?').next().expect("a ticker");
            scripted::json("200 OK", &articles[ticker].to_string())
        })
    }

    fn answers(&self) -> Answers {
        self.0.lock().expect("no test panicked").clone()
    }

    fn answer(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.0.lock().expect("no test panicked"));
    }
}

fn define(place: &Place, service: &Scripted, checks: &str) {
    let rest = format!("[signals]\nsectors = \"energy\"\n[join]\nwindows = \"7d\"\n[checks]\n{checks}");
    place.define("it", &format!("[source]\n{}{rest}", service.source()));
}

/// A change fails every run, and a build, until it is taken back; where `allowed` allows it, it is published.
#[track_caller]
fn check(change: impl Fn(&mut Answers), printed: &str, allowed: &str) {
    let (place, vendor) = (Place::new(), Vendor::new());
    let service = vendor.service();
    define(&place, &service, "");
    run(&place).expect_success();
    let first = latest(&place).expect("a version");
    let version = first.display().to_string();
    let before = vendor.answers();
    vendor.answer(change);
    let changed = vendor.answers();
    for _ in 0..2 {
        let shown = run(&place).failed_with(4).stderr;
        assert!(shown.contains(&format!("because: {}", printed.replace("{version}", &version))), "{shown}");
        let remedy = allowed.split(" = ").next().expect("a key");
        assert!(shown.contains(remedy) && shown.contains("in `[checks]`"), "{shown}");
        assert_eq!(latest(&place).as_ref(), Some(&first));
    }
    vendor.answer(|answers| *answers = before);
    run(&place).expect_success();
    assert_ne!(latest(&place).as_ref(), Some(&first));
    vendor.answer(|answers| *answers = changed);
    define(&place, &service, allowed);
    run(&place).expect_success();
}

#[test]
fn a_rewritten_past_fails_the_run_until_it_is_as_before() {
    let of = |ticker: &str, confidence: f64| {
        let ticker = ticker.to_owned();
        move |answers: &mut Answers| {
            for entry in answers.signals[&ticker].as_array_mut().expect("a list") {
                entry["confidence"] = json!(confidence);
            }
        }
    };
    check(
        |answers| {
            for at in 0..3 {
                of(&format!("T{at}"), 50.0)(answers);
            }
        },
        "90 of 300 signals were revised or withdrawn since version `{version}`, above the limit of 20.0 %\n",
        "rewritten = 0.5\nrewritten_series = 1.0\n",
    );
    // Two tickers are swapped: few among all, and all of these.
    check(
        |answers| {
            let [one, other] = ["T1", "T2"].map(|ticker| answers.signals[ticker].clone());
            answers.signals["T1"] = other;
            answers.signals["T2"] = one;
        },
        "2 series were rewritten since version `{version}` by more than the limit of 50.0 %: T1 15d neutral (30 of 30), \
         T2 15d neutral (30 of 30)\n",
        "rewritten_series = 1.0\n",
    );
    check(
        |answers| {
            for article in answers.articles["T5"].as_array_mut().expect("a list") {
                let link = article["link"].as_str().expect("a link").replace("http:", "https:");
                article["link"] = json!(link);
            }
        },
        "1 series was rewritten since version `{version}` by more than the limit of 50.0 %: T5 (39 of 40)\n",
        "rewritten_series = 1.0\n",
    );
}

#[test]
fn a_newest_date_that_goes_back_or_lies_in_the_future_fails_the_run() {
    check(
        |answers| {
            for (_, entries) in &mut answers.signals {
                entries.as_array_mut().expect("a list").remove(0);
            }
        },
        &format!("the newest date went back from {} to {} since version `{{version}}`\n", day(1), day(2)),
        "dates = \"warn\"\n",
    );
    let ahead = |answers: &mut Answers| {
        let entry = json!({ "date": day(-300).to_string(), "signal": "buy", "confidence": 0.5 });
        answers.signals["T3"].as_array_mut().expect("a list").insert(0, entry);
    };
    check(
        ahead,
        &format!("the newest date is {}, 300 days in the future, above the limit of 7 days\n", day(-300)),
        "dates = \"warn\"\n",
    );
    // It keeps nothing fresh either.
    let (place, vendor) = (Place::new(), Vendor::new());
    let service = vendor.service();
    vendor.answer(|answers| {
        for (_, entries) in &mut answers.signals {
            entries.as_array_mut().expect("a list").drain(..10);
        }
        ahead(answers);
    });
    define(&place, &service, "dates = \"warn\"\nmax_age = \"5d\"\n");
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains(&format!("because: the newest date is {}, ", day(11))), "{shown}");
    define(&place, &service, "dates = \"warn\"\n");
    let shown = run(&place).expect_success().stdout;
    assert!(shown.contains(&format!("note      the newest date is {}, 300 days in the future", day(-300))), "{shown}");
    let shown = place.run(["status", "it"]).failed_with(3).stdout;
    assert!(shown.contains(&format!("the newest date is {}, 300 days in the future", day(-300))), "{shown}");
    // Once it is gone, the newest date goes back, and rightly so.
    vendor.answer(|answers| *answers = Vendor::new().answers());
    define(&place, &service, "rewritten = 1.0\nrewritten_series = 1.0\n");
    run(&place).expect_success();
}

#[test]
fn no_news_for_any_ticker_fails_the_run() {
    check(
        |answers| answers.articles.iter_mut().for_each(|(_, list)| *list = json!([])),
        "no articles: the lists of all 10 tickers are empty\n",
        "missing = \"warn\"\n",
    );
}

#[test]
fn exact_repetitions_count_once_and_reject_nothing() {
    let (place, vendor) = (Place::new(), Vendor::new());
    let service = vendor.service();
    vendor.answer(|answers| {
        for (_, entries) in &mut answers.signals {
            let entries = entries.as_array_mut().expect("a list");
            entries.extend(entries.clone());
        }
    });
    define(&place, &service, "");
    let shown = run(&place).expect_success().stdout;
    assert!(
        shown.contains("repeated  300 signals listed more than once, exactly alike, and counted once\n"),
        "{shown}"
    );
    let rows = read(&place.file("output/datasets/it/latest/it.parquet"));
    assert_eq!(numbers(&rows, "confidence").count(), 300);
    // Another value for the same date is a contradiction.
    vendor.answer(|answers| answers.signals["T0"][31]["confidence"] = json!(0.75));
    let shown = run(&place).expect_success().stdout;
    assert!(shown.contains("rejected  1 record, 1 new\n"), "{shown}");
}
