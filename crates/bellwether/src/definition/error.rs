//! What can be wrong with a definition.

use std::path::{Path, PathBuf};

use crate::error::{Diagnostic, ErrorKind};
use crate::text::human;
use crate::text::problem::Problems;

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

    /// A definition whose file has a name that a dataset cannot have.
    #[error("`{}` is not a valid name for a dataset", name(path))]
    Name {
        /// The file.
        path: PathBuf,
    },

    /// A definition that is not text.
    #[error("definition `{}` is not UTF-8 text: line {line}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first line that is not.
        line: usize,
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

/// The name that a file would give a dataset.
fn name(path: &Path) -> std::path::Display<'_> {
    let is_definition = path.extension().is_some_and(|it| it == "toml");
    let stem = path.file_stem().filter(|_| is_definition);
    stem.map_or(path, Path::new).display()
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
            Self::NotText { .. } => "save it as UTF-8",
            Self::TooLong { .. } => "split it into several definitions, or use `tickers = \"available\"`",
        };
        Some(hint.to_owned())
    }
}
