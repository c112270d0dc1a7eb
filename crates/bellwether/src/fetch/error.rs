//! Why a request failed for good.

use std::path::PathBuf;

use crate::error::{Diagnostic, ErrorKind, Reason};
use crate::interface::ValidationFault;
use crate::text::human::count_of;
use crate::time::skew::Skew;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// An API key that the service refused.
    #[error("{host} refused the API key for `{request}` with status {status}")]
    KeyRefused { host: String, request: String, status: u16 },

    /// A service that does not answer for now.
    #[error("{host} did not answer `{request}` in {}", count_of(u64::from(*attempts), "attempt", "attempts"))]
    Unavailable { host: String, request: String, attempts: u32, source: Reason },

    /// A proxy that cannot be used.
    #[error("cannot reach {host} through the proxy `{proxy}`")]
    Proxy { host: String, proxy: String, source: Reason },

    /// A certificate that cannot be verified.
    #[error("cannot verify the certificate of {host}")]
    Certificate { host: String, source: Reason },

    /// An answer that exceeds a limit or has a form that is not accepted.
    #[error("refused the answer of {host} to `{request}`")]
    Refused { host: String, request: String, source: Reason },

    /// A request that the service calls invalid.
    #[error("{host} says `{request}` is invalid: {fault}")]
    Invalid { host: String, request: String, fault: ValidationFault },

    /// An unexpected status.
    #[error("{host} answered `{request}` with status {status}")]
    Status { host: String, request: String, status: u16 },

    /// A body that violates the interface.
    #[error("cannot parse the answer to `{request}`: {reason} at byte {offset}")]
    Malformed { request: String, reason: String, offset: u64, evidence: Option<PathBuf> },

    /// A clock that would date what the service says wrongly.
    #[error("this machine's clock is {skew} that of {host}")]
    ClockSkew { host: String, skew: Skew },

    /// An HTTP client that cannot be set up.
    #[error("cannot set up the HTTP client")]
    Client { source: Reason },
}

impl Diagnostic for FetchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } | Self::ClockSkew { .. } => ErrorKind::Temporary,
            _ => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::KeyRefused { status: 403, .. } => {
                "check the key in `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`, and that it may ask for this"
            }
            Self::KeyRefused { .. } => "check the key in `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`",
            Self::Unavailable { .. } => "run the same command later to resume; what was fetched is kept",
            Self::ClockSkew { .. } => {
                "synchronize this machine's clock and run the same command again; nothing was kept that it would have dated. If \
                 the service's clock is wrong, tell the vendor: with a bucket as store, the bucket's clock counts instead"
            }
            Self::Proxy { .. } => "use `https://` and an HTTP proxy, or name the host in `NO_PROXY`",
            Self::Certificate { .. } => {
                "if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`"
            }
            Self::Status { status: 300..=399, .. } => {
                "redirects are not followed, since they could take the key elsewhere: set `base_url` to the new address"
            }
            Self::Status { status: 404, .. } => "the service may no longer offer this operation",
            Self::Malformed { evidence: Some(path), .. } => {
                return Some(format!("the body is kept in `{}`: report it to the vendor", path.display()));
            }
            Self::Client { .. } => {
                "https needs CA certificates: install `ca-certificates`, or provide them with `SSL_CERT_FILE`"
            }
            Self::Refused { .. } | Self::Invalid { .. } | Self::Status { .. } | Self::Malformed { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
