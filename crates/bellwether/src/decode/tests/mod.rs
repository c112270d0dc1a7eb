//! Every documented outcome, on handwritten bodies.

mod histories;
mod records;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use arrow::util::display::array_value_to_string;

use super::stream::GROUP_BYTES;
use super::{Answer, AnswerPart, DecodeFault, Decoded, InProgress, Rules, rename};
use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::tables::{SeriesKey, Table};

fn sector() -> Request {
    Request::of_sector("energy".parse().unwrap(), "15d".parse().unwrap(), "neutral".parse().unwrap())
}

fn of_ticker(endpoint: Endpoint) -> Request {
    Request::of_ticker(endpoint, "AAPL".parse().unwrap())
}

fn tickers() -> Request {
    Request { endpoint: Endpoint::TickersAvailable, ticker: None, sector: None, period: None, regime: None }
}

/// The contents of an answer, and the number of deliveries.
fn deliver(request: &Request, body: &[u8]) -> Result<(Decoded, usize), DecodeFault<Infallible>> {
    let answer = Answer { request, rules: &Rules { keep_extra: true, ..Rules::default() } };
    let (mut all, mut times) = (Decoded::default(), 0);
    answer.decode(body, |decoded| {
        all.append(decoded);
        times += 1;
        Ok(())
    })?;
    Ok((all, times))
}

fn decode(request: &Request, body: impl AsRef<[u8]>) -> Decoded {
    deliver(request, body.as_ref()).unwrap().0
}

/// The rows as text, a line each; nulls are empty.
fn lines(rows: &RecordBatch) -> Vec<String> {
    let cell = |column: usize, row: usize| array_value_to_string(rows.column(column), row).unwrap();
    (0..rows.num_rows())
        .map(|row| (0..rows.num_columns()).map(|column| cell(column, row)).collect::<Vec<_>>().join("|"))
        .collect()
}

fn rows(part: &AnswerPart) -> Vec<String> {
    match part {
        AnswerPart::Series(series) => lines(&series.rows),
        AnswerPart::Tickers(tickers) => tickers.iter().map(Ticker::to_string).collect(),
    }
}

/// Pointer and reason of each reject.
fn rejects(decoded: &Decoded) -> Vec<(&str, &str)> {
    decoded.rejects.iter().map(|reject| (reject.pointer.as_str(), reject.reason.as_str())).collect()
}

fn history(ticker: &str, entries: &str) -> String {
    format!(r#"{{"ticker":"{ticker}","regime":"neutral","period":"15d","predictions":[{entries}]}}"#)
}

#[test]
fn an_empty_answer_is_delivered_once() {
    let (found, times) = deliver(&of_ticker(Endpoint::NewsArticles), b"[]").unwrap();
    assert_eq!(times, 1);
    let [AnswerPart::Series(series)] = &found.parts[..] else { panic!("{:?}", found.parts) };
    assert_eq!(series.key, SeriesKey::of_ticker(Endpoint::NewsArticles, "AAPL".parse().unwrap()));
    assert_eq!(series.rows.schema(), Table::Articles.listed_schema());
    assert_eq!(series.rows.num_rows(), 0);
    let (found, times) = deliver(&sector(), b" {} ").unwrap();
    assert_eq!((times, found.parts.len()), (1, 0));
}

#[test]
fn a_body_of_another_shape_is_an_error() {
    let page = "<!DOCTYPE html><html></html>";
    for (request, body, offset, reason) in [
        (sector(), page, 0, "expected an object whose keys are tickers, found `<`"),
        (sector(), "", 0, "expected an object whose keys are tickers, found the end of the body"),
        (sector(), "{} x", 3, "expected the end of the body, found `x`"),
        (of_ticker(Endpoint::Signals), page, 0, "expected an object, found `<`"),
        (of_ticker(Endpoint::NewsArticles), "{}", 0, "expected an array, found `{`"),
        (of_ticker(Endpoint::HistoricalSentiment), page, 0, "expected a JSON value, found `<`"),
        (tickers(), "[\"A\"", 4, "expected `,` or `]`, found the end of the body"),
    ] {
        let fault = deliver(&request, body.as_bytes()).map(|_| ()).unwrap_err();
        let DecodeFault::Malformed { offset: found, reason: because } = fault else { panic!("{fault:?}") };
        assert_eq!((found, because.as_str()), (offset, reason), "{body}");
    }
}

#[test]
fn a_failed_delivery_stops_decoding() {
    let request = tickers();
    let answer = Answer { request: &request, rules: &Rules::default() };
    let body = format!("[{}\"A\"]", "\"A\",".repeat(10_000));
    let mut times = 0;
    let fault = answer.decode(body.as_bytes(), |_| {
        times += 1;
        Err("full")
    });
    assert!(matches!(fault, Err(DecodeFault::Deliver("full"))), "{fault:?}");
    assert_eq!(times, 1);
}

#[test]
fn a_large_answer_is_delivered_in_order_and_in_pieces() {
    let entries: Vec<String> = (0..500)
        .map(|day| {
            format!(r#"{{"date":"20{:02}-01-{:02}","signal":"buy","confidence":0.5}}"#, 99 - day / 28, 28 - day % 28)
        })
        .collect();
    let entries = entries.join(",");
    let body: Vec<String> =
        (0..400).map(|ticker| format!("\"T{ticker}\":{}", history(&format!("T{ticker}"), &entries))).collect();
    let body = format!("{{{}}}", body.join(","));
    let request = sector();
    let answer = Answer { request: &request, rules: &Rules::default() };
    let mut tickers = Vec::new();
    let mut most = 0;
    let whole = answer.decode(body.as_bytes(), |decoded| {
        most = most.max(decoded.parts.len());
        for part in &decoded.parts {
            let AnswerPart::Series(series) = part else { panic!("{part:?}") };
            let dates = series.rows.column(0).as_primitive::<TimestampMicrosecondType>().values();
            assert!(dates.is_sorted() && dates.len() == 500);
            assert_eq!(series.rows.column(3).as_primitive::<Float64Type>().value(7), 0.5);
            tickers.push(series.key.ticker.to_string());
        }
        Ok::<_, Infallible>(())
    });
    assert!(whole.is_ok());
    assert_eq!(tickers, (0..400).map(|ticker| format!("T{ticker}")).collect::<Vec<_>>());
    assert!(most < 200, "{most} of 400 series in one delivery");
}

#[test]
fn many_answers_are_decoded_on_one_thread_each() {
    let others: Vec<InProgress> = (0..rayon::current_num_threads()).map(|_| InProgress::begin()).collect();
    assert_eq!(others[0].batch_bytes(), GROUP_BYTES);
}

#[test]
fn names_are_replaced_and_nothing_else_is() {
    let names = [("p", "confidence"), ("when", "date"), ("confidence", "confidence*")];
    let names: BTreeMap<String, String> =
        names.into_iter().map(|(theirs, ours)| (theirs.to_owned(), ours.to_owned())).collect();
    let text = r#"{"p" : 1, "x":"p", "when":[{"p":"when:","confidence":2}],"\"p":3,"p\\":4}"#;
    let expected = r#"{"confidence" : 1, "x":"p", "date":[{"confidence":"when:","confidence*":2}],"\"p":3,"p\\":4}"#;
    assert_eq!(rename(text, &names), expected);
    for text in ["", "[]", "{\"a\":1}", "\"p", "\"p\\", "{\"p"] {
        assert!(matches!(rename(text, &names), Cow::Borrowed(same) if same == text), "{text}");
    }
}
