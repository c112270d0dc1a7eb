//! The archive of a service as of an instant.

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::archive::{Archive, ArchiveError, View, open_merged, wait_for_seal};
use crate::cancel::CancellationToken;
use crate::error::Result;
use crate::time::Clock;

/// The view of a service's archive as of an instant, or of its latest state, read until a token is cancelled.
pub(crate) fn view(archive: &Path, as_of: Option<DateTime<Utc>>, stop: &CancellationToken) -> Result<View> {
    let mut opened = open_merged(archive, stop)?;
    if let Some(as_of) = as_of.filter(|as_of| newest(&opened).is_none_or(|newest| *as_of > newest)) {
        check_past(as_of)?;
        // A run that is being sealed may count from an instant before this one.
        wait_for_seal(archive, stop)?;
        opened = open_merged(archive, stop)?;
    }
    let archive = opened;
    let (Some(first), Some(newest)) = (first(&archive), newest(&archive)) else {
        return Err(ArchiveError::NoRuns { path: archive.path().to_owned() }.into());
    };
    let missing: Vec<String> = archive.missing().map(ToOwned::to_owned).collect();
    if !missing.is_empty() {
        let named_by = "later runs are based on them".to_owned();
        return Err(ArchiveError::Lost { path: archive.path().to_owned(), runs: missing, named_by }.into());
    }
    let as_of = as_of.unwrap_or(newest);
    if as_of < first {
        return Err(ArchiveError::TooEarly { as_of, first }.into());
    }
    Ok(View::of(archive, as_of))
}

/// Refuses an instant in the future: what will be known by then is not known yet.
pub(crate) fn check_past(instant: DateTime<Utc>) -> Result<()> {
    let now = Clock::System.now();
    if instant > now { Err(ArchiveError::Future { instant, now }.into()) } else { Ok(()) }
}

/// When the first run was sealed.
pub(super) fn first(archive: &Archive) -> Option<DateTime<Utc>> {
    archive.runs().iter().map(|run| run.seal().sealed_at).min()
}

/// The instant of the latest state: two builds without a run in between are as of the same instant.
pub(super) fn newest(archive: &Archive) -> Option<DateTime<Utc>> {
    archive.runs().iter().map(|run| run.seal().sealed_at).max()
}

/// Runs sealed by the instant of a view that were brought in later: runs sealed after it did not know them.
pub(super) fn late_arrivals(view: &View) -> usize {
    view.archive().late_arrivals(view.as_of())
}
