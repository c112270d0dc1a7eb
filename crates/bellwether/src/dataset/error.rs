//! Errors of building a dataset.

use crate::error::{Diagnostic, Error, ErrorKind, Reason};

/// A dataset that cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatasetError {
    /// A dataset without rows.
    #[error("`{name}` has no rows")]
    Empty { name: String },

    /// A join that failed.
    #[error("cannot join signals with news")]
    Join { source: Reason },
}

impl DatasetError {
    /// A join that failed.
    pub(crate) fn join(source: impl Into<Reason>) -> Error {
        Self::Join { source: source.into() }.into()
    }
}

impl Diagnostic for DatasetError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Empty { .. } => ErrorKind::NotFound,
            Self::Join { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Empty { .. } => {
                Some("check the sectors, periods, regimes or tickers that it asks for, and the filters".to_owned())
            }
            Self::Join { .. } => None,
        }
    }
}
