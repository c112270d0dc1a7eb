//! What a failure of the client means: refused for good, temporary, or an answer that broke off; and in which words.
//!
//! Messages quote only the status and the error code of an answer: it may quote the request and its signature. What the
//! client cannot make sense of is no reason to try again.

#[cfg(feature = "cloud")]
use std::string::FromUtf8Error;

use object_store::Error as Fault;

use crate::net::connection::reasons;

/// A failure in words of ours, somewhere among the sources of an error of the client.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Explained {
    pub(super) verdict: FaultVerdict,
    reason: String,
}

/// What a failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FaultVerdict {
    /// We refuse the answer, or to ask.
    Refusal,
    /// There are no credentials, or none that can be used.
    #[cfg_attr(not(feature = "cloud"), expect(dead_code, reason = "folders need none"))]
    Credentials,
    /// A retry may help.
    Temporary,
    /// A certificate that cannot be verified.
    #[cfg_attr(not(feature = "cloud"), expect(dead_code, reason = "folders have none"))]
    Certificate {
        /// Whose.
        host: String,
    },
}

impl Explained {
    pub(super) fn new(verdict: FaultVerdict, reason: String) -> Self {
        Self { verdict, reason }
    }

    /// As an error of the client.
    pub(super) fn into_store_error(self) -> Fault {
        Fault::Generic { store: "store", source: self.into() }
    }

    /// The one of a failure, if it has one.
    pub(super) fn find(fault: &Fault) -> Option<&Self> {
        reasons(fault).find_map(|reason| reason.downcast_ref())
    }
}

#[cfg(feature = "cloud")]
impl From<Explained> for object_store::client::HttpError {
    fn from(explained: Explained) -> Self {
        use object_store::client::HttpErrorKind;
        let kind = match explained.verdict {
            FaultVerdict::Temporary => HttpErrorKind::Timeout,
            FaultVerdict::Refusal | FaultVerdict::Credentials | FaultVerdict::Certificate { .. } => {
                HttpErrorKind::Unknown
            }
        };
        Self::new(kind, explained)
    }
}

/// Whether a request was refused for good.
pub(super) fn is_refusal(fault: &Fault) -> bool {
    match fault {
        Fault::PermissionDenied { .. }
        | Fault::Unauthenticated { .. }
        | Fault::NotImplemented { .. }
        | Fault::NotSupported { .. }
        | Fault::InvalidPath { .. }
        | Fault::UnknownConfigurationKey { .. }
        // There is no such bucket.
        | Fault::NotFound { .. } => true,
        Fault::Generic { .. } if status(fault).is_none() => !is_temporary(fault),
        // A store also answers 400 if a body arrives too slowly.
        _ => matches!(status(fault), Some(400..=407 | 410 | 411 | 413..=428)) && code(fault) != Some("RequestTimeout".to_owned()),
    }
}

/// Whether a folder takes no more.
pub(super) fn is_full(fault: &Fault) -> bool {
    use std::io::ErrorKind as Kind;
    let is_it = |error: &std::io::Error| {
        matches!(error.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::ReadOnlyFilesystem)
    };
    reasons(fault).filter_map(|reason| reason.downcast_ref()).any(is_it)
}

/// Whether an answer broke off. The client has already tried again where there was none.
pub(super) fn is_broken(fault: &Fault) -> bool {
    let is_unexplained = status(fault).is_none() && Explained::find(fault).is_none();
    matches!(fault, Fault::Generic { .. }) && is_unexplained && is_temporary(fault)
}

/// Whether a retry may help.
pub(super) fn is_temporary(fault: &Fault) -> bool {
    match (status(fault), Explained::find(fault)) {
        (_, Some(explained)) => explained.verdict == FaultVerdict::Temporary,
        (Some(status), None) => matches!(status, 408 | 409 | 412 | 429 | 500..),
        (None, None) => reasons(fault).any(is_network),
    }
}

/// Whether a reason is one of the network, or of a disk that may get better.
fn is_network(reason: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind as Kind;
    if let Some(error) = reason.downcast_ref::<std::io::Error>() {
        let lasts = [
            Kind::PermissionDenied,
            Kind::QuotaExceeded,
            Kind::ReadOnlyFilesystem,
            Kind::StorageFull,
            Kind::Unsupported,
        ];
        return !lasts.contains(&error.kind());
    }
    is_http(reason)
}

/// Whether an answer broke off, or never came.
#[cfg(feature = "cloud")]
fn is_http(reason: &(dyn std::error::Error + 'static)) -> bool {
    let source = reason.downcast_ref::<object_store::client::HttpError>().map(std::error::Error::source);
    // An answer that is no JSON, or no text, arrived as it is.
    source.is_some_and(|source| !source.is_some_and(|it| it.is::<serde_json::Error>() || it.is::<FromUtf8Error>()))
}

#[cfg(not(feature = "cloud"))]
fn is_http(_: &(dyn std::error::Error + 'static)) -> bool {
    false
}

/// Whether a store sent no ETag, without which it cannot have conditional puts.
pub(super) fn is_untagged(fault: &Fault) -> bool {
    reasons(fault).any(|reason| reason.to_string().starts_with("ETag Header missing"))
}

/// The HTTP status of a failure, which the crate only has in its text.
fn status(fault: &Fault) -> Option<u16> {
    let texts = reasons(fault).skip(1);
    texts.map(ToString::to_string).find_map(|text| {
        let (_, rest) = text.split_once("status code: ")?;
        rest.get(..3)?.parse().ok()
    })
}

/// The error code of an answer.
fn code(fault: &Fault) -> Option<String> {
    let texts = reasons(fault).skip(1);
    texts.map(ToString::to_string).find_map(|text| {
        let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
        (code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| code.to_owned())
    })
}

/// Why an operation failed, in our own words.
pub(super) fn reason(fault: &Fault) -> String {
    match (Explained::find(fault), status(fault), code(fault), fault) {
        (Some(explained), ..) => explained.reason.clone(),
        (_, Some(status), Some(code), _) => format!("status {status}: {code}"),
        (_, Some(status), None, _) => format!("status {status}"),
        (_, None, _, Fault::NotFound { .. }) => "it does not exist".to_owned(),
        (_, None, _, Fault::AlreadyExists { .. }) => "it exists".to_owned(),
        (_, None, _, Fault::Precondition { .. }) => "it was replaced".to_owned(),
        (_, None, _, Fault::NotImplemented { .. } | Fault::NotSupported { .. }) => "it is not supported".to_owned(),
        (_, None, ..) if is_untagged(fault) => "it sends no ETag".to_owned(),
        (_, None, ..) => {
            let system = reasons(fault).find_map(|reason| reason.downcast_ref::<std::io::Error>());
            system.map_or_else(|| network(fault).to_owned(), |error| std::io::Error::from(error.kind()).to_string())
        }
    }
}

#[cfg(feature = "cloud")]
fn network(fault: &Fault) -> &'static str {
    use object_store::client::{HttpError, HttpErrorKind};
    match reasons(fault).find_map(|reason| reason.downcast_ref::<HttpError>()).map(HttpError::kind) {
        Some(HttpErrorKind::Timeout) => "its answer did not arrive in time",
        Some(_) => "its answer broke off",
        None => "its answer is not one of a store",
    }
}

#[cfg(not(feature = "cloud"))]
fn network(_: &Fault) -> &'static str {
    "the request failed"
}

#[cfg(test)]
#[cfg(feature = "cloud")]
mod tests {
    use std::error::Error;
    use std::io::{self, ErrorKind};

    use object_store::Error as Fault;
    use object_store::client::{HttpError, HttpErrorKind};

    use super::{Explained, FaultVerdict, is_broken, is_refusal, is_temporary, is_untagged, reason};

    fn fault(source: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
        Fault::Generic { store: "S3", source: source.into() }
    }

    /// A failed answer, in the words of the client.
    fn answer(status: u16, body: &str) -> Fault {
        fault(format!("Server returned non-2xx status code: {status} Some Reason: {body}"))
    }

    /// Whether a failure is refused for good, temporary, and a broken answer.
    fn verdict(fault: &Fault) -> (bool, bool, bool) {
        (is_refusal(fault), is_temporary(fault), is_broken(fault))
    }

    #[test]
    fn a_status_is_a_refusal_or_temporary_as_http_says() {
        // By RFC 9110 and 6585, another attempt may help after a timeout, a conflict, a failed condition, too many requests
        // and any error of the server. That there is no such object is neither, nor are statuses that nobody defined.
        for status in 400..600 {
            let is_temporary = matches!(status, 408 | 409 | 412 | 429) || status >= 500;
            let is_refusal = status < 429 && !is_temporary;
            assert_eq!(verdict(&answer(status, "")).1, is_temporary, "{status}");
            if status != 404 {
                assert_eq!(verdict(&answer(status, "")).0, is_refusal, "{status}");
            }
            assert!(!is_broken(&answer(status, "")), "{status}: it arrived");
        }
        let slow = answer(400, "<Error><Code>RequestTimeout</Code></Error>");
        assert!(!is_refusal(&slow), "the body arrived too slowly");
        assert!(is_refusal(&answer(400, "<Error><Code>RequestTimeTooSkewed</Code></Error>")));
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
            assert_eq!(reason(&answer(403, &body)), expected, "{body}");
        }
        let missing = Fault::NotFound { path: "a".to_owned(), source: "secret".into() };
        assert_eq!((reason(&missing), is_refusal(&missing)), ("it does not exist".to_owned(), true));
        let taken = Fault::AlreadyExists { path: "a".to_owned(), source: "secret".into() };
        assert_eq!((reason(&taken), is_refusal(&taken)), ("it exists".to_owned(), false));
        let replaced = Fault::Precondition { path: "a".to_owned(), source: "secret".into() };
        assert_eq!((reason(&replaced), is_refusal(&replaced)), ("it was replaced".to_owned(), false));
    }

    #[test]
    fn a_disk_may_get_better_unless_it_is_full_or_forbids_it() {
        for (kind, words) in [
            (ErrorKind::PermissionDenied, "permission denied"),
            (ErrorKind::StorageFull, "no storage space"),
            (ErrorKind::ReadOnlyFilesystem, "read-only filesystem or storage medium"),
            (ErrorKind::Unsupported, "unsupported"),
        ] {
            let fault = fault(io::Error::new(kind, "with a path"));
            assert_eq!(verdict(&fault), (true, false, false), "{kind}");
            assert_eq!(reason(&fault), words);
        }
        for kind in [ErrorKind::ConnectionReset, ErrorKind::TimedOut, ErrorKind::UnexpectedEof, ErrorKind::Other] {
            assert_eq!(verdict(&fault(io::Error::from(kind))), (false, true, true), "{kind}");
        }
    }

    #[test]
    fn an_answer_that_broke_off_is_read_again_and_one_that_is_nonsense_is_not() {
        for (kind, words) in [
            (HttpErrorKind::Timeout, "its answer did not arrive in time"),
            (HttpErrorKind::Interrupted, "its answer broke off"),
        ] {
            let broken = fault(HttpError::new(kind, std::fmt::Error));
            assert_eq!(verdict(&broken), (false, true, true), "{kind:?}");
            assert_eq!(reason(&broken), words);
        }
        let no_json = serde_json::from_str::<u8>("{").unwrap_err();
        let no_text = String::from_utf8(vec![0xff]).unwrap_err();
        for nonsense in [HttpError::new(HttpErrorKind::Decode, no_json), HttpError::new(HttpErrorKind::Decode, no_text)]
        {
            assert_eq!(verdict(&fault(nonsense)), (true, false, false));
        }
        let other = fault("a listing of another kind");
        assert_eq!(verdict(&other), (true, false, false));
        assert_eq!(reason(&other), "its answer is not one of a store");
        let untagged = fault("ETag Header missing from response");
        assert!(is_untagged(&untagged) && !is_untagged(&other));
        assert_eq!(reason(&untagged), "it sends no ETag");
    }

    #[test]
    fn what_we_explain_ourselves_keeps_its_verdict_and_words_through_the_client() {
        let certificate = FaultVerdict::Certificate { host: "h".to_owned() };
        for given in [FaultVerdict::Refusal, FaultVerdict::Credentials, FaultVerdict::Temporary, certificate] {
            let explained = || Explained::new(given.clone(), "in our words".to_owned());
            let is_temporary = given == FaultVerdict::Temporary;
            for fault in [explained().into_store_error(), fault(HttpError::from(explained()))] {
                assert_eq!(verdict(&fault), (!is_temporary, is_temporary, false), "{given:?}");
                assert_eq!(reason(&fault), "in our words");
                assert_eq!(Explained::find(&fault).map(|explained| explained.verdict.clone()), Some(given.clone()));
            }
        }
    }
}
