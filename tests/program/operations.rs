//! Every operation of the service from a definition, at the points of the change record where it is there, and what takes
//! its place where it is not.

use std::collections::BTreeMap;
use std::fs;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::{distinct, read, sealed_run, texts};
use crate::support::scripted::{Scripted, json};

const TODAY: [&str; 2] = ["--today", "2026-11-20"];

/// A demo service at a point of the change record.
fn at(place: &Place, change_set: &str) -> DemoService {
    DemoService::start(place, &[&TODAY[..], &["--change-set", change_set]].concat())
}

/// Runs a definition whose signals and news come from the services given.
#[track_caller]
fn run(place: &Place, signals: &DemoService, sentiment: &DemoService, rest: &str) -> Outcome {
    let addresses = format!(
        "[source]\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\n",
        signals.address("base_url"),
        sentiment.address("sentiment_base_url")
    );
    place.define("it", &format!("{addresses}{rest}"));
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
}

fn dataset(place: &Place) -> arrow::array::RecordBatch {
    read(&place.file("output/datasets/it/latest/it.parquet"))
}

#[test]
fn the_batch_of_all_is_one_answer_for_every_ticker() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).succeeded();
    assert!(outcome.stderr.contains("signals: 1 request"), "{}", outcome.stderr);
    let rows = dataset(&place);
    assert_eq!(distinct(&rows, "ticker").len(), 500);
    assert!(distinct(&rows, "period").len() > 20, "each ticker has a period of its own");
    let archived = read(&sealed_run(&place).join("signals.parquet"));
    assert_eq!(distinct(&archived, "source"), ["signals-history-batched-all"]);
    assert!(texts(&archived, "utc_offset_minutes").iter().all(Option::is_none), "batched dates have no offset");
}

#[test]
fn of_a_batch_only_the_periods_and_regimes_that_are_named_are_taken() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    run(&place, &service, &service, rest).succeeded();
    let all = dataset(&place);
    let pairs = |rows: &arrow::array::RecordBatch| -> BTreeMap<(String, String), usize> {
        let (periods, regimes) = (texts(rows, "period"), texts(rows, "regime"));
        let mut pairs = BTreeMap::new();
        for pair in periods.into_iter().flatten().zip(regimes.into_iter().flatten()) {
            *pairs.entry(pair).or_default() += 1;
        }
        pairs
    };
    let whole = pairs(&all);
    // What stands alone filters alone, and the definition's own filter goes on top.
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("periods = [\"5d\", \"1m\"]\n", &["5d", "1m"], &["bear", "bull", "neutral"]),
        ("regimes = [\"bull\"]\n", &[], &["bull"]),
        ("periods = [\"5d\", \"1m\"]\nregimes = [\"bear\", \"neutral\"]\n", &["5d", "1m"], &["bear", "neutral"]),
        ("periods = [\"5d\", \"1m\"]\n[filter]\nperiods = [\"5d\"]\n", &["5d"], &["bear", "bull", "neutral"]),
    ];
    for (named, periods, regimes) in cases {
        let rest = format!("[signals]\nhistory = \"batched\"\n{named}[sentiment]\narticles = false\n");
        run(&place, &service, &service, &rest).succeeded();
        let mut expected = whole.clone();
        expected.retain(|(period, regime), _| {
            (periods.is_empty() || periods.contains(&period.as_str())) && regimes.contains(&regime.as_str())
        });
        assert_eq!(pairs(&dataset(&place)), expected, "{named}");
        assert!(!expected.is_empty() && expected.len() < whole.len());
    }
}

#[test]
fn what_the_service_lacks_is_replaced_in_order_and_said_once() {
    let cases = [
        // At set D there is the batch, at B the sectors; at A too, and no list of tickers.
        ("D", "history = \"batched\"\n", "signals-history-batched", "no signals-history-batched-all: took"),
        ("B", "history = \"batched\"\nsectors = [\"energy\"]\n", "signals-history-batched", "took"),
        ("C", "sectors = [\"energy\"]\n", "signals-history", "no signals-history-all: took signals-history\n"),
        (
            "E",
            "history = \"batched\"\nsectors = [\"energy\"]\ntickers = [\"BRK.B\", \"XOM\"]\n",
            "signals-history",
            "no signals-history-batched-all, no signals-history-batched, no signals-history-all: took signals-history\n",
        ),
    ];
    for (change_set, signals, source, note) in cases {
        let place = Place::new();
        let service = at(&place, change_set);
        let rest = format!("[signals]\n{signals}[sentiment]\narticles = false\n");
        let outcome = run(&place, &service, &service, &rest).succeeded();
        assert_eq!(outcome.stdout.matches(note).count(), 1, "{change_set}: {}", outcome.stdout);
        let archived = read(&sealed_run(&place).join("signals.parquet"));
        assert_eq!(distinct(&archived, "source"), [source], "{change_set}");
    }
}

#[test]
fn where_nothing_is_found_at_an_address_the_address_is_asked_about() {
    let place = Place::new();
    let service = at(&place, "D");
    let shown = run(&place, &service, &service, "[signals]\nsectors = [\"energy\"]\n").failed_with(1).stderr;
    let expected = format!(
        "error: `GET {}/signals-history-all` answered 404: is `base_url` right?\n\
         hint: check the address; if it is right, the service no longer offers signals-history-all, tickers/available\n",
        service.address("base_url")
    );
    assert!(shown.ends_with(&expected), "{shown}");
    // Without articles there is no saying how many there were: a join with them is no dataset.
    let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\"]\n";
    let shown = run(&place, &service, &service, rest).failed_with(1).stderr;
    let expected = format!(
        "error: `GET {}/news_articles/{{ticker}}` answered 404: is `sentiment_base_url` right?\n",
        service.address("sentiment_base_url")
    );
    assert!(shown.contains(&expected), "{shown}");
}

#[test]
fn where_something_else_is_found_at_an_address_the_service_is_said_not_to_offer_what_is_asked() {
    let place = Place::new();
    let service = Scripted::start(|asked| match asked.target.starts_with("/a/tickers/available") {
        true => json("200 OK", "[\"XOM\"]"),
        false => json("404 Not Found", "{}"),
    });
    place.define(
        "it",
        &format!("[source]\n{}[signals]\nhistory = \"ticker\"\ntickers = \"available\"\n", service.source()),
    );
    let shown = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(1).stderr;
    assert!(shown.contains("error: the service no longer offers what `it` asks for: "), "{shown}");
}

#[test]
fn histories_ticker_by_ticker_are_read_under_both_of_their_keys() {
    // `items` at set E, `predictions` since D.
    for change_set in ["E", "D", "all"] {
        let place = Place::new();
        let (service, news) = (at(&place, change_set), at(&place, "G"));
        let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"BRK.B\", \"XOM\"]\nperiods = [\"1d\", \"6m\"]\n";
        let outcome = run(&place, &service, &news, rest).succeeded();
        assert!(outcome.stderr.starts_with("signals: 4 requests, 5,024 rows"), "{change_set}: {}", outcome.stderr);
        assert_eq!(distinct(&dataset(&place), "ticker"), ["BRK.B", "XOM"]);
    }
}

#[test]
fn every_ticker_of_a_sector_or_of_the_service_needs_no_list() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"latest\"\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).succeeded();
    assert!(outcome.stderr.starts_with("tickers: 1 requests, 27,632 rows"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\nsignals: 22 requests, 22 rows"), "{}", outcome.stderr);
    let place = Place::new();
    let rest =
        "[signals]\nhistory = \"latest\"\ntickers = \"available\"\nperiods = [\"1d\"]\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).succeeded();
    assert!(outcome.stderr.starts_with("tickers: 1 requests, 500 rows"), "{}", outcome.stderr);
    assert_eq!(distinct(&read(&sealed_run(&place).join("signals.parquet")), "ticker").len(), 500);
}

#[test]
fn the_latest_signal_is_read_in_each_of_its_shapes_and_a_null_date_is_kept() {
    // `ei` and `ci` at set E; a date that may be null since B.
    for change_set in ["E", "D", "all"] {
        let place = Place::new();
        let service = at(&place, change_set);
        let periods: Vec<String> = (1..=30).map(|days| format!("\"{days}d\"")).collect();
        let rest = format!(
            "[signals]\nhistory = \"latest\"\ntickers = [\"XOM\", \"AAPL\", \"BRK.B\", \"MSFT\"]\nperiods = [{}]\n\
             [sentiment]\narticles = false\n",
            periods.join(", ")
        );
        run(&place, &service, &service, &rest).succeeded();
        let archived = read(&sealed_run(&place).join("signals.parquet"));
        assert_eq!(archived.num_rows(), 120, "{change_set}");
        let undated = texts(&archived, "date").iter().filter(|date| date.is_none()).count();
        assert_eq!(undated > 0, change_set == "all", "{change_set}: {undated} without a date");
        // What has no date is in the archive, and in no dataset.
        assert_eq!(dataset(&place).num_rows(), 120 - undated);
        assert!(distinct(&archived, "signal").iter().all(|signal| signal == "buy" || signal == "sell"));
    }
}

#[test]
fn summaries_are_read_in_both_of_their_shapes_and_historical_sentiment_as_text() {
    for (change_set, has_articles) in [("origin", false), ("G", true)] {
        let place = Place::new();
        let (signals, news) = (at(&place, "all"), at(&place, change_set));
        let rest = "[signals]\nhistory = \"latest\"\ntickers = [\"XOM\", \"BRK.B\"]\n\
                    [sentiment]\narticles = false\nsummary = true\nhistorical = true\n";
        let outcome = run(&place, &signals, &news, rest).succeeded();
        let folder = sealed_run(&place);
        let summaries = read(&folder.join("summaries.parquet"));
        assert_eq!(distinct(&summaries, "ticker"), ["BRK.B", "XOM"], "{change_set}");
        assert!(texts(&summaries, "low_score").iter().all(Option::is_some));
        assert_eq!(texts(&summaries, "low_date").iter().all(Option::is_some), has_articles);
        assert_eq!(texts(&summaries, "low_summary").iter().all(Option::is_some), !has_articles);
        assert_eq!(outcome.stdout.contains("the service has no historical_ss_data"), !has_articles);
        let history = read(&folder.join("sentiment_history.parquet"));
        if has_articles {
            let record: serde_json::Value =
                serde_json::from_str(texts(&history, "record")[0].as_ref().unwrap()).unwrap();
            assert!(record["date"].is_string() && record["score"].is_number(), "{record}");
        } else {
            assert_eq!(history.num_rows(), 0);
        }
    }
}

#[test]
fn the_tickers_of_news_may_be_others_than_those_of_signals() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\"]\n[sentiment]\ntickers = [\"XOM\", \"AAPL\", \"NOSUCH\"]\n";
    let outcome = run(&place, &service, &service, rest).succeeded();
    assert!(outcome.stdout.contains("note      nothing was found for 1 requests, news_articles/NOSUCH the first\n"));
    assert_eq!(distinct(&read(&sealed_run(&place).join("articles.parquet")), "ticker"), ["AAPL", "XOM"]);
    assert_eq!(distinct(&dataset(&place), "ticker"), ["XOM"]);
    assert!(fs::exists(place.file("output/datasets/it/latest")).unwrap());
}
