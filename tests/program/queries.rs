//! `query`: questions in SQL about a dataset and the archive behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::scripted::{self, Scripted};

/// Three tickers with five dates and four articles. On the second day, one signal is another, one is withdrawn, and a record
/// cannot be read.
fn vendor(day: Arc<AtomicUsize>) -> Scripted {
    Scripted::start(move |request| {
        let day = day.load(Ordering::SeqCst);
        if let Some((_, rest)) = request.target.split_once("news_articles/") {
            let ticker = rest.split('?').next().expect("a ticker");
            let article = |at: i64| {
                let title = format!("{}{at} of {ticker}", if at % 2 == 0 { "a" } else { "b" });
                json!({ "date": format!("2026-03-0{at}"), "title": title, "link": format!("http://it/{at}"), "score": at as f64 / 4.0 })
            };
            return scripted::json("200 OK", &(1..5).rev().map(article).collect::<Value>().to_string());
        }
        let history = |ticker: &str, step: f64| {
            let entry = |at: i64| json!({ "date": format!("2026-03-0{at}"), "signal": if at == 2 { "sell" } else { "buy" }, "confidence": at as f64 * step });
            let mut entries: Vec<Value> = (1..6).map(entry).collect();
            if day == 2 && ticker == "AAA" {
                entries[1]["confidence"] = json!(9.5);
                entries.remove(2);
            }
            if ticker == "BBB" {
                entries[3]["signal"] = json!("maybe");
            }
            json!({ "ticker": ticker, "regime": "neutral", "period": "15d", "predictions": entries })
        };
        let all = json!({ "AAA": history("AAA", 0.5), "BBB": history("BBB", 0.75), "CCC": history("CCC", 1.0) });
        scripted::json("200 OK", &all.to_string())
    })
}

fn two_days() -> Place {
    let (place, day) = (Place::new(), Arc::new(AtomicUsize::new(1)));
    let service = vendor(Arc::clone(&day));
    for number in [1, 2] {
        day.store(number, Ordering::SeqCst);
        let source = format!("[source]\n{}", service.source());
        let rest = "[signals]\nsectors = \"energy\"\n[join]\nwindows = \"7d\"\n[rejects]\nmax_share = 1.0\n\
                    [checks]\nrewritten = 1.0\nrewritten_series = 1.0\n";
        place.define("it", &format!("{source}{rest}"));
        Outcome::of(place.command(["run", "it", "-q"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    }
    place
}

#[test]
fn a_question_has_the_answer_that_duckdb_finds_in_the_files() {
    let place = two_days();
    let arguments = [
        env!("CARGO_BIN_EXE_bellwether").into(),
        place.file("."),
        place.file("output/archive/vendor"),
        place.file("output/datasets/it/latest/it.parquet"),
    ];
    python::check("check_query.py", arguments);
}

#[test]
fn the_past_is_asked_about_as_it_was_known() {
    let place = two_days();
    let listed = place.run(["list", "runs", "--json"]).expect_success().stdout;
    let runs: Value = serde_json::from_str(&listed).expect("a document");
    let first = runs["runs"][0]["run"].as_str().expect("a name").to_owned();
    let asked = |sql: &str, past: &[&str]| {
        let outcome = place.run(["query", "it", sql, "--format", "csv", "--output", "-"].iter().chain(past));
        outcome.expect_success().stdout
    };
    let of_aaa = "select count(*) as rows, max(confidence) as most from dataset where ticker = 'AAA'";
    assert_eq!(asked(of_aaa, &["--as-of", &first]), "rows,most\n5,2.5\n");
    assert_eq!(asked(of_aaa, &[]), "rows,most\n4,9.5\n");
    for (table, then, now) in
        [("runs", "1", "2"), ("requests", "4", "8"), ("observations", "14", "16"), ("rejects", "1", "2")]
    {
        let count = format!("select count(*) as rows from {table}");
        assert_eq!(asked(&count, &["--as-of", &first]), format!("rows\n{then}\n"), "{table}");
        assert_eq!(asked(&count, &[]), format!("rows\n{now}\n"), "{table}");
    }
}

#[test]
fn what_cannot_be_answered_says_what_there_is() {
    let place = two_days();
    let refused = |sql: &str| place.run(["query", "it", sql]).failed_with(2).stderr;
    let shown = refused("select nothing from dataset");
    assert!(shown.contains("`dataset` has ticker, date, period, regime"), "{shown}");
    let shown = refused("select * from elsewhere");
    assert!(shown.contains("the tables are `dataset`, `signals`, `articles`"), "{shown}");
    let shown = refused("selekt 1");
    assert!(shown.starts_with("error: this statement cannot be answered"), "{shown}");
    // Files are out of reach.
    for sql in ["select * from read_csv('/etc/passwd')", "select * from read_parquet('x.parquet')"] {
        let shown = refused(sql);
        assert!(!shown.contains("root:"), "{shown}");
    }
    let table = place.run(["query", "it", "select ticker, confidence from dataset order by ticker, date limit 2"]);
    assert_eq!(table.expect_success().stdout, "ticker  confidence\nAAA            0.5\nAAA            9.5\n");
}

#[test]
fn the_questions_in_the_docs_are_answered() {
    let place = Place::new();
    place.run(["run", "demo", "-q"]).expect_success();
    let page = include_str!("../../docs/changes.md");
    let asked: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("bellwether query demo \"")).collect();
    assert_eq!(asked.len(), 3);
    for line in asked {
        let (sql, rest) = line.split_once('"').expect("the end of the statement");
        place.run(["query", "demo", sql].into_iter().chain(rest.split_whitespace())).expect_success();
    }
}
