//! What the service is, for who looks at it with a browser or another tool: its operations, in words and as OpenAPI.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::refusal;
use super::service::{Service, folder_of};
use crate::interface::{Base, Endpoint, Period, Regime};
use crate::net::listen::{Answer, whole};

/// The description at a path: none at any other one.
pub(super) fn answer(service: &Service, method: &Method, path: &str) -> Option<Answer> {
    match path {
        _ if method != Method::GET || service.is_of_archive() => None,
        "/" => Some(whole(StatusCode::OK, "text/plain; charset=utf-8", in_words(service).into_bytes())),
        "/openapi.json" => Some(refusal::json(StatusCode::OK, &openapi(service))),
        _ => None,
    }
}

/// The paths of a service before those of its operations.
fn bases(service: &Service) -> Vec<String> {
    service.paths().into_iter().map(|(_, path)| path).collect()
}

fn in_words(service: &Service) -> String {
    let mut text = "Trading signals and scored news: a read-only service, in JSON.\n".to_owned();
    for path in bases(service) {
        for base in [Base::Signals, Base::Sentiment] {
            text.push_str(&format!("\n{} = {path}/{}\n", base.setting(), folder_of(base)));
            for endpoint in service.operations().filter(|endpoint| endpoint.base() == base) {
                let (operation, parameters) = (endpoint.path(), parameters(endpoint).join(", "));
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

fn openapi(service: &Service) -> Value {
    let mut paths = Map::new();
    for path in bases(service) {
        for endpoint in service.operations() {
            let path = format!("{path}/{}/{}", folder_of(endpoint.base()), endpoint.path());
            paths.insert(path, json!({ "get": operation(endpoint) }));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Trading signals and scored news", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
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
