//! How fast an answer is decoded, beside what `serde_json` makes of the same bytes.
//!
//! Run with `cargo bench --bench decode`. Each line says how many bytes of the body are worked off in a second; all of
//! ours include the reading. `decode` uses every core, `decode_on_one_core` one, which is what `serde_json` has.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::LazyLock;

use bellwether::decode::{Answer, Part, Rules, harness};
use bellwether::interface::{Endpoint, HistoryEntry, NewsArticle, SectorHistory};
use bellwether::plan::Request;
use chrono::{Days, NaiveDate};
use divan::Bencher;
use divan::counter::BytesCount;
use rayon::ThreadPoolBuilder;

fn main() {
    divan::main();
}

const TICKERS: usize = 50;
const ENTRIES: u64 = 1260;
const RULES: Rules = Rules { keep_extra: false };

/// A sector's histories as the service writes them: five years of days, newest first.
static HISTORIES: LazyLock<String> = LazyLock::new(|| {
    let first = NaiveDate::from_ymd_opt(2021, 11, 22).expect("a date of the calendar");
    let mut body = String::from("{");
    let mut state = 1_u64;
    for ticker in 0..TICKERS {
        let comma = if ticker == 0 { "" } else { "," };
        let _ = write!(
            body,
            "{comma}\"T{ticker}\":{{\"ticker\":\"T{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":["
        );
        for entry in 0..ENTRIES {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let comma = if entry == 0 { "" } else { "," };
            let signal = if state >> 63 == 0 { "buy" } else { "sell" };
            let confidence = (state >> 40) % 10_000;
            let date = first + Days::new(ENTRIES - entry);
            let _ = write!(
                body,
                "{comma}{{\"date\":\"{date}T00:00:00\",\"signal\":\"{signal}\",\"confidence\":0.{confidence:04}}}"
            );
        }
        body.push_str("]}");
    }
    body.push('}');
    body
});

/// The articles of a ticker.
static ARTICLES: LazyLock<String> = LazyLock::new(|| {
    let article = |number: usize| {
        format!(
            "{{\"date\": \"2026-11-{:02}\", \"title\": \"Shares of a company that makes things rise for day {number}\", \
             \"score\": {}, \"link\": \"https://news.example/{number}/shares-of-a-company-rise\"}}",
            number % 30 + 1,
            if number.is_multiple_of(3) { "\"0.25\"" } else { "-0.5" },
        )
    };
    format!("[{}]", (0..20_000).map(article).collect::<Vec<_>>().join(", "))
});

fn rows_of(request: &Request, body: &str) -> usize {
    let mut rows = 0;
    let decoded = Answer { request, rules: RULES }.decode(body.as_bytes(), |decoded| {
        for part in decoded.parts {
            rows += match part {
                Part::Series(series) => series.rows.num_rows(),
                Part::Tickers(tickers) => tickers.len(),
            };
        }
        Ok::<(), Infallible>(())
    });
    assert!(decoded.is_ok(), "{decoded:?}");
    rows
}

fn histories() -> Request {
    Request { endpoint: Endpoint::SignalsHistoryBatchedAll, ticker: None, sector: None, period: None, regime: None }
}

fn articles() -> Request {
    Request::of_ticker(Endpoint::NewsArticles, "AAPL".parse().expect("a ticker"))
}

#[divan::bench]
fn split(bencher: Bencher<'_, '_>) {
    let body = HISTORIES.as_bytes();
    bencher.counter(BytesCount::of_slice(body)).bench(|| harness::count_pieces(body));
}

#[divan::bench]
fn decode(bencher: Bencher<'_, '_>) {
    let request = histories();
    bencher.counter(BytesCount::of_str(&**HISTORIES)).bench(|| rows_of(&request, &HISTORIES));
}

#[divan::bench]
fn decode_on_one_core(bencher: Bencher<'_, '_>) {
    let request = histories();
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    bencher.counter(BytesCount::of_str(&**HISTORIES)).bench(|| core.install(|| rows_of(&request, &HISTORIES)));
}

/// The fields are there, and one more in every entry: nothing is of the plain form.
#[divan::bench]
fn decode_drifted_on_one_core(bencher: Bencher<'_, '_>) {
    let request = histories();
    let body = HISTORIES.replace("\"signal\"", "\"model\":7,\"signal\"");
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    bencher.counter(BytesCount::of_str(&body)).bench(|| core.install(|| rows_of(&request, &body)));
}

#[divan::bench]
fn decode_articles_on_one_core(bencher: Bencher<'_, '_>) {
    let request = articles();
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    bencher.counter(BytesCount::of_str(&**ARTICLES)).bench(|| core.install(|| rows_of(&request, &ARTICLES)));
}

#[divan::bench]
fn serde_json_to_value(bencher: Bencher<'_, '_>) {
    let body = &**HISTORIES;
    bencher.counter(BytesCount::of_str(body)).bench(|| serde_json::from_str::<serde_json::Value>(body));
}

#[divan::bench]
fn serde_json_to_structs(bencher: Bencher<'_, '_>) {
    type Typed<'a> = BTreeMap<&'a str, SectorHistory<HistoryEntry<'a>>>;
    let body = &**HISTORIES;
    bencher.counter(BytesCount::of_str(body)).bench(|| serde_json::from_str::<Typed<'_>>(body));
}

#[divan::bench]
fn serde_json_articles_to_value(bencher: Bencher<'_, '_>) {
    let body = &**ARTICLES;
    bencher.counter(BytesCount::of_str(body)).bench(|| serde_json::from_str::<serde_json::Value>(body));
}

#[divan::bench]
fn serde_json_articles_to_structs(bencher: Bencher<'_, '_>) {
    let body = &**ARTICLES;
    bencher.counter(BytesCount::of_str(body)).bench(|| serde_json::from_str::<Vec<NewsArticle<'_>>>(body));
}
