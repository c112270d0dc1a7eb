//! Known gaps, stale tickers, duplicates, unusual values, rejected records and unknown fields.

use std::fs;

use serde_json::Value;

use super::{articles, entries, run, sector};
use crate::support::program::Place;
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json};

fn answer(request: &ScriptedRequest) -> Vec<Step> {
    let target = request.target.as_str();
    // A week of five days, and the next Monday.
    let days = ["05", "06", "07", "08", "09", "12"].map(|day| format!("2026-01-{day}T00:00:00"));
    let history = |places: &[usize], confidence: f64| {
        let entry = |&place: &usize| (days[place].as_str(), "buy", confidence);
        entries(&places.iter().map(entry).collect::<Vec<_>>())
    };
    let body = if target.contains("signals-history-all") {
        // BB is missing the 6th and the 7th, CC ends on the 8th, DD has an unusual confidence, EE starts on the 9th.
        let all = sector(&[
            ("AA", history(&[0, 1, 2, 3, 4, 5], 0.5)),
            ("BB", history(&[0, 3, 4, 5], 0.5)),
            ("CC", history(&[0, 1, 2, 3], 0.5)),
            (
                "DD",
                history(&[0, 1, 2, 3, 4], 0.5)
                    .replace(']', ", {\"date\": \"2026-01-12T00:00:00\", \"signal\": \"sell\", \"confidence\": 1.5}]"),
            ),
            ("EE", history(&[4, 5], 0.5)),
        ]);
        // An invalid record and an unknown field.
        let hold = "\"predictions\": [{\"date\": \"2026-01-02T00:00:00\", \"signal\": \"hold\", \"confidence\": 0.5}, ";
        all.replacen("\"predictions\": [", hold, 1)
            .replace("\"buy\", \"confidence\": 0.5}]", "\"buy\", \"model\": 7, \"confidence\": 0.5}]")
    } else if target.contains("/news_articles/AA") {
        articles(&[("2026-01-06", "twice", 0.5), ("2026-01-06", "twice", 0.5), ("2026-01-05", "loud", -3.0)])
    } else {
        "[]".to_owned()
    };
    json("200 OK", &body)
}

#[test]
fn missing_stale_repeated_unusual_and_unreadable_data_is_found() {
    let service = Scripted::start(answer);
    let place = Place::new();
    let rest = "[signals]\nsectors = [\"energy\"]\n[rejects]\nmax_share = 0.5\n[join]\nlag = \"1d\"\nwindows = [\"1d\", \"7d\"]\n\
                stats = [\"mean\"]\n";
    run(&place, &service, "it", rest);
    let stdout = place.run(["audit", "quality", "it", "--output", "found.json"]).expect_success().stdout;
    let text = fs::read_to_string(place.file("found.json")).expect("findings");
    let mut found: Vec<String> = text
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("JSON");
            let field = |name: &str| match &row[name] {
                Value::Null => "-".to_owned(),
                Value::String(text) => text.trim_end_matches("T00:00:00").to_owned(),
                Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().expect("a number")),
                other => other.to_string(),
            };
            ["finding", "ticker", "date", "until", "count", "value", "what"].map(field).join(" ")
        })
        .collect();
    found.sort();
    let reject = found.iter().position(|row| row.starts_with("reject ")).expect("a reject");
    let reject = found.remove(reject);
    assert!(reject.starts_with("reject - - - 1 - ") && reject.contains("hold"), "{reject}");
    let drift = found.iter().position(|row| row.starts_with("drift ")).expect("an unknown field");
    assert_eq!(found.remove(drift), "drift - - - 4 - /*/predictions/*/model");
    let expected = [
        "duplicate AA 2026-01-06 - 2 - twice",
        "gap BB 2026-01-06 2026-01-07 2 - -",
        "stale CC 2026-01-09 2026-01-12 2 - -",
        "unusual AA 2026-01-05 - - -3.0000 loud",
        "unusual DD 2026-01-12 - - 1.5000 -",
        // Of 22 signals, only AA's have news, and it is unknown before the end of the 5th. Within a day, that of the 7th
        // has some, of 20 that are known; all windows of 7 days begin too early.
        "window - - - 0 0.0000 7d",
        "window - - - 1 0.0500 1d",
    ];
    assert_eq!(found, expected);
    let all = stdout.lines().find(|line| line.starts_with("all ")).expect("a line of totals");
    let words: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(words, ["all", "22", "91.67", "%", "1", "2", "1", "2", "3", "1", "2"]);
    assert!(stdout.contains("tickers with findings") && stdout.contains("/*/predictions/*/model"), "{stdout}");
    // Without a definition there are no windows.
    let whole = place.run(["audit", "quality", "--format", "csv", "--output", "-"]).expect_success().stdout;
    assert!(whole.starts_with("finding,source,ticker") && !whole.contains("\nwindow,"), "{whole}");
}
