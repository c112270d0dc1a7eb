//! What an archive lacks, and what may not be asked of it.

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::error::{Error, ErrorKind, Reason};
use crate::text::human::{count_of, group_digits};
use crate::time::to_record;

const RUN_FIRST: &str = "run it first: `bellwether run NAME`; or choose another archive with `--archive`";

const LISTED: &str = "`bellwether list runs` lists the runs";

/// An archive that does not exist.
pub(crate) fn no_archive(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, format!("no archive: `{}` does not exist", path.display())).with_hint(RUN_FIRST)
}

/// An archive without runs.
pub(crate) fn no_runs(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, format!("no sealed runs in `{}`", path.display())).with_hint(RUN_FIRST)
}

/// An archive without data for a definition.
pub(crate) fn no_data(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("the archive has no data for `{name}`")).with_hint(RUN_FIRST)
}

/// An instant before the first run.
pub(crate) fn too_early(as_of: DateTime<Utc>, first: DateTime<Utc>) -> Error {
    let (as_of, first) = (to_record(as_of), to_record(first));
    Error::new(ErrorKind::NotFound, format!("no data as of {as_of}: the first run was sealed at {first}"))
        .with_hint(LISTED)
}

/// An instant before the seal of a definition's first run.
pub(crate) fn unwatched(name: &str, as_of: DateTime<Utc>, first: DateTime<Utc>) -> Error {
    let (as_of, first) = (to_record(as_of), to_record(first));
    let what = format!("no data for `{name}` as of {as_of}: the first run with its signals was sealed at {first}");
    Error::new(ErrorKind::NotFound, what).with_hint(LISTED)
}

/// A run that is not in the archive.
pub(crate) fn unknown_run(archive: &Path, run: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no run `{run}` in `{}`", archive.display())).with_hint(LISTED)
}

/// Runs that others are based on, and that are gone.
pub(crate) fn lost_runs(archive: &Path, runs: &[String], named_by: &str) -> Error {
    let count = count_of(runs.len() as u64, "run", "runs");
    Error::new(ErrorKind::Storage, format!("`{}` lacks {count}: {}", archive.display(), some_names(runs))).with_hint(format!(
        "{named_by}; mount the volume, restore what is gone from a backup, or fetch it with `bellwether store pull`; to go on \
         without it, `bellwether run NAME --new-archive`"
    ))
}

/// Observations that cannot be merged.
pub(crate) fn merge_failed(source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Internal, "cannot merge observations").with_source(source)
}

/// The first few names, marked as such.
pub(crate) fn some_names(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {} more", shown.join(", "), group_digits(more as u64)) }
}
