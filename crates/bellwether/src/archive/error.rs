//! Errors of reading an archive.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::error::{Diagnostic, Error, ErrorKind, Reason};
use crate::text::human::{count_of, group_digits};
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

    /// An instant before the seal of a definition's first run.
    #[error("no data for `{name}` as of {}: the first run with its signals was sealed at {}", to_record(*as_of), to_record(*first))]
    Unwatched { name: String, as_of: DateTime<Utc>, first: DateTime<Utc> },

    /// An instant in the future.
    #[error("{} is in the future: it is now {}", to_record(*instant), to_record(*now))]
    Future { instant: DateTime<Utc>, now: DateTime<Utc> },

    /// Runs that others are based on, and that are gone.
    #[error("`{}` lacks {}: {}", path.display(), count_of(runs.len() as u64, "run", "runs"), some_of(runs))]
    Lost { path: PathBuf, runs: Vec<String>, named_by: String },

    /// An archive of an older layout.
    #[error("`{}` has {} of an older layout", path.display(), count_of(*folders as u64, "run or pack", "runs and packs"))]
    Older { path: PathBuf, folders: usize },

    /// Several services, and none is named.
    #[error("`{}` has data of several services: {}", path.display(), services.join(", "))]
    Services { path: PathBuf, services: Vec<String> },

    /// A version whose runs are not all there.
    #[error("cannot rebuild `{version}`: `{}` lacks {}: {}", path.display(), count_of(runs.len() as u64, "of its runs", "of its runs"), some_of(runs))]
    Incomplete { path: PathBuf, version: String, runs: Vec<String> },

    /// A version that was built from runs that were forgotten since.
    #[error("cannot rebuild `{version}`: {} of its runs {} forgotten since: {}", group_digits(runs.len() as u64), if runs.len() == 1 { "was" } else { "were" }, some_of(runs))]
    Forgotten { version: String, runs: Vec<String> },

    /// A run that is not in the archive.
    #[error("no run `{run}` in `{}`", path.display())]
    UnknownRun { path: PathBuf, run: String },

    /// Runs that cannot be forgotten alone.
    #[error("{} based on {}: {}", if runs.len() == 1 { "1 run is".to_owned() } else { format!("{} runs are", group_digits(runs.len() as u64)) }, quoted(of), some_of(runs))]
    Based { of: Vec<String>, runs: Vec<String> },

    /// A run whose rows in a pack cannot be told from those of another one.
    #[error("`{run}` was sealed at the same instant as `{twin}`")]
    Twins { run: String, twin: String },

    /// Histories that met in an archive that only others may write to.
    #[error("histories met, and their merge cannot be written")]
    Unmerged { source: Error },

    /// Observations that cannot be merged.
    #[error("cannot merge observations")]
    Merge { source: Reason },
}

/// The first few names, marked as such.
fn quoted(names: &[String]) -> String {
    some_of(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
}

/// The first few names.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {} more", shown.join(", "), group_digits(more as u64)) }
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
            Self::Missing { .. }
            | Self::NoRuns { .. }
            | Self::NoData { .. }
            | Self::TooEarly { .. }
            | Self::Unwatched { .. } => ErrorKind::NotFound,
            Self::Future { .. } | Self::Services { .. } | Self::Based { .. } | Self::Twins { .. } => ErrorKind::Usage,
            Self::UnknownRun { .. } => ErrorKind::NotFound,
            Self::Lost { .. }
            | Self::Older { .. }
            | Self::Incomplete { .. }
            | Self::Forgotten { .. }
            | Self::Unmerged { .. } => ErrorKind::Storage,
            Self::Merge { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::NoRuns { .. } | Self::NoData { .. } => {
                Some("run it first: `bellwether run NAME`; or choose another archive with `--archive`".to_owned())
            }
            Self::TooEarly { .. } | Self::Unwatched { .. } => Some("`bellwether runs` lists the runs".to_owned()),
            Self::Future { .. } => Some("leave it out for the latest state".to_owned()),
            Self::Lost { named_by, .. } => Some(format!(
                "{named_by}; mount the volume, restore what is gone from a backup, or fetch it with `bellwether store pull`; to \
                 go on without it, `bellwether run NAME --new-archive`"
            )),
            Self::Older { .. } => Some("`bellwether archive migrate` keeps every observation".to_owned()),
            Self::Services { .. } => Some("name one with `--service`, or a definition".to_owned()),
            Self::Incomplete { .. } => {
                Some("restore them from a backup, or fetch them with `bellwether store pull`".to_owned())
            }
            Self::Forgotten { .. } => Some("`bellwether runs` says why; to build it without them, name an instant: `--as-of 2026-03-31`".to_owned()),
            Self::UnknownRun { .. } => Some("`bellwether runs` lists the runs".to_owned()),
            Self::Based { .. } => Some(
                "what they stored is the difference from it: forget them first, the newest first; what they observed is \
                 then left out, too"
                    .to_owned(),
            ),
            Self::Twins { run, twin } => {
                Some(format!("forget both: `bellwether archive forget {run} {twin} --reason TEXT`"))
            }
            Self::Unmerged { .. } => Some(
                "give this command once as a user who may write to the archive: the merge is then there for everybody".to_owned(),
            ),
            Self::Merge { .. } => None,
        }
    }
}
