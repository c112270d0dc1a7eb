//! Errors of reading an archive.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::error::{Diagnostic, Error, ErrorKind, Reason};
use crate::time::to_record;

/// An archive that lacks the requested data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// An archive that does not exist.
    #[error("no archive: `{}` does not exist", path.display())]
    Missing { path: PathBuf },

    /// An archive without runs.
    #[error("no sealed runs in `{}`", path.display())]
    NoRuns { path: PathBuf },

    /// An archive without data for a definition.
    #[error("the archive has no data for `{name}`")]
    NoData { name: String },

    /// An instant before the first run.
    #[error("no data as of {}: the first run was sealed at {}", to_record(*as_of), to_record(*first))]
    TooEarly { as_of: DateTime<Utc>, first: DateTime<Utc> },

    /// Observations that cannot be merged.
    #[error("cannot merge observations")]
    Merge { source: Reason },
}

impl ArchiveError {
    /// Observations that cannot be merged.
    pub(crate) fn merge(source: impl Into<Reason>) -> Error {
        Self::Merge { source: source.into() }.into()
    }
}

impl Diagnostic for ArchiveError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } | Self::NoRuns { .. } | Self::NoData { .. } | Self::TooEarly { .. } => {
                ErrorKind::NotFound
            }
            Self::Merge { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::NoRuns { .. } | Self::NoData { .. } => {
                Some("run it first: `bellwether run NAME`; or choose another archive with `--archive`".to_owned())
            }
            Self::TooEarly { .. } => Some("`bellwether runs` lists the runs".to_owned()),
            Self::Merge { .. } => None,
        }
    }
}
