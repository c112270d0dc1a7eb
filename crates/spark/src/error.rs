//! Failures of a cluster.

use crate::error::{Diagnostic, ErrorKind, Reason};

/// The most characters of a server's message that are shown.
const MOST_CHARACTERS: usize = 600;

/// A failure of a Spark cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SparkError {
    /// The cluster does not answer.
    #[error("cannot reach `{engine}`")]
    Unreachable {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// The cluster rejects the token, or requires one.
    #[error("`{engine}` denied access")]
    Denied {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// The cluster refuses the statement.
    #[error("`{engine}` refused the statement")]
    Refused {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// The execution failed.
    #[error("`{engine}` could not compute and write the dataset")]
    Failed {
        /// The cluster.
        engine: String,
        /// Why.
        source: Reason,
    },

    /// The answers have no valid digest.
    #[error("`{engine}` returned no digest of the rows")]
    Answer {
        /// The cluster.
        engine: String,
    },
}

/// Whether the connection broke: the client then reports an unknown or internal error, without the details that Spark adds to
/// its own errors.
pub(super) fn is_broken_connection(fault: &spark_connect_core::SparkError) -> bool {
    matches!(fault.grpc_code, Some(2 | 13)) && fault.grpc_details.is_none()
}

impl SparkError {
    /// Classifies a failure that the client reports.
    pub(super) fn of(engine: &str, fault: &spark_connect_core::SparkError) -> Self {
        let engine = engine.to_owned();
        let text: String = fault.message.lines().take(3).collect::<Vec<_>>().join(" ");
        let source: Reason = text.chars().take(MOST_CHARACTERS).collect::<String>().into();
        // gRPC codes: permission denied and unauthenticated, deadline exceeded and unavailable.
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
