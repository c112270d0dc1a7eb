//! Dates in every form and by every rule: no article is used for an earlier signal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bellwether::load::{Dataset, Selection};
use bellwether::plan::Plan;
use bellwether::project::Project;
use chrono::{Datelike, Days, NaiveDate, NaiveDateTime};
use serde_json::{Value, json};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::random::Random;
use crate::support::rows::{columns, numbers, read, texts};
use crate::support::scripted::{self, Scripted};
use crate::support::service::{list, text};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");
const TICKERS: [&str; 3] = ["AAA", "BBB", "CCC"];

/// The ticker whose signals have no offsets.
const WITHOUT_OFFSETS: &str = "BBB";

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
fn archived_date(date: &str) -> i64 {
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
fn distinct(mut dates: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    dates.retain(|date| seen.insert(archived_date(date)));
    dates
}

fn histories(random: &mut Random) -> String {
    let mut of_tickers = serde_json::Map::new();
    for ticker in TICKERS {
        let mut dates: Vec<String> = (0..90).map(|_| date(random)).collect();
        if ticker == WITHOUT_OFFSETS {
            dates.iter_mut().for_each(|date| date.truncate(19));
            // Newfoundland's clock went back at 00:01, to 23:01.
            dates.extend(["2009-11-01T00:00:30".to_owned(), "2009-11-01T00:30:00".to_owned()]);
        }
        let dates = distinct(dates);
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
    let mut list: Vec<Value> = (0..80).map(article).collect();
    list.push(
        json!({ "date": "2009-11-01T03:00:00Z", "title": "23:30, for the second time", "score": 0.5, "link": "l" }),
    );
    Value::Array(list).to_string()
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
fn skipped_signals(stdout: &str) -> u64 {
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
            let stdout = Outcome::of(place.command([verb, &name]).envs([KEY])).expect_success().stdout;
            let file = place.file(&format!("output/datasets/{name}/latest/{name}.parquet"));
            let repeated = skipped_signals(&stdout);
            check_filters(&place, &name);
            datasets.push(json!({ "file": file, "naive": naive, "lag": as_parameter, "repeated": repeated }));
        }
    }
    for (naive, lag, [made_at, clock, zone], [delay, seconds], holidays) in [
        ("utc", "0d", ["16:00 America/New_York", "16:00", "America/New_York"], ["15m", "900"], false),
        ("wall", "0d", ["09:30 Asia/Tokyo", "09:30", "Asia/Tokyo"], ["2h", "7200"], false),
        ("America/New_York", "1d", ["00:30 Asia/Tokyo", "00:30", "Asia/Tokyo"], ["90s", "90"], false),
        (
            "America/Sao_Paulo",
            "1 trading day",
            ["00:00 America/Sao_Paulo", "00:00", "America/Sao_Paulo"],
            ["12h", "43200"],
            true,
        ),
        ("utc", "2 trading days", ["23:59 UTC", "23:59", "UTC"], ["1s", "1"], true),
    ] {
        let name = format!("set{}", datasets.len());
        let closed = ["2009-10-12", "2009-10-20", "2009-11-02"];
        let calendar = if holidays { format!("[calendar]\nholidays = {closed:?}\n") } else { String::new() };
        let text = definition(&service.source(), naive, lag)
            .replace("[sentiment]\n", &format!("made_at = \"{made_at}\"\n[sentiment]\ndelay = \"{delay}\"\n"));
        place.define(&name, &(text + &calendar));
        let stdout = place.run(["build", &name]).expect_success().stdout;
        let from = NaiveDate::from_ymd_opt(2009, 9, 1).expect("a day");
        let sessions = from.iter_days().take(90).filter(|day| day.weekday().number_from_monday() < 6);
        let sessions: Vec<String> = sessions.map(|day| day.to_string()).collect();
        let sessions: Vec<&String> =
            sessions.iter().filter(|day| holidays && !closed.contains(&day.as_str())).collect();
        let lag =
            lag.strip_suffix('d').map_or_else(|| json!(lag[..1]), |days| json!(days.parse::<u8>().expect("days")));
        datasets.push(json!({
            "file": place.file(&format!("output/datasets/{name}/latest/{name}.parquet")), "naive": naive, "lag": lag,
            "repeated": skipped_signals(&stdout), "made_at": [clock, zone], "delay": seconds.parse::<u32>().expect("seconds"),
            "sessions": sessions,
        }));
    }
    let parameters = json!({
        "histories": place.file("histories.json"), "articles": of_articles, "records": of_records, "window": 3, "datasets": datasets,
    });
    fs::write(place.file("parameters.json"), parameters.to_string()).expect("a file");
    python::check("check_zones.py", [Path::new(&place.file("parameters.json"))]);
}

/// The rows of a ticker are the same, whichever others are built.
fn check_filters(place: &Place, name: &str) {
    let rows = |options: &[&str]| -> Vec<String> {
        let built =
            place.run(["build", name, "--format", "csv", "--output", "-"].iter().chain(options)).expect_success();
        built.stdout.lines().skip(1).map(str::to_owned).collect()
    };
    let all = rows(&[]);
    for ticker in TICKERS {
        let of_ticker: Vec<&String> = all.iter().filter(|row| row.starts_with(ticker)).collect();
        assert_eq!(rows(&["--ticker", ticker]).iter().collect::<Vec<_>>(), of_ticker, "{name}, {ticker}");
    }
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
        let outcome = Outcome::of(place.command(["run", &name]).envs([KEY])).expect_success();
        assert_eq!(skipped_signals(&outcome.stdout), expected, "{}", outcome.stdout);
        let lines = place.run(["build", &name, "--format", "csv", "--output", "-"]).expect_success().stdout;
        let found: Vec<&str> = lines.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
        assert_eq!(found, confidences, "{naive}: {lines}");
        // Nothing is rebuilt, but the note is still printed.
        let again = place.run(["build", &name]).expect_success().stdout;
        assert_eq!(skipped_signals(&again), expected, "{again}");
    }
}

/// Articles around midnight, with their days in UTC and in New York. The dataset is of 2026-11-16 to 2026-12-01.
const AROUND_MIDNIGHT: [(&str, &str, &str); 8] = [
    ("2026-12-02T03:00:00Z", "2026-12-02", "2026-12-01"),
    ("2026-12-01T02:00:00Z", "2026-12-01", "2026-11-30"),
    ("2026-11-20T22:00:00+09:00", "2026-11-20", "2026-11-20"),
    ("2026-11-18T00:30:00-05:00", "2026-11-18", "2026-11-18"),
    ("2026-11-17T23:30:00-05:00", "2026-11-18", "2026-11-17"),
    ("2026-11-18T03:00:00Z", "2026-11-18", "2026-11-17"),
    ("2026-11-18", "2026-11-18", "2026-11-18"),
    ("2026-11-16T02:00:00Z", "2026-11-16", "2026-11-15"),
];

/// The days of these articles on the clock of a rule.
fn days_of(naive: &str) -> [&'static str; 8] {
    AROUND_MIDNIGHT.map(|(_, utc, new_york)| if naive == "utc" { utc } else { new_york })
}

/// How many times each day is there.
fn by_day<T: AsRef<str>>(days: impl IntoIterator<Item = T>) -> BTreeMap<String, u64> {
    days.into_iter().fold(BTreeMap::new(), |mut counts, day| {
        *counts.entry(day.as_ref()[..10].to_owned()).or_default() += 1;
        counts
    })
}

/// A service with these articles about a ticker, and a signal on each of sixteen days.
fn around_midnight() -> Scripted {
    let dates = NaiveDate::from_ymd_opt(2026, 11, 16).expect("a day").iter_days().take(16);
    let entry = |date: NaiveDate| json!({ "date": date.to_string(), "signal": "buy", "confidence": 0.5 });
    let entries: Vec<Value> = dates.map(entry).collect();
    let history = json!({ "AAA": { "ticker": "AAA", "regime": "bear", "period": "5d", "predictions": entries } });
    let article = |(number, (date, ..)): (usize, &(&str, &str, &str))| json!({ "date": date, "title": format!("t{number}"), "score": 0.1, "link": "l" });
    let news = Value::Array(AROUND_MIDNIGHT.iter().enumerate().map(article).collect()).to_string();
    let history = history.to_string();
    Scripted::start(move |request| {
        scripted::json("200 OK", if request.target.starts_with("/a/") { &history } else { &news })
    })
}

/// The dates of the articles that a program loads.
fn load(place: &Place, name: &str, selection: Selection) -> Vec<String> {
    let project = Project::at(place.path()).expect("a project");
    let plan = Plan::find(name, &project).expect("a plan");
    let articles = Dataset::articles(&plan, &place.file("output/archive"), None).expect("articles");
    let batches = articles.select(selection).expect("columns").batches().expect("an archive");
    batches.flat_map(|batch| texts(&batch.expect("rows"), "date")).flatten().collect()
}

#[test]
fn articles_are_on_the_days_of_the_definition_in_facts_report_summary_and_load() {
    let (place, service) = (Place::new(), around_midnight());
    let source = service.source();
    for (rule, naive) in [("utc", "utc"), ("zone", "America/New_York")] {
        let all = by_day(days_of(naive));
        let of_signals = days_of(naive).into_iter().filter(|day| ("2026-11-16"..="2026-12-01").contains(day));
        let of_signals = by_day(of_signals);
        let rest = [
            "[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
             [sentiment]\ncomplete = true\n[join]\nlag = \"1d\"\nwindows = \"1d\"\nstats = \"count\"\n",
            "[sentiment]\ntickers = \"AAA\"\n[dataset]\nkind = \"news\"\n",
        ];
        let names = [format!("{rule}-joined"), format!("{rule}-news")];
        for (name, rest) in names.iter().zip(rest) {
            place.define(name, &format!("[source]\n{source}{rest}[dates]\nnaive = \"{naive}\"\n"));
            Outcome::of(place.command(["run", name]).envs([KEY])).expect_success();
            let dates = load(&place, name, Selection::default());
            assert!(dates.is_sorted(), "{dates:?}");
            assert_eq!(by_day(&dates), all, "{naive}");
            let from = NaiveDate::from_ymd_opt(2026, 11, 18);
            let late: Vec<String> = dates.into_iter().filter(|date| &date[..10] >= "2026-11-18").collect();
            assert_eq!(load(&place, name, Selection { from, ..Selection::default() }), late);
        }
        let [joined, news] = names;
        let version = |name: &str| place.file(&format!("output/datasets/{name}/latest"));
        let rows = |name: &str| read(&version(name).join(format!("{name}.parquet")));
        let facts = |name: &str| -> Value {
            serde_json::from_slice(&fs::read(version(name).join("facts.json")).expect("facts")).expect("JSON")
        };
        let days = |facts: &Value| -> BTreeMap<String, u64> {
            let days = list(&facts["days"]).iter();
            days.map(|day| (text(&day[0]).to_owned(), day[1].as_u64().expect("a count"))).collect()
        };
        assert_eq!(by_day(texts(&rows(&news), "date").into_iter().flatten()), all, "{naive}");
        assert_eq!(days(&facts(&news)), all, "{naive}");

        // The joined dataset counts the articles of the day before each signal.
        let signals = rows(&joined);
        let counts = numbers(&signals, "news_count_1d").map(|count| count.expect("a count") as u64);
        for ([date], count) in columns(&signals, ["date"]).into_iter().zip(counts) {
            let day = date[..10].parse::<NaiveDate>().expect("a day") - Days::new(1);
            assert_eq!(count, all.get(&day.to_string()).copied().unwrap_or_default(), "{naive}, {date}");
        }
        let page = place.run(["report", &joined, "--output", "-"]).expect_success().stdout;
        let headlines: Vec<&str> = page.split("<bdi>t").skip(1).collect();
        assert!(!headlines.is_empty(), "{page}");
        for headline in headlines {
            let number: usize = headline.split('<').next().and_then(|it| it.parse().ok()).expect("a number");
            let day = days_of(naive)[number];
            assert!(headline.contains(&format!("<small>AAA, {day}</small>")), "{naive}, {day}: {headline}");
        }
        let [first, last] = [of_signals.keys().next(), of_signals.keys().last()].map(|day| day.expect("a day"));
        let count = of_signals.values().sum::<u64>();
        let scope = format!("{count} articles about 1 of 1 ticker, dated {first} to {last}");
        let summary = place.run(["report", "--text", &joined, "--width", "200"]).expect_success().stdout;
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(summary.contains(&scope), "{naive}: {scope}\n{summary}");
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
        let outcome = place.run(["check", "it"]).expect_success();
        let warning = "with `lag = \"0d\"` a signal without a time uses all news of its own day";
        assert_eq!(outcome.stderr.contains(warning), is_warned, "{lag}: {}", outcome.stderr);
    }
}
