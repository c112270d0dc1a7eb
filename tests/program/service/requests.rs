//! Parsing of requests: the key, the parameters, and an answer with every problem.

use bellwether::interface::ChangeSet;
use serde_json::{Value, json};

use super::Start;
use crate::support::service::{Server, fields, list, text};

#[test]
fn a_request_without_a_key_is_invalid_and_with_a_wrong_one_unauthorized() {
    keys(&Server::of);
}

pub(super) fn keys(start: Start<'_>) {
    let server = start(ChangeSet::All);
    let missing = json!({"loc": ["query", "api_key"], "msg": "Field required", "type": "missing"});
    let operations = [
        "/api/signals/AAPL",
        "/api/signals/UNKNOWN",
        "/api/signals-history/AAPL",
        "/api/signals-history-all?sector=energy",
        "/api/signals-history-batched",
        "/api/signals-history-batched-all",
        "/api/tickers/available",
        "/api/signals-legacy/AAPL",
        "/api/signals-legacy-history/AAPL",
        "/api/signals-legacy-history-all?sector=energy",
        "/api/signals-legacy-history-batched",
        "/sentiment/social_sentiment/AAPL",
        "/sentiment/news_articles/AAPL",
        "/sentiment/historical_ss_data/AAPL",
    ];
    for target in operations {
        let reply = server.request("GET", target);
        assert_eq!((reply.status, reply.json()), (422, json!({"detail": [missing]})), "{target}");
        let separator = if target.contains('?') { '&' } else { '?' };
        for wrong in ["", "demo", "demo+key%2F%C3%BC%26%2C", "demo+key%2F%C3%BC%26%2B+", "%ff", "%"] {
            let reply = server.request("GET", &format!("{target}{separator}api_key={wrong}&period=nonsense"));
            assert_eq!((reply.status, reply.json()), (401, json!({"detail": "Invalid API key"})), "{target} {wrong}");
            assert_eq!(reply.content_type(), "application/json");
        }
    }
}

#[test]
fn one_answer_names_every_problem_of_a_request() {
    problems(&Server::of);
}

pub(super) fn problems(start: Start<'_>) {
    let server = start(ChangeSet::All);
    let reply = server.request("GET", "/api/signals-history-all?period=45d&regime=sideways");
    let problems = reply.json();
    assert_eq!((reply.status, reply.content_type(), fields(&problems)), (422, "application/json", vec!["detail"]));
    let found: Vec<(&Value, &str)> =
        list(&problems["detail"]).iter().map(|problem| (&problem["loc"], text(&problem["type"]))).collect();
    let query = |name: &str| json!(["query", name]);
    let expected = [
        (&query("api_key"), "missing"),
        (&query("sector"), "missing"),
        (&query("period"), "enum"),
        (&query("regime"), "enum"),
    ];
    assert_eq!(found, expected);
    for problem in list(&problems["detail"]) {
        assert_eq!(fields(problem), ["loc", "msg", "type"]);
    }
    assert_eq!(problems["detail"][3]["msg"], "Input should be 'neutral', 'bear' or 'bull'");
    let periods = text(&problems["detail"][2]["msg"]);
    assert!(
        periods.starts_with("Input should be '1d', '2d', ")
            && periods.ends_with(", '30d', '1m', '2m', '3m', '4m', '5m' or '6m'")
    );
}

#[test]
fn a_limit_is_a_whole_number_from_one_on() {
    limits(&Server::of);
    let reply = Server::of(ChangeSet::D).get("/api/signals/AAPL?limit=0");
    assert_eq!(reply.status, 200, "the latest signal takes no limit");
}

pub(super) fn limits(start: Start<'_>) {
    let server = start(ChangeSet::D);
    let not_whole = ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
    let too_small = ("greater_than_equal", "Input should be greater than or equal to 1");
    let cases = [
        ("", not_whole),
        ("ten", not_whole),
        ("1.5", not_whole),
        ("%ff", not_whole),
        ("0", too_small),
        ("-1", too_small),
        ("-99999999999999999999", too_small),
    ];
    for path in ["signals-history/AAPL", "signals-history-batched"] {
        for (limit, (kind, msg)) in cases {
            let reply = server.get(&format!("/api/{path}?limit={limit}"));
            let problem = json!({"loc": ["query", "limit"], "msg": msg, "type": kind});
            assert_eq!((reply.status, reply.json()), (422, json!({"detail": [problem]})), "{path} {limit}");
        }
    }
}

#[test]
fn odd_queries_are_read_as_a_form_and_the_last_value_counts() {
    let server = Server::of(ChangeSet::All);
    let plain = server.json("/api/signals/AAPL?period=1m&regime=bear");
    for query in [
        "period=15d&regime=bear&period=1m",
        "period=%31m&regime=%62ear",
        "regime=bear&period=1m&unknown=1&=&&x",
        "period=nonsense&period=1m&regime=bear",
        "regime=bear&period=1m&broken=%&other=%zz",
    ] {
        assert_eq!(server.json(&format!("/api/signals/AAPL?{query}")), plain, "{query}");
    }
    for query in ["period=%", "period=%zz", "period=%ff", "period=", "period=1m&period=15D", "period=1m+", "regime"] {
        assert_eq!(server.get(&format!("/api/signals/AAPL?{query}")).status, 422, "{query}");
    }
    assert_eq!(server.json("/api/signals/%41APL?period=1m&regime=bear"), plain);
}
