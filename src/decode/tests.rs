//! Every stated outcome, on bodies made by hand.

use std::convert::Infallible;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use arrow::util::display::array_value_to_string;

use super::{Answer, AnswerPart, Decoded, Fault, Rules};
use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::tables::{Reject, SeriesKey, Table};

fn sector() -> Request {
    Request::of_sector("energy".parse().unwrap(), "15d".parse().unwrap(), "neutral".parse().unwrap())
}

fn of_ticker(endpoint: Endpoint) -> Request {
    Request::of_ticker(endpoint, "AAPL".parse().unwrap())
}

fn tickers() -> Request {
    Request { endpoint: Endpoint::TickersAvailable, ticker: None, sector: None, period: None, regime: None }
}

/// All that an answer says at once, and in how many deliveries it came.
fn delivered(request: &Request, body: &[u8]) -> Result<(Decoded, usize), Fault<Infallible>> {
    let answer = Answer { request, rules: Rules { keep_extra: true } };
    let (mut all, mut times) = (Decoded::default(), 0);
    answer.decode(body, |decoded| {
        all = std::mem::take(&mut all).followed_by(decoded);
        times += 1;
        Ok(())
    })?;
    Ok((all, times))
}

fn decoded(request: &Request, body: impl AsRef<[u8]>) -> Decoded {
    delivered(request, body.as_ref()).unwrap().0
}

/// The rows as text: a line a row, nulls as nothing.
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

/// Place and reason of what was set aside.
fn aside(decoded: &Decoded) -> Vec<(&str, &str)> {
    decoded.rejects.iter().map(|reject| (reject.pointer.as_str(), reject.reason.as_str())).collect()
}

fn history(ticker: &str, entries: &str) -> String {
    format!(r#"{{"ticker":"{ticker}","regime":"neutral","period":"15d","predictions":[{entries}]}}"#)
}

#[test]
fn a_history_is_ordered_by_date_and_its_invalid_entries_are_rejected() {
    let entries = r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.75},
        {"date":"2026-11-18T00:00:00+00:00","signal":"sell","confidence":-2,"model":"m2"},
        {"date":"2026-11-19","signal":"hold","confidence":0.5},
        {"date":"2026-11-20","signal":"sell","confidence":0.25},
        {"date":null,"signal":"sell","confidence":0.25},
        {"date":"2026-11-17","signal":"sell","confidence":NaN}"#;
    let found = decoded(&sector(), format!("{{\"A\": {}}}", history("A", entries)));
    let [part] = &found.parts[..] else { panic!("{:?}", found.parts) };
    assert_eq!(rows(part), ["2026-11-18T00:00:00|0|sell|-2.0|{\"model\":\"m2\"}", "2026-11-20T00:00:00||buy|0.75|"]);
    assert_eq!(
        aside(&found),
        [
            ("/A/predictions/2", "`signal`: unknown signal `hold`"),
            ("/A/predictions/4", "`date`: expected a string, found null"),
            ("/A/predictions/5", "`confidence`: expected a number, found something that is not JSON"),
            ("/A/predictions/3", "duplicate date 2026-11-20 00:00:00; entry 0 is kept"),
        ]
    );
    let first = &found.rejects[0];
    assert_eq!(first.request, sector().to_string());
    assert_eq!(first.ticker.as_deref(), Some("A"));
    assert_eq!(first.raw, r#"{"date":"2026-11-19","signal":"hold","confidence":0.5}"#);
    assert_eq!((found.records, found.rejected, found.unusual), (6, 4, 1));
}

#[test]
fn a_history_that_was_not_requested_is_rejected_whole() {
    let other = |from: &str, to: &str| history("A", r#"{"date":1}"#).replace(from, to);
    for (piece, reason) in [
        (other("\"A\"", "\"B\""), "it is of ticker `B`, not of `A`"),
        (other("15d", "5d"), "it is of period `5d`, which was not asked for"),
        (other("neutral", "bull"), "it is of regime `bull`, which was not asked for"),
        (other("15d", "45d"), "`period`: unknown period `45d`"),
        (other("\"period\"", "\"span\""), "missing field `period`"),
        (other("\"period\":\"15d\"", "\"ticker\":\"A\""), "duplicate field `ticker`"),
        (other("predictions", "entries"), "missing field `predictions`"),
        (other("[{", "{\"a\":[{").replace("}]", "}]}"), "`predictions`: expected an array, found an object"),
        (other("[{", "[{},,{"), "expected a value, found `,`"),
        ("null".to_owned(), "expected an object, found null"),
    ] {
        let found = decoded(&sector(), format!("{{\"A\":{piece},\"C\":{}}}", history("C", "")));
        assert_eq!(aside(&found), [("/A", reason)], "{piece}");
        assert_eq!(found.parts.len(), 1, "its neighbour lives: {piece}");
        let entries = if piece.contains("[{},,{") { 2 } else { 1 };
        assert_eq!((found.records, found.rejected, found.lost), (entries, entries, 1), "{piece}");
        assert!(found.drift.is_empty(), "what is set aside has not drifted: {piece}");
    }
}

#[test]
fn entries_are_read_under_either_key_and_the_first_wins() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let body = history("AAPL", entry).replace("predictions", "items");
    let found = decoded(&of_ticker(Endpoint::LegacyHistory), &body);
    assert_eq!(rows(&found.parts[0]), ["2026-11-20T00:00:00||buy|1.0|"]);
    let both = body.replace("]}", r#"],"predictions":[]}"#);
    let found = decoded(&of_ticker(Endpoint::SignalsHistory), both);
    assert_eq!(rows(&found.parts[0]).len(), 1);
    assert_eq!(aside(&found), [("/predictions", "`predictions` stands beside `items`, which is taken")]);
    assert_eq!(found.rejects[0].raw, "[]");
    let twice = body.replace("]}", r#"],"predictions":[],"predictions":[]}"#);
    let found = decoded(&of_ticker(Endpoint::SignalsHistory), twice);
    assert_eq!(aside(&found), [("", "duplicate field `predictions`")]);
    assert_eq!(found.rejects[0].ticker.as_deref(), Some("AAPL"));
}

#[test]
fn a_second_history_of_a_ticker_is_rejected_with_its_records_and_position() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let one = history("A", entry);
    for (other, lost) in [(history("A", ""), 1), (one.clone(), 1), (history("A", &[entry; 3].join(",")), 3)] {
        let body = format!("{{\"A\":{one},\"B\":{},\"\\u0041\":{other}}}", history("B", ""));
        let found = decoded(&sector(), &body);
        assert_eq!(found.parts.iter().map(|part| rows(part).len()).collect::<Vec<_>>(), [1, 0]);
        let offset = body.rfind(&other).unwrap();
        let reason = format!("duplicate ticker `A`: its other history begins at byte {offset}; the first is kept");
        assert_eq!(aside(&found), [("/A", reason.as_str())]);
        assert_eq!((found.records, found.rejected, found.lost), (1 + lost, lost, 1));
        assert_eq!(found.rejects[0].raw, other);
    }
}

#[test]
fn a_repeated_ticker_is_recognized_in_a_later_batch() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let others: Vec<String> = (0..5_000).map(|at| format!("\"T{at}\":{}", history(&format!("T{at}"), ""))).collect();
    let a = history("A", entry);
    let body = format!("{{\"A\":{a},{},\"A\":{a}}}", others.join(","));
    let (found, times) = delivered(&sector(), body.as_bytes()).unwrap();
    assert!(times > 1);
    assert_eq!((found.parts.len(), found.records, found.rejected), (5_001, 2, 1));
}

#[test]
fn a_history_rejected_whole_counts_all_its_records() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let entries = [entry; 40].join(",");
    let good = history("A", &entries);
    let long = format!("{{\"predictions\":[{}]}}", vec![entry; 700_000].join(","));
    assert!(long.len() > 32 << 20);
    for (name, broken, records) in [
        ("a field at fault behind the entries", good.replace("]}", "],\"ticker\":5}"), 40),
        ("a field at fault before the entries", good.replace("\"15d\"", "\"45d\""), 40),
        ("the older name", good.replace("\"15d\"", "\"45d\"").replace("predictions", "items"), 40),
        ("entries that are not objects", history("A", "1,2,3").replace("15d", "45d"), 3),
        ("no object around the entries", format!("[{entries}]"), 39),
        ("entries that break off", good.replace("]}", ",,]}"), 40),
        ("longer than is read", long, 700_000),
    ] {
        let found = decoded(&sector(), format!("{{\"A\":{broken},\"C\":{}}}", history("C", entry)));
        assert_eq!((found.records, found.rejected, found.lost), (records + 1, records, 1), "{name}");
        assert_eq!(found.rejects.len(), 1, "{name}");
    }
    let nothing_left = good.replace("buy", "hold");
    let found = decoded(&sector(), format!("{{\"A\":{nothing_left}}}"));
    assert_eq!((found.records, found.rejected, found.lost), (40, 40, 1), "no entry could be typed");
}

#[test]
fn unknown_fields_are_counted_and_kept_with_their_row() {
    let entries = r#"{"date":"2026-11-20","signal":"buy","confidence":1,"a/b":[1, 2],"c":"x"},
        {"date":"2026-11-19","signal":"buy","confidence":1,"c":null}"#;
    let body = format!("{{\"A\":{}}}", history("A", entries).replace("\"regime\"", "\"note\":{},\"regime\""));
    let found = decoded(&sector(), &body);
    let drift: Vec<_> = found.drift.iter().map(|one| (one.field.as_str(), one.count, one.example.as_str())).collect();
    assert_eq!(
        drift,
        [("/*/predictions/*/a~1b", 1, "[1, 2]"), ("/*/predictions/*/c", 2, "\"x\""), ("/*/note", 1, "{}")]
    );
    assert_eq!(
        rows(&found.parts[0]),
        ["2026-11-19T00:00:00||buy|1.0|{\"c\":null}", "2026-11-20T00:00:00||buy|1.0|{\"a/b\":[1, 2],\"c\":\"x\"}"],
        "a field of the history is of no row"
    );
    let request = sector();
    let answer = Answer { request: &request, rules: Rules { keep_extra: false } };
    let kept = answer.decode(body.as_bytes(), |decoded| {
        assert_eq!(decoded.drift.len(), 3);
        assert!(
            rows(&decoded.parts[0]).iter().all(|row| row.ends_with('|')),
            "nothing is kept that nobody asked to keep"
        );
        Ok::<_, Infallible>(())
    });
    assert!(kept.is_ok());
}

#[test]
fn many_unknown_fields_are_counted_together() {
    let fields: Vec<String> = (0..1000).map(|number| format!("\"f{number}\":0")).collect();
    let entry = format!(r#"{{"date":"2026-11-20","signal":"buy","confidence":1,{}}}"#, fields.join(","));
    let found = decoded(&sector(), format!("{{\"A\":{}}}", history("A", &entry)));
    assert_eq!(found.drift.len(), 65);
    assert_eq!(found.drift.iter().map(|one| one.count).sum::<u64>(), 1000);
    assert_eq!(found.drift[64].field, "/…");
    let fields = vec!["\"f\":0"; 1025].join(",");
    let found = decoded(&of_ticker(Endpoint::Signals), format!("{{{fields}}}"));
    assert_eq!(aside(&found), [("", "more than 1024 fields that the interface does not know")]);
}

#[test]
fn the_last_fault_of_an_all_faulty_piece_is_counted() {
    let found = decoded(&sector(), format!("{{\"A\":{}}}", history("A", &vec!["1"; 4000].join(","))));
    assert_eq!((found.records, found.rejected), (4000, 4000));
    let listed = found.rejects.len();
    assert!(listed < 300, "{listed} are listed of a piece of 8 KB");
    let Reject { reason, pointer, .. } = &found.rejects[listed - 1];
    let rest = 4000 - listed;
    assert_eq!(*pointer, format!("/A/predictions/{}", listed - 1));
    let expected = format!("expected an object, found a number; and {rest} more records beside it that are not listed");
    assert_eq!(*reason, expected);
    let plain = r#"{"date":"2026-11-20","signal":"no","confidence":1}"#;
    let found = decoded(&sector(), format!("{{\"A\":{}}}", history("A", &vec![plain; 4000].join(","))));
    assert_eq!(found.rejects.len(), 4000, "records that were meant as such are all listed");
}

#[test]
fn invalid_utf_8_is_rejected_and_its_neighbours_are_kept() {
    let body = [b"{\"A\": \"\xff\", \"B\xfe\": 1, \"~/\": 2, \"C\": ", history("C", "").as_bytes(), b"}"].concat();
    let found = decoded(&sector(), body);
    assert_eq!(
        aside(&found),
        [
            ("/A", "not UTF-8: `0xff` at byte 7"),
            ("/B\u{fffd}", "the key is not UTF-8"),
            ("/~0~1", "expected an object, found a number"),
        ]
    );
    assert_eq!(found.rejects[0].raw, "\"\u{fffd}\"");
    assert_eq!(found.parts.len(), 1);
}

#[test]
fn long_texts_of_rejected_records_are_truncated() {
    let found = decoded(&sector(), format!("{{\"{}\":1,\"B\":\"{}\"}}", "k".repeat(2000), "ü".repeat(70_000)));
    let [key, value] = &found.rejects[..] else { panic!("{:?}", aside(&found)) };
    assert_eq!(key.reason, "the key is longer than 1024 bytes; its value begins at byte 2004");
    assert_eq!((key.raw.len(), key.pointer.len()), (2000, 1024 + "/…".len()));
    assert_eq!(value.raw.len(), (64 << 10) - 1 + "…".len(), "cut between characters");
    assert!(value.raw.ends_with("ü…"));
}

#[test]
fn a_latest_signal_is_a_row_with_or_without_a_date_in_either_shape() {
    let body = |date: &str, names: [&str; 2]| {
        let [signal, confidence] = names;
        format!(r#"{{"ticker":"AAPL",{date}"period":"1d","regime":"bear","{signal}":"sell","{confidence}":0.5}}"#)
    };
    let newer = ["signal", "confidence"];
    for (text, expected) in [
        (body("\"date\":null,", newer), "||sell|0.5|"),
        (body("", newer), "||sell|0.5|"),
        (body("\"date\":\"2026-11-20T16:00:00Z\",", newer), "2026-11-20T16:00:00|0|sell|0.5|"),
        (body("\"date\":\"2026-11-20\",", ["ei", "ci"]), "2026-11-20T00:00:00||sell|0.5|"),
        (body("\"ei\":1,", newer), "||sell|0.5|{\"ei\":1}"),
    ] {
        let found = decoded(&of_ticker(Endpoint::Signals), &text);
        assert_eq!(rows(&found.parts[0]), [expected], "{text}");
    }
    for (text, reason) in [
        (body("", ["signal", "ci"]), "missing field `confidence`"),
        (body("", newer).replace("AAPL", "MSFT"), "it is of ticker `MSFT`, not of `AAPL`"),
        (body("\"date\":\"soon\",", newer), "`date`: `soon` is not a date of the interface"),
    ] {
        let found = decoded(&of_ticker(Endpoint::LegacySignals), &text);
        assert_eq!(aside(&found), [("", reason)], "{text}");
        assert_eq!(found.rejects[0].raw, text);
    }
}

#[test]
fn articles_keep_their_positions_across_batches() {
    let article = r#"{"date":"2026-11-20","title":"a","score":"0.5","link":"l"}"#;
    let odd = r#"{"date":"2026-11-20","title":"\u00e4","score":null,"link":"l","by":"x"}"#;
    let list = format!("[{}{odd},{{}}]", format!("{article},").repeat(10_000));
    let (found, times) = delivered(&of_ticker(Endpoint::NewsArticles), list.as_bytes()).unwrap();
    // Fewer go together while other answers are under way.
    assert!(times >= 3, "4096 pieces at most are delivered at once, and not {times} times all of them");
    let all: Vec<String> = found.parts.iter().flat_map(rows).collect();
    assert_eq!(all.len(), 10_001);
    assert_eq!(all[9_999], "9999|2026-11-20T00:00:00|a|0.5|l||");
    assert_eq!(all[10_000], "10000|2026-11-20T00:00:00|ä||l||{\"by\":\"x\"}");
    assert_eq!(aside(&found), [("/10001", "missing field `date`")]);
    assert_eq!(found.drift[0].field, "/*/by");
}

#[test]
fn a_summary_is_a_row_in_either_shape() {
    let request = of_ticker(Endpoint::SocialSentiment);
    let reference = |score: &str| format!(r#"{{"date":"2026-11-20","score":{score},"link":"l{score}","n":{score}}}"#);
    let newer = format!(
        r#"{{"debtor":"Apple","ticker":"AAPL","low_article":{},"high_article":{},"avg_article":{},"x":1}}"#,
        reference("1"),
        reference("2"),
        reference("3")
    );
    let found = decoded(&request, &newer);
    let date = "2026-11-20T00:00:00";
    let extra = r#"{"x":1,"low_article":{"n":1},"high_article":{"n":2},"avg_article":{"n":3}}"#;
    assert_eq!(rows(&found.parts[0]), [format!("Apple|{date}|1.0|l1||{date}|2.0|l2||{date}|3.0|l3||{extra}")]);
    assert_eq!(found.drift.len(), 4);
    let part = |name: &str| {
        format!(r#""{name}_score_latest30":"1","{name}_link_latest30":"{name}","{name}_summary_latest30":"s""#)
    };
    let older = format!(
        r#"{{"debtor":"Apple","ticker":"AAPL","crawl_date":"2026-11-20",{},{},{}}}"#,
        part("low"),
        part("high"),
        part("avg")
    );
    let found = decoded(&request, &older);
    let extra = r#"{"crawl_date":"2026-11-20"}"#;
    assert_eq!(rows(&found.parts[0]), [format!("Apple||1.0|low|s||1.0|high|s||1.0|avg|s|{extra}")]);
    assert!(found.drift.is_empty(), "the older form is known");
    for (body, reason) in [
        (
            newer.replace("\"score\":2", "\"score\":null"),
            "`high_article`: `score`: expected a number or a string, found null",
        ),
        (newer.replace("avg_article", "mean"), "missing field `avg_article`"),
        (older.replace("crawl_date", "date"), "missing field `crawl_date`"),
        (older.replace("AAPL", "MSFT"), "it is of ticker `MSFT`, not of `AAPL`"),
        ("{}".to_owned(), "missing field `ticker`"),
    ] {
        assert_eq!(aside(&decoded(&request, &body)), [("", reason)], "{body}");
    }
}

#[test]
fn historical_sentiment_is_kept_verbatim() {
    let request = of_ticker(Endpoint::HistoricalSentiment);
    let texts = |body: &str| decoded(&request, body).parts.iter().flat_map(rows).collect::<Vec<String>>();
    assert_eq!(texts(r#"[{"a": 1}, [2], null]"#), [r#"0|{"a": 1}"#, "1|[2]", "2|null"]);
    assert_eq!(texts(r#" {"a": [1]} "#), [r#"0|{"a": [1]}"#]);
    let found = decoded(&request, "[1, {\"a\" 2}, x]");
    assert_eq!(aside(&found), [("/1", "not JSON: expected `:`"), ("/2", "not JSON: expected value")]);
    assert_eq!(found.parts.iter().flat_map(rows).collect::<Vec<_>>(), ["0|1"]);
}

#[test]
fn tickers_are_listed_and_invalid_symbols_are_rejected() {
    let found = decoded(&tickers(), r#"["AAPL", "../x", 7, "\u0042"]"#);
    assert_eq!(rows(&found.parts[0]), ["AAPL", "B"]);
    assert_eq!(
        aside(&found),
        [("/1", "`ticker`: unknown ticker `../x`"), ("/2", "`ticker`: expected a string, found a number")]
    );
    assert_eq!((found.records, found.rejected), (4, 2));
}

#[test]
fn an_empty_answer_is_delivered_once() {
    let (found, times) = delivered(&of_ticker(Endpoint::NewsArticles), b"[]").unwrap();
    assert_eq!(times, 1);
    let [AnswerPart::Series(series)] = &found.parts[..] else { panic!("{:?}", found.parts) };
    assert_eq!(series.key, SeriesKey::of_ticker(Endpoint::NewsArticles, "AAPL".parse().unwrap()));
    assert_eq!(series.rows.schema(), Table::Articles.listed_schema());
    assert_eq!(series.rows.num_rows(), 0);
    let (found, times) = delivered(&sector(), b" {} ").unwrap();
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
        let fault = delivered(&request, body.as_bytes()).map(|_| ()).unwrap_err();
        let Fault::Malformed { offset: found, reason: because } = fault else { panic!("{fault:?}") };
        assert_eq!((found, because.as_str()), (offset, reason), "{body}");
    }
}

#[test]
fn a_failed_delivery_stops_decoding() {
    let request = tickers();
    let answer = Answer { request: &request, rules: Rules { keep_extra: false } };
    let body = format!("[{}\"A\"]", "\"A\",".repeat(10_000));
    let mut times = 0;
    let fault = answer.decode(body.as_bytes(), |_| {
        times += 1;
        Err("full")
    });
    assert!(matches!(fault, Err(Fault::Deliver("full"))), "{fault:?}");
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
    let answer = Answer { request: &request, rules: Rules { keep_extra: false } };
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
    assert!(most < 200, "{most} of 400 series came at once");
}
