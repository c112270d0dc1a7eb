//! What an audit can fail with.

use crate::error::{Diagnostic, Error, ErrorKind, Reason};

/// A failed audit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// Versions with different columns.
    #[error(
        "`{before}` and `{after}` have different columns: {only_before} only in the first, {only_after} only in the second"
    )]
    OtherColumns { before: String, after: String, only_before: String, only_after: String },

    /// Rows that nothing identifies.
    #[error("the rows of `{version}` have no key: `columns` in its definition leaves out one of its columns")]
    NoKey { version: String },

    /// Rows that cannot be compared.
    #[error("cannot compare the rows of two versions")]
    Compare { source: Reason },
}

impl AuditError {
    /// Rows that cannot be compared.
    pub(crate) fn compare(source: impl Into<Reason>) -> Error {
        Self::Compare { source: source.into() }.into()
    }
}

impl Diagnostic for AuditError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OtherColumns { .. } | Self::NoKey { .. } => ErrorKind::Data,
            Self::Compare { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::OtherColumns { .. } => Some("build both from the same definition: `bellwether build NAME --as-of INSTANT` rebuilds the earlier state with its columns".to_owned()),
            Self::NoKey { .. } => {
                let news = "`ticker`, `date`, `title`, `link` and `copy` for news";
                Some(format!("add the key to `columns`: `ticker`, `date`, `period` and `regime` for signals, {news}"))
            }
            Self::Compare { .. } => None,
        }
    }
}
