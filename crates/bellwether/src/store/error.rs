//! What can go wrong with a store.

use crate::error::{Diagnostic, ErrorKind, Reason};
use crate::time::skew::Skew;

/// An operation on an object store that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A store that this build has no client for.
    #[error("this build cannot use `{url}`")]
    #[cfg_attr(
        all(feature = "aws", feature = "gcp", feature = "azure"),
        expect(dead_code, reason = "this build has every client")
    )]
    Feature {
        /// The store.
        url: String,
        /// The cargo feature that it needs.
        feature: &'static str,
    },

    /// A store that cannot be opened: its credentials or settings are missing or invalid.
    #[error("cannot open the store `{url}`")]
    Open {
        /// The store.
        url: String,
        /// Why.
        source: Reason,
    },

    /// A folder that does not exist, of a store that is only read.
    #[error("the store `{url}` does not exist")]
    Missing {
        /// The store.
        url: String,
    },

    /// A store that refuses an operation.
    #[error("`{url}` refused to {action} `{key}`")]
    Denied {
        /// The store.
        url: String,
        /// What was asked for.
        action: &'static str,
        /// The object or folder.
        key: String,
        /// Why.
        source: Reason,
    },

    /// An answer that exceeds a limit, points elsewhere, or is not one of a store.
    #[error("refused the answer of `{url}` to {action} `{key}`")]
    Refused {
        /// The store.
        url: String,
        /// What was asked for.
        action: &'static str,
        /// The object or folder.
        key: String,
        /// Why.
        source: Reason,
    },

    /// A certificate that cannot be verified.
    #[error("cannot verify the certificate of {host}")]
    Certificate {
        /// The host of the store.
        host: String,
        /// Why.
        source: Reason,
    },

    /// A store that does not answer for now.
    #[error("cannot {action} `{key}` in `{url}` for now")]
    Later {
        /// The store.
        url: String,
        /// What was asked for.
        action: &'static str,
        /// The object or folder.
        key: String,
        /// Why.
        source: Reason,
    },

    /// A store whose clock is far from this machine's.
    #[error("this machine's clock is {skew} that of `{url}`")]
    ClockSkew {
        /// The store.
        url: String,
        /// How far.
        skew: Skew,
    },

    /// A store that ignores the conditions of a put.
    #[error("`{url}` does not honour conditional puts")]
    Unconditional {
        /// The store.
        url: String,
        /// What it did.
        source: Reason,
    },

    /// A folder of another machine with the same name.
    #[error("`{key}` in `{url}` is already taken by another machine")]
    Taken {
        /// The store.
        url: String,
        /// The folder.
        key: String,
    },

    /// Something that a store does not have.
    #[error("`{url}` has no {what}")]
    Absent {
        /// The store.
        url: String,
        /// What it lacks.
        what: String,
    },

    /// An object with damaged content.
    #[error("`{key}` in `{url}` is damaged")]
    Damaged {
        /// The store.
        url: String,
        /// The object.
        key: String,
        /// Why.
        source: Reason,
    },

    /// Results that are complete on this machine, but not in the store.
    #[error("the results are on this machine, but not all of them are in `{url}`")]
    Behind {
        /// The store.
        url: String,
        /// The kind of the reason.
        kind: ErrorKind,
        /// Why.
        source: Reason,
    },
}

impl Diagnostic for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Feature { .. } => ErrorKind::Usage,
            Self::Later { .. } | Self::ClockSkew { .. } => ErrorKind::Temporary,
            Self::Absent { .. } => ErrorKind::NotFound,
            Self::Behind { kind, .. } => *kind,
            Self::Open { .. }
            | Self::Missing { .. }
            | Self::Refused { .. }
            | Self::Certificate { .. }
            | Self::Denied { .. }
            | Self::Unconditional { .. }
            | Self::Taken { .. }
            | Self::Damaged { .. } => ErrorKind::Storage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Feature { feature, .. } => {
                return Some(format!("install bellwether with `--features {feature}`"));
            }
            Self::Open { url, .. } if url.starts_with("file:") => {
                "check the path; the folder that it is in must exist, and you must be able to write there"
            }
            Self::Denied { url, .. } if url.starts_with("file:") => {
                "check that you may write there, and that there is space left"
            }
            Self::Open { .. } | Self::Denied { .. } => {
                "check the address, and the credentials in the environment, the profile or the instance"
            }
            Self::Missing { .. } => "check the address; `bellwether run` and `bellwether store push` create the folder",
            Self::Refused { .. } => "check the address, and the endpoint in the environment or the profile",
            Self::Certificate { .. } => {
                "if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`"
            }
            Self::Later { .. } => "run the same command later to resume",
            Self::ClockSkew { .. } => {
                "synchronize this machine's clock and run the same command again; nothing was requested"
            }
            Self::Unconditional { .. } => {
                "use a store with conditional puts (`If-None-Match` and `If-Match`); without them, two machines could \
                 overwrite each other's runs"
            }
            Self::Taken { .. } => {
                "`bellwether verify --store --repair`, on this machine, compares the two, and sends this one in the place \
                 of what is damaged"
            }
            Self::Damaged { .. } => {
                "`bellwether verify --store --repair`, on a machine that has it, sends it again; \
                 `bellwether verify --store` lists all damaged objects"
            }
            Self::Absent { .. } => "`bellwether verify --store --sizes --json` lists what only the store has",
            Self::Behind { .. } => "`bellwether store push` sends the rest; so does the next run",
        };
        Some(hint.to_owned())
    }
}
