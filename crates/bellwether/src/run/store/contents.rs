//! What a listing of a store contains, and which keys are skipped.
//!
//! A folder is walked here, since the client gives up on the first name that it cannot spell. Keys that are no paths are
//! nothing of ours: a warning names them once.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use object_store::path::Path as Key;

use super::fault::{Failure, Verdict};
use crate::disk::names::{FORGOTTEN_FOLDER, MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits, is_unique};
use crate::text::human::count_of;

/// An object of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// Its size.
    pub(crate) bytes: u64,
    /// When it was put, by the store's clock.
    pub(crate) changed: DateTime<Utc>,
}

/// The objects of a listing, by key.
#[derive(Debug, Default)]
pub(crate) struct Listing(pub(super) BTreeMap<String, Object>);

impl Listing {
    /// Refuses one that is too long: a hundred years of daily runs take a third of the limit.
    pub(super) fn check(&self) -> Result<(), Failure> {
        const MAX_OBJECTS: usize = 1 << 20;
        match self.0.len() > MAX_OBJECTS {
            true => Err(Failure::new(Verdict::Refused, format!("it has more than {MAX_OBJECTS} objects"))),
            false => Ok(()),
        }
    }
}

/// The keys of a store that are no paths, and how many of them were told.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedKeys(Arc<Mutex<(Vec<String>, usize)>>);

impl SkippedKeys {
    /// Adds keys that are not known yet, up to a limit.
    pub(super) fn add(&self, keys: impl IntoIterator<Item = String>) {
        let (known, _) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if known.len() < 1000 && !known.contains(&key) {
                known.push(key);
            }
        }
    }

    /// The warning about new ones, if there are any.
    pub(super) fn warning(&self, url: &impl std::fmt::Display) -> Option<String> {
        let (known, told) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = &known[*told..];
        let count = count_of(new.len() as u64, "object or folder", "objects and folders");
        let warning = format!("skipped {count} of `{url}` whose names are no paths, such as `{}`", new.first()?);
        *told = known.len();
        Some(warning)
    }
}

/// Walks a folder of a store that is a folder.
pub(super) fn walk(root: &Path, at: &str, skipped: &SkippedKeys) -> Result<Listing, Failure> {
    let (mut listing, mut folders) = (Listing::default(), vec![at.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let key = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_name().to_str().is_none() || Key::parse(&key).is_err() {
                skipped.add([key]);
                continue;
            }
            // Of the entry itself, not of what a link leads to.
            let found = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found?,
            };
            if found.is_symlink() && may_be_ours(&key) {
                // To skip it would be to call what is behind it missing.
                let reason = format!("`{key}` is a symbolic link, which is not followed");
                return Err(Failure::new(Verdict::Refused, reason));
            } else if found.is_dir() && key.split('/').count() < 8 {
                // The files of ours are four folders down.
                folders.push(key);
            } else if found.is_file() && name_once_written(&key).is_none() {
                listing.0.insert(key, Object { bytes: found.len(), changed: found.modified()?.into() });
            }
        }
        listing.check()?;
    }
    Ok(listing)
}

/// Whether an entry is where an archive, a dataset, or a run or version of it is.
fn may_be_ours(key: &str) -> bool {
    const FORMS: [&str; 4] = [RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER, FORGOTTEN_FOLDER];
    key.split('/')
        .nth(2)
        .is_none_or(|name| is_unique(name) || name == "latest.json" || FORMS.iter().any(|form| fits(name, form)))
}

/// The name that a file of a `file:///` store gets once the client has written it: before, it ends in `#` and a number.
pub(super) fn name_once_written(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once('#')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{SkippedKeys, walk};

    fn keys(root: &Path, at: &str) -> Vec<String> {
        walk(root, at, &SkippedKeys::default()).unwrap().0.into_keys().collect()
    }

    fn write(root: &Path, key: &str) {
        let path = root.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "ours").unwrap();
    }

    #[test]
    fn a_folder_is_walked_to_a_depth_without_unfinished_objects_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let listed = ["a/1", "a/b/2#x", "a/b/c/d/e/f/g/8"];
        for key in [listed[0], listed[1], listed[2], "a/b/c/d/e/f/g/h/9", "a/b/2#1", "z/1", "3"] {
            write(root, key);
        }
        assert_eq!(keys(root, "a"), listed);
        assert!(keys(root, "none").is_empty());
        symlink(root, root.join("a/b/up")).unwrap();
        assert_eq!(keys(root, "a"), listed);
        for ours in ["a/linked", "a/b/run=20261120T213000Z-7f3a", "a/b/20261120T213000Z-7f3a"] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("a/b")).unwrap();
            symlink(root, folder.path().join(ours)).unwrap();
            let error = walk(folder.path(), "a", &SkippedKeys::default()).unwrap_err();
            assert!(error.reason.contains(&format!("`{ours}` is a symbolic link")), "{error}");
        }
    }

    #[test]
    fn odd_keys_are_told_once_and_remembered_up_to_a_limit() {
        let skipped = SkippedKeys::default();
        let warning = || skipped.warning(&"file:///s");
        assert_eq!(warning(), None);
        skipped.add(["a//b".to_owned(), "a/./b".to_owned()]);
        let only = "skipped 2 objects and folders of `file:///s` whose names are no paths, such as `a//b`";
        assert_eq!(warning().as_deref(), Some(only));
        skipped.add(["a//b".to_owned()]);
        assert_eq!(warning(), None);
        skipped.add((0..2_000).map(|number| format!("a//{number}")));
        assert!(warning().unwrap().starts_with("skipped 998 objects"));
    }
}
