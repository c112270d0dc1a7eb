//! Operations that give the same data, with known contradictions.

use super::{articles, entries, run, sector};
use crate::support::program::Place;
use crate::support::rows::{columns, read};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json};

/// Sector dates have offsets, batch dates do not. The 6th, the 8th and the latest signal are contradicted.
fn answer(request: &ScriptedRequest) -> Vec<Step> {
    let target = request.target.as_str();
    let body = if target.contains("signals-history-all") {
        let history = [
            ("2026-01-05T00:00:00-05:00", "buy", 0.5),
            ("2026-01-06T00:00:00-05:00", "buy", 0.5),
            ("2026-01-07T00:00:00-05:00", "sell", 0.5),
            ("2026-01-08T00:00:00-05:00", "sell", 0.5),
        ];
        sector(&[("AA", entries(&history)), ("BB", entries(&history[..1]))])
    } else if target.contains("signals-history-batched-all") {
        let items = entries(&[
            ("2026-01-09T00:00:00", "buy", 0.5),
            ("2026-01-08T00:00:00", "sell", 0.625),
            ("2026-01-07T00:00:00", "sell", 0.5),
            ("2026-01-06T00:00:00", "sell", 0.5),
        ]);
        format!("{{\"AA\": {{\"items\": {items}, \"period\": \"15d\", \"regime\": \"neutral\", \"ticker\": \"AA\"}}}}")
    } else if target.contains("/signals/") {
        "{\"ticker\": \"AA\", \"date\": \"2026-01-08T16:00:00-05:00\", \"period\": \"15d\", \"regime\": \"neutral\", \
         \"signal\": \"buy\", \"confidence\": 0.5}"
            .to_owned()
    } else if target.contains("/news_articles/AA") {
        articles(&[("2026-01-07", "high", 0.75), ("2026-01-06", "mid", 0.25), ("2026-01-05", "low", -0.5)])
    } else if target.contains("/social_sentiment/AA") {
        let reference = |name: &str, link: &str, score: f64| {
            format!("\"{name}\": {{\"date\": \"2026-01-05\", \"score\": {score}, \"link\": \"https://news/{link}\"}}")
        };
        let references = [
            reference("low_article", "low", -0.5),
            reference("high_article", "high", 0.5),
            reference("avg_article", "not-listed", 0.25),
        ];
        format!("{{\"debtor\": \"A\", \"ticker\": \"AA\", {}}}", references.join(", "))
    } else if target.contains("/news_articles/") {
        "[]".to_owned()
    } else {
        return json("404 Not Found", "{}");
    };
    json("200 OK", &body)
}

#[test]
fn every_contradiction_is_found_with_both_values() {
    let service = Scripted::start(answer);
    let place = Place::new();
    let ask = |arguments: &[&str]| place.run(["audit", "sources"].iter().chain(arguments)).expect_success().stdout;
    run(&place, &service, "sector", "[signals]\nsectors = [\"energy\"]\n");
    assert_eq!(
        ask(&[]),
        "scope   the whole archive, all definitions\nnothing to compare: no data was fetched from two operations\n"
    );
    run(
        &place,
        &service,
        "batched",
        "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = true\nsummary = true\ntickers = [\"AA\"]\n",
    );
    run(
        &place,
        &service,
        "latest",
        "[signals]\nhistory = \"latest\"\ntickers = [\"AA\"]\n[sentiment]\narticles = false\n",
    );
    let stdout = ask(&["--output", "rows.parquet"]);
    // Three dates of both histories, a latest signal with each of them, and two listed articles.
    let lines: Vec<String> = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "all 7 5 71.4 %",
        "signals-history-all, signals-history-batched-all 3 2 66.7 %",
        "social_sentiment, news_articles 2 1 50.0 %",
    ] {
        assert!(lines.iter().any(|message| message == line), "{line}: {stdout}");
    }
    assert!(stdout.contains("high_article"), "{stdout}");
    let rows = read(&place.file("rows.parquet"));
    let found = columns(
        &rows,
        [
            "ticker",
            "date",
            "about",
            "source",
            "signal",
            "confidence",
            "score",
            "other_source",
            "other_signal",
            "other_confidence",
            "other_score",
        ],
    );
    let mut found: Vec<String> = found.into_iter().map(|row| row.join(" ")).collect();
    found.sort();
    let expected = [
        "AA 2026-01-06T00:00:00 signal signals-history-all buy 0.5  signals-history-batched-all sell 0.5 ",
        "AA 2026-01-07T00:00:00 high_article social_sentiment   0.5 news_articles   0.75",
        "AA 2026-01-08T00:00:00 signal signals buy 0.5  signals-history-batched-all sell 0.625 ",
        "AA 2026-01-08T00:00:00 signal signals-history-all sell 0.5  signals buy 0.5 ",
        "AA 2026-01-08T00:00:00 signal signals-history-all sell 0.5  signals-history-batched-all sell 0.625 ",
    ];
    assert_eq!(found, expected);
    let seen = columns(&rows, ["observed_at", "other_observed_at"]);
    assert!(seen.iter().flatten().all(|instant| instant.ends_with('Z')), "{seen:?}");
}
