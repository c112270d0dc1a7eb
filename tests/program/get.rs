//! `get`: what a service says now, compared with its own answers. Nothing is kept unless that is asked for.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bellwether::interface::ChangeSet;
use bellwether::serve::Universe;
use chrono::{Days, NaiveDate, Utc};
use serde_json::Value;

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, Step, json};
use crate::support::service::{KEY, Server, list, text};

/// A service as of today.
fn server() -> Server {
    Server::new(Universe::new(1, Utc::now().date_naive()), ChangeSet::All)
}

/// The program with an empty folder for temporary files, and the key.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let temporary = place.file("temporary");
    fs::create_dir_all(&temporary).expect("a folder");
    let mut command = place.command(["get"].iter().chain(arguments));
    command.env("TMPDIR", temporary).env("BELLWETHER_API_KEY", KEY);
    command
}

#[track_caller]
fn get(place: &Place, arguments: &[&str]) -> Outcome {
    let outcome = Outcome::of(&mut command(place, arguments));
    assert_eq!(fs::read_dir(place.file("temporary")).expect("a folder").count(), 0, "{arguments:?}: {outcome:?}");
    outcome
}

fn define(place: &Place, name: &str, server: &Server) {
    let (signals, sentiment) = (server.running.base_url(), server.running.sentiment_base_url());
    let source = format!("name = \"vendor\"\nbase_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\n");
    place.define(name, &format!("[source]\n{source}[signals]\nsectors = [\"utilities\"]\n"));
}

/// The first day of the last so many.
fn since(days: u64) -> NaiveDate {
    Utc::now().date_naive() - Days::new(days)
}

/// What a service lists of a ticker from a day on: dates, signals and confidences, the oldest first.
fn listed(server: &Server, ticker: &str, period: &str, from: NaiveDate) -> Vec<(String, String, f64)> {
    let history = server.json(&format!("/api/signals-history/{ticker}?period={period}&regime=neutral"));
    let mut listed: Vec<(String, String, f64)> = list(&history["predictions"])
        .iter()
        .map(|it| {
            let confidence = it["confidence"].as_f64().expect("a number");
            (text(&it["date"])[..10].to_owned(), text(&it["signal"]).to_owned(), confidence)
        })
        .filter(|(date, ..)| *date >= from.to_string())
        .collect();
    listed.sort_by(|one, other| one.0.cmp(&other.0));
    listed
}

/// The lines of JSON.
fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn the_signals_are_those_that_the_service_lists_and_nothing_is_kept() {
    let (place, server) = (Place::new(), server());
    define(&place, "only", &server);
    let files = place.files();
    let printed = get(&place, &["XOM,CVX", "--periods", "5d", "--output", "-", "--format", "json"]).expect_success();
    assert_eq!(printed.stderr, "");
    let rows = objects(&printed.stdout);
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            assert_eq!((text(&row["period"]), text(&row["regime"])), ("5d", "neutral"));
            let values = (text(&row["date"])[..10].to_owned(), text(&row["signal"]).to_owned());
            (text(&row["ticker"]).to_owned(), values.0, values.1, row["confidence"].as_f64().expect("a number"))
        })
        .collect();
    let expected: Vec<_> = ["CVX", "XOM"]
        .into_iter()
        .flat_map(|ticker| {
            let listed = listed(&server, ticker, "5d", since(30)).into_iter();
            listed.map(move |(date, signal, confidence)| (ticker.to_owned(), date, signal, confidence))
        })
        .collect();
    assert!(expected.len() > 20, "{expected:?}");
    assert_eq!(found, expected);
    // The table has the same rows.
    let table = get(&place, &["XOM", "CVX", "--periods", "5d"]).expect_success().stdout;
    assert_eq!(table.lines().count(), expected.len() + 1, "{table}");
    for (line, (ticker, date, signal, _)) in table.lines().skip(1).zip(&expected) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.contains(&&**ticker) && words.contains(&&**date) && words.contains(&&**signal), "{line}");
    }
    assert_eq!(place.files(), files);
}

#[test]
fn a_file_has_the_format_of_its_ending_and_the_articles_are_beside_it() {
    let (place, server) = (Place::new(), server());
    define(&place, "only", &server);
    let told = get(&place, &["XOM", "--last", "6m", "--news", "--output", "x.csv"]).expect_success().stdout;
    let [signals, articles] = ["x.csv", "x.news.csv"].map(|name| fs::read_to_string(place.file(name)).expect("a file"));
    let rows = |text: &str| text.lines().count() - 1;
    let line = |text: &str, name: &str| format!("wrote {} rows to {name}\n", rows(text));
    assert_eq!(told, line(&signals, "x.csv") + &line(&articles, "x.news.csv"));
    let head = signals.lines().next().expect("a header");
    assert!(head.starts_with("ticker,date,period,regime") && head.contains("news_count_7d"), "{head}");
    let half_a_year = Utc::now().date_naive().checked_sub_months(chrono::Months::new(6)).expect("a day");
    assert_eq!(rows(&signals), listed(&server, "XOM", "15d", half_a_year).len());
    let news = server.json("/sentiment/news_articles/XOM");
    let recent = list(&news).iter().filter(|article| text(&article["date"]) >= &*half_a_year.to_string());
    let titles: BTreeSet<String> = recent.clone().map(|it| text(&it["title"]).replace('"', "\"\"")).collect();
    assert!(titles.len() > 3 && titles.iter().all(|title| articles.contains(title)), "{articles}");
    assert!(articles.starts_with("ticker,date,score,title,link\n"), "{articles}");
    assert_eq!(rows(&articles), recent.count());
    // On a terminal both follow each other.
    let table = get(&place, &["XOM", "--last", "6m", "--news"]).expect_success().stdout;
    let (above, below) = table.split_once("\n\n").expect("two tables");
    assert!(above.contains("signal") && below.contains("title"), "{table}");

    let refused = get(&place, &["XOM", "--output", "x.csv"]).failed_with(1).stderr;
    assert!(refused.contains("`x.csv`") && refused.contains("exists"), "{refused}");
    get(&place, &["XOM", "--output", "x.csv", "--force"]).expect_success();
    let refused = get(&place, &["XOM", "--output", "x.txt"]).failed_with(2).stderr;
    assert!(refused.starts_with("error: cannot tell the format of `x.txt`"), "{refused}");
    let refused = get(&place, &["XOM", "--news", "--output", "-", "--format", "csv"]).failed_with(2).stderr;
    assert!(refused.starts_with("error: signals and articles are two tables"), "{refused}");
}

#[test]
fn a_service_is_that_of_a_definition_of_the_environment_or_the_demo() {
    let (place, server) = (Place::new(), server());
    let refused = get(&place, &["XOM"]).failed_with(2).stderr;
    let expected = "error: no service to ask: there is no definition in `pipelines`\n\
        hint: name a definition, ask the demo, or set `BELLWETHER_BASE_URL`\n";
    assert_eq!(refused, expected);
    let refused = get(&place, &["XOM", "--news"]).failed_with(2).stderr;
    assert!(refused.ends_with("set `BELLWETHER_BASE_URL` and `BELLWETHER_SENTIMENT_BASE_URL`\n"), "{refused}");
    let rows = |outcome: Outcome| outcome.expect_success().stdout.lines().count();
    let expected = listed(&server, "XOM", "15d", since(30)).len() + 1;
    let mut from_environment = command(&place, &["XOM"]);
    from_environment.env("BELLWETHER_BASE_URL", server.running.base_url().as_str());
    assert_eq!(rows(Outcome::of(&mut from_environment)), expected);
    assert!(rows(get(&place, &["XOM", "--demo"])) > 10);
    define(&place, "one", &server);
    define(&place, "two", &server);
    let refused = get(&place, &["XOM"]).failed_with(2).stderr;
    assert!(refused.starts_with("error: which service? There are several definitions: one, two\nhint: "), "{refused}");
    assert_eq!(rows(get(&place, &["XOM", "--definition", "two"])), expected);
    let refused = get(&place, &["XOM", "--definition", "tow"]).failed_with(2).stderr;
    assert!(refused.contains("did you mean `two`?"), "{refused}");
    get(&place, &["XOM", "--definition", "two", "--demo"]).failed_with(2);
    // A definition need not say more than whom to ask.
    place.define("bare", &format!("source.base_url = \"{}\"\n", server.running.base_url()));
    assert_eq!(rows(get(&place, &["XOM", "--definition", "bare"])), expected);
    place.define("bad", "[source]\nservice = \"demmo\"\n");
    let refused = get(&place, &["XOM", "--definition", "bad"]).failed_with(2).stderr;
    assert!(refused.contains("pipelines/bad.toml:2:11"), "{refused}");
    place.define("odd", "[source\n");
    let refused = get(&place, &["XOM", "--definition", "odd"]).failed_with(2).stderr;
    assert!(refused.contains("pipelines/odd.toml:1"), "{refused}");
}

#[test]
fn a_missing_key_and_an_unknown_ticker_fail_as_in_a_run() {
    let (place, server) = (Place::new(), server());
    define(&place, "only", &server);
    let refused = get(&place, &["XOM", "XMO"]).failed_with(4).stderr;
    assert!(refused.contains("because: no signals for ticker `XMO` (did you mean `XOM`?)\n"), "{refused}");
    assert!(refused.ends_with("hint: nothing was kept; ask for what the service has\n"), "{refused}");
    let refused = get(&place, &["XMO"]).failed_with(1).stderr;
    assert!(refused.ends_with("no longer offers signals-history, or knows none of the tickers\n"), "{refused}");
    let refused = get(&place, &["XOM", "ZZZZ", "--output", "x.parquet"]).failed_with(4).stderr;
    assert!(refused.contains("no signals for ticker `ZZZZ`") && !place.file("x.parquet").exists(), "{refused}");
    let old = Server::new(Universe::new(1, NaiveDate::from_ymd_opt(2024, 6, 3).expect("a day")), ChangeSet::All);
    define(&place, "old", &old);
    let refused = get(&place, &["XOM", "--definition", "old", "--last", "1d"]).failed_with(1).stderr;
    assert_eq!(refused, "error: `get` has no rows\nhint: the service has nothing that new: go further back\n");
    fs::remove_file(place.file("pipelines/old.toml")).expect("it is there");
    let refused = Outcome::of(command(&place, &["XOM"]).env_remove("BELLWETHER_API_KEY")).failed_with(1).stderr;
    assert!(refused.starts_with("error: no API key for 127.0.0.1:"), "{refused}");
    let refused = Outcome::of(command(&place, &["XOM"]).env("BELLWETHER_API_KEY", "wrong")).failed_with(1).stderr;
    assert!(refused.contains("API key") && !refused.contains("wrong"), "{refused}");
    for (arguments, said) in [
        (&["XOM", "--last", "soon"][..], "use days, months or years, such as `30d`, `6m` or `2y`"),
        (&["XOM", "--periods", "45d"], "periods are 1d to 30d and 1m to 6m"),
        (&["XOM", "--columns", "nope"], "no column `nope`"),
        (&[], "needs `TICKER`"),
    ] {
        let refused = get(&place, arguments).failed_with(2).stderr;
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn what_is_kept_is_a_run_in_the_archive_of_the_service() {
    let (place, server) = (Place::new(), server());
    define(&place, "only", &server);
    let shown = get(&place, &["XOM", "--keep", "--last", "2y"]).expect_success().stdout;
    let runs = place.run(["list", "runs"]).expect_success().stdout;
    assert_eq!(runs.lines().filter(|line| line.contains(" get ")).count(), 1, "{runs}");
    assert!(place.file("output/archive/vendor").is_dir() && !place.file("output/datasets").exists());
    place.run(["verify"]).expect_success();
    // A second time nothing has changed.
    assert_eq!(get(&place, &["XOM", "--keep", "--last", "2y"]).expect_success().stdout, shown);
    let rewrites = place.run(["audit", "revisions", "--json"]).expect_success().stdout;
    let rewrites: Value = serde_json::from_str(&rewrites).expect("a document");
    assert_eq!(rewrites["signals"]["total"]["changed"], 0, "{rewrites}");
}

#[test]
fn an_interrupted_question_leaves_nothing_behind() {
    let place = Place::new();
    let service = Scripted::start(|request| match request.target.starts_with("/a/") {
        true => vec![Step::Wait(Duration::from_secs(60))],
        false => json("200 OK", "[]"),
    });
    place.define("only", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    let mut asking = command(&place, &["XOM"]);
    let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while service.targets().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_dir(place.file("temporary")).expect("a folder").count(), 1);
    assert!(Command::new("kill").args(["-INT", &asking.id().to_string()]).status().expect("a program").success());
    let ended = asking.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "error: interrupted\n");
    assert_eq!(fs::read_dir(place.file("temporary")).expect("a folder").count(), 0);
}
