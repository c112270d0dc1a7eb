//! Why an attempt failed, before it is decided what to do about it.

use reqwest::header::RETRY_AFTER;

use crate::error::{Error, Reason};
use crate::interface::ValidationFault;

/// The longest body of a refusal that is read.
const MAX_FAULT_BYTES: usize = 64 * 1024;

/// A failed attempt.
#[derive(Debug)]
pub(super) enum Failure {
    /// No answer, or one that broke off.
    Transport(reqwest::Error),
    /// An answer that is no success.
    Status {
        /// The HTTP status.
        status: u16,
        /// How many seconds the service asks to wait.
        retry_after: Option<u64>,
        /// What it says is wrong with the request.
        fault: Option<ValidationFault>,
    },
}

impl Failure {
    /// A failure of the transport, without the address that it came from.
    pub(super) fn transport(error: reqwest::Error) -> Self {
        Self::Transport(error.without_url())
    }

    /// A failure from an answer.
    pub(super) async fn of_status(mut response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        if status == 422 {
            // A fault that cannot be read whole is as good as none: the status alone says enough.
            while let Ok(Some(chunk)) = response.chunk().await {
                if body.len() + chunk.len() > MAX_FAULT_BYTES {
                    break;
                }
                body.extend_from_slice(&chunk);
            }
        }
        Self::Status { status, retry_after, fault: serde_json::from_slice(&body).ok() }
    }

    /// The failure as people are told of it.
    pub(super) fn into_error(self, host: String, request: String) -> Error {
        match self {
            Self::Transport(error) => Error::Unreachable { host, request, source: innermost(error) },
            Self::Status { status: status @ (401 | 403), .. } => Error::KeyRefused { host, status },
            Self::Status { status: 422, fault: Some(fault), .. } => {
                if fault.detail.iter().any(|problem| problem.parameter() == Some("api_key")) {
                    return Error::KeyRefused { host, status: 422 };
                }
                Error::Invalid { host, request, fault }
            }
            Self::Status { status, .. } => Error::Status { host, request, status },
        }
    }
}

/// What the operating system or the protocol said, without the layers that it came through.
fn innermost(error: reqwest::Error) -> Reason {
    let mut reason: &(dyn std::error::Error + 'static) = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string().into()
}
