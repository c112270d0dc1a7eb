//! Why an attempt failed, before deciding what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{LOCATION, RETRY_AFTER};
use serde_json::Value;
use tokio::time::timeout;

use crate::error::{Error, ErrorKind, Reason};
use crate::interface::ValidationFault;
use crate::key::ApiKey;
use crate::net::connection::{innermost, is_certificate};
use crate::plan::Request;
use crate::text::escape::escape;
use crate::text::human::{count_of, took};
use crate::time::skew::Skew;

/// A failed attempt. A reader of a body stops with one that is broken, malformed or its own.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No response.
    Transport(reqwest::Error),
    /// A response that was cut off.
    Broken(io::Error),
    /// A response that is not valid.
    Malformed {
        /// Byte offset in the body.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// A response with an error status.
    Status {
        status: u16,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
        /// What it says is wrong with the request.
        fault: Option<ValidationFault>,
        /// What it says in another form.
        words: Option<String>,
        /// Where it says that the answer is.
        location: Option<String>,
    },
    /// A response that would do harm.
    Refused(String),
    /// A response of a service whose clock is far from this machine's.
    Skewed(Skew),
    /// A failure on our side.
    Stop(Error),
}

/// Why a reader stopped before the end of a body.
pub(crate) type ReadFault = Failure;

/// Whether a status says that there is no such operation, or no such data.
pub(crate) fn is_absence(status: u16) -> bool {
    matches!(status, 204 | 404 | 405 | 410 | 501)
}

/// How a service says that it has nothing for a request: that there is no such operation or no such data, that the request
/// is wrong, or that it may not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The service's own words.
    pub words: Option<String>,
}

impl Refusal {
    /// Whether it says that there is no such thing; otherwise it is about who asks, or how.
    pub(crate) fn is_absence(&self) -> bool {
        is_absence(self.status)
    }
}

/// `status 403, it says: Not in your plan`.
impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&status_in_words(self.status, self.words.as_deref()))
    }
}

/// A failure passes through a reader as an I/O error.
impl std::error::Error for Failure {}

impl Failure {
    /// A failure that came through a reader.
    pub(super) fn from_io(error: io::Error) -> Self {
        error.downcast().unwrap_or_else(Self::Broken)
    }

    /// A transport failure, without its URL.
    pub(super) fn transport(error: reqwest::Error) -> Self {
        Self::Transport(error.without_url())
    }

    /// A failure from an error response.
    pub(super) async fn from_response(response: reqwest::Response, now: DateTime<Utc>, key: &ApiKey) -> Self {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| wait_of(value.to_str().ok()?, now));
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).map(|location| {
            let location = key.echo().map_or(location.into(), |echo| echo.mask(location));
            shorten(location.split('?').next().unwrap_or_default())
        });
        // A body that cannot be read completely is ignored; the status alone says enough.
        let body =
            timeout(Duration::from_secs(5), body_of(response, key)).await.unwrap_or_default().unwrap_or_default();
        let fault: Option<ValidationFault> = serde_json::from_slice(&body).ok();
        let words = if fault.is_some() { None } else { words_in(&body) };
        Self::Status { status, retry_after, fault, words, location }
    }

    /// Whether the service's certificate could not be verified. Retrying does not help.
    pub(super) fn is_certificate(&self) -> bool {
        matches!(self, Self::Transport(error) if is_certificate(error))
    }

    /// What the service says, if it has nothing for the request. Whether the key is right is another matter.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Status { status: status @ (204 | 501 | 400..=499), fault, words, .. }
                if !matches!(status, 401 | 407 | 408 | 425 | 429) && !is_of_key(fault.as_ref()) =>
            {
                let words = fault.as_ref().map(ToString::to_string).or_else(|| words.clone());
                Some(Refusal { status: *status, words })
            }
            _ => None,
        }
    }

    /// Whether the failure may be about this request alone, so that others are worth asking.
    pub(super) fn is_of_one_request(&self) -> bool {
        matches!(self, Self::Malformed { .. } | Self::Refused(_) | Self::Status { status: 206 | 304 | 500, .. })
    }

    /// The failure as a user-facing error.
    pub(super) fn into_error(
        self,
        host: &str,
        proxy: Option<String>,
        request: &Request,
        attempts: u32,
        evidence: Option<PathBuf>,
    ) -> Error {
        let request = request.to_string();
        let source: Reason = match proxy {
            Some(proxy) => format!("through the proxy `{proxy}`: {self}").into(),
            None => self.to_string().into(),
        };
        let service = |what: String| Error::new(ErrorKind::Service, what);
        match self {
            failure if failure.is_certificate() => service(format!("cannot verify the certificate of {host}"))
                .with_hint("if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`")
                .with_source(source),
            Self::Transport(_) | Self::Broken(_) | Self::Status { status: 408 | 429 | 500..=599, .. } => {
                let attempts = count_of(u64::from(attempts), "attempt", "attempts");
                let (asks, when) = match &self {
                    Self::Status { retry_after: Some(wait), .. } => (format!("it asks to wait {}: ", took(*wait)), "then"),
                    _ => (String::new(), "later"),
                };
                let hint = format!("{asks}run the same command {when} to resume; what was fetched is kept");
                Error::new(ErrorKind::Temporary, format!("{host} did not answer `{request}` in {attempts}"))
                    .with_hint(hint)
                    .with_source(source)
            }
            Self::Malformed { offset, reason } => {
                let error = service(format!("cannot parse the answer to `{request}`: {reason} at byte {offset}"));
                let Some(evidence) = evidence else { return error };
                error.with_hint(format!("the body is kept in `{}`: report it to the vendor", evidence.display()))
            }
            Self::Status { status: status @ (401 | 403), words, .. } => key_refused(host, &request, status, words),
            Self::Status { status: 422, fault, .. } if is_of_key(fault.as_ref()) => key_refused(host, &request, 422, None),
            Self::Status { status: 422, fault: Some(fault), .. } => {
                Error::new(ErrorKind::Refused, format!("{host} says `{request}` is invalid: {fault}"))
            }
            Self::Status { status, words, location, .. } => {
                let kind = if (400..500).contains(&status) { ErrorKind::Refused } else { ErrorKind::Service };
                let error = Error::new(kind, format!("{host} answered `{request}` with status {status}"));
                let to = location.map(|location| format!(", `{location}`")).unwrap_or_default();
                let hint: &str = match status {
                    206 => "it sent a part of the answer, which nobody asked for: tell the vendor",
                    304 => "it says that the answer is as before, which nobody asked: tell the vendor",
                    300..=399 => &format!(
                        "redirects to another address are not followed, since they could take the key elsewhere: set \
                         `base_url` to the new address{to}"
                    ),
                    404 => "the service may no longer offer this operation",
                    _ => return with_words(error, words),
                };
                with_words(error, words).with_hint(hint)
            }
            Self::Skewed(skew) => {
                Error::new(ErrorKind::Clock, format!("this machine's clock is {skew} that of {host}")).with_hint(
                    "synchronize this machine's clock and run the same command again; nothing was kept that it would have \
                     dated. If the service's clock is wrong, tell the vendor, and set `clock = \"ours\"` in `[source]`; with a \
                     bucket as store, the bucket's clock counts instead",
                )
            }
            Self::Refused(_) => service(format!("refused the answer of {host} to `{request}`")).with_source(source),
            Self::Stop(error) => error,
        }
    }
}

/// Whether a service finds fault with the key.
fn is_of_key(fault: Option<&ValidationFault>) -> bool {
    fault.is_some_and(|fault| fault.detail.iter().any(|problem| problem.parameter() == Some("api_key")))
}

/// `status 403, it says: Not in your plan`.
pub(super) fn status_in_words(status: u16, words: Option<&str>) -> String {
    let said = words.map(|words| format!(", it says: {words}")).unwrap_or_default();
    format!("status {status}{said}")
}

/// An error with the words of the vendor as its reason.
pub(super) fn with_words(error: Error, words: Option<String>) -> Error {
    match words {
        Some(words) => error.with_source(format!("it says: {words}")),
        None => error,
    }
}

pub(super) fn key_refused(host: &str, request: &str, status: u16, words: Option<String>) -> Error {
    let also = if status == 403 { ", and that it may ask for this" } else { "" };
    let error = Error::new(ErrorKind::Key, format!("{host} refused the API key for `{request}` with status {status}"));
    with_words(error, words)
        .with_hint(format!("check the key in `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`{also}"))
}

/// The reason in a few words, without a URL.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => formatter.write_str(&innermost(error)),
            Self::Broken(error) => write!(formatter, "the answer was cut short: {error}"),
            Self::Malformed { offset, reason } => write!(formatter, "{reason} at byte {offset}"),
            Self::Status { status, words, .. } => formatter.write_str(&status_in_words(*status, words.as_deref())),
            Self::Refused(reason) => formatter.write_str(reason),
            Self::Skewed(skew) => write!(formatter, "this machine's clock is {skew} the service's"),
            Self::Stop(error) => error.fmt(formatter),
        }
    }
}

/// The body of an error response, with the key masked in case it is echoed.
async fn body_of(mut response: reqwest::Response, key: &ApiKey) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > 64 << 10 {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    if let Some(echo) = key.echo() {
        echo.overwrite(&mut body);
    }
    Some(body)
}

/// What a vendor says in the body of an error response: a message in JSON, the title of a page, or text.
pub(super) fn words_in(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let words = match serde_json::from_str::<Value>(&text) {
        Ok(json) => message_in(&json, 0)?,
        Err(_) if text.trim_start().starts_with('<') => {
            let lower = text.to_ascii_lowercase();
            let start = lower.find("<title")?;
            let start = start + lower[start..].find('>')? + 1;
            text[start..start + lower[start..].find("</title")?].to_owned()
        }
        Err(_) if text.starts_with(['{', '[']) => return None,
        Err(_) => text.into_owned(),
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| shorten(&words))
}

/// The message in the JSON of an error, under the names that frameworks give it.
fn message_in(json: &Value, depth: u8) -> Option<String> {
    match json {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) if depth < 3 => {
            let named = ["message", "detail", "error_description", "error", "errors", "msg", "title", "reason"];
            named.into_iter().filter_map(|name| object.get(name)).find_map(|value| message_in(value, depth + 1))
        }
        Value::Array(array) if depth < 3 => array.first().and_then(|value| message_in(value, depth + 1)),
        _ => None,
    }
}

/// Text from outside for a message: escaped, and not longer than a few lines.
fn shorten(text: &str) -> String {
    const MAX_LETTERS: usize = 300;
    let mut short: String = text.chars().take(MAX_LETTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    escape(&short).into_owned()
}

/// How long a `Retry-After` asks to wait, given in seconds or as a date; nothing for a date in the past.
fn wait_of(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let seconds = match text.trim().parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = DateTime::parse_from_rfc2822(text.trim()).ok()?;
            u64::try_from((date.with_timezone(&Utc) - now).num_seconds()).ok()?
        }
    };
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::{wait_of, words_in};

    #[test]
    fn the_words_of_a_vendor_are_found_in_what_frameworks_send() {
        for (body, words) in [
            (r#"{"detail": "Not found"}"#, Some("Not found")),
            (r#"{"error": {"code": 7, "message": "Quota  exceeded\n"}}"#, Some("Quota exceeded")),
            (r#"{"errors": [{"title": "too many"}]}"#, Some("too many")),
            (r#""no""#, Some("no")),
            ("<html><head><TITLE>502 Bad Gateway</TITLE></head>", Some("502 Bad Gateway")),
            ("<html>", None),
            ("upstream\u{1b}[2J down", Some("upstream\\u001b[2J down")),
            (r#"{"code": 7}"#, None),
            (r#"{"cut": "#, None),
            ("", None),
        ] {
            assert_eq!(words_in(body.as_bytes()).as_deref(), words, "{body}");
        }
        assert_eq!(words_in("x".repeat(5_000).as_bytes()).map(|words| words.chars().count()), Some(301));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_a_past_date_means_no_wait() {
        let now = DateTime::from_timestamp(1_795_210_200, 0).expect("an instant");
        let seconds = |text| wait_of(text, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 7 "), Some(7));
        assert_eq!(seconds("0"), None);
        assert_eq!(seconds("-5"), None);
        assert_eq!(seconds("1.5"), None);
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("Fri, 20 Nov 2026 21:31:00 GMT"), Some(60));
        assert_eq!(seconds("Fri, 20 Nov 2026 21:29:00 GMT"), None);
        assert_eq!(wait_of("99999999999999999999", now), None::<Duration>);
    }
}
