//! Refused requests, as a status and a body.

use std::borrow::Cow;

use http::header::ALLOW;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use crate::error::{Error, causes};
use crate::interface::ValidationFault;
use crate::net::listen::{Answer, whole};

/// When the service was asked for what an archive answers.
pub(super) const WATCH: HeaderName = HeaderName::from_static("bellwether-watch");

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
    /// A request to an archive that may be meant otherwise.
    Unclear(String),
    /// What an archive does not know.
    Unknown(String),
    /// An archive that cannot be read.
    Unreadable(String),
}

/// The body of every refusal but a 422.
#[derive(Serialize)]
struct RefusalBody {
    detail: Cow<'static, str>,
}

impl Refusal {
    /// What is answered.
    pub(super) fn answer(self) -> Answer {
        let is_not_watched = matches!(self, Self::Unknown(_));
        let (status, detail): (_, Cow<'static, str>) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "Not Found".into()),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed".into()),
            Self::InvalidKey => (StatusCode::UNAUTHORIZED, "Invalid API key".into()),
            Self::UnknownTicker => (StatusCode::NOT_FOUND, "Unknown ticker".into()),
            Self::Unclear(sentence) => (StatusCode::BAD_REQUEST, sentence.into()),
            Self::Unknown(sentence) => (StatusCode::NOT_FOUND, sentence.into()),
            Self::Unreadable(sentence) => (StatusCode::INTERNAL_SERVER_ERROR, sentence.into()),
            Self::Invalid(fault) => return json(StatusCode::UNPROCESSABLE_ENTITY, &fault),
        };
        let mut answer = json(status, &RefusalBody { detail });
        if status == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        }
        if is_not_watched {
            answer.headers_mut().insert(WATCH, HeaderValue::from_static("not-watched"));
        }
        answer
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let because: String = causes(&error).map(|cause| format!(": {cause}")).collect();
        Self::Unreadable(format!("{error}{because}"))
    }
}

/// A record as an answer.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).expect("a record is text, numbers and lists, which serialize");
    whole(status, "application/json", body)
}
