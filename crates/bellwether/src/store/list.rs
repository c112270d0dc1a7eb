//! What is in a store: the objects and the folders below a folder, in bounded listings.
//!
//! A bucket is listed in pages. Their number is bounded, and none may come twice: a store that repeats itself would
//! never end. A folder is walked here, since the client gives up on the first name that it cannot spell. Keys that are
//! no paths are nothing of ours. They are skipped, and a warning names them once.

use std::collections::BTreeSet;
#[cfg(feature = "cloud")]
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
#[cfg(feature = "cloud")]
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path as Key;
use object_store::{Error as Fault, ObjectMeta};
use tokio::task::spawn_blocking;

use super::fault::{Explained, FaultVerdict};
use super::objects::Store;
use crate::disk::names::{FORGOTTEN_FOLDER, MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits, is_unique};
use crate::error::Result;
use crate::text::human::count_of;

/// The most objects of a listing: a hundred years of daily runs take a third of it.
const MAX_OBJECTS: usize = 1 << 20;

/// The most pages of a listing, which have a thousand objects in most stores.
#[cfg(feature = "cloud")]
const MAX_PAGES: usize = 1 << 16;

/// The depth of the deepest folder that is walked. The files of ours are four folders down.
const MAX_DEPTH: usize = 8;

/// The most skipped keys that are remembered.
const MAX_SKIPPED: usize = 1000;

/// An object of a listing.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its key below the store's prefix.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was put, by the store's clock.
    pub changed: DateTime<Utc>,
}

/// How a store is listed.
#[derive(Clone)]
pub(super) enum Listed {
    /// A folder is walked.
    Folder(PathBuf),
    /// A bucket answers in pages.
    #[cfg(feature = "cloud")]
    Pages(Arc<dyn PaginatedListStore>),
}

impl fmt::Debug for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => formatter.debug_tuple("Folder").field(folder).finish(),
            #[cfg(feature = "cloud")]
            Self::Pages(_) => formatter.write_str("Pages(…)"),
        }
    }
}

/// What a listing goes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// All objects, however deep.
    Objects,
    /// The folders directly below.
    Folders,
}

/// The objects or folders of a listing, with the prefix of the store.
#[derive(Debug, Default)]
struct Contents {
    objects: Vec<ObjectMeta>,
    folders: BTreeSet<Key>,
}

/// The keys of a store that are no paths. Each is told once.
#[derive(Clone)]
pub(super) struct SkippedKeys {
    keys: Arc<Mutex<Skipped>>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

#[derive(Debug, Default)]
struct Skipped {
    known: BTreeSet<String>,
    new: Vec<String>,
}

impl fmt::Debug for SkippedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SkippedKeys").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SkippedKeys {
    pub(super) fn new(warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { keys: Arc::default(), warn: Arc::new(warn) }
    }

    /// Adds keys, up to a limit.
    pub(super) fn add(&self, keys: impl IntoIterator<Item = String>) {
        let mut skipped = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if skipped.known.len() < MAX_SKIPPED && skipped.known.insert(key.clone()) {
                skipped.new.push(key);
            }
        }
    }

    /// Tells the new ones.
    fn tell(&self, url: &impl fmt::Display) {
        let mut skipped = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let new = std::mem::take(&mut skipped.new);
        drop(skipped);
        if let Some(first) = new.first() {
            let count = count_of(new.len() as u64, "object or folder", "objects and folders");
            (self.warn)(&format!("skipped {count} of `{url}` whose names are no paths, such as `{first}`"));
        }
    }
}

impl Store {
    /// The objects below a folder, in no particular order.
    pub(crate) async fn list(&self, at: &str) -> Result<Vec<Object>> {
        let below = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let object = |meta: ObjectMeta| Object {
            key: meta.location.as_ref().get(below..).unwrap_or_default().to_owned(),
            bytes: meta.size,
            changed: meta.last_modified,
        };
        Ok(self.contents(at, Scope::Objects).await?.objects.into_iter().map(object).collect())
    }

    /// The names of the folders in a folder.
    pub(crate) async fn names(&self, at: &str) -> Result<Vec<String>> {
        let contents = self.contents(at, Scope::Folders).await?;
        Ok(contents.folders.iter().filter_map(|key| key.filename().map(str::to_owned)).collect())
    }

    async fn contents(&self, at: &str, scope: Scope) -> Result<Contents> {
        let contents = match &self.listed {
            Listed::Folder(folder) => {
                let (folder, at, skipped) = (folder.clone(), at.to_owned(), self.skipped.clone());
                let walked = self.in_turn(spawn_blocking(move || walk(&folder, &at, scope, &skipped))).await?;
                walked.unwrap_or_else(|_| Err(failure(io::Error::other("a worker thread panicked"))))
            }
            #[cfg(feature = "cloud")]
            Listed::Pages(pages) => self.pages(pages.as_ref(), at, scope).await?,
        };
        self.skipped.tell(self.url());
        contents.map_err(|fault| self.failure("list", at, &fault))
    }

    /// The pages of a listing, one after the other.
    #[cfg(feature = "cloud")]
    async fn pages(&self, pages: &dyn PaginatedListStore, at: &str, scope: Scope) -> Result<Result<Contents, Fault>> {
        let prefix = format!("{}/", self.key(at)?);
        let delimiter = (scope == Scope::Folders).then(|| "/".into());
        let (mut contents, mut seen, mut token) = (Contents::default(), HashSet::new(), None);
        loop {
            let options =
                PaginatedListOptions { delimiter: delimiter.clone(), page_token: token, ..Default::default() };
            let page = self.retry(|| pages.list_paginated(Some(&prefix), options.clone())).await?;
            let page = match page {
                Ok(page) => page,
                Err(fault) => return Ok(Err(fault)),
            };
            match scope {
                Scope::Objects => contents.objects.extend(page.result.objects),
                Scope::Folders => contents.folders.extend(page.result.common_prefixes),
            }
            token = page.page_token.filter(|token| !token.is_empty());
            let Some(next) = &token else { return Ok(Ok(contents)) };
            if !seen.insert(next.clone()) {
                return Ok(Err(refusal("its listing repeats a page".to_owned())));
            }
            if seen.len() > MAX_PAGES {
                return Ok(Err(refusal(format!("its listing has more than {MAX_PAGES} pages"))));
            }
            if let Err(fault) = contents.check() {
                return Ok(Err(fault));
            }
        }
    }
}

impl Contents {
    fn check(&self) -> Result<(), Fault> {
        match self.objects.len().max(self.folders.len()) > MAX_OBJECTS {
            true => Err(refusal(format!("it has more than {MAX_OBJECTS} objects"))),
            false => Ok(()),
        }
    }
}

fn refusal(reason: String) -> Fault {
    Explained::new(FaultVerdict::Refusal, reason).into_store_error()
}

fn failure(error: io::Error) -> Fault {
    Fault::Generic { store: "folder", source: error.into() }
}

/// Walks a folder of a store.
fn walk(root: &Path, at: &str, scope: Scope, skipped: &SkippedKeys) -> Result<Contents, Fault> {
    let (mut contents, mut folders) = (Contents::default(), vec![at.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failure)?,
        };
        for entry in entries {
            let entry = entry.map_err(failure)?;
            let Some((name, key)) = name_and_key(&folder, &entry) else {
                skipped.add([format!("{folder}/{}", entry.file_name().to_string_lossy())]);
                continue;
            };
            // Of the entry itself, not of what a link leads to.
            let found = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found.map_err(failure)?,
            };
            match scope {
                // To skip it would be to call what is behind it missing.
                _ if found.is_symlink() && may_be_ours(key.as_ref()) => {
                    return Err(refusal(format!("`{key}` is a symbolic link, which is not followed")));
                }
                Scope::Folders if found.is_dir() => _ = contents.folders.insert(key),
                Scope::Objects if found.is_dir() && key.parts().count() < MAX_DEPTH => {
                    folders.push(format!("{folder}/{name}"));
                }
                Scope::Objects if found.is_file() && !is_staged(&name) => contents.objects.push(ObjectMeta {
                    location: key,
                    last_modified: found.modified().map_err(failure)?.into(),
                    size: found.len(),
                    e_tag: None,
                    version: None,
                }),
                _ => {}
            }
        }
        contents.check()?;
    }
    Ok(contents)
}

/// Whether an entry is where an archive, a dataset, or a run or version of it is.
fn may_be_ours(key: &str) -> bool {
    const FORMS: [&str; 4] = [RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER, FORGOTTEN_FOLDER];
    match key.split('/').nth(2) {
        None => true,
        Some(name) => is_unique(name) || name == "latest.json" || FORMS.iter().any(|form| fits(name, form)),
    }
}

/// The name of an entry and its key; `None` if that is no path.
fn name_and_key(folder: &str, entry: &fs::DirEntry) -> Option<(String, Key)> {
    let name = entry.file_name().into_string().ok()?;
    let key = Key::parse(format!("{folder}/{name}")).ok()?;
    Some((name, key))
}

/// Whether a file is one that the client is still writing: it ends in `#` and a number.
fn is_staged(name: &str) -> bool {
    name.rsplit_once('#').is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use super::{Scope, SkippedKeys, walk};

    /// The objects and the folders of a walk, in order.
    fn walk_all(root: &Path, at: &str, scope: Scope) -> (Vec<String>, Vec<String>) {
        let contents = walk(root, at, scope, &SkippedKeys::new(|_| {})).unwrap();
        let mut objects: Vec<String> = contents.objects.iter().map(|object| object.location.to_string()).collect();
        objects.sort();
        (objects, contents.folders.iter().map(ToString::to_string).collect())
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
        assert_eq!(walk_all(root, "a", Scope::Objects), (listed.map(str::to_owned).into(), Vec::new()));
        assert_eq!(walk_all(root, "a", Scope::Folders), (Vec::new(), vec!["a/b".to_owned()]));
        assert_eq!(walk_all(root, "none", Scope::Objects), (Vec::new(), Vec::new()));
        symlink(root, root.join("a/b/up")).unwrap();
        assert_eq!(walk_all(root, "a", Scope::Objects), (listed.map(str::to_owned).into(), Vec::new()));
        for ours in ["a/linked", "a/b/run=20261120T213000Z-7f3a", "a/b/20261120T213000Z-7f3a"] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("a/b")).unwrap();
            symlink(root, folder.path().join(ours)).unwrap();
            let error = walk(folder.path(), "a", Scope::Objects, &SkippedKeys::new(|_| {})).unwrap_err();
            assert!(error.to_string().contains(&format!("`{ours}` is a symbolic link")), "{error}");
        }
    }

    #[test]
    fn odd_keys_are_told_once_and_remembered_up_to_a_limit() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let skipped = SkippedKeys::new(move |text| hears.lock().unwrap().push(text.to_owned()));
        skipped.tell(&"file:///s");
        skipped.add(["a//b".to_owned(), "a/./b".to_owned()]);
        skipped.tell(&"file:///s");
        skipped.add(["a//b".to_owned()]);
        skipped.tell(&"file:///s");
        let only = "skipped 2 objects and folders of `file:///s` whose names are no paths, such as `a//b`";
        assert_eq!(*told.lock().unwrap(), [only]);
        skipped.add((0..2_000).map(|number| format!("a//{number}")));
        assert_eq!(skipped.keys.lock().unwrap().known.len(), 1_000);
    }
}
