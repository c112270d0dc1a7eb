//! Which objects are ours: what a listing has of runs, packs, merges, notes and versions. And what becomes of those that
//! nobody completes, or that are damaged.
//!
//! Uploads that were killed and abandoned for a day are cleared. First, a note is put in place of the folder's record, only if
//! absent. An upload that is still in progress then fails to put its own record, so a folder that exists never loses a file.
//! The note is removed last.
//!
//! What is damaged is moved out of the way, so that a good copy can be sent in its place. Nothing is overwritten or lost: a
//! damaged object is copied below `damaged/` and only then deleted, so it can be repeated after it was interrupted. The client of
//! a folder writes an object to `KEY#1` before it gives it its name, and hides such files from listings: what killed processes
//! left there is cleared, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStoreExt;
use serde::{Deserialize, Serialize};

use super::contents::{Listing, name_once_written};
use super::objects::{MAX_BYTES, PROBE, Store};
use super::{ARCHIVE, DATASETS};
use crate::archive::SEAL;
use crate::disk::names::{
    self, FORGOTTEN_FOLDER, MERGE_FOLDER, PACK_FOLDER, RUN_FILES, RUN_FOLDER, SMALLEST_RECORD, fits, is_dataset,
    is_unique, unique,
};
use crate::disk::{file, remove};
use crate::error::Result;
use crate::export::{FACTS, RECORD};
use crate::plan::{ServiceIdentity, StoreUrl};
use crate::time::{Clock, as_record};

/// How long something stays after it was replaced, or began to be sent.
pub(super) const GRACE: TimeDelta = TimeDelta::days(1);

/// The folder of a store with what was damaged, each repair in a folder of its own.
const DAMAGED: &str = "damaged";

/// The folder that an object of a run, pack, merge or version is in, and its name there; `None` for all others.
fn folder_of(key: &str) -> Option<(&str, &str)> {
    let mut parts = key.splitn(4, '/');
    let (root, home, folder, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_of_version = || [RECORD, FACTS, "_SUCCESS"].contains(&name) || names::is_file_of_version(name, home);
    let is_file = match root {
        ARCHIVE => ServiceIdentity::is_folder(home) && RUN_FILES.contains(&name),
        DATASETS => is_dataset(home) && is_of_version(),
        _ => false,
    };
    let is_ours = is_file && forms_in(root).iter().any(|form| fits(folder, form));
    is_ours.then(|| (&key[..key.len() - name.len() - 1], name))
}

/// The forms of the names of runs, packs and merges, or of versions.
fn forms_in(root: &str) -> &'static [&'static str] {
    if root == ARCHIVE { &[RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER] } else { &[unique!()] }
}

/// Whether a key is that of an object of ours.
fn is_key(key: &str) -> bool {
    let parts: Vec<&str> = key.split('/').collect();
    let is_single = match parts[..] {
        // A note that a run is forgotten.
        [ARCHIVE, service, note, SEAL] => ServiceIdentity::is_folder(service) && fits(note, FORGOTTEN_FOLDER),
        [DATASETS, dataset, "latest.json" | "pruned.json"] => is_dataset(dataset),
        _ => key.starts_with(PROBE),
    };
    is_single || folder_of(key).is_some()
}

/// The name of the record of a folder.
pub(super) fn record_name(folder: &str) -> &'static str {
    if folder.starts_with(ARCHIVE) { SEAL } else { RECORD }
}

/// The key of a folder's record.
pub(super) fn record_of(folder: &str) -> String {
    format!("{folder}/{}", record_name(folder))
}

/// The note in place of the record of a folder that is being cleared.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clearing {
    #[serde(with = "as_record")]
    cleared_at: DateTime<Utc>,
}

/// The note, as an object.
fn note(cleared_at: DateTime<Utc>) -> Bytes {
    serde_json::to_vec(&Clearing { cleared_at }).expect("it is text").into()
}

/// Whether a record says that its folder is being cleared.
pub(super) fn is_clearing(record: &[u8]) -> bool {
    (record.len() as u64) < SMALLEST_RECORD && serde_json::from_slice::<Clearing>(record).is_ok()
}

/// What a listing has of a run, pack, merge or version.
#[derive(Debug, Default)]
pub(super) struct ListedFolder {
    pub(super) objects: usize,
    pub(super) bytes: u64,
    /// When the last of its objects was put.
    changed: DateTime<Utc>,
    /// Whether it has a record, and not a note that it is being cleared.
    pub(super) is_complete: bool,
}

impl Listing {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is a record, and not a note that its folder is being cleared.
    pub(super) fn has_record(&self, folder: &str) -> bool {
        self.0.get(&record_of(folder)).is_some_and(|record| record.bytes >= SMALLEST_RECORD)
    }

    /// The names of the folders of some forms that have something with the name of a record.
    fn named<'a>(&'a self, at: &str, forms: &'static [&'static str]) -> impl Iterator<Item = &'a str> + use<'a> {
        let (below, record) = (format!("{at}/"), format!("/{}", record_name(at)));
        let keys = self.0.range(below.clone()..).map_while(move |(key, _)| key.strip_prefix(&below));
        let names = keys.filter_map(move |name| name.strip_suffix(&record));
        names.filter(|name| forms.iter().any(|form| fits(name, form)))
    }

    /// The runs, packs and merges of an archive, or the versions of a dataset, with something that should be a record.
    pub(super) fn recorded<'a>(&'a self, at: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.named(at, forms_in(at.split('/').next().unwrap_or_default()))
    }

    /// Those of them that are complete.
    pub(super) fn complete<'a>(&'a self, at: &'a str) -> impl Iterator<Item = &'a str> {
        self.recorded(at).filter(move |name| self.has_record(&format!("{at}/{name}")))
    }

    /// The names of the folders of an archive with notes on forgotten runs.
    pub(super) fn notes<'a>(&'a self, at: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.named(at, &[FORGOTTEN_FOLDER])
    }

    /// The names of the datasets that have any object.
    pub(super) fn datasets(&self) -> BTreeSet<&str> {
        let names = self.keys().filter_map(|key| Some(key.strip_prefix("datasets/")?.split_once('/')?.0));
        names.filter(|name| is_dataset(name)).collect()
    }

    /// The names of the services, and of their claims, that have any object.
    pub(super) fn services(&self) -> BTreeSet<&str> {
        let names = self.keys().filter_map(|key| Some(key.strip_prefix("archive/")?.split_once('/')?.0));
        names.filter(|name| ServiceIdentity::is_folder(name)).collect()
    }

    /// The folders of runs, packs, merges and versions, complete or not.
    pub(super) fn folders(&self) -> BTreeMap<&str, ListedFolder> {
        let mut folders: BTreeMap<&str, ListedFolder> = BTreeMap::new();
        for (key, object) in &self.0 {
            let Some((at, _)) = folder_of(key) else { continue };
            let folder = folders.entry(at).or_default();
            folder.objects += 1;
            folder.bytes += object.bytes;
            folder.changed = folder.changed.max(object.changed);
        }
        folders.iter_mut().for_each(|(at, folder)| folder.is_complete = self.has_record(at));
        folders
    }

    /// The folders that have no record and have not changed for a day.
    pub(super) fn abandoned(&self, now: DateTime<Utc>) -> Vec<String> {
        let is_abandoned = |folder: &ListedFolder| !folder.is_complete && now - folder.changed > GRACE;
        self.folders().into_iter().filter(|(_, folder)| is_abandoned(folder)).map(|(at, _)| at.to_owned()).collect()
    }
}

impl Store {
    /// Clears the listed folders that have no record and have not changed for a day, and probes of that age. Returns the
    /// folders.
    pub(super) async fn clear_abandoned(&self, listed: &Listing) -> Result<Vec<String>> {
        let probes = |now: DateTime<Utc>| {
            let probes = listed.0.iter().filter(|(key, _)| key.starts_with(PROBE));
            probes.filter(move |(_, object)| now - object.changed > GRACE).map(|(key, _)| key)
        };
        let here = Clock::System.now();
        if listed.abandoned(here).is_empty() && probes(here).next().is_none() {
            return Ok(Vec::new());
        }
        // This machine's clock may be wrong.
        let now = self.now().await?;
        for probe in probes(now) {
            self.delete(probe).await?;
        }
        let mut cleared = Vec::new();
        for folder in listed.abandoned(now) {
            if self.clear(&folder, now).await? {
                cleared.push(folder);
            }
        }
        Ok(cleared)
    }

    /// Removes a complete folder. A note takes the place of its record first, so it is whole or gone to every reader, and
    /// nobody completes it meanwhile; what a killed removal left is cleared like an upload. It is not an error if there is
    /// none.
    pub(super) async fn remove_folder(&self, folder: &str, now: DateTime<Utc>) -> Result<()> {
        let record = record_of(folder);
        while let Some(content) = self.get(&record, MAX_BYTES).await? {
            if is_clearing(&content.bytes) || self.put(&record, note(now), Some(&content)).await? {
                return self.clear(folder, now).await.map(drop);
            }
        }
        Ok(())
    }

    /// Clears a folder, unless it was sealed meanwhile.
    async fn clear(&self, folder: &str, now: DateTime<Utc>) -> Result<bool> {
        let record = record_of(folder);
        if !self.put(&record, note(now), None).await?
            && !self.get(&record, MAX_BYTES).await?.is_some_and(|content| is_clearing(&content.bytes))
        {
            return Ok(false);
        }
        // Listed again, because files may have arrived before the note.
        for key in self.list(folder).await?.keys().filter(|key| *key != record && folder_of(key).is_some()) {
            self.delete(key).await?;
        }
        self.delete(&record).await?;
        Ok(true)
    }

    /// Moves an object below `damaged/REPAIR/`. It is not an error if there is none.
    pub(super) async fn set_aside(&self, at: &str, repair: &str) -> Result<()> {
        let (from, to) = (self.key(at)?, self.key(&format!("{DAMAGED}/{repair}/{at}"))?);
        match self.in_turn(self.client.objects.copy(&from, &to)).await? {
            Ok(()) => self.delete(at).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(fault) => Err(self.failure("move", at, fault)),
        }
    }

    /// Moves the objects of ours in a folder aside, its record first: from then on, no reader takes it for a run or a
    /// version.
    pub(super) async fn set_folder_aside(&self, at: &str, repair: &str) -> Result<()> {
        self.set_aside(&record_of(at), repair).await?;
        for key in self.list(at).await?.keys().filter(|key| is_key(key)) {
            self.set_aside(key, repair).await?;
        }
        Ok(())
    }
}

/// Removes the objects of ours in a `file:///` store that were not completed within a day.
pub(super) fn clear_staged(url: &StoreUrl) -> Result<()> {
    let Some(root) = url.folder() else { return Ok(()) };
    // The deepest are those of a partitioned version that was moved aside.
    let mut folders: Vec<(PathBuf, usize)> = [ARCHIVE, DATASETS, DAMAGED].map(|name| (root.join(name), 10)).into();
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
    let key = path.strip_prefix(root).ok().and_then(Path::to_str).and_then(name_once_written);
    key.is_some_and(|key| {
        let moved = key.strip_prefix(DAMAGED).and_then(|key| key.strip_prefix('/')?.split_once('/'));
        is_key(moved.filter(|(repair, _)| is_unique(repair)).map_or(key, |(_, before)| before))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use chrono::DateTime;

    use super::super::contents::Object;
    use super::{Clearing, Listing, folder_of, is_clearing, is_key, is_staged};

    const RUN: &str = "archive/vendor.example/run=20261120T213000Z-7f3a";
    const VERSION: &str = "datasets/energy/20261120T213000Z-7f3a";

    #[test]
    fn objects_of_ours_are_those_of_a_run_or_a_version_and_nothing_beside_them() {
        for (folder, name) in [
            (RUN.to_owned(), "run.json"),
            (RUN.to_owned(), "signals.parquet"),
            (RUN.replace("run=", "pack="), "answers.parquet"),
            (RUN.replace("run=", "merge="), "rejects.parquet"),
            (VERSION.to_owned(), "dataset.json"),
            (VERSION.to_owned(), "facts.json"),
            (VERSION.to_owned(), "_SUCCESS"),
            (VERSION.to_owned(), "energy.csv"),
            (VERSION.to_owned(), "date=2026-11-20/ticker=XOM/energy.parquet"),
        ] {
            let key = format!("{folder}/{name}");
            assert_eq!(folder_of(&key), Some((folder.as_str(), name)));
            assert!(is_key(&key), "{key}");
        }
        for key in [
            format!("{RUN}/notes.txt"),
            format!("{RUN}/run.json/x"),
            format!("{RUN}/x/run.json"),
            format!("{RUN}run.json"),
            RUN.to_owned(),
            "archive/vendor.example/run=old/run.json".to_owned(),
            "archive/.hidden/run=20261120T213000Z-7f3a/run.json".to_owned(),
            "archive/run=20261120T213000Z-7f3a/run.json".to_owned(),
            format!("x/{RUN}/run.json"),
            format!("{VERSION}/other.csv"),
            format!("{VERSION}/x/energy.csv"),
            VERSION.to_owned(),
            "datasets/energy/old/dataset.json".to_owned(),
            "datasets/a.b/20261120T213000Z-7f3a/dataset.json".to_owned(),
            "datasets/a.b/latest.json".to_owned(),
            "datasets/latest.json".to_owned(),
            "datasets/energy/x/latest.json".to_owned(),
            "latest.json".to_owned(),
        ] {
            assert_eq!(folder_of(&key), None, "{key}");
            assert!(!is_key(&key), "{key}");
        }
        assert!(is_key("datasets/energy/latest.json") && folder_of("datasets/energy/latest.json").is_none());
    }

    #[test]
    fn a_note_that_a_folder_is_cleared_is_short_and_says_nothing_else() {
        let note = serde_json::to_string(&Clearing { cleared_at: DateTime::UNIX_EPOCH }).unwrap();
        let padded = |length: usize| format!("{note}{}", " ".repeat(length - note.len()));
        assert!(is_clearing(note.as_bytes()) && is_clearing(padded(255).as_bytes()));
        assert!(!is_clearing(padded(256).as_bytes()), "it may be a record");
        assert!(!is_clearing(note.replace('}', ",\"files\":[]}").as_bytes()));
        assert!(!is_clearing(b"{}") && !is_clearing(b""));
        let has_record = |bytes| {
            let object = Object { bytes, changed: DateTime::UNIX_EPOCH };
            Listing([(format!("{RUN}/run.json"), object)].into()).has_record(RUN)
        };
        assert!(has_record(256) && !has_record(255));
    }

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
