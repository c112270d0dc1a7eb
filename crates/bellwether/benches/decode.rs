//! Speed of decoding answers, compared with `serde_json` on the same bytes.
//!
//! Run with `cargo bench -p bellwether --bench decode`. Each line gives bytes of the body per second, including reading. `decode`
//! uses every core; `decode_on_one_core` uses one, like `serde_json`. `split` needs `--features harness`.

mod answers;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::LazyLock;

#[cfg(feature = "harness")]
use bellwether::decode::harness;
use bellwether::decode::{Answer, AnswerPart, Rules};
use bellwether::interface::{Endpoint, HistoryEntry, NewsArticle, SectorHistory};
use bellwether::plan::Request;
use divan::Bencher;
use divan::counter::BytesCount;
use rayon::ThreadPoolBuilder;

fn main() {
    divan::main();
}

const TICKERS: usize = 50;
const DAYS: u64 = 1260;

/// Five years of a sector.
static HISTORIES: LazyLock<String> = LazyLock::new(|| answers::histories(TICKERS, DAYS));
static ARTICLES: LazyLock<String> = LazyLock::new(|| answers::articles(20_000));

fn rows_of(request: &Request, body: &str) -> usize {
    let mut rows = 0;
    let decoded = Answer { request, rules: &Rules::default() }.decode(body.as_bytes(), |decoded| {
        for part in decoded.parts {
            rows += match part {
                AnswerPart::Series(series) => series.rows.num_rows(),
                AnswerPart::Tickers(tickers) => tickers.len(),
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

#[cfg(feature = "harness")]
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
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
    bencher.counter(BytesCount::of_str(&**HISTORIES)).bench(|| core.install(|| rows_of(&request, &HISTORIES)));
}

/// Every entry has an unknown field, so no fast path applies.
#[divan::bench]
fn decode_drifted_on_one_core(bencher: Bencher<'_, '_>) {
    let request = histories();
    let body = HISTORIES.replace("\"signal\"", "\"model\":7,\"signal\"");
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
    bencher.counter(BytesCount::of_str(&body)).bench(|| core.install(|| rows_of(&request, &body)));
}

#[divan::bench]
fn decode_articles_on_one_core(bencher: Bencher<'_, '_>) {
    let request = articles();
    let core = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
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
