//! Answers as the service writes them, for benchmarks; deterministic.

use std::fmt::Write;

use chrono::{Days, NaiveDate};

/// The histories of some tickers, newest day first.
pub(crate) fn histories(tickers: usize, days: u64) -> String {
    let first = NaiveDate::from_ymd_opt(2021, 11, 22).expect("a date of the calendar");
    let mut body = String::from("{");
    let mut state = 1_u64;
    for ticker in 0..tickers {
        let comma = if ticker == 0 { "" } else { "," };
        let _ = write!(
            body,
            "{comma}\"T{ticker}\":{{\"ticker\":\"T{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":["
        );
        for day in 0..days {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let comma = if day == 0 { "" } else { "," };
            let signal = if state >> 63 == 0 { "buy" } else { "sell" };
            let confidence = (state >> 40) % 10_000;
            let date = first + Days::new(days - day);
            let _ = write!(
                body,
                "{comma}{{\"date\":\"{date}T00:00:00\",\"signal\":\"{signal}\",\"confidence\":0.{confidence:04}}}"
            );
        }
        body.push_str("]}");
    }
    body.push('}');
    body
}

/// The articles of a ticker.
pub(crate) fn articles(count: usize) -> String {
    let article = |number: usize| {
        format!(
            "{{\"date\": \"2026-11-{:02}\", \"title\": \"Shares of a company that makes things rise for day {number}\", \
             \"score\": {}, \"link\": \"https://news.example/{number}/shares-of-a-company-rise\"}}",
            number % 30 + 1,
            if number.is_multiple_of(3) { "\"0.25\"" } else { "-0.5" },
        )
    };
    format!("[{}]", (0..count).map(article).collect::<Vec<_>>().join(", "))
}
