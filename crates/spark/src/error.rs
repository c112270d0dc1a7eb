//! Failures of a cluster.

use std::error::Error;

/// The most characters of a server's message that are shown.
const MOST_CHARACTERS: usize = 600;

/// A failure of a Spark cluster.
#[derive(Debug, thiserror::Error)]
pub enum SparkError {
    /// The cluster does not answer.
    #[error("cannot reach `{address}`")]
    Unreachable {
        /// The cluster.
        address: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The cluster rejects the token, or requires one.
    #[error("`{address}` denied access")]
    Denied {
        /// The cluster.
        address: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The cluster refuses the statement.
    #[error("`{address}` refused the statement")]
    Refused {
        /// The cluster.
        address: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The execution failed.
    #[error("`{address}` could not compute and write the dataset")]
    Failed {
        /// The cluster.
        address: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The answers have no valid digest.
    #[error("`{address}` returned no digest of the rows")]
    Answer {
        /// The cluster.
        address: String,
    },
}

/// Whether the connection broke: the client then reports an unknown or internal error, without the details that Spark adds to
/// its own errors.
pub(crate) fn is_broken_connection(fault: &spark_connect_core::SparkError) -> bool {
    matches!(fault.grpc_code, Some(2 | 13)) && fault.grpc_details.is_none()
}

impl SparkError {
    /// Classifies a failure that the client reports.
    pub(crate) fn of(address: &str, fault: &spark_connect_core::SparkError) -> Self {
        let address = address.to_owned();
        let text: String = fault.message.lines().take(3).collect::<Vec<_>>().join(" ");
        let source: Box<dyn Error + Send + Sync> = text.chars().take(MOST_CHARACTERS).collect::<String>().into();
        // gRPC codes: permission denied and unauthenticated, deadline exceeded and unavailable.
        match (fault.grpc_code, fault.sql_state()) {
            (Some(7 | 16), _) => Self::Denied { address, source },
            (Some(4 | 14), _) => Self::Unreachable { address, source },
            _ if is_broken_connection(fault) => Self::Unreachable { address, source },
            // Syntax, unknown names, missing paths.
            (_, Some(state)) if state.starts_with("42") => Self::Refused { address, source },
            (None, _) if fault.grpc_details.is_none() => Self::Denied { address, source },
            _ => Self::Failed { address, source },
        }
    }
}
