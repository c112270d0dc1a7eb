//! `latest`: the link to the version that readers should use.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names::is_unique;
use crate::disk::remove;
use crate::error::Result;
use crate::time::unique_name;

/// The link's name.
pub(super) const LATEST: &str = "latest";

/// A future `latest`, under a hidden name.
///
/// It is created before the version it points to appears. Another process that removes old versions spares those that a
/// link points to, so it cannot remove this one before `latest` moves.
#[derive(Debug)]
pub(super) struct Link {
    folder: PathBuf,
    hidden: PathBuf,
    is_latest: bool,
}

impl Link {
    /// A link to a version, under a name that nothing else has, not even an earlier attempt that was killed.
    pub(super) fn prepare(folder: &Path, version: &str, unique: &str) -> Result<Self> {
        let hidden = folder.join(format!(".{LATEST}-{unique}"));
        symlink(version, &hidden).map_err(FileError::write(&hidden))?;
        Ok(Self { folder: folder.to_owned(), hidden, is_latest: false })
    }

    /// Makes it `latest`, atomically and durably.
    pub(super) fn show(mut self) -> Result<PathBuf> {
        check(&self.folder)?;
        let latest = self.folder.join(LATEST);
        fs::rename(&self.hidden, &latest).map_err(FileError::write(&latest))?;
        self.is_latest = true;
        file::sync_folder(&self.folder)?;
        Ok(latest)
    }
}

/// The version that `latest` points to in a folder; `None` if it points to anything else.
pub(super) fn version(folder: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(folder.join(LATEST)).ok()?;
    let is_version = path.file_name()?.to_str().is_some_and(is_unique);
    (is_version && path.parent() == fs::canonicalize(folder).ok().as_deref()).then_some(path)
}

/// The version that `latest` names in the folder of a dataset, whether or not it is there.
pub(crate) fn latest_target(dataset: &Path) -> Option<String> {
    let target = fs::read_link(dataset.join(LATEST)).ok()?;
    target.file_name().and_then(|name| name.to_str()).filter(|name| is_unique(name)).map(str::to_owned)
}

/// Makes a version of a dataset the latest.
pub(crate) fn point_latest(dataset: &Path, version: &str, now: DateTime<Utc>) -> Result<()> {
    Link::prepare(dataset, version, &unique_name(now))?.show().map(drop)
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.is_latest {
            // Best effort: leftovers are hidden and removed later.
            let _ = remove::file(&self.hidden);
        }
    }
}

/// Refuses a folder for versions that is not a folder or is reached through a link, and a `latest` in it that is not a
/// link.
pub(super) fn check(folder: &Path) -> Result<()> {
    [folder.parent(), Some(folder)].into_iter().flatten().try_for_each(links::refuse)?;
    let is_file = |path: &&Path| fs::metadata(path).is_ok_and(|found| !found.is_dir());
    if let Some(path) = folder.ancestors().find(is_file) {
        return Err(FileError::occupied(path, "a file", "a folder"));
    }
    let latest = folder.join(LATEST);
    match fs::symlink_metadata(&latest) {
        Ok(found) if !found.is_symlink() => {
            let found = if found.is_dir() { "a folder" } else { "a file" };
            Err(FileError::occupied(&latest, found, "a link to the newest version"))
        }
        _ => Ok(()),
    }
}
