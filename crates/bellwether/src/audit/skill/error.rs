//! What an audit of skill can fail with.

use std::path::PathBuf;

use crate::error::{Diagnostic, ErrorKind, Reason};
use crate::text::human::{count_of, group_digits, percent};

/// Prices or signals that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkillError {
    /// A file of prices that cannot be read as a table.
    #[error("cannot read prices from `{}`", path.display())]
    Unreadable { path: PathBuf, source: Reason },

    /// A file of prices whose format its name does not say.
    #[error("cannot tell the format of `{}` from its extension", path.display())]
    Format { path: PathBuf },

    /// A pattern that no file matches.
    #[error("no file matches `{pattern}`")]
    NoFile { pattern: String },

    /// A file of prices without a column.
    #[error("`{}` has no column `{column}`: it has {}", path.display(), if columns.is_empty() { "none".to_owned() } else { columns.join(", ") })]
    NoColumn { path: PathBuf, column: String, columns: Vec<String> },

    /// A column of another type.
    #[error("column `{column}` of `{}` is {found}, not {wanted}", path.display())]
    Type { path: PathBuf, column: String, found: String, wanted: &'static str },

    /// Dates with a time zone in the type of their column.
    #[error("column `{column}` of `{}` has instants in the zone `{zone}`, not the days of sessions", path.display())]
    Zone { path: PathBuf, column: String, zone: String },

    /// A row that cannot be used.
    #[error("row {} of `{}`: {what}", group_digits(*row), path.display())]
    Row { path: PathBuf, row: u64, what: String },

    /// Two closes of a ticker on a day.
    #[error(
        "row {} of `{}` is a second close of {ticker} on {day}, after row {} of `{}`",
        group_digits(*row), path.display(), group_digits(*first_row), first_path.display()
    )]
    Duplicate { path: PathBuf, row: u64, first_path: PathBuf, first_row: u64, ticker: String, day: String },

    /// No price at all.
    #[error("no prices in {}", count_of(*files, "file", "files"))]
    NoPrices { files: u64 },

    /// More than the audit holds.
    #[error("too many {what}: {} of at most {}", group_digits(*found), group_digits(*most))]
    TooMany { what: &'static str, found: u64, most: u64 },

    /// Too many signals without a price.
    #[error(
        "{} of {} have no price: {}, more than a fifth",
        group_digits(*missing), count_of(*signals, "signal", "signals"), percent(*missing as f64 / *signals as f64)
    )]
    Unpriced { missing: u64, signals: u64, worst: String, examples: Vec<String> },
}

impl Diagnostic for SkillError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Format { .. } => ErrorKind::Usage,
            Self::NoFile { .. } => ErrorKind::NotFound,
            _ => ErrorKind::Data,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Format { .. } => "prices are read from `.parquet` and `.csv`",
            Self::NoColumn { .. } => "name it in the definition: `columns = { close = \"adj_close\" }` in `[prices]`",
            Self::Zone { .. } => "write the day of each session as a date without a zone",
            Self::Unpriced { worst, examples, .. } => {
                return Some(format!(
                    "the worst day is {worst}; without prices are {}; add their prices, or measure the others with \
                     `--allow-missing`",
                    examples.join(", ")
                ));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
