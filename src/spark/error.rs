//! What can go wrong with a cluster.

use crate::error::{Diagnostic, ErrorKind, Reason};

/// The longest part of a server's text that is shown.
const MOST_CHARACTERS: usize = 600;

/// A dataset that a cluster did not compute.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SparkError {
    /// A cluster that does not answer.
    #[error("cannot reach `{engine}`")]
    Unreachable {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// A cluster that does not take the token, or requires one.
    #[error("`{engine}` denied access")]
    Denied {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// A statement that the cluster refuses.
    #[error("`{engine}` refused the statement")]
    Refused {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// A statement that failed.
    #[error("`{engine}` could not compute and write the dataset")]
    Failed {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// An answer that is not understood.
    #[error("`{engine}` gave no digest of the rows")]
    Answer {
        /// The cluster.
        engine: String,
    },
}

/// Whether a failure is what the client makes of a connection that broke: an unknown or internal error without the details
/// that Spark gives to its own.
pub(super) fn is_broken_connection(fault: &spark_connect_core::SparkError) -> bool {
    matches!(fault.grpc_code, Some(2 | 13)) && fault.grpc_details.is_none()
}

impl SparkError {
    /// A failure of the client, by what the server says.
    pub(super) fn of(engine: &str, fault: &spark_connect_core::SparkError) -> Self {
        let engine = engine.to_owned();
        let text: String = fault.message.lines().take(3).collect::<Vec<_>>().join(" ");
        let source: Reason = text.chars().take(MOST_CHARACTERS).collect::<String>().into();
        // Numbers of gRPC: unavailable, and what is of the caller.
        match (fault.grpc_code, fault.sql_state()) {
            (Some(7 | 16), _) => Self::Denied { engine, source },
            (Some(4 | 14), _) => Self::Unreachable { engine, source },
            _ if is_broken_connection(fault) => Self::Unreachable { engine, source },
            // Syntax, unknown names, missing paths.
            (_, Some(state)) if state.starts_with("42") => Self::Refused { engine, source },
            (None, _) if fault.grpc_details.is_none() => Self::Denied { engine, source },
            _ => Self::Failed { engine, source },
        }
    }
}

impl Diagnostic for SparkError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. } => ErrorKind::Temporary,
            Self::Denied { .. } | Self::Refused { .. } | Self::Failed { .. } | Self::Answer { .. } => {
                ErrorKind::Service
            }
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreachable { .. } => {
                "check that a Spark Connect server listens there (`sbin/start-connect-server.sh`), and run the same \
                 command again"
            }
            Self::Denied { .. } => {
                "set `SPARK_CONNECT_AUTHENTICATE_TOKEN`, which is sent with `/;use_ssl=true` at the end of the address, or to \
                 this machine"
            }
            Self::Refused { .. } => {
                "every worker must be able to read the archive: keep it in a store, or on a file system that all of them have"
            }
            Self::Failed { .. } => {
                "the log of the driver says more; every worker must be able to read the archive and write the output"
            }
            Self::Answer { .. } => "use Spark 4",
        };
        Some(hint.to_owned())
    }
}
