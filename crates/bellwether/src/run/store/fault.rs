//! What a failure of the client means: refused for good, temporary, or an answer that broke off; and in which words.
//!
//! Messages quote only the status and the error code of an answer: it may quote the request and its signature. The client tells
//! both in its text alone. What it cannot make sense of is no reason to try again.

use std::io::{self, ErrorKind};

use object_store::Error as Fault;

use crate::net::connection::reasons;

/// A failure in words of ours. One among the sources of an error of the client stands for it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Failure {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
}

/// What a failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no such object, or no such bucket.
    Missing,
    /// It was refused for good.
    Denied,
    /// A folder takes no more.
    Full,
    /// The store sends no ETag, without which it cannot have conditional puts.
    Untagged,
    /// We refuse the answer, or to ask.
    Refused,
    /// There are no credentials, or none that can be used.
    #[cfg_attr(not(feature = "cloud"), expect(dead_code, reason = "folders need none"))]
    Credentials,
    /// The certificate of a host cannot be verified.
    #[cfg_attr(not(feature = "cloud"), expect(dead_code, reason = "folders have none"))]
    Certificate(String),
    /// A retry may help.
    Temporary,
    /// An answer broke off. The client has already tried again where there was none.
    Broken,
}

impl Failure {
    pub(super) fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into() }
    }

    /// Whether a retry may help.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self.verdict, Verdict::Temporary | Verdict::Broken)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        if let Some(ours) = reasons(&fault).find_map(|reason| reason.downcast_ref::<Self>()) {
            return ours.clone();
        }
        let texts: Vec<String> = reasons(&fault).skip(1).map(ToString::to_string).collect();
        let after = |mark: &str| texts.iter().find_map(|text| Some(text.split_once(mark)?.1));
        let is_missing = matches!(fault, Fault::NotFound { .. });
        if let Some(status) = after("status code: ").and_then(|rest| rest.get(..3)?.parse::<u16>().ok()) {
            let code = after("<Code>").and_then(|rest| Some(rest.split_once("</Code>")?.0));
            let code = code.filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            let verdict = match status {
                _ if is_missing => Verdict::Missing,
                // A store also answers 400 if a body arrives too slowly.
                400 if code == Some("RequestTimeout") => Verdict::Temporary,
                408 | 409 | 412 | 429 | 500.. => Verdict::Temporary,
                _ => Verdict::Denied,
            };
            let code = code.map(|code| format!(": {code}")).unwrap_or_default();
            return Self::new(verdict, format!("status {status}{code}"));
        }
        let system = reasons(&fault).find_map(|reason| reason.downcast_ref::<io::Error>()).map(io::Error::kind);
        let (verdict, reason) = match (&fault, system) {
            _ if is_missing => (Verdict::Missing, "it does not exist"),
            (Fault::AlreadyExists { .. }, _) => (Verdict::Temporary, "it exists"),
            (Fault::Precondition { .. }, _) => (Verdict::Temporary, "it was replaced"),
            (Fault::NotImplemented { .. } | Fault::NotSupported { .. }, _) => (Verdict::Denied, "it is not supported"),
            _ if texts.iter().any(|text| text.starts_with("ETag Header missing")) => {
                (Verdict::Untagged, "it sends no ETag")
            }
            (_, Some(kind)) => return Self::from(io::Error::from(kind)),
            (_, None) => in_transfer(&fault).unwrap_or((Verdict::Denied, "its answer is not one of a store")),
        };
        Self::new(verdict, reason)
    }
}

/// Of a disk, which may get better, unless it is full or forbids it. The error of the system may have a path, its kind has none.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let verdict = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => Verdict::Full,
            ErrorKind::PermissionDenied | ErrorKind::Unsupported => Verdict::Denied,
            _ => Verdict::Broken,
        };
        Self::new(verdict, io::Error::from(error.kind()).to_string())
    }
}

/// What an error of the connection means. An answer that is no JSON, or no text, arrived as it is.
#[cfg(feature = "cloud")]
fn in_transfer(fault: &Fault) -> Option<(Verdict, &'static str)> {
    use std::error::Error;

    use object_store::client::{HttpError, HttpErrorKind};

    let error: &HttpError = reasons(fault).find_map(|reason| reason.downcast_ref())?;
    let source = error.source()?;
    if source.is::<serde_json::Error>() || source.is::<std::string::FromUtf8Error>() {
        return None;
    }
    let is_late = error.kind() == HttpErrorKind::Timeout;
    Some((Verdict::Broken, if is_late { "its answer did not arrive in time" } else { "its answer broke off" }))
}

#[cfg(not(feature = "cloud"))]
fn in_transfer(_: &Fault) -> Option<(Verdict, &'static str)> {
    None
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Generic { store: "store", source: failure.into() }
    }
}

#[cfg(feature = "cloud")]
impl From<Failure> for object_store::client::HttpError {
    fn from(failure: Failure) -> Self {
        use object_store::client::HttpErrorKind;
        // The client retries what timed out.
        let kind = if failure.is_temporary() { HttpErrorKind::Timeout } else { HttpErrorKind::Unknown };
        Self::new(kind, failure)
    }
}

#[cfg(test)]
#[cfg(feature = "cloud")]
mod tests {
    use std::error::Error;
    use std::io::{self, ErrorKind};

    use object_store::Error as Fault;
    use object_store::client::{HttpError, HttpErrorKind};

    use super::{Failure, Verdict};

    fn fault(source: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Fault::Generic { store: "S3", source: source.into() }.into()
    }

    /// A failed answer, in the words of the client.
    fn answer(status: u16, body: &str) -> Failure {
        fault(format!("Server returned non-2xx status code: {status} Some Reason: {body}"))
    }

    #[test]
    fn a_status_is_a_refusal_or_temporary_as_http_says() {
        // By RFC 9110 and 6585, another attempt may help after a timeout, a conflict, a failed condition, too many requests
        // and any error of the server.
        for status in 400..600 {
            let is_temporary = matches!(status, 408 | 409 | 412 | 429) || status >= 500;
            let expected = if is_temporary { Verdict::Temporary } else { Verdict::Denied };
            assert_eq!(answer(status, "").verdict, expected, "{status}: it arrived");
        }
        let slow = answer(400, "<Error><Code>RequestTimeout</Code></Error>");
        assert!(slow.is_temporary(), "the body arrived too slowly");
        assert!(!answer(400, "<Error><Code>RequestTimeTooSkewed</Code></Error>").is_temporary());
    }

    #[test]
    fn an_answer_is_told_by_its_status_and_a_plain_error_code_alone() {
        let code = |length: usize| "A1".repeat(33)[..length].to_owned();
        for (body, expected) in [
            ("<Code>AccessDenied</Code><Message>key</Message>".to_owned(), "status 403: AccessDenied".to_owned()),
            (format!("<Code>{}</Code>", code(64)), format!("status 403: {}", code(64))),
            (format!("<Code>{}</Code>", code(65)), "status 403".to_owned()),
            ("<Code>Signature=abc</Code>".to_owned(), "status 403".to_owned()),
            ("<Code>Unfinished".to_owned(), "status 403".to_owned()),
            (String::new(), "status 403".to_owned()),
        ] {
            assert_eq!(answer(403, &body).reason, expected, "{body}");
        }
        let (path, source) = ("a".to_owned(), || "secret".into());
        for (fault, reason, verdict) in [
            (Fault::NotFound { path: path.clone(), source: source() }, "it does not exist", Verdict::Missing),
            (Fault::AlreadyExists { path: path.clone(), source: source() }, "it exists", Verdict::Temporary),
            (Fault::Precondition { path, source: source() }, "it was replaced", Verdict::Temporary),
        ] {
            let failure = Failure::from(fault);
            assert_eq!((&*failure.reason, failure.verdict), (reason, verdict));
        }
    }

    #[test]
    fn a_disk_may_get_better_unless_it_is_full_or_forbids_it() {
        for (kind, words, verdict) in [
            (ErrorKind::PermissionDenied, "permission denied", Verdict::Denied),
            (ErrorKind::StorageFull, "no storage space", Verdict::Full),
            (ErrorKind::ReadOnlyFilesystem, "read-only filesystem or storage medium", Verdict::Full),
            (ErrorKind::Unsupported, "unsupported", Verdict::Denied),
        ] {
            let failure = fault(io::Error::new(kind, "with a path"));
            assert_eq!((failure.verdict, &*failure.reason), (verdict, words));
        }
        for kind in [ErrorKind::ConnectionReset, ErrorKind::TimedOut, ErrorKind::UnexpectedEof, ErrorKind::Other] {
            assert_eq!(fault(io::Error::from(kind)).verdict, Verdict::Broken, "{kind}");
        }
    }

    #[test]
    fn an_answer_that_broke_off_is_read_again_and_one_that_is_nonsense_is_not() {
        for (kind, words) in [
            (HttpErrorKind::Timeout, "its answer did not arrive in time"),
            (HttpErrorKind::Interrupted, "its answer broke off"),
        ] {
            let broken = fault(HttpError::new(kind, std::fmt::Error));
            assert_eq!((broken.verdict, &*broken.reason), (Verdict::Broken, words));
        }
        let no_json = serde_json::from_str::<u8>("{").unwrap_err();
        let no_text = String::from_utf8(vec![0xff]).unwrap_err();
        for nonsense in [
            fault(HttpError::new(HttpErrorKind::Decode, no_json)),
            fault(HttpError::new(HttpErrorKind::Decode, no_text)),
            fault("a listing of another kind"),
        ] {
            assert_eq!((nonsense.verdict, &*nonsense.reason), (Verdict::Denied, "its answer is not one of a store"));
        }
        let untagged = fault("ETag Header missing from response");
        assert_eq!((untagged.verdict, &*untagged.reason), (Verdict::Untagged, "it sends no ETag"));
    }

    #[test]
    fn what_we_explain_ourselves_keeps_its_verdict_and_words_through_the_client() {
        let certificate = Verdict::Certificate("h".to_owned());
        for verdict in [Verdict::Refused, Verdict::Credentials, Verdict::Temporary, certificate] {
            let ours = || Failure::new(verdict.clone(), "in our words");
            for failure in [Failure::from(Fault::from(ours())), fault(HttpError::from(ours()))] {
                assert_eq!((&failure.verdict, &*failure.reason), (&verdict, "in our words"));
            }
        }
    }
}
