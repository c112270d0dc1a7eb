//! Errors of importing files.

use std::path::PathBuf;

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::error::{Diagnostic, ErrorKind, Reason};
use crate::interface::Endpoint;
use crate::text::human::{count_of, group_digits, percent};
use crate::time::to_record;

/// Files that cannot be imported. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// A file of another kind.
    #[error("`{}` is neither `.json`, `.csv` nor `.parquet`", path.display())]
    Kind { path: PathBuf },

    /// A file whose request or instant cannot be told.
    #[error("`{}`: {what}", path.display())]
    Unclear { path: PathBuf, what: String, hint: String },

    /// A file that cannot be read as a table.
    #[error("cannot read `{}` as a table", path.display())]
    Table { path: PathBuf, source: Reason },

    /// A table that says nothing.
    #[error("`{}` has no rows", path.display())]
    NoRows { path: PathBuf },

    /// A file without a column.
    #[error("`{}` has no column `{column}`, it has {}", path.display(), columns.join(", "))]
    NoColumn { path: PathBuf, column: String, columns: Vec<String> },

    /// A row that cannot be taken.
    #[error("`{}`, row {}: {what}", path.display(), group_digits(*row))]
    Row { path: PathBuf, row: u64, what: String },

    /// A file whose bytes are no answer to its request.
    #[error("`{}` is no answer to `{request}`: byte {}: {reason}", path.display(), group_digits(*offset))]
    Malformed { path: PathBuf, request: String, offset: u64, reason: String },

    /// Too many rejected records.
    #[error("`{}`: rejected {} of {}, above the limit of {}", path.display(), group_digits(*rejected), count_of(*records, "record", "records"), percent(*max_share))]
    Rejected { path: PathBuf, rejected: u64, records: u64, max_share: f64, first: String },

    /// A date that nobody can have seen by then.
    #[error("`{}`: `{ticker}` has a record dated {date}, and it is claimed to have been observed at {}", path.display(), to_record(*at))]
    Ahead { path: PathBuf, ticker: String, date: NaiveDateTime, at: DateTime<Utc> },

    /// An instant in the future.
    #[error("`{}` is claimed to have been observed at {}, which is in the future", path.display(), to_record(*at))]
    Future { path: PathBuf, at: DateTime<Utc> },

    /// Two files that are the answer to one request at one instant.
    #[error("`{}` and `{}` both claim to be the answer to `{request}` at {}", path.display(), other.display(), to_record(*at))]
    Contradiction { path: PathBuf, other: PathBuf, request: String, at: DateTime<Utc> },

    /// An instant before that of a claim in the archive, or one of which some files were imported already.
    #[error("`{}` is claimed to have been observed at {}, and there is a claim of {}: `{run}`", path.display(), to_record(*at), to_record(*newest))]
    Order { path: PathBuf, at: DateTime<Utc>, run: String, newest: DateTime<Utc> },

    /// An instant when the service was watched already.
    #[error("`{}` is claimed to have been observed at {}, and the service is watched since {}", path.display(), to_record(*at), to_record(*since))]
    Witnessed { path: PathBuf, at: DateTime<Utc>, since: DateTime<Utc> },

    /// Rows that cannot stand for an answer.
    #[error("`{}`: rows of a table cannot stand for an answer of `{endpoint}`", path.display())]
    NoTable { path: PathBuf, endpoint: Endpoint },
}

impl Diagnostic for ImportError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Kind { .. } | Self::Unclear { .. } | Self::NoTable { .. } => ErrorKind::Usage,
            _ => ErrorKind::Data,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Kind { .. } => "name the file by its kind; JSON is the body of an answer of the service",
            Self::Unclear { hint, .. } => hint,
            Self::NoRows { .. } => "leave it out: a table without rows claims nothing",
            Self::NoColumn { .. } => "name the columns of the file: `--columns signal=side,confidence=score`",
            Self::Rejected { first, .. } => {
                return Some(format!("the first one: {first}; to allow more, raise `max_share` in `[rejects]`"));
            }
            Self::Ahead { .. } => "claim the instant when the file was really saved, or later",
            Self::Contradiction { .. } => "keep one of them",
            Self::Order { .. } => {
                "claims are imported oldest first: take the newer ones back with `bellwether archive forget RUN --reason \
                 TEXT`, the newest first, and import them again after this one"
            }
            Self::Witnessed { .. } => {
                "what was witnessed needs no claim: import only what was saved before the first run"
            }
            Self::NoTable { .. } => "import its answers as JSON; tables can stand for histories and articles",
            Self::Table { .. } | Self::Row { .. } | Self::Malformed { .. } | Self::Future { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
