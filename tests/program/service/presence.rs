//! The operations that a service has at each change set, and its answers to anything else.

use bellwether::interface::ChangeSet;
use serde_json::json;

use super::Start;
use crate::support::service::{Server, with_key};

#[test]
fn every_operation_exists_from_the_change_set_that_adds_it_to_the_one_that_removes_it() {
    let legacy = [
        ("/api/signals-legacy-history-all?sector=energy", ". . . . . . x . x"),
        ("/api/signals-legacy-history-batched", ". . . . . . x . x"),
        ("/api/signals-legacy-history/AAPL", ". . . . . . x . x"),
        ("/api/signals-legacy/AAPL", ". . . . . . x . x"),
    ];
    let batched =
        [("/api/signals-history-batched", ". . . . x x x x x"), ("/api/tickers/available", ". . . . . x . . x")];
    presence(&Server::of, &[&CURRENT[..], &batched, &legacy].concat());
}

/// Operations that definitions ask for. Section 9, from set G to set A, a column each; the first column is before G, the last
/// has all operations.
pub(super) const CURRENT: [(&str, &str); 7] = [
    ("/sentiment/social_sentiment/AAPL", "x x x x . . . . x"),
    ("/sentiment/news_articles/AAPL", ". x x x . . . . x"),
    ("/sentiment/historical_ss_data/AAPL", ". x . . . . . . x"),
    ("/api/signals-history/AAPL", ". . . x x x x x x"),
    ("/api/signals/AAPL", ". . . x x x x x x"),
    ("/api/signals-history-batched-all", ". . . . . x . . x"),
    ("/api/signals-history-all?sector=utilities", ". . . . . . x x x"),
];

pub(super) fn presence(start: Start<'_>, operations: &[(&str, &str)]) {
    let sets = ["origin", "G", "F", "E", "D", "C", "B", "A", "all"];
    for (column, set) in sets.into_iter().enumerate() {
        let server = start(set.parse().expect("as the interface has it"));
        for (target, presence) in operations {
            let is_there = presence.split(' ').nth(column) == Some("x");
            let (reply, _) = server.head("GET", &with_key(target));
            assert_eq!(reply.status, if is_there { 200 } else { 404 }, "{target} at {set}");
            if !is_there {
                assert_eq!(server.get(target).json(), json!({"detail": "Not Found"}), "{target} at {set}");
            }
        }
    }
}

#[test]
fn missing_operations_answer_404() {
    let server = Server::of(ChangeSet::All);
    for ticker in ["UNKNOWN", "aapl", "AAPL%20", "%ff", "%zz", "BRK-B", "%2e%2e%2fx"] {
        for path in [
            "api/signals",
            "api/signals-history",
            "api/signals-legacy",
            "sentiment/news_articles",
            "sentiment/social_sentiment",
        ] {
            let reply = server.get(&format!("/{path}/{ticker}"));
            assert_eq!((reply.status, reply.json()), (404, json!({"detail": "Unknown ticker"})), "{path}/{ticker}");
        }
    }
    for target in [
        "/",
        "/api",
        "/api/",
        "/api/signals",
        "/api/signals/AAPL/",
        "/api/signals/AAPL/more",
        "/api/news_articles/AAPL",
        "/sentiment/signals/AAPL",
        "/signals/AAPL",
        "/api/signals-history-all/?sector=energy",
    ] {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.content_type()), (404, "application/json"), "{target}");
        assert_eq!(reply.json(), json!({"detail": "Not Found"}), "{target}");
    }
}

#[test]
fn only_get_is_allowed() {
    methods(&Server::of);
}

pub(super) fn methods(start: Start<'_>) {
    let server = start(ChangeSet::All);
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
        let reply = server.request(method, &with_key("/api/signals/AAPL"));
        assert_eq!((reply.status, &*reply.headers["allow"]), (405, "GET"), "{method}");
        if method != "HEAD" {
            assert_eq!(reply.json(), json!({"detail": "Method Not Allowed"}));
        }
    }
}
