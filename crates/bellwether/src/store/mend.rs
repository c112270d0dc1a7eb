//! Moves what is damaged out of the way, so that a good copy can be sent in its place; and clears what killed processes left
//! in a store that is a folder.
//!
//! Nothing is overwritten or lost. A damaged object is copied below `damaged/` and only then deleted, so it can be
//! repeated after it was interrupted. The client of a folder writes an object to `KEY#1` before it gives it its name, and hides
//! such files from listings.

use std::path::{Path, PathBuf};

use object_store::ObjectStoreExt;

use super::leftovers::is_key;
use super::objects::Store;
use crate::disk::file;
use crate::disk::names::is_unique;
use crate::disk::remove;
use crate::error::Result;
use crate::plan::StoreUrl;

/// The folder of a store with what was damaged, each repair in a folder of its own.
const DAMAGED: &str = "damaged";

/// The key that an object had before it was moved aside; its own if it was not.
fn key_before(key: &str) -> &str {
    let moved = || {
        let (repair, before) = key.strip_prefix(DAMAGED)?.strip_prefix('/')?.split_once('/')?;
        is_unique(repair).then_some(before)
    };
    moved().unwrap_or(key)
}

impl Store {
    /// Moves an object below `damaged/REPAIR/`. It is not an error if there is none.
    pub(crate) async fn set_aside(&self, at: &str, repair: &str) -> Result<()> {
        let (from, to) = (self.key(at)?, self.key(&format!("{DAMAGED}/{repair}/{at}"))?);
        match self.in_turn(self.objects.copy(&from, &to)).await? {
            Ok(()) => self.delete(at).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(fault) => Err(self.failure("move", at, &fault)),
        }
    }

    /// Moves the objects of ours in a folder aside, its record first: from then on, no reader takes it for a run or a
    /// version.
    pub(crate) async fn set_folder_aside(&self, at: &str, record: &str, repair: &str) -> Result<()> {
        self.set_aside(&format!("{at}/{record}"), repair).await?;
        for object in self.list(at).await?.into_iter().filter(|object| is_key(&object.key)) {
            self.set_aside(&object.key, repair).await?;
        }
        Ok(())
    }
}

/// The most folders below each other in a store: those of a partitioned version that was moved aside.
const MAX_DEPTH: usize = 10;

/// Removes the objects of ours that were not completed within a day.
pub(crate) fn clear_staged(url: &StoreUrl) -> Result<()> {
    let Some(root) = url.folder() else { return Ok(()) };
    let mut folders: Vec<(PathBuf, usize)> =
        ["archive", "datasets", DAMAGED].map(|name| (root.join(name), MAX_DEPTH)).into();
    while let Some((folder, depth)) = folders.pop() {
        if folder.is_symlink() {
            continue;
        }
        for path in file::entries(&folder)? {
            if path.is_dir() && depth > 0 {
                folders.push((path, depth - 1));
            } else if is_staged(&root, &path) && file::is_older(&path, file::DAY)
                // Best effort: it is hidden, and the next upload tries again.
                && let Err(error) = remove::file(&path)
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove an incomplete object");
            }
        }
    }
    Ok(())
}

/// Whether a file is an object of ours before it got its name.
fn is_staged(root: &Path, path: &Path) -> bool {
    let key = path.strip_prefix(root).ok().and_then(Path::to_str).and_then(|name| name.rsplit_once('#'));
    key.is_some_and(|(key, number)| is_key(key_before(key)) && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_staged;

    #[test]
    fn only_objects_of_ours_that_have_no_name_yet_are_staged() {
        let is_staged = |path: &str| is_staged(Path::new("/store"), Path::new(path));
        let run = "archive/vendor/run=20261120T213000Z-7f3a/signals.parquet";
        for staged in [
            format!("/store/{run}#1"),
            format!("/store/{run}#120"),
            format!("/store/damaged/20261121T213000Z-7f3a/{run}#1"),
            "/store/datasets/energy/latest.json#7".to_owned(),
        ] {
            assert!(is_staged(&staged), "{staged}");
        }
        for other in [
            format!("/store/{run}"),
            format!("/store/{run}#1a"),
            format!("/store/{run}.bak#1"),
            format!("/store/damaged/old/{run}#1"),
            format!("/other/{run}#1"),
            "/store/notes.txt#1".to_owned(),
            "/store/datasets/energy/mine.json#1".to_owned(),
        ] {
            assert!(!is_staged(&other), "{other}");
        }
    }
}
