//! What the service is, for who looks at it with a browser or another tool: its operations, in words and as OpenAPI.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::question;
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
        "/openapi.json" => Some(question::record(StatusCode::OK, &openapi(paths, operations))),
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
    let records: Value =
        serde_json::from_str(include_str!("records.json")).expect("the records of the interface are JSON");
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
        "components": { "schemas": records },
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
