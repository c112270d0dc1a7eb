//! An archive as of an instant.

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::archive::{Archive, ArchiveError, View};
use crate::cancel::CancellationToken;
use crate::error::Result;

/// The view of an archive as of an instant, or of its latest state, read until a token is cancelled.
pub(crate) fn view(archive: &Path, as_of: Option<DateTime<Utc>>, stop: &CancellationToken) -> Result<View> {
    let archive = Archive::open(archive)?.until(stop);
    let Some(first) = first(&archive) else {
        return Err(ArchiveError::NoRuns { path: archive.path().to_owned() }.into());
    };
    let as_of = as_of.unwrap_or_else(|| newest(&archive));
    if as_of < first {
        return Err(ArchiveError::TooEarly { as_of, first }.into());
    }
    Ok(View::of(archive, as_of))
}

/// When the first run was sealed.
pub(super) fn first(archive: &Archive) -> Option<DateTime<Utc>> {
    archive.runs().iter().map(|run| run.seal().sealed_at).min()
}

/// The instant of the latest state: two builds without a run in between are as of the same instant.
pub(super) fn newest(archive: &Archive) -> DateTime<Utc> {
    archive.runs().iter().map(|run| run.seal().sealed_at).max().unwrap_or_default()
}
