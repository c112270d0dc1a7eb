//! What the service is, for who looks at it with a browser or another tool: its operations, in words and as OpenAPI.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::refusal;
use crate::interface::{Base, Endpoint, Period, Regime};
use crate::net::listen::{Answer, whole};

/// The folder of a base address.
pub(super) fn folder_of(base: Base) -> &'static str {
    match base {
        Base::Signals => "api",
        Base::Sentiment => "sentiment",
    }
}

/// The description at a path of a service, by the paths before its addresses and its operations; none at any other path.
pub(super) fn answer(paths: &[String], operations: &[Endpoint], path: &str) -> Option<Answer> {
    match path {
        "/" => Some(whole(StatusCode::OK, "text/plain; charset=utf-8", in_words(paths, operations).into_bytes())),
        "/openapi.json" => Some(refusal::json(StatusCode::OK, &openapi(paths, operations))),
        _ => None,
    }
}

fn in_words(paths: &[String], operations: &[Endpoint]) -> String {
    let mut text = "Trading signals and scored news: a read-only service, in JSON.\n".to_owned();
    for path in paths {
        for base in [Base::Signals, Base::Sentiment] {
            text.push_str(&format!("\n{} = {path}/{}\n", base.setting(), folder_of(base)));
            for endpoint in operations.iter().filter(|endpoint| endpoint.base() == base) {
                let (operation, parameters) = (endpoint.path(), parameters(*endpoint).join(", "));
                text.push_str(&format!("  GET {operation}  {parameters}\n"));
            }
        }
    }
    text.push_str("\nEvery operation takes the key, as api_key. /openapi.json describes them all.\n");
    text
}

/// The parameters of an operation, without the key.
fn parameters(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::SignalsHistoryAll | Endpoint::LegacyHistoryAll => &["sector", "period", "regime"],
        Endpoint::Signals | Endpoint::SignalsHistory | Endpoint::LegacySignals | Endpoint::LegacyHistory => {
            &["period", "regime"]
        }
        _ => &[],
    }
}

fn openapi(paths: &[String], operations: &[Endpoint]) -> Value {
    let mut described = Map::new();
    for path in paths {
        for &endpoint in operations {
            let path = format!("{path}/{}/{}", folder_of(endpoint.base()), endpoint.path());
            described.insert(path, json!({ "get": operation(endpoint) }));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Trading signals and scored news", "version": env!("CARGO_PKG_VERSION") },
        "paths": described,
        "components": { "schemas": schemas() },
    })
}

fn operation(endpoint: Endpoint) -> Value {
    let query = |name: &str| {
        let schema = match name {
            "period" => json!({ "type": "string", "enum": Period::all().map(Period::as_str).collect::<Vec<_>>() }),
            "regime" => json!({ "type": "string", "enum": Regime::ALL.map(Regime::as_str) }),
            _ => json!({ "type": "string" }),
        };
        json!({ "name": name, "in": "query", "required": matches!(name, "sector" | "api_key"), "schema": schema })
    };
    let mut given: Vec<Value> = parameters(endpoint).iter().chain(&["api_key"]).map(|name| query(name)).collect();
    if endpoint.is_of_one_ticker() {
        given.push(json!({ "name": "ticker", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let of = |schema: &str| json!({ "$ref": format!("#/components/schemas/{schema}") });
    let schema = match endpoint {
        Endpoint::Signals | Endpoint::LegacySignals => of("Signal"),
        Endpoint::SignalsHistory | Endpoint::LegacyHistory => of("History"),
        Endpoint::TickersAvailable => json!({ "type": "array", "items": { "type": "string" } }),
        Endpoint::SocialSentiment => of("Summary"),
        Endpoint::NewsArticles => json!({ "type": "array", "items": of("Article") }),
        Endpoint::HistoricalSentiment => json!({ "type": "array", "items": { "type": "object" } }),
        _ => json!({ "type": "object", "additionalProperties": of("History") }),
    };
    json!({
        "operationId": endpoint.as_str(),
        "parameters": given,
        "responses": {
            "200": { "description": "The answer.", "content": { "application/json": { "schema": schema } } },
            "422": { "description": "The request is wrong." },
        },
    })
}

/// The records of the interface.
fn schemas() -> Value {
    let text = || json!({ "type": "string" });
    let date = || json!({ "type": "string", "format": "date-time" });
    let object = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let signal = || json!({ "type": "string", "enum": ["buy", "sell"] });
    let confidence = || json!({ "type": "number" });
    let score = || json!({ "type": ["number", "string", "null"] });
    let entry = object(
        &["date", "signal", "confidence"],
        json!({ "date": date(), "signal": signal(), "confidence": confidence() }),
    );
    let entries = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Entry" } });
    let reference = object(&["date", "score", "link"], json!({ "date": text(), "score": score(), "link": text() }));
    json!({
        "Entry": entry,
        "History": object(
            &["ticker", "period", "regime"],
            json!({ "ticker": text(), "period": text(), "regime": text(), "predictions": entries, "items": entries }),
        ),
        "Signal": object(
            &["ticker", "period", "regime", "signal", "confidence"],
            json!({
                "ticker": text(), "date": { "type": ["string", "null"], "format": "date-time" }, "period": text(),
                "regime": text(), "signal": signal(), "confidence": confidence(),
            }),
        ),
        "Article": object(
            &["date", "title", "link"],
            json!({ "date": text(), "title": text(), "score": score(), "link": text() }),
        ),
        "Summary": object(
            &["ticker", "debtor"],
            json!({
                "ticker": text(), "debtor": text(), "low_article": reference, "high_article": reference,
                "avg_article": reference,
            }),
        ),
    })
}
