//! Histories: order, rejects, duplicates, unknown fields.

use std::convert::Infallible;

use super::{decode, deliver, history, of_ticker, rejects, rows, sector};
use crate::decode::{Answer, Rules};
use crate::interface::Endpoint;
use crate::tables::{Leniencies, Reject};

#[test]
fn a_history_is_ordered_by_date_and_its_invalid_entries_are_rejected() {
    let entries = r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.75},
        {"date":"2026-11-18T00:00:00+00:00","signal":"sell","confidence":-2,"model":"m2"},
        {"date":"2026-11-19","signal":"hold","confidence":0.5},
        {"date":"2026-11-20","signal":"sell","confidence":0.25},
        {"date":null,"signal":"sell","confidence":0.25},
        {"date":"2026-11-17","signal":"sell","confidence":NaN}"#;
    let found = decode(&sector(), format!("{{\"A\": {}}}", history("A", entries)));
    let [part] = &found.parts[..] else { panic!("{:?}", found.parts) };
    assert_eq!(rows(part), ["2026-11-18T00:00:00|0|sell|-2.0|{\"model\":\"m2\"}", "2026-11-20T00:00:00||buy|0.75|"]);
    assert_eq!(
        rejects(&found),
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
fn only_entries_that_are_kept_count_as_accepted_leniently() {
    let entries = r#"{"date":"2026-11-20t00:00:00","signal":"BUY","confidence":0.75},
        {"date":"2026-11-20t00:00:00z","signal":"Sell","confidence":0.5},
        {"date":"2026-11-19","signal":"SELL","confidence":0.25},
        {"date":"2026-11-19T00:00:00z","signal":"sell","confidence":2},
        {"date":"2026-11-19","signal":"SELL","confidence":0.25},
        {"date":"2026-11-18T00:00:00","signal":"BUY","confidence":"none"}"#;
    let found = decode(&sector(), format!("{{\"A\": {}}}", history("A", entries)));
    assert_eq!(found.rejects.len(), 3, "{:?}", found.rejects);
    assert_eq!(found.lenient, Leniencies { signals: 2, dates: 1, repeated: 1, ..Leniencies::default() });
    assert_eq!((found.records, found.rejected, found.unusual), (5, 3, 0), "a repetition is no record");
}

#[test]
fn a_history_that_was_not_requested_is_rejected_whole() {
    let other = |from: &str, to: &str| history("A", r#"{"date":1}"#).replace(from, to);
    for (piece, reason) in [
        (other("\"A\"", "\"B\""), "its ticker is `B`, expected `A`"),
        (other("15d", "5d"), "period `5d` was not requested"),
        (other("neutral", "bull"), "regime `bull` was not requested"),
        (other("15d", "45d"), "`period`: unknown period `45d`"),
        (other("\"period\":\"15d\"", "\"ticker\":\"A\""), "duplicate field `ticker`"),
        (other("predictions", "entries"), "missing field `predictions`"),
        (other("[{", "{\"a\":[{").replace("}]", "}]}"), "`predictions`: expected an array, found an object"),
        (other("[{", "[{},,{"), "expected a value, found `,`"),
        ("1".to_owned(), "expected an object, found a number"),
    ] {
        let found = decode(&sector(), format!("{{\"A\":{piece},\"C\":{}}}", history("C", "")));
        assert_eq!(rejects(&found), [("/A", reason)], "{piece}");
        assert_eq!(found.parts.len(), 1, "its neighbour is kept: {piece}");
        let entries = if piece.contains("[{},,{") { 2 } else { 1 };
        assert_eq!((found.records, found.rejected, found.lost), (entries, entries, 1), "{piece}");
        assert!(found.drift.is_empty(), "rejected histories report no unknown fields: {piece}");
    }
}

#[test]
fn entries_are_read_under_either_key_and_the_first_wins() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let body = history("AAPL", entry).replace("predictions", "items");
    let found = decode(&of_ticker(Endpoint::LegacyHistory), &body);
    assert_eq!(rows(&found.parts[0]), ["2026-11-20T00:00:00||buy|1.0|"]);
    let both = body.replace("]}", r#"],"predictions":[]}"#);
    let found = decode(&of_ticker(Endpoint::SignalsHistory), both);
    assert_eq!(rows(&found.parts[0]).len(), 1);
    assert_eq!(rejects(&found), [("/predictions", "`predictions` repeats `items`, which is kept")]);
    assert_eq!(found.rejects[0].raw, "[]");
    let twice = body.replace("]}", r#"],"predictions":[],"predictions":[]}"#);
    let found = decode(&of_ticker(Endpoint::SignalsHistory), twice);
    assert_eq!(rejects(&found), [("", "duplicate field `predictions`")]);
    assert_eq!(found.rejects[0].ticker.as_deref(), Some("AAPL"));
}

#[test]
fn a_second_history_of_a_ticker_is_rejected_with_its_records_and_position() {
    let entry = r#"{"date":"2026-11-20","signal":"buy","confidence":1}"#;
    let one = history("A", entry);
    for (other, lost) in [(history("A", ""), 1), (one.clone(), 1), (history("A", &[entry; 3].join(",")), 3)] {
        let body = format!("{{\"A\":{one},\"B\":{},\"\\u0041\":{other}}}", history("B", ""));
        let found = decode(&sector(), &body);
        assert_eq!(found.parts.iter().map(|part| rows(part).len()).collect::<Vec<_>>(), [1, 0]);
        let offset = body.rfind(&other).unwrap();
        let reason = format!("duplicate ticker `A`: another history starts at byte {offset}; the first is kept");
        assert_eq!(rejects(&found), [("/A", reason.as_str())]);
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
    let (found, times) = deliver(&sector(), body.as_bytes()).unwrap();
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
        ("an invalid field after the entries", good.replace("]}", "],\"ticker\":5}"), 40),
        ("an invalid field before the entries", good.replace("\"15d\"", "\"45d\""), 40),
        ("the older name", good.replace("\"15d\"", "\"45d\"").replace("predictions", "items"), 40),
        ("entries that are not objects", history("A", "1,2,3").replace("15d", "45d"), 3),
        ("truncated entries", good.replace("]}", ",,]}"), 40),
        ("longer than the limit", long, 700_000),
    ] {
        let found = decode(&sector(), format!("{{\"A\":{broken},\"C\":{}}}", history("C", entry)));
        assert_eq!((found.records, found.rejected, found.lost), (records + 1, records, 1), "{name}");
        assert_eq!(found.rejects.len(), 1, "{name}");
    }
    let nothing_left = good.replace("buy", "hold");
    let found = decode(&sector(), format!("{{\"A\":{nothing_left}}}"));
    assert_eq!((found.records, found.rejected, found.lost), (40, 40, 1), "every entry is invalid");
}

#[test]
fn unknown_fields_are_counted_and_kept_with_their_row() {
    let entries = r#"{"date":"2026-11-20","signal":"buy","confidence":1,"a/b":[1, 2],"c":"x"},
        {"date":"2026-11-19","signal":"buy","confidence":1,"c":null}"#;
    let body = format!("{{\"A\":{}}}", history("A", entries).replace("\"regime\"", "\"note\":{},\"regime\""));
    let found = decode(&sector(), &body);
    let drift: Vec<_> = found.drift.iter().map(|one| (one.field.as_str(), one.count, one.example.as_str())).collect();
    assert_eq!(
        drift,
        [("/*/predictions/*/a~1b", 1, "[1, 2]"), ("/*/predictions/*/c", 2, "\"x\""), ("/*/note", 1, "{}")]
    );
    assert_eq!(
        rows(&found.parts[0]),
        ["2026-11-19T00:00:00||buy|1.0|{\"c\":null}", "2026-11-20T00:00:00||buy|1.0|{\"a/b\":[1, 2],\"c\":\"x\"}"],
        "a field of the history belongs to no row"
    );
    let request = sector();
    let answer = Answer { request: &request, rules: &Rules::default() };
    let kept = answer.decode(body.as_bytes(), |decoded| {
        assert_eq!(decoded.drift.len(), 3);
        assert!(rows(&decoded.parts[0]).iter().all(|row| row.ends_with('|')), "unknown fields are not kept by default");
        Ok::<_, Infallible>(())
    });
    assert!(kept.is_ok());
}

#[test]
fn many_unknown_fields_are_counted_together() {
    let fields: Vec<String> = (0..1000).map(|number| format!("\"f{number}\":0")).collect();
    let entry = format!(r#"{{"date":"2026-11-20","signal":"buy","confidence":1,{}}}"#, fields.join(","));
    let found = decode(&sector(), format!("{{\"A\":{}}}", history("A", &entry)));
    assert_eq!(found.drift.len(), 65);
    assert_eq!(found.drift.iter().map(|one| one.count).sum::<u64>(), 1000);
    assert_eq!(found.drift[64].field, "/…");
    let fields = vec!["\"f\":0"; 1025].join(",");
    let found = decode(&of_ticker(Endpoint::Signals), format!("{{{fields}}}"));
    assert_eq!(rejects(&found), [("", "more than 1024 unknown fields")]);
}

#[test]
fn the_last_fault_of_an_all_faulty_piece_is_counted() {
    let found = decode(&sector(), format!("{{\"A\":{}}}", history("A", &vec!["1"; 4000].join(","))));
    assert_eq!((found.records, found.rejected), (4000, 4000));
    let listed = found.rejects.len();
    assert!(listed < 300, "{listed} are listed of a piece of 8 KB");
    let Reject { reason, pointer, .. } = &found.rejects[listed - 1];
    let rest = 4000 - listed;
    assert_eq!(*pointer, format!("/A/predictions/{}", listed - 1));
    let expected = format!("expected an object, found a number; {rest} more rejected records are not listed");
    assert_eq!(*reason, expected);
    let plain = r#"{"date":"2026-11-20","signal":"no","confidence":1}"#;
    let found = decode(&sector(), format!("{{\"A\":{}}}", history("A", &vec![plain; 4000].join(","))));
    assert_eq!(found.rejects.len(), 4000, "all plausible records are listed");
}

#[test]
fn invalid_utf_8_is_rejected_and_its_neighbours_are_kept() {
    let body = [b"{\"A\": \"\xff\", \"B\xfe\": 1, \"~/\": 2, \"C\": ", history("C", "").as_bytes(), b"}"].concat();
    let found = decode(&sector(), body);
    assert_eq!(
        rejects(&found),
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
    let found = decode(&sector(), format!("{{\"{}\":1,\"B\":\"{}\"}}", "k".repeat(2000), "ü".repeat(70_000)));
    let [key, value] = &found.rejects[..] else { panic!("{:?}", rejects(&found)) };
    assert_eq!(key.reason, "the key is longer than 1024 bytes; its value starts at byte 2004");
    assert_eq!((key.raw.len(), key.pointer.len()), (2000, 1024 + "/…".len()));
    assert_eq!(value.raw.len(), (64 << 10) - 1 + "…".len(), "cut between characters");
    assert!(value.raw.ends_with("ü…"));
}
