//! Answers to requests, whole or sent as they are made.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

/// An answer to a request.
pub type Answer = Response<Body>;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer whose body is known.
pub fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    answer(status, kind, Full::new(body.into()).map_err(|never| match never {}).boxed_unsync())
}

/// An answer whose body is sent as it is made.
pub fn stream(kind: &'static str, parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    answer(StatusCode::OK, kind, StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync())
}

fn answer(status: StatusCode, kind: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
