//! Refused requests, as a status and a body.

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::interface::ValidationFault;

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No such operation, or not at this change set.
    NotFound,
    /// A method other than GET.
    MethodNotAllowed,
    /// A wrong key.
    InvalidKey,
    /// A ticker that the universe does not have.
    UnknownTicker,
    /// Missing or invalid parameters.
    Invalid(ValidationFault),
}

/// The body of every refusal but a 422.
#[derive(Serialize)]
struct Fault {
    detail: &'static str,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, detail) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "Not Found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
            Self::InvalidKey => (StatusCode::UNAUTHORIZED, "Invalid API key"),
            Self::UnknownTicker => (StatusCode::NOT_FOUND, "Unknown ticker"),
            Self::Invalid(fault) => return (StatusCode::UNPROCESSABLE_ENTITY, json(&fault)).into_response(),
        };
        let mut response = (status, json(&Fault { detail })).into_response();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }
}

/// A whole body.
pub(super) fn json(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("a record is text, numbers and lists, which serialize");
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
