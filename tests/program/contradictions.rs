//! What one bad answer leaves behind: dates that a later answer contradicts, and does not reach.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::Place;
use crate::support::rows::{columns, numbers, read};
use crate::support::scripted::{self, Scripted};

/// The dates of each ticker's signals, and the links of its articles with their dates.
#[derive(Clone, Default)]
struct Answers {
    signals: BTreeMap<&'static str, Vec<NaiveDate>>,
    articles: BTreeMap<&'static str, Vec<(NaiveDate, String)>>,
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

/// The days before one, the newest first.
fn days_before(day: NaiveDate, count: usize) -> Vec<NaiveDate> {
    day.iter_days().rev().skip(1).take(count).collect()
}

struct Vendor {
    answers: Arc<Mutex<Answers>>,
    service: Scripted,
    place: Place,
    runtime: Runtime,
}

impl Vendor {
    fn new() -> Self {
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let now = Arc::clone(&answers);
        let service = Scripted::start(move |request| {
            let Answers { signals, articles } = now.lock().expect("no test panicked").clone();
            if let Some((_, ticker)) = request.target.split_once("news_articles/") {
                let ticker = ticker.split('?').next().expect("a ticker");
                let article = |(date, link): &(NaiveDate, String)| json!({ "date": date.to_string(), "title": "t", "score": 0.5, "link": link });
                let listed: Vec<Value> = articles[ticker].iter().map(article).collect();
                return scripted::json("200 OK", &Value::Array(listed).to_string());
            }
            let entry = |date: &NaiveDate| json!({ "date": date.to_string(), "signal": "buy", "confidence": 0.5 });
            let history = |(ticker, dates): (&&str, &Vec<NaiveDate>)| {
                let entries: Vec<Value> = dates.iter().map(entry).collect();
                let history = json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries });
                ((*ticker).to_owned(), history)
            };
            let all: BTreeMap<String, Value> = signals.iter().map(history).collect();
            scripted::json("200 OK", &json!(all).to_string())
        });
        let place = Place::new();
        fs::write(place.file("key"), "demo").expect("a key");
        Self { answers, service, place, runtime: Runtime::new().expect("a runtime") }
    }

    fn define(&self, signals: &str, rest: &str) {
        let checks = "[checks]\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n";
        let signals = format!("[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n{signals}");
        let source = format!("[source]\n{}api_key_file = \"key\"\n", self.service.source());
        self.place.define("it", &format!("{source}{signals}{checks}[join]\nwindows = \"7d\"\nlag = \"0d\"\n{rest}"));
    }

    /// Lists the dates of the signals and articles of a ticker from now on.
    fn list(&self, ticker: &'static str, signals: Vec<NaiveDate>, articles: Vec<(NaiveDate, String)>) {
        let mut answers = self.answers.lock().expect("no test panicked");
        answers.signals.insert(ticker, signals);
        answers.articles.insert(ticker, articles);
    }

    fn run(&self, day: NaiveDate) {
        let now: DateTime<Utc> = day.and_hms_opt(21, 0, 0).expect("a time").and_utc();
        let project = Project::at(self.place.path()).expect("a project");
        let options = Options { clock: Clock::Fixed(now), ..Options::new(self.place.file("output")) };
        let plan = Plan::find("it", &project).expect("a plan");
        self.runtime.block_on(run::run(plan, options)).expect("it runs");
    }

    /// The number of rows of a ticker, and the articles in the window of its newest.
    fn rows(&self, ticker: &str) -> (usize, Option<f64>) {
        let rows = read(&self.place.file("output/datasets/it/latest/it.parquet"));
        let counts: Vec<Option<f64>> = numbers(&rows, "news_count_7d").collect();
        let own = columns(&rows, ["ticker"]).into_iter().zip(counts).filter(|([of], _)| of == ticker);
        let own: Vec<Option<f64>> = own.map(|(_, count)| count).collect();
        (own.len(), own.last().copied().flatten())
    }
}

fn links(dates: &[NaiveDate], scheme: &str) -> Vec<(NaiveDate, String)> {
    dates.iter().map(|date| (*date, format!("{scheme}://{date}"))).collect()
}

#[test]
fn declared_completeness_withdraws_what_is_no_longer_listed_however_old() {
    let vendor = Vendor::new();
    let today = day("2026-03-20");
    let (dates, older) = (days_before(today, 20), day("1970-01-05"));
    let bogus = [dates.clone(), vec![older]].concat();
    vendor.define("complete = true\n", "[sentiment]\ncomplete = true\n");
    // All of one date: http today, https tomorrow.
    let alike = [today - TimeDelta::days(1); 2];
    let with_links = |scheme: &str| -> Vec<(NaiveDate, String)> {
        alike.iter().zip(["a", "b"]).map(|(date, name)| (*date, format!("{scheme}://{name}"))).collect()
    };
    vendor.list("AAA", bogus, with_links("http"));
    vendor.run(today);
    assert_eq!(vendor.rows("AAA"), (21, Some(2.0)));
    vendor.list("AAA", dates.clone(), with_links("https"));
    vendor.run(today + TimeDelta::days(1));
    assert_eq!(vendor.rows("AAA"), (20, Some(2.0)));
    // The same without the declaration.
    let vendor = Vendor::new();
    vendor.define("", "");
    vendor.list("AAA", [dates.clone(), vec![older]].concat(), with_links("http"));
    vendor.run(today);
    vendor.list("AAA", dates, with_links("https"));
    vendor.run(today + TimeDelta::days(1));
    assert_eq!(vendor.rows("AAA").0, 21);
}

/// An answer covers the dates from its oldest one on: what is older stays, and what was published stays as it was.
#[test]
fn a_truncated_list_withdraws_nothing_before_its_oldest_date() {
    let vendor = Vendor::new();
    let start = day("2026-03-20");
    let list = |age: i64, listed: usize| {
        let today = start + TimeDelta::days(age);
        let news = links(&days_before(today, 90), "http");
        vendor.list("AAA", days_before(today, 20), news[..listed].to_vec());
        vendor.run(today);
    };
    let published = || {
        let rows = read(&vendor.place.file("output/datasets/it/latest/it.parquet"));
        columns(&rows, ["date", "news_count_7d"])
    };
    vendor.define("", "[output]\nvintage = \"first\"\n");
    list(0, 90);
    list(1, 3);
    assert_eq!(vendor.rows("AAA"), (21, Some(7.0)));
    let truncated = published();
    list(2, 90);
    let today = published();
    assert_eq!(today[..truncated.len()], truncated);
    let audited = vendor.place.run(["audit", "leak", "it"]).expect_success().stdout;
    assert!(audited.contains("no look-ahead found"), "{audited}");
}
