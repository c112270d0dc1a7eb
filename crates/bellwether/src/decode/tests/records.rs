//! The other records: latest signals, articles, summaries, historical sentiment, tickers.

use super::{decode, deliver, of_ticker, rejects, rows, tickers};
use crate::interface::Endpoint;

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
        let found = decode(&of_ticker(Endpoint::Signals), &text);
        assert_eq!(rows(&found.parts[0]), [expected], "{text}");
    }
    for (text, reason) in [
        (body("", ["signal", "ci"]), "missing field `confidence`"),
        (body("", newer).replace("AAPL", "MSFT"), "its ticker is `MSFT`, expected `AAPL`"),
        (
            body("\"date\":\"soon\",", newer),
            "`date`: `soon` is not a valid date: dates are such as `2026-11-20`, `2026-11-20T16:00:00Z` or `2026-11-20T16:00:00-05:00`",
        ),
    ] {
        let found = decode(&of_ticker(Endpoint::LegacySignals), &text);
        assert_eq!(rejects(&found), [("", reason)], "{text}");
        assert_eq!(found.rejects[0].raw, text);
    }
}

#[test]
fn articles_keep_their_positions_across_batches() {
    let article = r#"{"date":"2026-11-20","title":"a","score":"0.5","link":"l"}"#;
    let odd = r#"{"date":"2026-11-20","title":"\u00e4","score":null,"link":"l","by":"x"}"#;
    let list = format!("[{}{odd},{{}}]", format!("{article},").repeat(10_000));
    let (found, times) = deliver(&of_ticker(Endpoint::NewsArticles), list.as_bytes()).unwrap();
    // Batches are smaller while other answers are decoded.
    assert!(times >= 3, "at most 4096 pieces per delivery, in {times}");
    let all: Vec<String> = found.parts.iter().flat_map(rows).collect();
    assert_eq!(all.len(), 10_001);
    assert_eq!(all[9_999], "9999|2026-11-20T00:00:00|a|0.5|l||");
    assert_eq!(all[10_000], "10000|2026-11-20T00:00:00|ä||l||{\"by\":\"x\"}");
    assert_eq!(rejects(&found), [("/10001", "missing field `date`")]);
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
    let found = decode(&request, &newer);
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
    let found = decode(&request, &older);
    let extra = r#"{"crawl_date":"2026-11-20"}"#;
    assert_eq!(rows(&found.parts[0]), [format!("Apple||1.0|low|s||1.0|high|s||1.0|avg|s|{extra}")]);
    assert!(found.drift.is_empty(), "the older shape is known");
    for (body, reason) in [
        (
            newer.replace("\"score\":2", "\"score\":null"),
            "`high_article`: `score`: expected a number or a string, found null",
        ),
        (newer.replace("avg_article", "mean"), "missing field `avg_article`"),
        (older.replace("crawl_date", "date"), "missing field `crawl_date`"),
        (older.replace("AAPL", "MSFT"), "its ticker is `MSFT`, expected `AAPL`"),
        ("{}".to_owned(), "missing field `ticker`"),
    ] {
        assert_eq!(rejects(&decode(&request, &body)), [("", reason)], "{body}");
    }
}

#[test]
fn historical_sentiment_is_kept_verbatim() {
    let request = of_ticker(Endpoint::HistoricalSentiment);
    let texts = |body: &str| decode(&request, body).parts.iter().flat_map(rows).collect::<Vec<String>>();
    assert_eq!(texts(r#"[{"a": 1}, [2], null]"#), [r#"0|{"a": 1}"#, "1|[2]", "2|null"]);
    assert_eq!(texts(r#" {"a": [1]} "#), [r#"0|{"a": [1]}"#]);
    let found = decode(&request, "[1, {\"a\" 2}, x]");
    assert_eq!(rejects(&found), [("/1", "not JSON: expected `:`"), ("/2", "not JSON: expected value")]);
    assert_eq!(found.parts.iter().flat_map(rows).collect::<Vec<_>>(), ["0|1"]);
}

#[test]
fn tickers_are_listed_and_invalid_symbols_are_rejected() {
    let found = decode(&tickers(), r#"["AAPL", " x", 7, "\u0042"]"#);
    assert_eq!(rows(&found.parts[0]), ["AAPL", "B"]);
    assert_eq!(
        rejects(&found),
        [("/1", "`ticker`: unknown ticker ` x`"), ("/2", "`ticker`: expected a string, found a number")]
    );
    assert_eq!((found.records, found.rejected), (4, 2));
}
