//! A changed universe: a run fails if too many tickers or series disappeared or appeared since the previous version.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::checks::{ChangingService, ENTRY, define, history, latest, of_tickers, parameter, run, tickers};
use crate::support::program::Place;
use crate::support::rows::{distinct, read};
use crate::support::scripted::{Scripted, json};

#[test]
fn too_many_lost_or_new_tickers_fail_the_run_until_they_return() {
    let place = Place::new();
    let vendor = ChangingService::new(&tickers(0..10));
    let signals = "[signals]\nsectors = [\"energy\"]\n";
    define(&place, &vendor.service, signals);
    run(&place).expect_success();
    let first = latest(&place).expect("a version");
    vendor.become_one_of(&tickers(2..10));
    run(&place).expect_success();
    assert_ne!(latest(&place).as_ref(), Some(&first), "two of ten may go");
    let place = Place::new();
    define(&place, &vendor.service, signals);
    vendor.become_one_of(&tickers(0..10));
    run(&place).expect_success();
    let first = latest(&place).expect("a version");
    let version = first.display().to_string();
    for (now, printed) in [
        (tickers(3..10), "3 of 10 tickers disappeared since version `V`, above the limit of 20.0 %: T00, T01, T02\n"),
        (tickers(0..13), "3 of 13 tickers appeared since version `V`, above the limit of 20.0 %: T10, T11, T12\n"),
        (
            tickers(0..1),
            "9 of 10 tickers disappeared since version `V`, above the limit of 20.0 %: T01, T02, T03, T04, T05, T06, T07, T08 and 1 more\n",
        ),
    ] {
        vendor.become_one_of(&now);
        for _ in 0..2 {
            let shown = run(&place).failed_with(4).stderr;
            let printed = printed.replace('V', &version);
            assert!(shown.contains(&format!("because: {printed}")), "{shown}");
            assert!(shown.contains("raise `universe` in `[checks]`"), "{shown}");
            assert_eq!(latest(&place).as_ref(), Some(&first));
        }
    }
    // A build does not publish it either.
    place.run(["build", "it"]).failed_with(4);
    assert_eq!(latest(&place).as_ref(), Some(&first));
    vendor.become_one_of(&tickers(0..10));
    run(&place).expect_success();
    assert_ne!(latest(&place).as_ref(), Some(&first));
    vendor.become_one_of(&tickers(0..1));
    define(&place, &vendor.service, &format!("{signals}[checks]\nuniverse = 0.9\n"));
    run(&place).expect_success();
}

#[test]
fn lost_series_of_remaining_tickers_are_counted() {
    let place = Place::new();
    let pulls = Arc::new(AtomicUsize::new(0));
    let pull = Arc::clone(&pulls);
    let service = Scripted::of_histories(move |request| {
        let all = if pull.load(Ordering::Relaxed) > 0 && parameter(request, "period") == "5d" { 3..10 } else { 0..10 };
        of_tickers(request, &tickers(all))
    });
    let signals = |universe| {
        format!("[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\", \"15d\"]\n[checks]\nuniverse = {universe}\n")
    };
    define(&place, &service, &signals("0.1"));
    run(&place).expect_success();
    pulls.store(1, Ordering::Relaxed);
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("because: 3 of 20 series disappeared since version "), "{shown}");
    assert!(shown.contains(", above the limit of 10.0 %: T00 5d neutral, T01 5d neutral, T02 5d neutral\n"), "{shown}");
    define(&place, &service, &signals("0.15"));
    run(&place).expect_success();
}

#[test]
fn a_version_of_other_signals_is_not_compared() {
    let place = Place::new();
    let vendor = ChangingService::new(&tickers(0..10));
    define(&place, &vendor.service, "[signals]\nsectors = [\"energy\"]\n");
    run(&place).expect_success();
    vendor.become_one_of(&tickers(20..25));
    define(&place, &vendor.service, "[signals]\nsectors = [\"utilities\"]\n");
    run(&place).expect_success();
    vendor.become_one_of(&tickers(20..22));
    define(&place, &vendor.service, "[signals]\nsectors = [\"utilities\"]\n[output]\nkeep = 9\n");
    run(&place).failed_with(4);
}

#[test]
fn losing_most_tickers_fails_however_long_the_others_are() {
    let long = (1..29).flat_map(|day| (1..13).map(move |month| (month, day)));
    let long: Vec<String> =
        long.map(|(month, day)| ENTRY.replace("2026-11-20", &format!("2025-{month:02}-{day:02}"))).collect();
    let good: Vec<String> = (0..10).map(|at| history(&format!("G{at}"), "15d", &long.join(","))).collect();
    let bad = |entries: &str| (0..90).map(|at| history(&format!("B{at}"), "15d", entries)).collect::<Vec<_>>();
    let hold = ENTRY.replace("buy", "hold");
    for (lost, printed) in [
        // None of their entries can be read, but these are few among all entries.
        (bad(&hold), "90 of 3,450 records and 90 of 100 series of signals-history-all"),
        // Their whole histories are rejected.
        (
            bad(&[ENTRY; 7].join(",")).iter().map(|one| one.replace("15d", "45d")).collect(),
            "630 of 3,990 records and 90 of 100 series of signals-history-all",
        ),
        (
            bad(ENTRY).iter().map(|one| one.replace("\"regime\":\"neutral\"", "\"regime\":\"bull\"")).collect(),
            "90 of 3,450 records and 90 of 100 series of signals-history-all",
        ),
    ] {
        let place = Place::new();
        let body = format!("{{{}}}", [good.clone(), lost].concat().join(","));
        let service = Scripted::of_histories(move |_| json("200 OK", &body));
        define(&place, &service, "[signals]\nsectors = [\"energy\"]\n");
        let shown = run(&place).failed_with(4).stderr;
        assert!(shown.contains(&format!("error: rejected {printed}, above the limit of 1.00 %\n")), "{shown}");
        assert!(latest(&place).is_none());
        // Few records, but most of the series.
        define(&place, &service, "[signals]\nsectors = [\"energy\"]\n[rejects]\nmax_share = 0.5\n");
        let shown = run(&place).failed_with(4).stderr;
        assert!(
            shown.contains("error: rejected 90 of 100 series of signals-history-all, above the limit of 50.0 %\n"),
            "{shown}"
        );
    }
}

#[test]
fn an_edited_definition_is_compared_in_what_both_asked_for() {
    let place = Place::new();
    let pulls = Arc::new(AtomicUsize::new(0));
    let pull = Arc::clone(&pulls);
    let service = Scripted::of_histories(move |request| {
        let all = match (parameter(request, "sector").as_str(), pull.load(Ordering::Relaxed)) {
            ("energy", 0) => 0..10,
            ("energy", _) => 4..10,
            _ => 20..60,
        };
        of_tickers(request, &tickers(all))
    });
    define(&place, &service, "[signals]\nsectors = [\"energy\"]\n");
    run(&place).expect_success();
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\n[output]\nkeep = 9\n";
    pulls.store(1, Ordering::Relaxed);
    define(&place, &service, signals);
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("because: 4 of 10 tickers disappeared since version "), "{shown}");
    pulls.store(0, Ordering::Relaxed);
    run(&place).expect_success();
    // A definition that asks for less loses nothing.
    define(&place, &service, "[signals]\nsectors = [\"utilities\"]\n");
    run(&place).expect_success();
}

#[test]
fn what_was_said_of_a_ticker_that_is_no_longer_listed_stays_in_runs_as_in_builds() {
    let cases = [
        ("[signals]\nsectors = [\"energy\"]\n[dataset]\nkind = \"news\"\n", "news"),
        ("[signals]\nhistory = \"ticker\"\ntickers = \"available\"\n[sentiment]\narticles = false\n", "signals"),
    ];
    for (definition, kind) in cases {
        let day = Arc::new(AtomicUsize::new(0));
        let today = Arc::clone(&day);
        let service = Scripted::start(move |request| {
            let listed = if today.load(Ordering::SeqCst) == 0 { &["CVX", "XOM"][..] } else { &["CVX"] };
            let target = request.target.split('?').next().expect("a path");
            match target.rsplit_once('/') {
                Some((_, "available")) => json("200 OK", &format!("{listed:?}")),
                Some((path, ticker)) if path.ends_with("signals-history") => {
                    let history = history(ticker, "15d", ENTRY);
                    json("200 OK", history.split_once(':').expect("a history").1)
                }
                Some((path, _)) if path.ends_with("news_articles") => {
                    let article = r#"{"date":"2026-11-19","title":"t","link":"https://a/1","score":0.5}"#;
                    json("200 OK", &format!("[{article}]"))
                }
                _ => of_tickers(request, listed),
            }
        });
        let place = Place::new();
        place.define("it", &format!("[source]\n{}{definition}[checks]\nuniverse = 1.0\n", service.source()));
        let published = || distinct(&read(&place.file("output/datasets/it/latest/it.parquet")), "ticker");
        run(&place).expect_success();
        assert_eq!(published(), ["CVX", "XOM"], "{kind}");
        day.store(1, Ordering::SeqCst);
        run(&place).expect_success();
        assert_eq!(published(), ["CVX", "XOM"], "{kind}: of a run");
        place.run(["build", "it", "-q"]).expect_success();
        assert_eq!(published(), ["CVX", "XOM"], "{kind}: of a build");
    }
}
