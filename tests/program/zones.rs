//! Dates in every form and by every rule: no article is used for an earlier signal.

use std::fs;
use std::path::Path;

use chrono::{Days, NaiveDate, NaiveDateTime};
use serde_json::{Value, json};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{self, Scripted};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");
const TICKERS: [&str; 3] = ["AAA", "BBB", "CCC"];

/// A month in which clocks went back in New York, back in Newfoundland a minute after midnight, and forward in Sao
/// Paulo at midnight.
fn day(random: &mut Random) -> NaiveDate {
    NaiveDate::from_ymd_opt(2009, 10, 12).expect("a day") + Days::new(random.below(24) as u64)
}

/// A date in a form of the interface: a day, a time without an offset, or one with an offset.
fn date(random: &mut Random) -> String {
    let day = day(random);
    let (hour, minute) = (random.pick(&[0, 0, 1, 2, 4, 5, 12, 16, 22, 23]), random.pick(&[0, 0, 1, 30, 59]));
    let offset = random
        .pick(&["Z", "Z", "-04:00", "-05:00", "-02:30", "-03:30", "-02:00", "+09:00", "+05:30", "+14:00", "-1200"]);
    match random.below(6) {
        0 | 1 => day.to_string(),
        2 => format!("{day}T{hour:02}:{minute:02}:00"),
        3 => format!("{day} 00:00:00{offset}"),
        _ => format!("{day}T{hour:02}:{minute:02}:00{offset}"),
    }
}

/// The archived instant or clock face.
fn archived(date: &str) -> i64 {
    let date = date.replacen(' ', "T", 1);
    if date.len() == 10 {
        return date.parse::<NaiveDate>().expect("a day").and_hms_opt(0, 0, 0).expect("midnight").and_utc().timestamp();
    }
    let naive: NaiveDateTime = date[..19].parse().expect("a time");
    let offset = match &date[19..] {
        "" | "Z" => 0,
        text => {
            let digits: Vec<i64> = text.chars().filter_map(|one| one.to_digit(10)).map(i64::from).collect();
            let minutes = (digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3];
            if text.starts_with('-') { -minutes } else { minutes }
        }
    };
    naive.and_utc().timestamp() - offset * 60
}

/// Dates that are distinct in the archive.
fn dates(random: &mut Random, count: usize) -> Vec<String> {
    let mut dates: Vec<String> = (0..count).map(|_| date(random)).collect();
    let mut seen = std::collections::HashSet::new();
    dates.retain(|date| seen.insert(archived(date)));
    dates
}

fn histories(random: &mut Random) -> String {
    let mut of_tickers = serde_json::Map::new();
    for ticker in TICKERS {
        let dates = dates(random, 90);
        let entry =
            |date: String| json!({ "date": date, "signal": "buy", "confidence": random.below(1000) as f64 / 1e3 });
        let entries: Vec<Value> = dates.into_iter().map(entry).collect();
        let history = json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries });
        of_tickers.insert(ticker.to_owned(), history);
    }
    Value::Object(of_tickers).to_string()
}

fn score(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        _ => json!((random.below(2_000) as f64 - 1_000.0) / 1e4),
    }
}

fn articles(random: &mut Random) -> String {
    let article = |number| {
        let date = date(random);
        json!({ "date": date, "title": format!("t{number}"), "score": score(random), "link": "l" })
    };
    Value::Array((0..80).map(article).collect()).to_string()
}

/// Records of historical sentiment; scores may be text.
fn records(random: &mut Random) -> String {
    let record = |_| {
        let (date, score) = (date(random), score(random));
        let score = if random.one_in(3) && !score.is_null() { score.to_string().into() } else { score };
        json!({ "date": date, "score": score })
    };
    Value::Array((0..60).map(record).collect()).to_string()
}

fn definition(source: &str, naive: &str, lag: &str) -> String {
    format!(
        "[source]\n{source}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
         [sentiment]\nhistorical = true\n[dates]\nnaive = \"{naive}\"\n\
         [join]\nlag = \"{lag}\"\nsources = [\"articles\", \"historical\"]\nhistorical = [\"score\"]\n\
         windows = [\"3d\"]\nstats = [\"count\", \"mean\", \"last\", \"days_since\"]\n"
    )
}

/// The number of skipped signals in a note.
fn skipped(stdout: &str) -> u64 {
    let note = stdout.lines().find(|line| line.starts_with("note") && line.contains(" skipped "));
    note.map_or(0, |note| note.split_whitespace().nth(2).and_then(|count| count.parse().ok()).expect("a count"))
}

fn check(seed: u64) {
    let place = Place::new();
    let mut random = Random::of(seed);
    let history = histories(&mut random);
    let news = TICKERS.map(|_| (articles(&mut random), records(&mut random)));
    fs::write(place.file("histories.json"), &history).expect("a file");
    let (mut of_articles, mut of_records) = (serde_json::Map::new(), serde_json::Map::new());
    for (ticker, (articles, records)) in TICKERS.iter().zip(&news) {
        for (name, text, files) in [("articles", articles, &mut of_articles), ("records", records, &mut of_records)] {
            let file = place.file(&format!("{ticker}-{name}.json"));
            fs::write(&file, text).expect("a file");
            files.insert((*ticker).to_owned(), json!(file));
        }
    }
    let service = Scripted::start(move |request| {
        let ticker = TICKERS.iter().position(|ticker| request.target.contains(&format!("/{ticker}?")));
        let body = match ticker.map(|place| &news[place]) {
            Some((_, records)) if request.target.contains("historical_ss_data") => records,
            Some((articles, _)) => articles,
            None => &history,
        };
        scripted::json("200 OK", body)
    });
    let mut datasets = Vec::new();
    let rules = ["utc", "wall", "Asia/Tokyo", "America/New_York", "America/St_Johns", "America/Sao_Paulo"];
    for naive in rules {
        for (lag, as_parameter) in [
            ("0d", json!(0)),
            ("1d", json!(1)),
            ("2d", json!(2)),
            ("1 trading day", json!("1")),
            ("3 trading days", json!("3")),
        ] {
            let name = format!("set{}", datasets.len());
            place.define(&name, &definition(&service.source(), naive, lag));
            let verb = if datasets.is_empty() { "run" } else { "build" };
            let stdout = Outcome::of(place.command([verb, &name]).envs([KEY])).succeeded().stdout;
            let file = place.file(&format!("output/datasets/{name}/latest/{name}.parquet"));
            let repeated = skipped(&stdout);
            datasets.push(json!({ "file": file, "naive": naive, "lag": as_parameter, "repeated": repeated }));
        }
    }
    let parameters = json!({
        "histories": place.file("histories.json"), "articles": of_articles, "records": of_records, "window": 3, "datasets": datasets,
    });
    fs::write(place.file("parameters.json"), parameters.to_string()).expect("a file");
    python::check("check_zones.py", [Path::new(&place.file("parameters.json"))]);
}

#[test]
fn no_signal_uses_a_later_article_under_any_rule_and_date_format() {
    check(1);
}

#[test]
fn a_signal_with_a_duplicate_naive_date_is_dropped_and_counted() {
    let entry = |date: &str, confidence: f64| json!({ "date": date, "signal": "buy", "confidence": confidence });
    // New York has 1:30 twice, and by the clock face four times.
    let entries = [
        entry("2025-11-02T06:30:00Z", 0.2),
        entry("2025-11-02T05:30:00Z", 0.1),
        entry("2025-11-02T01:30:00+09:00", 0.3),
        entry("2025-11-02T01:30:00", 0.4),
    ];
    let history =
        json!({ "AAA": { "ticker": "AAA", "regime": "bear", "period": "5d", "predictions": entries } }).to_string();
    let service = Scripted::of_histories(move |_| scripted::json("200 OK", &history));
    let place = Place::new();
    let source = service.source();
    for (naive, expected, confidences) in [
        ("utc", 0, vec!["0.3", "0.4", "0.1", "0.2"]),
        ("America/New_York", 2, vec!["0.3", "0.4"]),
        ("wall", 1, vec!["0.3", "0.1", "0.2"]),
    ] {
        let text = format!(
            "[source]\n{source}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
             [sentiment]\narticles = false\n[dates]\nnaive = \"{naive}\"\n"
        );
        let name = naive.to_lowercase().replace('/', "-");
        place.define(&name, &text);
        let outcome = Outcome::of(place.command(["run", &name]).envs([KEY])).succeeded();
        assert_eq!(skipped(&outcome.stdout), expected, "{}", outcome.stdout);
        let lines = place.run(["build", &name, "--format", "csv", "--output", "-"]).succeeded().stdout;
        let found: Vec<&str> = lines.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
        assert_eq!(found, confidences, "{naive}: {lines}");
        // Nothing is rebuilt, but the note is still printed.
        let again = place.run(["build", &name]).succeeded().stdout;
        assert_eq!(skipped(&again), expected, "{again}");
    }
}

#[test]
fn a_lag_of_zero_days_is_allowed_with_a_warning() {
    let place = Place::new();
    for (lag, is_warned) in [("0d", true), ("0 trading days", true), ("1d", false)] {
        place.define(
            "it",
            &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[join]\nlag = \"{lag}\"\n"),
        );
        let outcome = place.run(["check", "it"]).succeeded();
        let warning = "with `lag = \"0d\"` a signal without a time uses all news of its own day";
        assert_eq!(outcome.stderr.contains(warning), is_warned, "{lag}: {}", outcome.stderr);
    }
}
