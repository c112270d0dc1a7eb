//! Refused requests, as a status and a body.

use http::header::ALLOW;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, causes};
use crate::net::listen::{Answer, whole};

/// When the service was asked for what an archive answers.
pub(super) const WATCH: HeaderName = HeaderName::from_static("bellwether-watch");

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    /// A sentence, or the problems of the parameters.
    detail: Value,
    /// Whether an archive does not know what was asked for.
    is_not_watched: bool,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        Self { status, detail: detail.into(), is_not_watched: false }
    }

    /// No such operation, or not at this change set.
    pub(super) fn no_operation() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// What an archive does not know.
    pub(super) fn unknown(sentence: String) -> Self {
        Self { is_not_watched: true, ..Self::new(StatusCode::NOT_FOUND, sentence) }
    }

    /// What is answered.
    pub(super) fn answer(self) -> Answer {
        let mut answer = json(self.status, &serde_json::json!({ "detail": self.detail }));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        }
        if self.is_not_watched {
            answer.headers_mut().insert(WATCH, HeaderValue::from_static("not-watched"));
        }
        answer
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let because: String = causes(&error).map(|cause| format!(": {cause}")).collect();
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}{because}"))
    }
}

/// A record as an answer.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).expect("a record is text, numbers and lists, which serialize");
    whole(status, "application/json", body)
}
