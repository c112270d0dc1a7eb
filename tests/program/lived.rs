//! Walking forward: the rows of a dataset of first vintages are today what they were when they were published.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};

use bellwether::error::ErrorKind;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::{DateTime, Datelike, Days, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::Place;
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{self, Scripted, Step};

const TICKERS: [&str; 3] = ["AAA", "BBB", "CCC"];
const PERIODS: [&str; 2] = ["5d", "1m"];
const DAYS: u64 = 14;

/// The most articles that a list has.
const LISTED: usize = 12;

/// Something that the vendor says from one instant to another.
struct Said<T> {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    what: T,
}

/// A vendor that adds, revises and withdraws signals and articles, some of them late.
struct Vendor {
    /// By ticker and period.
    signals: BTreeMap<(&'static str, &'static str), Vec<Said<Value>>>,
    articles: BTreeMap<&'static str, Vec<Said<Value>>>,
    /// When the news of a ticker is refused.
    refused: Vec<Said<&'static str>>,
}

/// The first of the days, a Monday.
fn first_day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 16).expect("a day")
}

fn at(day: NaiveDate, minute: i64) -> DateTime<Utc> {
    day.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::minutes(minute)
}

/// After all that happens here.
fn end() -> DateTime<Utc> {
    at(first_day() + Days::new(10 * DAYS), 0)
}

/// A value that may be revised or withdrawn later.
fn values_over_time(from: DateTime<Utc>, random: &mut Random, what: impl Fn(&mut Random) -> Value) -> Vec<Said<Value>> {
    let mut all = vec![Said { from, until: end(), what: what(random) }];
    if random.one_in(4) {
        let then = from + TimeDelta::hours(random.between(3, 200) as i64);
        all[0].until = then;
        if random.one_in(2) {
            all.push(Said { from: then, until: end(), what: what(random) });
        }
    }
    all
}

impl Vendor {
    fn new(random: &mut Random) -> Self {
        let (mut signals, mut articles) = (BTreeMap::new(), BTreeMap::new());
        let mut refused = Vec::new();
        let days: Vec<NaiveDate> = first_day().iter_days().take(DAYS as usize).collect();
        for ticker in TICKERS {
            for period in PERIODS {
                let mut history = Vec::new();
                for &day in &days {
                    let is_weekend = matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
                    // A day that nobody expects comes late; some signals are made on the evening before.
                    let from = match (is_weekend, random.below(6)) {
                        (true, 0) => at(day, 60 * 50),
                        (true, _) => continue,
                        (false, 0) => at(day, -60 * 3),
                        (false, 1) => at(day, 60 * 60),
                        (false, _) => at(day, 60 * 15),
                    };
                    let date = if random.one_in(3) { format!("{day}T00:00:00Z") } else { day.to_string() };
                    history.extend(values_over_time(from, random, |random| {
                        json!({ "date": date, "signal": random.pick(&["buy", "sell"]), "confidence": random.below(1000) as f64 / 1e3 })
                    }));
                }
                signals.insert((ticker, period), history);
            }
            let mut list = Vec::new();
            for number in 0..50 {
                let day = first_day() + Days::new(random.below(DAYS as usize + 6) as u64) - Days::new(6);
                let (minute, form) = (random.below(1440) as i64, random.below(3));
                let date = match form {
                    0 => day.to_string(),
                    1 => at(day, minute).format("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    _ => at(day, minute).format("%Y-%m-%dT%H:%M:%S-04:00").to_string(),
                };
                // Most news is listed at once, some of it days later.
                let late = if random.one_in(3) { random.between(60, 60 * 80) } else { 10 } as i64;
                list.extend(values_over_time(at(day, minute + late), random, |random| {
                    json!({ "date": date, "title": number.to_string(), "score": random.below(2000) as f64 / 1e3 - 1.0, "link": "l" })
                }));
            }
            articles.insert(ticker, list);
            // An operation that refuses all tickers is gone.
            for _ in 0..if ticker == "CCC" { 0 } else { 2 } {
                let from = at(first_day() + Days::new(random.below(DAYS as usize) as u64), 0);
                let until = from + TimeDelta::hours(random.between(20, 90) as i64);
                refused.push(Said { from, until, what: ticker });
            }
        }
        Self { signals, articles, refused }
    }

    fn answer(&self, target: &str, now: DateTime<Utc>) -> Vec<Step> {
        fn now_said<T>(all: &[Said<T>], now: DateTime<Utc>) -> Vec<&T> {
            all.iter().filter(|one| one.from <= now && now < one.until).map(|one| &one.what).collect()
        }
        if let Some((_, ticker)) = target.split_once("news_articles/") {
            let ticker = ticker.split('?').next().expect("a ticker");
            if now_said(&self.refused, now)
                .contains(&&TICKERS[TICKERS.iter().position(|it| *it == ticker).expect("a ticker")])
            {
                return scripted::json("404 Not Found", "{}");
            }
            let mut list = now_said(&self.articles[ticker], now);
            list.sort_by_key(|article| std::cmp::Reverse(article["date"].as_str().expect("a date").to_owned()));
            list.truncate(LISTED);
            return scripted::json("200 OK", &json!(list).to_string());
        }
        let period =
            PERIODS.into_iter().find(|period| target.contains(&format!("period={period}&"))).expect("a period");
        let history = |ticker| {
            let entries = now_said(&self.signals[&(ticker, period)], now);
            json!({ "ticker": ticker, "regime": "bear", "period": period, "predictions": entries })
        };
        let all: BTreeMap<&str, Value> = TICKERS.map(|ticker| (ticker, history(ticker))).into();
        scripted::json("200 OK", &json!(all).to_string())
    }
}

/// The rows of the latest version, by ticker, date, period and regime.
fn rows(place: &Place, name: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(place.file(&format!("output/datasets/{name}/latest/{name}.csv"))).expect("a version");
    let key = |line: &str| line.splitn(5, ',').take(4).collect::<Vec<_>>().join(",");
    text.lines().skip(1).map(|line| (key(line), line.to_owned())).collect()
}

/// Publishes some datasets for some days: the lag, the availability, and more of the definition of each.
fn walk(seed: u64, definitions: [[&str; 3]; 3]) {
    let (place, mut random) = (Place::new(), Random::of(seed));
    let (vendor, clock) = (Vendor::new(&mut random), Arc::new(Mutex::new(at(first_day(), 0))));
    let now = Arc::clone(&clock);
    let service =
        Scripted::start(move |request| vendor.answer(&request.target, *now.lock().expect("no test panicked")));
    fs::write(place.file("key"), "demo").expect("a key");
    let mut names = Vec::new();
    for [lag, availability, more] in definitions {
        let name = format!("set{}", names.len());
        let text = format!(
            "[source]\n{}api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = {PERIODS:?}\nregimes = \"bear\"\n\
             [checks]\nmissing = \"warn\"\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n[sentiment]\n{more}\
             [join]\nlag = \"{lag}\"\navailability = \"{availability}\"\nwindows = [\"1d\", \"4d\"]\n\
             stats = [\"count\", \"mean\", \"max\", \"last\", \"days_since\"]\n\
             [output]\nvintage = \"first\"\nformat = [\"csv\", \"parquet\"]\n",
            service.source()
        );
        place.define(&name, &text);
        names.push(name);
    }
    let (project, runtime) = (Project::at(place.path()).expect("a project"), Runtime::new().expect("a runtime"));
    let mut published: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for day in 1..DAYS {
        // Missed days, and days with several pulls.
        let minutes: &[i64] =
            random.pick(&[&[][..], &[60 * 21], &[60 * 21], &[60 * 9, 60 * 21], &[30, 60 * 14, 60 * 23]]);
        for &minute in minutes {
            for (order, name) in names.iter().enumerate() {
                let moment = at(first_day() + Days::new(day), minute + order as i64);
                *clock.lock().expect("no test panicked") = moment;
                let options = Options { clock: Clock::Fixed(moment), ..Options::new(place.file("output")) };
                let outcome = runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options));
                match outcome {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => panic!("{seed}, {name} at {moment}: {error:?}"),
                }
                let known = published.entry(name).or_default();
                for (key, row) in rows(&place, name) {
                    known.entry(key).or_insert(row);
                }
            }
        }
    }
    let mut cases = Vec::new();
    for name in &names {
        place.run(["build", name, "-q"]).expect_success();
        let (then, now) = (&published[name.as_str()], rows(&place, name));
        let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
        let differing: Vec<_> = keys.iter().filter(|key| then.get(**key) != now.get(**key)).collect();
        let shown = |key: &String| format!("{:?}\n{:?}", then.get(key), now.get(key));
        assert!(differing.is_empty(), "{seed}, {name}: {} of {}\n{}", differing.len(), keys.len(), shown(differing[0]));
        assert!(now.values().any(|row| !row.contains(",,,")), "{seed}, {name}: some news is known");
        let leak = place.run(["audit", "leak", name]).expect_success().stdout;
        assert!(leak.contains("walk forward: as published at"), "{leak}");
        let sql = place.file(&format!("{name}.sql"));
        let statement = place.run(["sql", name]);
        if statement.stderr.contains("SQL cannot count trading days") {
            continue;
        }
        fs::write(&sql, statement.expect_success().stdout).expect("a file");
        cases.push(
            json!({ "sql": sql, "dataset": place.file(&format!("output/datasets/{name}/latest/{name}.parquet")) }),
        );
    }
    fs::write(place.file("cases.json"), json!(cases).to_string()).expect("a file");
    python::check("check_sql.py", ["duckdb", place.file("cases.json").to_str().expect("a path")]);
}

#[test]
fn rows_of_the_first_vintage_are_what_was_published() {
    walk(1, [["0d", "dated", ""], ["1d", "observed", ""], ["1 trading day", "dated", ""]]);
}

#[test]
fn so_are_those_with_complete_lists_and_few_tickers() {
    let few = "tickers = [\"AAA\", \"CCC\"]\n";
    walk(2, [["0d", "observed", ""], ["1d", "dated", "complete = true\n"], ["2 trading days", "observed", few]]);
}
