//! What can be wrong with a definition.

use std::path::PathBuf;

use crate::error::{Diagnostic, ErrorKind};
use crate::human;
use crate::problem::Problems;

/// A definition that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// A definition with problems.
    #[error("{0}")]
    Invalid(Problems),

    /// A definition that does not exist.
    #[error("no definition `{given}`: `{}` does not exist", path.display())]
    Missing {
        /// The requested name.
        given: String,
        /// The file that does not exist.
        path: PathBuf,
        /// The nearest names.
        hint: String,
    },

    /// A definition whose file name cannot name a dataset.
    #[error("`{}` cannot name a dataset", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },

    /// A definition that is larger than the limit.
    #[error("definition `{}` is larger than {}", path.display(), human::bytes(*limit))]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
}

impl Diagnostic for DefinitionError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Definition
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Invalid(_) => return None,
            Self::Missing { hint, .. } => hint,
            Self::Name { .. } => "use at most 64 letters, digits, `-` and `_` in the name of the file",
            Self::TooLong { .. } => "split it into several definitions, or use `tickers = \"available\"`",
        };
        Some(hint.to_owned())
    }
}
