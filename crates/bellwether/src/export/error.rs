//! What writing, finding or reading a dataset can fail with.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Diagnostic, Error, ErrorKind};
use crate::text::problem::nearest;

/// How many known names are listed.
const LISTED: usize = 8;

/// A dataset could not be written, found or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// More partitions than can be written at once.
    #[error("partitioning by `{column}` needs more than {most} files open at once")]
    TooManyFolders { column: String, most: usize },

    /// A stream that cannot be written, or was closed by its reader.
    #[error("cannot write to the stream")]
    Stream { source: io::Error },

    /// A dataset that was never published.
    #[error("no dataset {}in `{}`", name.as_ref().map_or_else(String::new, |name| format!("`{name}` ")), datasets.display())]
    NoDataset { name: Option<String>, datasets: PathBuf },

    /// A version of a dataset that does not exist.
    #[error("no version `{given}` in `{}`", datasets.display())]
    NoVersion { given: String, datasets: PathBuf, known: Vec<String> },

    /// A file of a published version, which never changes.
    #[error("`{}` is a file of a published version", path.display())]
    Published { path: PathBuf },

    /// A ticker that has the name of the dates in a matrix.
    #[error("`{name}` is the name of a ticker and of the dates beside it")]
    TickerLikeDates { name: String },

    /// A wide version where rows are needed.
    #[error("`{}` is wide, expected a long dataset", path.display())]
    Wide { path: PathBuf },
}

/// Why rows could not be written to a stream, if that is what failed.
pub fn stream_failure(error: &Error) -> Option<&io::Error> {
    match error.downcast_ref()? {
        ExportError::Stream { source } => Some(source),
        _ => None,
    }
}

impl Diagnostic for ExportError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyFolders { .. } | Self::TickerLikeDates { .. } | Self::Wide { .. } => ErrorKind::Data,
            Self::Published { .. } | Self::Stream { .. } => ErrorKind::Storage,
            Self::NoDataset { .. } | Self::NoVersion { .. } => ErrorKind::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooManyFolders { column, .. } => {
                return Some(format!("sort by `{column}` first, or remove it from `partition_by`"));
            }
            Self::Stream { .. } => return None,
            Self::Published { .. } => "choose another file: its readers, and `verify`, count on its bytes",
            Self::TickerLikeDates { .. } => "give the dates another name: `date = \"…\"` in `[dataset.rename]`",
            Self::NoDataset { .. } => "publish it first: `bellwether run NAME`; or choose another folder with `--data`",
            Self::NoVersion { known, .. } if known.is_empty() => "publish one first: `bellwether run NAME`",
            Self::NoVersion { given, known, .. } => {
                // A name may be that of a definition's file.
                let stem = Path::new(given).file_stem().and_then(|stem| stem.to_str()).unwrap_or(given);
                // Versions are named by times: none is like another.
                let names = || known.iter().map(String::as_str).filter(|name| !name.contains('/'));
                let meant = [given, stem].into_iter().find_map(|given| nearest(given, names()));
                let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
                let more = known.len().saturating_sub(LISTED);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let some: Vec<&str> = known.iter().take(LISTED).map(String::as_str).collect();
                return Some(format!(
                    "{meant}known names: {}{more}; the folder of a version works too",
                    some.join(", ")
                ));
            }
            Self::Wide { .. } => "build it with `layout = \"long\"`; the values are the same",
        };
        Some(hint.to_owned())
    }
}
