//! Clears what killed processes left in a store that is a folder.
//!
//! Its client writes an object to `KEY#1` before it gives it its name, and hides such files from listings.

use std::path::{Path, PathBuf};

use super::leftovers::is_key;
use super::mend::{DAMAGED, key_before};
use crate::disk::file;
use crate::disk::remove;
use crate::error::Result;
use crate::plan::StoreUrl;

/// The most folders below each other in a store: those of a partitioned version that was moved aside.
const DEPTH: usize = 10;

/// Removes the objects of ours that were not completed within a day.
pub(crate) fn clear(url: &StoreUrl) -> Result<()> {
    let Some(root) = url.folder() else { return Ok(()) };
    let mut folders: Vec<(PathBuf, usize)> =
        ["archive", "datasets", DAMAGED].map(|name| (root.join(name), DEPTH)).into();
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
