//! Invalid and unusual records: they are rejected, reported or accepted, and their neighbours are kept.

use super::faults::{GOOD, rows, run};
use crate::support::program::Place;
use crate::support::rows::{read, sealed_run, texts};
use crate::support::scripted::{Scripted, json, reply};

/// A body with a valid history and some odd ones.
fn next_to_good(odd: &[u8]) -> Vec<u8> {
    let good = GOOD.trim_end_matches('}').as_bytes();
    [good, b"}, ", odd, b"}"].concat()
}

#[test]
fn an_unreadable_history_is_rejected_and_its_neighbours_are_kept() {
    let nested = format!("\"DEEP\": {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let long = format!("\"LONG\": \"{}\"", "x".repeat(50 << 20));
    let cases: [(&str, Vec<u8>); 6] = [
        ("invalid UTF-8", b"\"BAD\": {\"ticker\": \"\xff\xfe\"}".to_vec()),
        (
            "a path for a ticker",
            b"\"../../x\": {\"ticker\": \"../../x\", \"regime\": \"bull\", \"period\": \"15d\", \"predictions\": []}"
                .to_vec(),
        ),
        ("5,000 levels", nested.into_bytes()),
        ("50 MB", long.into_bytes()),
        ("no history", b"\"NONE\": 1".to_vec()),
        (
            "another regime",
            br#""AAPL": {"ticker": "AAPL", "regime": "bull", "period": "15d", "predictions": []}"#.to_vec(),
        ),
    ];
    for (name, odd) in cases {
        let place = Place::new();
        let body = next_to_good(&odd);
        let service = Scripted::of_histories(move |_| reply("200 OK", "", &body));
        let outcome = run(&place, &service, "", "[rejects]\nmax_share = 0.5\n").expect_success();
        assert_eq!(rows(&outcome), "rows      2", "{name}");
        assert!(outcome.stdout.contains("rejected  1 record\n"), "{name}: {}", outcome.stdout);
        let rejects = read(&sealed_run(&place).join("rejects.parquet"));
        assert!(texts(&rejects, "raw")[0].as_ref().unwrap().len() <= 70_000, "{name}");
        assert!(!texts(&rejects, "reason")[0].as_ref().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn too_many_rejected_records_fail_the_run_and_are_kept() {
    let place = Place::new();
    let body = GOOD.replace("\"sell\"", "\"hold\"");
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let shown = run(&place, &service, "", "").failed_with(4).stderr;
    assert!(
        shown.contains("error: rejected 1 of 2 records of signals-history-all, above the limit of 1.00 %\n"),
        "{shown}"
    );
    let rejects = read(&sealed_run(&place).join("rejects.parquet"));
    assert_eq!(texts(&rejects, "pointer")[0].as_deref(), Some("/XOM/predictions/1"));
    assert_eq!(texts(&rejects, "ticker")[0].as_deref(), Some("XOM"));
    assert!(texts(&rejects, "raw")[0].as_ref().unwrap().contains("hold"));
    assert!(!place.file("output/datasets/it").exists());
}

#[test]
fn empty_histories_and_repeated_tickers_are_reported() {
    let place = Place::new();
    let empty = br#""AAPL": {"ticker": "AAPL", "regime": "neutral", "period": "15d", "predictions": []}"#;
    let service = Scripted::of_histories(move |_| reply("200 OK", "", &next_to_good(empty)));
    let outcome = run(&place, &service, "", "").expect_success();
    assert!(outcome.stdout.contains("rows      2\ntickers   1\n"), "{}", outcome.stdout);
    let twice = GOOD[1..GOOD.len() - 1].replace("0.75", "0.25");
    let place = Place::new();
    let service = Scripted::of_histories(move |_| reply("200 OK", "", &next_to_good(twice.as_bytes())));
    let outcome = run(&place, &service, "", "[rejects]\nmax_share = 0.5\n").expect_success();
    assert_eq!(rows(&outcome), "rows      2", "the first is kept");
    let confidences = texts(&read(&place.file("output/datasets/it/latest/it.parquet")), "confidence");
    assert_eq!(confidences, [Some("0.75".to_owned()), Some("0.5".to_owned())]);
}

#[test]
fn unknown_fields_are_reported_once_and_kept_on_request() {
    let body = GOOD.replace("\"signal\":", "\"model\":{\"name\":\"m1\"},\"signal\":");
    for (keep, expected) in [("false", None), ("true", Some("{\"model\":{\"name\":\"m1\"}}".to_owned()))] {
        let place = Place::new();
        let sent = body.clone();
        let service = Scripted::of_histories(move |_| json("200 OK", &sent));
        let outcome = run(&place, &service, "", &format!("[rejects]\nkeep_extra = {keep}\n")).expect_success();
        let message = "unknown   /*/predictions/*/model of signals-history-all, 2 times, such as {\"name\":\"m1\"}\n";
        assert_eq!(outcome.stdout.matches(message).count(), 1, "{}", outcome.stdout);
        let extra = texts(&read(&sealed_run(&place).join("signals.parquet")), "extra");
        assert_eq!(extra, [expected.clone(), expected]);
    }
}

#[test]
fn unexpected_letter_case_of_signals_and_dates_is_accepted_and_counted() {
    let place = Place::new();
    let body =
        GOOD.replace("\"buy\"", "\"BUY\"").replace("\"sell\"", "\"Sell\"").replacen("T00:00:00+00:00", "t00:00:00z", 1);
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let outcome = run(&place, &service, "", "").expect_success();
    for line in [
        "rejected  0 records\n",
        "lenient   accepted 2 signals with different letter case, such as `BUY`\n",
        "lenient   accepted 1 date in another notation, such as `2026-11-20T16:00Z`\n",
    ] {
        assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    }
    let dataset = read(&place.file("output/datasets/it/latest/it.parquet"));
    let strict = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", GOOD));
    let outcome = run(&strict, &service, "", "").expect_success();
    assert!(!outcome.stdout.contains("lenient"), "{}", outcome.stdout);
    let expected = read(&strict.file("output/datasets/it/latest/it.parquet"));
    for column in ["date", "signal", "confidence"] {
        assert_eq!(texts(&dataset, column), texts(&expected, column), "{column}");
    }
}

#[test]
fn dates_outside_the_years_1_to_9999_are_rejected_with_a_reason() {
    let place = Place::new();
    let entries = ["0000-12-31T00:00:00", "0001-01-01T00:00:00+00:30", "9999-12-31T23:45:00-00:30", "9999-12-31"]
        .map(|date| format!("{{\"date\":\"{date}\",\"signal\":\"buy\",\"confidence\":0.5}}"));
    let history = format!(
        "{{\"ticker\":\"AAPL\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}",
        entries.join(",")
    );
    let service =
        Scripted::of_histories(move |_| reply("200 OK", "", &next_to_good(format!("\"AAPL\": {history}").as_bytes())));
    let rest = "[rejects]\nmax_share = 0.9\n[checks]\ndates = \"warn\"\n";
    let outcome = run(&place, &service, "", rest).expect_success();
    assert_eq!(rows(&outcome), "rows      3", "two of the other ticker, and the last day that there is");
    let rejects = read(&sealed_run(&place).join("rejects.parquet"));
    let reasons: Vec<String> = texts(&rejects, "reason").into_iter().flatten().collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons.iter().all(|reason| reason.contains("is not between the years 1 and 9999")), "{reasons:?}");
}

#[test]
fn an_oversized_history_is_reported_with_its_size_and_the_limit() {
    let long = format!("\"LONG\": \"{}\"", "x".repeat(40_000_000));
    let message = "all of `LONG` was rejected: its size of 40.0 MB exceeds the limit of 33.6 MB; it starts at byte ";
    let body = next_to_good(long.as_bytes());
    let place = Place::new();
    let service = Scripted::of_histories(move |_| reply("200 OK", "", &body));
    let outcome = run(&place, &service, "", "[rejects]\nmax_share = 0.9\n").expect_success();
    assert!(outcome.stdout.contains(&format!("rejected  {message}")), "{}", outcome.stdout);
    let shown = run(&Place::new(), &service, "", "").failed_with(4).stderr;
    assert!(shown.contains(&format!("  because: {message}")), "{shown}");
}

#[test]
fn confidences_outside_their_pattern_are_kept_and_counted() {
    let place = Place::new();
    let body = GOOD.replace("0.75", "-75").replace("0.5", "1e3");
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let outcome = run(&place, &service, "", "").expect_success();
    assert!(outcome.stdout.contains("unusual   2 confidences outside 0 to 1\n"), "{}", outcome.stdout);
    let confidences = texts(&read(&place.file("output/datasets/it/latest/it.parquet")), "confidence");
    assert_eq!(confidences, [Some("-75.0".to_owned()), Some("1000.0".to_owned())]);
}
