//! Runs in which some requests are refused, fail, or have answers that cannot be read whole: what was answered is sealed,
//! what was not is unknown, and only then is it decided what may be published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::program::{Outcome, Place};
use crate::support::random::Random;
use crate::support::rows::{read, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json, reply};

/// A history, as an answer has it.
fn history(ticker: &str, entries: &[(String, f64)]) -> String {
    let entry = |(date, confidence): &(String, f64)| {
        format!("{{\"date\":\"{date}\",\"signal\":\"buy\",\"confidence\":{confidence}}}")
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!(
        "{{\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}}}",
        entries.join(",")
    )
}

fn of_two_days(ticker: &str) -> Vec<Step> {
    json("200 OK", &history(ticker, &[("2026-11-20".to_owned(), 0.5), ("2026-11-19".to_owned(), 0.25)]))
}

fn define(place: &Place, service: &Scripted, rest: &str) {
    place.define("it", &format!("[source]\n{}patience = \"1s\"\n{rest}", service.source()));
}

fn run(place: &Place) -> Outcome {
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
}

/// The runs that `list runs` has.
fn listed(place: &Place) -> Vec<serde_json::Value> {
    let text = place.run(["list", "runs", "--json"]).expect_success().stdout;
    let mut listing: serde_json::Value = serde_json::from_str(&text).expect("a document");
    listing["runs"].take().as_array().expect("a list").clone()
}

fn is_news(request: &ScriptedRequest) -> bool {
    request.target.starts_with("/b/")
}

const THREE: &str = "[signals]\nsectors = [\"energy\", \"utilities\", \"technology\"]\n";
const NO_NEWS: &str = "[sentiment]\narticles = false\n";

/// The ticker of a sector.
fn ticker_of(request: &ScriptedRequest) -> &'static str {
    [("energy", "XOM"), ("utilities", "NEE"), ("technology", "AAPL")]
        .into_iter()
        .find(|(sector, _)| request.target.contains(sector))
        .expect("a sector")
        .1
}

#[test]
fn every_way_to_say_no_counts_alike() {
    let ways: [(&str, &str, &str); 9] = [
        ("400 Bad Request", "{\"detail\":\"no such sector\"}", "it says: no such sector"),
        ("402 Payment Required", "", "the service refuses it with status 402"),
        ("403 Forbidden", "{\"error\":\"not in your plan\"}", "status 403, it says: not in your plan"),
        ("404 Not Found", "", "the service does not know it"),
        ("422 Unprocessable Entity", "", "the service refuses it with status 422"),
        ("204 No Content", "", "the service does not know it"),
        ("200 OK", "null", "the answer is empty"),
        ("200 OK", "{}", "the answer is empty"),
        ("410 Gone", "", "the service does not know it"),
    ];
    for (status, body, expected) in ways {
        let place = Place::new();
        let service = Scripted::of_histories(move |request| match request.target.contains("utilities") {
            true if status.starts_with("204") => reply(status, "", b""),
            true => json(status, body),
            false => of_two_days(ticker_of(request)),
        });
        define(&place, &service, &format!("{THREE}{NO_NEWS}"));
        let shown = run(&place).failed_with(4).stderr;
        assert!(shown.contains("no signals for sector `utilities`") && shown.contains(expected), "{status}: {shown}");
        let runs = listed(&place);
        assert_eq!((runs.len(), &runs[0]["added"], &runs[0]["in_part"]), (1, &4.into(), &serde_json::Value::Null));
        define(&place, &service, &format!("{THREE}{NO_NEWS}[checks]\nmissing = \"warn\"\n"));
        let outcome = run(&place).expect_success();
        assert!(outcome.stdout.starts_with("rows      4\n") && outcome.stderr.contains(expected), "{status}");
    }
}

#[test]
fn signals_are_sealed_although_the_news_is_refused_or_fails() {
    for (status, code, in_part) in
        [("404 Not Found", 4, false), ("403 Forbidden", 4, false), ("500 Internal Server Error", 75, true)]
    {
        let place = Place::new();
        let is_mended = Arc::new(AtomicUsize::new(0));
        let mended = Arc::clone(&is_mended);
        let service = Scripted::start(move |request| match is_news(request) {
            true if mended.load(Ordering::Relaxed) == 0 => json(status, "{\"detail\":\"no news today\"}"),
            true => json("200 OK", "[]"),
            false => of_two_days(ticker_of(request)),
        });
        define(&place, &service, THREE);
        let shown = run(&place).failed_with(code).stderr;
        assert!(status.starts_with("404") || shown.contains("no news today"), "{shown}");
        let runs = listed(&place);
        assert_eq!(
            (runs.len(), &runs[0]["added"], runs[0]["in_part"].is_string()),
            (1, &6.into(), in_part),
            "{status}"
        );
        // The next run asks for the rest.
        let asked = service.histories();
        is_mended.store(1, Ordering::Relaxed);
        run(&place).expect_success();
        assert_eq!(service.histories() - asked, if in_part { 0 } else { 3 }, "{status}");
        let runs = listed(&place);
        assert_eq!((&runs[1]["in_part"], &runs[1]["added"]), (&serde_json::Value::Null, &0.into()), "{status}");
    }
}

#[test]
fn a_request_that_fails_does_not_keep_the_others_from_being_made() {
    let place = Place::new();
    let is_mended = Arc::new(AtomicUsize::new(0));
    let mended = Arc::clone(&is_mended);
    let service = Scripted::start(move |request| match is_news(request) {
        true if mended.load(Ordering::Relaxed) == 0 && request.target.contains("NEE") => json("200 OK", "[{]"),
        true => json("200 OK", "[{\"date\":\"2026-11-18\",\"title\":\"a\",\"link\":\"l\",\"score\":0.5}]"),
        false => of_two_days(ticker_of(request)),
    });
    define(&place, &service, &format!("connections = 1\n{THREE}"));
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("cannot parse the answer to `news_articles/NEE`"), "{shown}");
    assert!(shown.contains("is sealed in part, with 5 answers, and the next run asks for the rest"), "{shown}");
    let name = listed(&place)[0]["run"].as_str().expect("a name").to_owned();
    let lines = place.run(["list", "runs"]).expect_success().stdout;
    assert!(lines.contains("it, in part") && lines.contains("unfinished, 5 answers"), "{lines}");
    let details = place.run(["list", "runs", &name]).expect_success().stdout;
    assert!(details.contains("in part     cannot parse the answer to `news_articles/NEE`"), "{details}");
    let status = place.run(["status"]);
    assert!(status.stdout.contains(" UTC, in part\n") && status.stdout.contains("cannot parse"), "{}", status.stdout);

    // Nothing new: no run is sealed, and the answers stay.
    run(&place).failed_with(4);
    assert_eq!(listed(&place).len(), 1);
    is_mended.store(1, Ordering::Relaxed);
    let asked = service.count();
    let outcome = run(&place).expect_success();
    assert_eq!(service.count() - asked, 1);
    assert!(outcome.stdout.contains("note      resumed an interrupted run with 5 answers\n"), "{}", outcome.stdout);
    let built = place.run(["build", "it"]).expect_success();
    assert!(built.stdout.starts_with("rows      6\n"), "{}", built.stdout);
    let revisions = place.run(["audit", "revisions", "it", "--json"]).expect_success().stdout;
    assert!(!revisions.contains("\"withdrawn\":1"), "{revisions}");
}

#[test]
fn what_could_not_be_read_is_not_taken_for_withdrawn() {
    let place = Place::new();
    let day = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&day);
    let good = history("XOM", &[("2026-11-20".to_owned(), 0.5), ("2026-11-19".to_owned(), 0.25)]);
    let bad_entry = good.replace("2026-11-19", "19th");
    let bad_history =
        good.replace("\"XOM\":{", "\"XOM\":7,\"NEE\":{").replace("\"ticker\":\"XOM\"", "\"ticker\":\"NEE\"");
    let bodies = [good.clone(), bad_entry, bad_history, good];
    let service = Scripted::of_histories(move |_| json("200 OK", &bodies[now.load(Ordering::Relaxed)]));
    define(&place, &service, &format!("[signals]\nsectors = [\"energy\"]\n{NO_NEWS}[checks]\nuniverse = 1.0\n"));
    run(&place).expect_success();
    for (at, rejected) in [(1, "rejected 1 of 2 records"), (2, "rejected 1 of 3 records")] {
        day.store(at, Ordering::Relaxed);
        let shown = run(&place).failed_with(4).stderr;
        assert!(shown.contains(rejected) && shown.contains("the archive keeps what could be read"), "{shown}");
        assert!(shown.contains("`bellwether list runs 2"), "{shown}");
    }
    day.store(3, Ordering::Relaxed);
    run(&place).expect_success();
    let changes = |run: &serde_json::Value| ["added", "revised", "withdrawn"].map(|what| run[what].as_u64().unwrap());
    let found: Vec<[u64; 3]> = listed(&place).iter().map(changes).collect();
    assert_eq!(found, [[2, 0, 0], [0, 0, 0], [2, 0, 0], [0, 0, 0]], "NEE is new on the third day");
    let name = listed(&place)[2]["run"].as_str().expect("a name").to_owned();
    let details = place.run(["list", "runs", &name]).expect_success().stdout;
    assert!(details.contains("1 listed, 0 no longer listed"), "{details}");
}

/// What happens to a request on a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Answered,
    Refused,
    Failed,
    Nothing,
    Unreadable,
}

impl Fate {
    fn random(random: &mut Random) -> Self {
        match random.below(10) {
            0 => Self::Refused,
            1 => Self::Failed,
            2 => Self::Nothing,
            3 | 4 => Self::Unreadable,
            _ => Self::Answered,
        }
    }
}

/// Some days of a service of three sectors. Each day any of them may be refused, fail, have nothing, or have a record that
/// cannot be read. What is known after each day is computed here from the answers alone.
#[test]
fn what_is_known_follows_from_the_answers_whatever_fails_on_any_day() {
    const TICKERS: [&str; 3] = ["XOM", "NEE", "AAPL"];
    type Known = BTreeMap<(String, String), f64>;
    for seed in 0..6 {
        let mut random = Random::of(900 + seed);
        let place = Place::new();
        let today: Arc<Mutex<BTreeMap<&str, Vec<Step>>>> = Arc::default();
        let answers = Arc::clone(&today);
        let service = Scripted::of_histories(move |request| {
            answers.lock().expect("no test panicked")[ticker_of(request)].clone()
        });
        let rest = "[checks]\nmissing = \"warn\"\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n[rejects]\nmax_share = 0.3\n";
        define(&place, &service, &format!("{THREE}{NO_NEWS}{rest}"));
        let mut known = Known::new();
        for day in 0..8 {
            let mut fates = Vec::new();
            for ticker in TICKERS {
                let fate = Fate::random(&mut random);
                // The last dates, now and then with another value or without one of them.
                let first = 1 + random.below(3);
                let mut said: Vec<(String, f64)> = Vec::new();
                for date in first..=(10 + day) {
                    if random.below(8) > 0 {
                        said.push((
                            format!("2026-10-{date:02}"),
                            0.5 + f64::from(u32::try_from(random.below(3)).expect("small")) / 8.0,
                        ));
                    }
                }
                let body = history(ticker, &said);
                let steps = match fate {
                    Fate::Answered => json("200 OK", &body),
                    Fate::Refused => json("403 Forbidden", "{}"),
                    Fate::Failed => json("200 OK", &body[..body.len() - 1]),
                    Fate::Nothing => json("200 OK", "{}"),
                    Fate::Unreadable => {
                        json("200 OK", &body.replace("\"predictions\":[", "\"predictions\":[{\"date\":\"then\"},"))
                    }
                };
                today.lock().expect("no test panicked").insert(ticker, steps);
                if fate == Fate::Answered {
                    let oldest = said.iter().map(|(date, _)| date.clone()).min();
                    known.retain(|(of, date), _| of != ticker || oldest.as_ref().is_none_or(|oldest| date < oldest));
                }
                if matches!(fate, Fate::Answered | Fate::Unreadable) {
                    known.extend(said.into_iter().map(|(date, value)| ((ticker.to_owned(), date), value)));
                }
                fates.push(fate);
            }
            let arguments = ["run", "it", "--fresh"];
            let outcome = Outcome::of(place.command(arguments).env("BELLWETHER_API_KEY", "demo"));
            if fates.contains(&Fate::Failed) && fates.iter().any(|fate| *fate != Fate::Failed && *fate != Fate::Refused)
            {
                assert_eq!(outcome.code, Some(4), "{fates:?}: {}", outcome.stderr);
            }
            if known.is_empty() {
                continue;
            }
            let built = place.run(["build", "it", "--output", "known.parquet", "--force"]);
            let built = if built.code == Some(0) { built } else { panic!("{fates:?}: {}", built.stderr) };
            drop(built);
            let rows = read(&place.file("known.parquet"));
            let [tickers, dates, values] = ["ticker", "date", "confidence"].map(|name| texts(&rows, name));
            let found: Known = tickers
                .into_iter()
                .zip(dates)
                .zip(values)
                .map(|((ticker, date), value)| {
                    let date = date.expect("a date")[..10].to_owned();
                    ((ticker.expect("a ticker"), date), value.expect("a value").parse().expect("a number"))
                })
                .collect();
            assert_eq!(found, known, "seed {seed}, day {day}, {fates:?}\n{}", outcome.stderr);
        }
    }
}

/// The same for lists of articles, of a dataset of news.
#[test]
fn what_is_known_of_news_follows_from_the_answers_whatever_fails_on_any_day() {
    const TICKERS: [&str; 3] = ["XOM", "NEE", "AAPL"];
    for seed in 0..3 {
        let mut random = Random::of(950 + seed);
        let place = Place::new();
        let today: Arc<Mutex<BTreeMap<&str, Vec<Step>>>> = Arc::default();
        let answers = Arc::clone(&today);
        let service = Scripted::start(move |request| {
            let ticker = TICKERS.into_iter().find(|ticker| request.target.contains(ticker)).expect("a ticker");
            answers.lock().expect("no test panicked")[ticker].clone()
        });
        let rest = "[signals]\ntickers = [\"XOM\", \"NEE\", \"AAPL\"]\n[dataset]\nkind = \"news\"\n[checks]\nmissing = \"warn\"\n\
                    universe = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n[rejects]\nmax_share = 0.3\n";
        define(&place, &service, rest);
        let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for day in 0..8 {
            let mut fates = Vec::new();
            for ticker in TICKERS {
                let fate = Fate::random(&mut random);
                // The first article is in every list, so that each covers all dates after it.
                let titles: Vec<usize> = (0..=10 + day).filter(|number| *number == 0 || !random.one_in(6)).collect();
                let article = |number: &usize| {
                    format!(
                        "{{\"date\":\"2026-10-{:02}\",\"title\":\"t{number}\",\"link\":\"l\",\"score\":0.5}}",
                        number + 1
                    )
                };
                let listed: Vec<String> = titles.iter().rev().map(article).collect();
                let body = format!("[{}]", listed.join(","));
                let steps = match fate {
                    Fate::Answered => json("200 OK", &body),
                    Fate::Refused => json("403 Forbidden", "{}"),
                    Fate::Failed => json("200 OK", &body[..body.len() - 1]),
                    Fate::Nothing => json("200 OK", "null"),
                    Fate::Unreadable => json("200 OK", &body.replacen('[', "[{\"date\":\"then\"},", 1)),
                };
                today.lock().expect("no test panicked").insert(ticker, steps);
                let titles: BTreeSet<String> = titles.iter().map(|number| format!("t{number}")).collect();
                match fate {
                    Fate::Answered => drop(known.insert(ticker, titles)),
                    Fate::Unreadable => known.entry(ticker).or_default().extend(titles),
                    Fate::Refused | Fate::Failed | Fate::Nothing => {}
                }
                fates.push(fate);
            }
            let outcome = Outcome::of(place.command(["run", "it", "--fresh"]).env("BELLWETHER_API_KEY", "demo"));
            if known.is_empty() {
                continue;
            }
            place.run(["build", "it", "--output", "known.parquet", "--force"]).expect_success();
            let rows = read(&place.file("known.parquet"));
            let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
            for (ticker, title) in texts(&rows, "ticker").into_iter().zip(texts(&rows, "title")) {
                let ticker = TICKERS.into_iter().find(|it| ticker.as_deref() == Some(it)).expect("a ticker");
                found.entry(ticker).or_default().insert(title.expect("a title"));
            }
            assert_eq!(found, known, "seed {seed}, day {day}, {fates:?}\n{}", outcome.stderr);
        }
    }
}
