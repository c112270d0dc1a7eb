//! `audit skill` on a vendor that rewrites its past, compared with pandas and scipy on the same files; prices in any
//! state of disorder; and the demo, whose skill and hindsight are known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::serve::Universe;
use bellwether::time::Clock;
use chrono::{Datelike, Days, NaiveDate, Weekday};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::days::{Day, evening};
use crate::support::program::{DemoService, Place};
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};
use crate::support::service::day;
use crate::support::tools::{PYTHON, needs};

const PERIODS: [&str; 3] = ["1d", "5d", "1m"];

/// The signals of a ticker and period, each with whether it is a sell and its confidence.
type History = BTreeMap<NaiveDate, (bool, f64)>;
type Histories = BTreeMap<(String, &'static str), History>;

/// The articles of a ticker, one a day at most: the hundredths of its score, if it has one.
type News = BTreeMap<String, BTreeMap<NaiveDate, Option<i64>>>;

fn tickers() -> Vec<String> {
    ('A'..='L').map(|letter| letter.to_string().repeat(3)).collect()
}

fn weekdays(from: NaiveDate, until: NaiveDate) -> Vec<NaiveDate> {
    let is_weekday = |day: &NaiveDate| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
    from.iter_days().take_while(|day| *day < until).filter(is_weekday).collect()
}

/// The answer to a request for the articles of a ticker, newest first.
fn articles(news: &News, target: &str) -> String {
    let ticker = target.split('?').next().and_then(|path| path.rsplit('/').next()).expect("a path");
    let article = |(day, score): (&NaiveDate, &Option<i64>)| {
        let score = score.map_or_else(|| "null".to_owned(), |score| (score as f64 / 100.0).to_string());
        format!("{{\"date\":\"{day}\",\"title\":\"Of {day}\",\"link\":\"https://a.example/{day}\",\"score\":{score}}}")
    };
    let articles: Vec<String> = news.get(ticker).into_iter().flatten().rev().map(article).collect();
    format!("[{}]", articles.join(","))
}

/// A vendor whose archive has cells of every kind: live and backfilled, altered, turned, removed and added late.
struct Vendor {
    place: Place,
    service: Scripted,
    histories: Arc<Mutex<Histories>>,
    news: Arc<Mutex<News>>,
    /// Closes by ticker, in the order of the sessions.
    closes: BTreeMap<String, Vec<f64>>,
    sessions: Vec<NaiveDate>,
}

impl Vendor {
    fn new(random: &mut Random) -> Self {
        let (histories, news): (Arc<Mutex<Histories>>, Arc<Mutex<News>>) = Default::default();
        let (now, known) = (Arc::clone(&histories), Arc::clone(&news));
        let service = Scripted::start(move |request| {
            if !request.target.starts_with("/a/") {
                return json("200 OK", &articles(&known.lock().expect("no test panicked"), &request.target));
            }
            let is_energy = request.target.contains("sector=energy&");
            let period = PERIODS.iter().find(|period| request.target.contains(&format!("period={period}&"))).copied();
            let mut answer = Vec::new();
            for ((ticker, of), history) in now.lock().expect("no test panicked").iter() {
                if Some(*of) != period || is_energy != (ticker.as_str() < "G") {
                    continue;
                }
                let entry = |(day, (is_sell, confidence)): (&NaiveDate, &(bool, f64))| {
                    let signal = if *is_sell { "sell" } else { "buy" };
                    format!("{{\"date\":\"{day}T00:00:00\",\"signal\":\"{signal}\",\"confidence\":{confidence}}}")
                };
                let entries: Vec<String> = history.iter().rev().map(entry).collect();
                answer.push(format!(
                    "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"{of}\",\"predictions\":[{}]}}",
                    entries.join(",")
                ));
            }
            json("200 OK", &format!("{{{}}}", answer.join(",")))
        });
        let sessions = weekdays(day(2026, 1, 12), day(2026, 7, 10));
        let mut closes = BTreeMap::new();
        for ticker in tickers() {
            let mut close = 20.0 + random.below(100) as f64;
            let mut step = |_: &NaiveDate| {
                close *= 1.0 + (random.below(401) as f64 - 200.0) / 10_000.0;
                close
            };
            closes.insert(ticker, sessions.iter().map(&mut step).collect());
        }
        Self { place: Place::new(), service, histories, news, closes, sessions }
    }

    fn text(&self) -> String {
        format!(
            "[source]\n{}api_key_file = {:?}\n[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = {PERIODS:?}\n\
             [sentiment]\ncomplete = true\n[join]\nlag = \"1d\"\nwindows = [\"5d\", \"40d\"]\n\
             stats = [\"count\", \"mean\", \"last\", \"days_since\"]\n\
             [checks]\nuniverse = 1\nrewritten = 1\nrewritten_series = 1\n[calendar]\nexchange = \"weekdays\"\n\
             [prices]\nfile = \"prices-*.csv\"\ncolumns = {{ ticker = \"symbol\", close = \"adj_close\" }}\n",
            self.service.source(),
            self.place.file("key")
        )
    }

    /// What the vendor says from a day on: a signal of that day for most series, and a rewritten past.
    fn advance(&self, today: NaiveDate, random: &mut Random) {
        let mut histories = self.histories.lock().expect("no test panicked");
        for (ticker, period) in tickers().iter().flat_map(|ticker| PERIODS.map(|period| (ticker, period))) {
            let history = histories.entry((ticker.clone(), period)).or_default();
            let value = |random: &mut Random| (random.one_in(2), 0.5 + random.below(11) as f64 / 20.0);
            // On one day all say the same.
            if today == day(2026, 3, 10) {
                history.insert(today, (false, 0.5));
            } else if !random.one_in(12) {
                history.insert(today, value(random));
            }
            let known: Vec<NaiveDate> = history.keys().copied().collect();
            if known.len() < 4 {
                continue;
            }
            let old = known[1 + random.below(known.len() - 1)];
            match random.below(12) {
                0 | 1 => {
                    history.insert(old, value(random));
                }
                2 => {
                    history.remove(&old);
                }
                // A day that had no signal may get one later.
                3 => {
                    let between = known[0] + Days::new(random.below(30) as u64);
                    if between < known[known.len() - 1] {
                        history.entry(between).or_insert_with(|| value(random));
                    }
                }
                _ => {}
            }
        }
    }

    /// What is written on a day, and what is rewritten.
    fn report(&self, today: NaiveDate, random: &mut Random) {
        let mut news = self.news.lock().expect("no test panicked");
        for (place, ticker) in tickers().into_iter().enumerate() {
            let articles = news.entry(ticker).or_default();
            let score = |random: &mut Random| (!random.one_in(12)).then(|| random.below(201) as i64 - 100);
            // Of some there is much news, of others little.
            if random.below(12) > place {
                articles.insert(today, score(random));
            }
            let Some(old) = articles.keys().nth(random.below(articles.len())).copied() else { continue };
            match random.below(9) {
                0 | 1 => drop(articles.insert(old, score(random))),
                2 => drop(articles.remove(&old)),
                3 => drop(articles.entry(old + Days::new(1)).or_insert_with(|| score(random))),
                _ => {}
            }
        }
    }

    /// Runs the definition on the evening of a day.
    fn run(&self, today: NaiveDate) {
        fs::write(self.place.file("key"), "scripted").expect("a key");
        let definition = DefinitionFile::new("it.toml".into(), self.text()).expect("a name");
        let plan = Plan::of(definition).expect("a plan");
        let options = Options { clock: Clock::Fixed(evening(today)), ..Options::new(self.place.file("output")) };
        Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
    }

    /// Lives through some months. On most evenings the definition is run.
    fn live(&self, random: &mut Random) {
        for (place, today) in weekdays(day(2026, 1, 5), day(2026, 6, 20)).into_iter().enumerate() {
            self.advance(today, random);
            self.report(today, random);
            let is_first_month = today < day(2026, 2, 2);
            let is_week_off = (day(2026, 4, 6)..day(2026, 4, 13)).contains(&today);
            if !is_first_month && !is_week_off && place % 3 == 0 {
                self.run(today);
            }
        }
        self.place.define("it", &self.text());
    }

    /// The closes as rows of a file, one ticker without any and some holes.
    fn rows(&self, random: &mut Random) -> Vec<String> {
        let mut rows = Vec::new();
        for (ticker, closes) in self.closes.iter().filter(|(ticker, _)| *ticker != "LLL") {
            for (session, close) in self.sessions.iter().zip(closes) {
                let close = if random.one_in(150) { String::new() } else { close.to_string() };
                rows.push(format!("{session},{ticker},1.0,{close}"));
            }
        }
        rows.push(format!("{},no ticker has so many letters,1.0,12", self.sessions[3]));
        rows
    }

    fn audit(&self, arguments: &[&str]) -> Value {
        let words = ["audit", "skill", "it", "--json"].iter().chain(arguments);
        serde_json::from_str(&self.place.run(words).expect_success().stdout).expect("JSON")
    }
}

/// Writes rows of prices, in two files.
fn write_prices(place: &Place, rows: &[String]) {
    let (first, second) = rows.split_at(rows.len() / 3);
    for (name, rows) in [("prices-1.csv", first), ("prices-2.csv", second)] {
        fs::write(place.file(name), format!("date,symbol,open,adj_close\n{}\n", rows.join("\n"))).expect("prices");
    }
}

#[test]
fn every_number_is_what_pandas_and_scipy_compute_from_the_same_files() {
    needs!(PYTHON);
    let mut random = Random::of(42);
    let vendor = Vendor::new(&mut random);
    vendor.live(&mut random);
    let mut rows = vendor.rows(&mut random);
    write_prices(&vendor.place, &rows);
    let archive = vendor.place.file("output/archive/vendor");
    let mut checked = vec![archive, vendor.place.file("prices-*.csv")];
    let mut answers = Vec::new();
    for (place, (lag, from)) in [("1", ""), ("0", ""), ("1", "2026-04-20T12:00:00Z")].into_iter().enumerate() {
        let (rows, document) = (format!("skill-{place}.parquet"), vendor.place.file(&format!("skill-{place}.json")));
        let arguments = ["--lag", lag, "--output", &rows, "--from", from];
        let found = vendor.audit(&arguments[..if from.is_empty() { 4 } else { 6 }]);
        assert_eq!(found["from"].is_null(), from.is_empty());
        fs::write(&document, found.to_string()).expect("a document");
        let instant = PathBuf::from(from.trim_end_matches('Z'));
        checked.extend([document, vendor.place.file(&rows), PathBuf::from(lag), instant]);
        answers.push(found);
    }
    let seen: Value = serde_json::from_str(&python::output("check_skill.py", checked)).expect("JSON");
    for (what, least) in [
        ("compared", 1_000),
        ("turned", 20),
        ("late", 50),
        ("withdrawn", 50),
        ("altered", 100),
        ("live", 1_000),
        ("rewritten", 100),
        ("tested", 4),
        ("constant", 1),
        ("renewed", 100),
        ("tested_features", 20),
        ("news_groups", 3),
    ] {
        assert!(seen[what].as_u64() > Some(least), "{what}: the test has seen too little: {seen}");
    }

    // An instant to compare with changes nothing but what was rewritten since.
    let mut since = answers.pop().expect("three answers");
    since["from"] = Value::Null;
    let pairs = since["pairs"].as_array_mut().expect("pairs").iter_mut();
    for (pair, first) in pairs.zip(answers[0]["pairs"].as_array().expect("pairs")) {
        assert_ne!(pair["rewritten"], first["rewritten"]);
        pair["rewritten"] = first["rewritten"].clone();
    }
    assert_eq!(since, answers[0]);

    // The order of rows and their number in each file say nothing, but the files are other ones.
    random.shuffle(&mut rows);
    write_prices(&vendor.place, &rows);
    let mut shuffled = vendor.audit(&[]);
    let mut first = answers.swap_remove(0);
    assert_ne!(first["prices"]["files"], shuffled["prices"]["files"]);
    [&mut first, &mut shuffled].into_iter().for_each(|answer| answer["prices"]["files"] = Value::Null);
    assert_eq!(first, shuffled);

    no_close_before_the_signal_counts(&vendor, &first);
    text_fits_a_terminal(&vendor.place);
    the_report_says_what_the_audit_says(&vendor.place, &first);
}

/// Closes a session later are other returns, and no result depends on a close up to the day of its signal.
fn no_close_before_the_signal_counts(vendor: &Vendor, answer: &Value) {
    let write = |name: &str, close: &dyn Fn(usize, &[f64]) -> Option<f64>| {
        let mut text = "date,symbol,adj_close\n".to_owned();
        for (ticker, closes) in &vendor.closes {
            for (place, session) in vendor.sessions.iter().enumerate() {
                if let Some(close) = close(place, closes) {
                    writeln!(text, "{session},{ticker},{close}").expect("text");
                }
            }
        }
        fs::write(vendor.place.file(name), text).expect("prices");
        vendor.audit(&["--prices", name])
    };
    let correlation = |answer: &Value| answer["pairs"][0]["measures"][1]["correlation"].as_f64().expect("a number");
    let whole = write("whole.csv", &|place, closes| Some(closes[place]));
    assert_eq!(whole["signals"]["without_price"], 0);
    assert!(answer["signals"]["without_price"].as_u64() > Some(0));
    let later = write("later.csv", &|place, closes| Some(closes[place.checked_sub(1)?]));
    assert!((correlation(&whole) - correlation(&later)).abs() > 1e-6);
    // Signals after the last complete return are counted, and not used.
    let short = vendor.sessions.len() - 20;
    let cut = write("cut.csv", &|place, closes| (place < short).then(|| closes[place]));
    let count = |answer: &Value, what: &str| answer["signals"][what].as_u64().expect("a count");
    assert!(count(&cut, "incomplete") > count(&whole, "incomplete"), "{cut}");
    let all = ["measured", "incomplete", "without_price", "before_prices", "same_day", "unclear"];
    for answer in [&cut, &whole, answer] {
        assert_eq!(all.iter().map(|what| count(answer, what)).sum::<u64>(), count(answer, "all"));
    }
    // The first signals are dated before the first session that may enter them: without its close nothing changes.
    let first_dates = vendor.sessions[0];
    assert!(first_dates > day(2026, 1, 5), "some signals are dated before the prices");
    assert!(count(&whole, "before_prices") > 0);
}

fn text_fits_a_terminal(place: &Place) {
    let text = place.run(["audit", "skill", "it"]).expect_success().stdout;
    assert!(text.lines().next().is_some_and(|line| line.contains("signals were seen when published")), "{text}");
    for what in ["correlation", "witnessed", "rewritten", "by luck", "gone", "BLAKE3", "left out"] {
        assert!(text.contains(what), "{what}: {text}");
    }
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max();
    assert!(longest(&text) <= Some(100), "{text}");
    let by = "lag,year,sector,news,neutral,feature,hits,fifths,confidence";
    let groups = ["audit", "skill", "it", "--by", by, "--from", "2026-04-20T12:00:00Z"];
    let text = place.run(groups).expect_success().stdout;
    for what in [
        "by lag",
        "lag 4",
        "by year",
        " 2026 ",
        "by sector",
        "utilities",
        "by news",
        "3-9 in 40d",
        "since then",
        "feature",
        "news_mean_5d 1m",
        "in sectors",
        "given beta",
        "given signal",
        "came true",
        "turnover",
        "Brier score",
    ] {
        assert!(text.contains(what), "{what}: {text}");
    }
    assert!(longest(&text) <= Some(100), "{text}");
    let early = ["audit", "skill", "it", "--from", "2025-01-01"];
    assert!(place.run(early).failed_with(1).stderr.contains("2025-01-01"), "nothing was known then");
}

fn the_report_says_what_the_audit_says(place: &Place, found: &Value) {
    let page = |place: &Place| {
        place.run(["report", "it", "--output", "report.html", "--force"]).expect_success();
        fs::read_to_string(place.file("report.html")).expect("a page")
    };
    let measured = page(place);
    let finding = found["verdict"][0].as_str().expect("a sentence").trim_end_matches('.');
    let text =
        place.run(["report", "--text", "it"]).expect_success().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(finding), "{finding}: {text}");
    for what in [
        "id=\"skill\"",
        "plot-skill-",
        "plot-hits-",
        "plot-reliability-",
        "plot-decay-",
        "plot-features-of-the-news",
        "-by-number-of-articles-",
        ".hover",
    ] {
        assert!(measured.contains(what), "{what}");
    }
    // Without its prices, the report says so; the runs went on without them.
    let rows = fs::read(place.file("prices-1.csv")).expect("prices");
    fs::remove_file(place.file("prices-1.csv")).expect("it is there");
    fs::rename(place.file("prices-2.csv"), place.file("elsewhere.csv")).expect("it is there");
    let without = page(place);
    assert!(without.contains("Signals were not measured against prices") && without.contains("no file matches"));
    fs::write(place.file("prices-1.csv"), rows).expect("prices");
    fs::rename(place.file("elsewhere.csv"), place.file("prices-2.csv")).expect("it is there");
}

/// A definition with five tickers and ten signals each, seen today.
fn small(place: &Place) -> Scripted {
    let service = Scripted::of_histories(|_| {
        let entries: Vec<String> = (1..=10)
            .map(|day| format!("{{\"date\":\"2026-01-{day:02}T00:00:00\",\"signal\":\"buy\",\"confidence\":0.{day}}}"))
            .collect();
        let history = |ticker: &str| {
            format!(
                "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"1d\",\"predictions\":[{}]}}",
                entries.join(",")
            )
        };
        json("200 OK", &format!("{{{}}}", ["AA", "BB", "CC", "DD", "EE"].map(history).join(",")))
    });
    place.define(
        "it",
        &format!(
            "[source]\n{}[signals]\nsectors = \"energy\"\nperiods = \"1d\"\n[dataset]\nkind = \"signals\"\n",
            service.source()
        ),
    );
    let mut command = place.command(["run", "it", "-q"]);
    crate::support::program::Outcome::of(command.env("BELLWETHER_API_KEY", "scripted")).expect_success();
    service
}

/// Rows of the prices of some tickers in January.
fn prices(tickers: &[&str]) -> Vec<String> {
    let days =
        |ticker: &&str| -> Vec<String> { (1..=20).map(|day| format!("{ticker},2026-01-{day:02},{day}.5")).collect() };
    tickers.iter().flat_map(days).collect()
}

#[test]
fn prices_that_cannot_be_meant_are_refused_with_their_place() {
    let place = Place::new();
    let _service = small(&place);
    let good = prices(&["AA", "BB", "CC", "DD", "EE"]);
    let audit = |header: &str, rows: &[String]| {
        fs::write(place.file("prices.csv"), format!("{header}\n{}\n", rows.join("\n"))).expect("prices");
        place.run(["audit", "skill", "it", "--prices", "prices.csv", "--json"])
    };
    let header = "ticker,date,close";
    let fine = audit(header, &good).expect_success().stdout;
    let fine: Value = serde_json::from_str(&fine).expect("JSON");
    assert_eq!((&fine["prices"]["sessions"], &fine["prices"]["holes"]), (&20.into(), &0.into()));
    let bad = |row: &str| -> Vec<String> {
        let mut rows = good.clone();
        rows[7] = row.to_owned();
        rows
    };
    let messes: [(&str, &str); 12] = [
        (
            "AA,2026-01-07,9.5",
            "row 8 of `prices.csv` is a second close of AA on 2026-01-07, after row 7 of `prices.csv`",
        ),
        ("AA,2026-01-08,0", "row 8 of `prices.csv`: a close of 0"),
        ("AA,2026-01-08,-3", "row 8 of `prices.csv`: a close of -3"),
        ("AA,2026-01-08,NaN", "row 8 of `prices.csv`: a close of NaN"),
        ("AA,2026-01-08,inf", "row 8 of `prices.csv`: a close of inf"),
        ("AA,2026-01-08,8.5 USD", "row 8 of `prices.csv`: `8.5 USD` is not a number"),
        ("AA,2026-01-08T00:00:00-05:00,8.5", "row 8 of `prices.csv`: date `2026-01-08T00:00:00-05:00` has a zone"),
        ("AA,2026-01-08T21:00:00Z,8.5", "row 8 of `prices.csv`: date `2026-01-08T21:00:00Z` has a zone"),
        ("AA,2026-01-32,8.5", "row 8 of `prices.csv`: date `2026-01-32` is not a valid date"),
        ("AA,08/01/2026,8.5", "row 8 of `prices.csv`: date `08/01/2026` is not a valid date"),
        ("AA,,8.5", "row 8 of `prices.csv`: date `` is not a valid date"),
        (",2026-01-08,8.5", "row 8 of `prices.csv`: no ticker"),
    ];
    for (row, expected) in messes {
        let refused = audit(header, &bad(row)).failed_with(1);
        assert!(refused.stderr.contains(expected), "{row}: {}", refused.stderr);
    }
    // A definition without prices has a report without them.
    place.run(["report", "it", "--output", "report.html"]).expect_success();
    let page = fs::read_to_string(place.file("report.html")).expect("a page");
    assert!(!page.contains("id=\"skill\""));
    // A hole is counted.
    let hole: Value =
        serde_json::from_str(&audit(header, &bad("AA,2026-01-08,")).expect_success().stdout).expect("JSON");
    assert_eq!(hole["prices"]["holes"], 1);
    assert_eq!(hole["signals"]["without_price"], 2, "a signal enters there, and another one ends there");
    // Columns have names.
    let unknown = audit("ticker,day,close", &good).failed_with(1).stderr;
    assert!(unknown.contains("`prices.csv` has no column `date`: it has `ticker`, `day`, `close`"), "{unknown}");
    assert!(audit(header, &[]).failed_with(1).stderr.contains("no prices in 1 file"));
    fs::write(place.file("prices.csv"), "").expect("a file");
    let refused = place.run(["audit", "skill", "it", "--prices", "prices.csv"]).failed_with(1).stderr;
    assert!(refused.contains("`prices.csv` has no column `ticker`: it has none"), "{refused}");
    // More than a fifth of the signals without a price.
    let three = prices(&["AA", "BB", "CC"]);
    let refused = audit(header, &three).failed_with(1).stderr;
    assert!(refused.contains("without prices are `DD`, `EE`") && refused.contains("`--allow-missing`"), "{refused}");
    let allowed = ["audit", "skill", "it", "--prices", "prices.csv", "--allow-missing"];
    assert!(place.run(allowed).expect_success().stdout.contains("Nothing to measure"));
    // Names of files.
    for (arguments, code, expected) in [
        (&["--prices", "nowhere.csv"][..], 1, "cannot read `nowhere.csv`"),
        (&["--prices", "no-*.csv"], 1, "no file matches `no-*.csv`"),
        (&["--prices", "pipelines/it.toml"], 2, "hint: prices are read from `.parquet` and `.csv`"),
        (&[], 2, "hint: name them with `--prices FILE`, or with `file` in `[prices]`"),
    ] {
        let refused = place.run(["audit", "skill", "it"].iter().chain(arguments)).failed_with(code).stderr;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn the_demo_has_prices_that_its_archive_is_measured_against() {
    let place = Place::new();
    let days = [day(2026, 5, 4), day(2026, 9, 14)].map(Day::new);
    days.iter().for_each(|day| drop(day.run(&place)));
    let prices = ["--seed", "124", "--today", "2026-11-20", "--prices", "closes.parquet"];
    drop(DemoService::start(&place, &prices));
    let again = ["serve", "--demo"].iter().chain(&prices);
    assert!(place.run(again).failed_with(1).stderr.contains("`closes.parquet` already exists"));
    let definition = "source.name = \"vendor\"\nsource.base_url = \"http://127.0.0.1:9/a\"\n\
                      source.sentiment_base_url = \"http://127.0.0.1:9/b\"\nsignals.sectors = [\"energy\"]\n\
                      signals.periods = [\"1d\", \"15d\"]\nsignals.regimes = [\"bear\", \"neutral\"]\n";
    place.define("days", definition);
    let text = place.run(["audit", "skill", "days", "--prices", "closes.parquet", "--json"]).expect_success().stdout;
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let sessions = Universe::new(124, day(2026, 11, 20)).trading_days().len();
    assert_eq!((&found["prices"]["sessions"], &found["prices"]["tickers"]), (&sessions.into(), &500.into()));
    assert_eq!(found["prices"]["closes"], sessions * 500);
    assert_eq!(found["signals"]["without_price"], 0);
    // The signals rewritten between the two days, most of them after their horizon.
    let (before, after) = days[1].rewritten_signals(day(2026, 5, 4));
    let turned = before.iter().filter(|(cell, (signal, _))| after[*cell].0 != *signal).count() as u64;
    let seen = found["pairs"].as_array().expect("pairs").iter().map(|pair| pair["rewritten"]["turned"].as_u64());
    assert_eq!(seen.sum::<Option<u64>>(), Some(turned));
    assert!(found["hindsight"]["turned"].as_u64() > Some(0), "{found}");
    // The lists of articles reach back for weeks, and nobody knows what was in a window before that.
    let by_news = &found["pairs"][0]["measures"][1]["by_news"];
    let groups: Vec<&Value> = by_news.as_array().expect("groups").iter().map(|group| &group["articles"]).collect();
    assert!(groups.contains(&&"unknown".into()) && groups.contains(&&"1-2".into()), "{by_news}");
    // All signals are measured, and all have their news, whatever the dataset selects by what they say.
    let selected = format!("{definition}filter.min_confidence = 0.7\nfilter.signal = \"buy\"\n");
    place.define("selected", &selected);
    let words = ["audit", "skill", "selected", "--prices", "closes.parquet", "--json"];
    let selected: Value = serde_json::from_str(&place.run(words).expect_success().stdout).expect("JSON");
    assert_eq!((&selected["pairs"], &selected["features"]), (&found["pairs"], &found["features"]));
}

/// A service of five tickers that is asked on two days, and what it says of a ticker and a date: nothing, or a signal.
struct TwoDays {
    place: Place,
    service: Scripted,
}

impl TwoDays {
    /// Asks on the 20th and the 21st of January; the last argument is whether it is the second day.
    fn of(signal: impl Fn(&str, &str, bool) -> Option<&'static str> + Send + Sync + 'static) -> Self {
        Self::at(["T00:00:00"; 2], signal)
    }

    /// The same of a service that writes a time of the day, on each of the two days.
    fn at(
        times: [&'static str; 2],
        signal: impl Fn(&str, &str, bool) -> Option<&'static str> + Send + Sync + 'static,
    ) -> Self {
        let is_later = Arc::new(Mutex::new(false));
        let now = Arc::clone(&is_later);
        let service = Scripted::of_histories(move |_| {
            let is_later = *now.lock().expect("no test panicked");
            let time = times[usize::from(is_later)];
            let january = (1..=20).map(|day| format!("2026-01-{day:02}"));
            let dates: Vec<String> = january.chain((1..=6).map(|day| format!("2025-10-{day:02}"))).collect();
            let history = |(place, ticker): (usize, &str)| {
                let entry = |(number, date): (usize, &String)| {
                    let confidence = 0.5 + ((7 * place + 3 * number) % 11) as f64 / 25.0;
                    let signal = signal(ticker, date, is_later)?;
                    Some(format!("{{\"date\":\"{date}{time}\",\"signal\":\"{signal}\",\"confidence\":{confidence}}}"))
                };
                let entries: Vec<String> = dates.iter().enumerate().filter_map(entry).collect();
                let history = format!(
                    "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"1d\",\"predictions\":[{}]}}",
                    entries.join(",")
                );
                (!entries.is_empty()).then_some(history)
            };
            let tickers = ["AA", "BB", "CC", "DD", "EE"].into_iter().enumerate();
            let answer: Vec<String> = tickers.filter_map(history).collect();
            json("200 OK", &format!("{{{}}}", answer.join(",")))
        });
        let days = Self { place: Place::new(), service };
        let closes: Vec<String> = ["AA", "BB", "CC", "DD", "EE"]
            .iter()
            .enumerate()
            .flat_map(|(place, ticker)| {
                let days = day(2025, 9, 28).iter_days().take(140).enumerate();
                days.map(move |(number, day)| format!("{ticker},{day},{}", 50 + (place * 31 + number * 17) % 23))
            })
            .collect();
        fs::write(days.place.file("closes.csv"), format!("ticker,date,close\n{}\n", closes.join("\n")))
            .expect("prices");
        fs::write(days.place.file("key"), "scripted").expect("a key");
        days.run_on(day(2026, 1, 20));
        *is_later.lock().expect("no test panicked") = true;
        days.run_on(day(2026, 1, 21));
        days
    }

    /// Its definition, with more lines of `[dataset]`.
    fn text(&self, rest: &str) -> String {
        format!(
            "[source]\n{}api_key_file = {:?}\n[signals]\nsectors = \"energy\"\nperiods = \"1d\"\n[rejects]\nmax_share = 1\n\
             [calendar]\nexchange = \"weekdays\"\n[checks]\ndates = \"warn\"\nuniverse = 1\nrewritten = 1\nrewritten_series = 1\n[prices]\nfile = \"closes.csv\"\n[dataset]\nkind = \"signals\"\n{rest}",
            self.service.source(),
            self.place.file("key")
        )
    }

    fn run_on(&self, today: NaiveDate) {
        let definition = DefinitionFile::new("it.toml".into(), self.text("")).expect("a name");
        let options = Options { clock: Clock::Fixed(evening(today)), ..Options::new(self.place.file("output")) };
        let plan = Plan::of(definition).expect("a plan");
        Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
    }

    fn audit(&self, rest: &str) -> Value {
        self.place.define("it", &self.text(rest));
        serde_json::from_str(&self.place.run(["audit", "skill", "it", "--json"]).expect_success().stdout).expect("JSON")
    }
}

#[test]
fn a_signal_that_loses_its_direction_counts_as_removed() {
    let says = |ticker: &str, date: &str, is_later: bool| {
        let is_undecided = is_later && ticker == "BB" && ["2026-01-12", "2026-01-19"].contains(&date);
        (date >= "2026" && !is_undecided).then_some("buy")
    };
    let found = TwoDays::of(says).audit("");
    let counts = &found["signals"];
    assert_eq!((&counts["all"], &counts["measured"], &counts["unclear"]), (&100.into(), &100.into(), &0.into()));
    let rewritten = &found["pairs"][0]["rewritten"];
    assert_eq!(
        (&rewritten["matched"], &rewritten["removed"], &rewritten["altered"]),
        (&98.into(), &2.into(), &0.into())
    );
    // It was live, so it still is among what was published, and no longer among what stands there today.
    let names = |state: usize| found["pairs"][0]["measures"][state]["by_sector"].clone();
    let thin = |state: usize| found["pairs"][0]["measures"][state]["thin_dates"].as_u64().expect("a count");
    assert_eq!((thin(0), thin(1)), (0, 2), "four names are too few: {}", names(1));
}

#[test]
fn a_history_at_another_time_of_its_days_is_the_same_history() {
    let turned = |ticker: &str, date: &str| ticker == "BB" && date == "2026-01-12";
    let says = move |ticker: &str, date: &str, is_later: bool| {
        (date >= "2026").then_some(if is_later && turned(ticker, date) { "sell" } else { "buy" })
    };
    let found = TwoDays::at(["T00:00:00Z", "T21:00:00Z"], says).audit("");
    let counts = &found["signals"];
    assert_eq!((&counts["all"], &counts["same_day"], &counts["measured"]), (&200.into(), &100.into(), &100.into()));
    let rewritten = &found["pairs"][0]["rewritten"];
    let kinds = ["matched", "altered", "turned", "removed", "added"].map(|kind| rewritten[kind].as_u64());
    assert_eq!(kinds, [99, 1, 1, 0, 0].map(Some));
    assert_eq!(found["hindsight"]["turned"], 1, "it turned after its horizon");
    assert_eq!(found["pairs"][0]["measures"][1]["dates"], 20);
}

#[test]
fn an_audit_has_the_range_of_its_dataset() {
    let days = TwoDays::at(["T00:00:00Z"; 2], |_, date, _| (date >= "2026").then_some("buy"));
    // On the clock of New York, each signal is of the evening before.
    let found = days.audit("[dates]\nnaive = \"America/New_York\"\n[filter]\nfrom = 2026-01-05\nto = 2026-01-06\n");
    assert_eq!(found["signals"]["all"], 5);
    let place = &days.place;
    let rows = place.run(["build", "it", "--output", "-", "--format", "csv", "-q"]).expect_success().stdout;
    place.run(["audit", "skill", "it", "--output", "dates.csv"]).expect_success();
    let dates = |text: &str, name: &str| -> std::collections::BTreeSet<String> {
        let index = text.lines().next().expect("a header").split(',').position(|column| column == name);
        let cells = text.lines().skip(1).filter_map(|row| row.split(',').nth(index.expect("a column")));
        cells.filter(|cell| !cell.is_empty()).map(|cell| cell[..10].to_owned()).collect()
    };
    let of_audit = dates(&fs::read_to_string(place.file("dates.csv")).expect("a file"), "date");
    assert_eq!(of_audit, dates(&rows, "date"));
    let quality = place.run(["audit", "quality", "it", "--json"]).expect_success().stdout;
    let quality: Value = serde_json::from_str(&quality).expect("JSON");
    assert_eq!(quality["total"]["signals"], 5);
    let revisions = place.run(["audit", "revisions", "it", "--json"]).expect_success().stdout;
    let revisions: Value = serde_json::from_str(&revisions).expect("JSON");
    assert_eq!(revisions["signals"]["total"]["known"], 5);
}

#[test]
fn signals_that_were_seen_at_once_have_one_window() {
    let days = TwoDays::of(|_, date, _| (date >= "2026").then_some("buy"));
    let found = days.audit("[output]\nlive_within = \"30d\"\n");
    let [published, today] = [0, 1].map(|state| &found["pairs"][0]["measures"][state]);
    // All twenty dates were first seen on the last one, and are entered after it.
    assert_eq!(
        (&published["dates"], &published["horizon"], &published["windows"]),
        (&20.into(), &20.into(), &1.into())
    );
    assert_eq!((&published["refusal"]["reason"], &published["test"]), (&"too_short".into(), &Value::Null));
    assert_eq!((&today["horizon"], &today["windows"]), (&20.into(), &1.into()));
}

#[test]
fn a_name_that_is_no_longer_listed_counts_in_what_was_published_alone() {
    let says = |ticker: &str, date: &str, is_later: bool| {
        (date >= "2026" && !(is_later && ticker == "EE")).then_some(if date < "2026-01-10" { "buy" } else { "sell" })
    };
    let found = TwoDays::of(says).audit("");
    let pair = &found["pairs"][0];
    let gone = ["signals", "names", "names_delisted"].map(|name| pair["gone"][name].as_u64());
    assert_eq!(gone, [20, 1, 1].map(Some));
    assert_eq!((&pair["rewritten"]["removed"], &pair["rewritten"]["matched"]), (&20.into(), &80.into()));
    let thin = |state: usize| pair["measures"][state]["thin_dates"].as_u64();
    // Five names were published on each of the last days; four are listed today.
    assert_eq!((thin(0), thin(1), &pair["measures"][0]["names"]), (Some(0), Some(20), &5.0.into()));
    // The price of the day after says what became of them: the votes against them are on the days before the 21st.
    assert_eq!(
        found["hindsight"]["withdrawn"]
            .as_u64()
            .zip(found["hindsight"]["even"].as_u64())
            .map(|(one, other)| one + other),
        Some(15)
    );
    let verdict = found["verdict"].as_array().expect("sentences");
    assert!(
        verdict.iter().any(|said| said.as_str().is_some_and(|said| said.contains("1 name is no longer listed"))),
        "{verdict:?}"
    );
}

#[test]
fn a_late_vendor_is_seen_late_and_entered_after_it_was_seen() {
    let today = Arc::new(Mutex::new(day(2026, 1, 5)));
    let now = Arc::clone(&today);
    // Each evening it adds the signal of four weekdays before.
    let service = Scripted::of_histories(move |_| {
        let until = *now.lock().expect("no test panicked") - Days::new(5);
        let history = |(place, ticker): (usize, &str)| {
            let entries = weekdays(day(2025, 12, 1), until).into_iter().enumerate().map(|(number, date)| {
                let confidence = 0.5 + ((7 * place + 3 * number) % 11) as f64 / 25.0;
                format!("{{\"date\":\"{date}\",\"signal\":\"buy\",\"confidence\":{confidence}}}")
            });
            format!(
                "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"1d\",\"predictions\":[{}]}}",
                entries.collect::<Vec<_>>().join(",")
            )
        };
        let tickers = ["AA", "BB", "CC", "DD", "EE"].into_iter().enumerate();
        json("200 OK", &format!("{{{}}}", tickers.map(history).collect::<Vec<_>>().join(",")))
    });
    let place = Place::new();
    fs::write(place.file("key"), "scripted").expect("a key");
    let text = format!(
        "[source]\n{}api_key_file = {:?}\n[signals]\nsectors = \"energy\"\nperiods = \"1d\"\n[dataset]\nkind = \"signals\"\n\
         [calendar]\nexchange = \"weekdays\"\n[prices]\nfile = \"closes.csv\"\n",
        service.source(),
        place.file("key")
    );
    let evenings = weekdays(day(2026, 1, 5), day(2026, 1, 24));
    for evening_of in &evenings {
        *today.lock().expect("no test panicked") = *evening_of;
        let plan = Plan::of(DefinitionFile::new("it.toml".into(), text.clone()).expect("a name")).expect("a plan");
        let options = Options { clock: Clock::Fixed(evening(*evening_of)), ..Options::new(place.file("output")) };
        Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
    }
    let closes: Vec<String> = ["AA", "BB", "CC", "DD", "EE"]
        .iter()
        .enumerate()
        .flat_map(|(place, ticker)| {
            let days = weekdays(day(2025, 12, 1), day(2026, 3, 1)).into_iter().enumerate();
            days.map(move |(number, day)| format!("{ticker},{day},{}", 50 + (place * 31 + number * 17) % 23))
        })
        .collect();
    fs::write(place.file("closes.csv"), format!("ticker,date,close\n{}\n", closes.join("\n"))).expect("prices");
    place.define("it", &text);
    let found = place.run(["audit", "skill", "it", "--json"]).expect_success().stdout;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    // What the first answer had was backfilled; every evening after it brought a weekday, but on Mondays none.
    let dates = weekdays(day(2025, 12, 31), day(2026, 1, 18)).len() as u64;
    assert_eq!((&found["signals"]["live"], &found["signals"]["late"]), (&0.into(), &(5 * dates).into()), "{found}");
    assert!(found["witnessed"].as_f64() > Some(0.2));
    // They are entered when they were seen: those of a Friday on Thursday, with the window of a day of its own.
    assert_eq!(found["pairs"][0]["measures"][0]["dates"], dates);
    let text = place.run(["audit", "skill", "it"]).expect_success().stdout;
    assert!(text.contains("later than `live_within`"), "{text}");
}
