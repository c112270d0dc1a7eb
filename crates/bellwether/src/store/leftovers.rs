//! Clears uploads that were killed and abandoned for a day.
//!
//! First, a note is put in place of the folder's record, only if absent. An upload that is still in progress then fails to put
//! its own record, so a folder that exists never loses a file. The note is removed last.
//!
//! Also moves what is damaged out of the way, so that a good copy can be sent in its place. Nothing is overwritten or lost: a
//! damaged object is copied below `damaged/` and only then deleted, so it can be repeated after it was interrupted. The client of
//! a folder writes an object to `KEY#1` before it gives it its name, and hides such files from listings: what killed processes
//! left there is cleared, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStoreExt;
use serde::{Deserialize, Serialize};

use super::list::Object;
use super::objects::PROBE;
use super::objects::{MAX_BYTES, Store};
use crate::disk::names::{
    self, FORGOTTEN_FOLDER, MERGE_FOLDER, PACK_FOLDER, RUN_FILES, RUN_FOLDER, SMALLEST_RECORD, fits, is_unique,
};
use crate::disk::{file, remove};
use crate::error::Result;
use crate::plan::{ServiceIdentity, StoreUrl};
use crate::time::{Clock, as_record, random};

/// The age at which an upload counts as killed.
const ABANDONED_AFTER: TimeDelta = TimeDelta::days(1);

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

/// Whether an object is old enough to belong to an upload that was killed.
fn is_old(object: &Object, now: DateTime<Utc>) -> bool {
    now - object.changed > ABANDONED_AFTER
}

/// The folders that have no record and have not changed for a day.
pub(crate) fn abandoned_folders(folders: &BTreeMap<String, Vec<Object>>, now: DateTime<Utc>) -> Vec<String> {
    let is_abandoned = |(folder, objects): &(&String, &Vec<Object>)| {
        let record = format!("{folder}/{}", record_of(folder));
        objects.iter().all(|object| (object.key != record || !object.may_be_record()) && is_old(object, now))
    };
    folders.iter().filter(is_abandoned).map(|(folder, _)| folder.clone()).collect()
}

/// Whether a record says that its folder is being cleared.
pub(super) fn is_clearing(record: &[u8]) -> bool {
    (record.len() as u64) < SMALLEST_RECORD && serde_json::from_slice::<Clearing>(record).is_ok()
}

/// The objects of each folder that has a record's file or could have one, by the folder's key.
pub(crate) fn by_folder(objects: Vec<Object>) -> BTreeMap<String, Vec<Object>> {
    let mut folders: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    for object in objects {
        if let Some((folder, _)) = folder_of(&object.key) {
            folders.entry(folder.to_owned()).or_default().push(object);
        }
    }
    folders
}

/// The folder that an object of ours is in, and the object's name there; `None` for all others.
fn folder_of(key: &str) -> Option<(&str, &str)> {
    let mut parts = key.split('/');
    match (parts.next()?, parts.next()?) {
        ("archive", service) if ServiceIdentity::is_folder(service) => {
            let is_sealed = |name: &&str| [RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER].iter().any(|form| fits(name, form));
            let folder = parts.next().filter(is_sealed)?;
            let (at, name) = key.split_at_checked("archive/".len() + service.len() + 1 + folder.len())?;
            let name = name.strip_prefix('/')?;
            RUN_FILES.contains(&name).then_some((at, name))
        }
        ("datasets", dataset) if names::is_dataset(dataset) => {
            let version = parts.next().filter(|version| is_unique(version))?;
            let (at, name) = key.split_at_checked("datasets/".len() + dataset.len() + 1 + version.len())?;
            let name = name.strip_prefix('/')?;
            let is_ours =
                ["dataset.json", "facts.json", "_SUCCESS"].contains(&name) || names::is_file_of_version(name, dataset);
            is_ours.then_some((at, name))
        }
        _ => None,
    }
}

/// Whether a key is that of an object of ours.
pub(super) fn is_key(key: &str) -> bool {
    let dataset_of = |file| key.strip_prefix("datasets/")?.strip_suffix(file);
    let is_of_dataset = ["/latest.json", "/pruned.json"].into_iter().filter_map(dataset_of).any(names::is_dataset);
    key.starts_with(PROBE) || folder_of(key).is_some() || is_note(key) || is_of_dataset
}

/// Whether a key is that of a note that a run is forgotten.
fn is_note(key: &str) -> bool {
    let parts = key.strip_prefix("archive/").and_then(|key| key.split_once('/'));
    parts.is_some_and(|(service, note)| {
        let folder = note.strip_suffix("/run.json");
        ServiceIdentity::is_folder(service) && folder.is_some_and(|folder| fits(folder, FORGOTTEN_FOLDER))
    })
}

/// The name of a folder's record.
pub(crate) fn record_of(folder: &str) -> &'static str {
    if folder.starts_with("archive/") { "run.json" } else { "dataset.json" }
}

impl Object {
    /// Whether an object with the name of a record is large enough to be one, and not a note.
    pub(crate) fn may_be_record(&self) -> bool {
        self.bytes >= SMALLEST_RECORD
    }
}

impl Store {
    /// Clears the listed folders that have no record and have not changed for a day, and probes of that age. Returns the
    /// folders.
    pub(crate) async fn clear_abandoned(&self, objects: &[Object]) -> Result<Vec<String>> {
        let folders = by_folder(objects.to_vec());
        let probes = || objects.iter().filter(|object| object.key.starts_with(PROBE));
        if abandoned_folders(&folders, Clock::System.now()).is_empty()
            && !probes().any(|probe| is_old(probe, Clock::System.now()))
        {
            return Ok(Vec::new());
        }
        // This machine's clock may be wrong.
        let now = self.now().await?;
        for probe in probes().filter(|probe| is_old(probe, now)) {
            self.delete(&probe.key).await?;
        }
        let mut cleared = Vec::new();
        for folder in abandoned_folders(&folders, now) {
            if self.clear(&folder, now).await? {
                cleared.push(folder);
            }
        }
        Ok(cleared)
    }

    /// Removes a complete folder. A note takes the place of its record first, so it is whole or gone to every reader, and
    /// nobody completes it meanwhile; what a killed removal left is cleared like an upload. It is not an error if there is
    /// none.
    pub(crate) async fn remove_folder(&self, folder: &str, now: DateTime<Utc>) -> Result<()> {
        let record = format!("{folder}/{}", record_of(folder));
        while let Some(content) = self.get(&record, MAX_BYTES).await? {
            if is_clearing(&content.bytes) || self.replace(&record, note(now), &content).await? {
                return self.clear(folder, now).await.map(drop);
            }
        }
        Ok(())
    }

    /// The store's clock.
    pub(crate) async fn now(&self) -> Result<DateTime<Utc>> {
        let at = format!("{PROBE}{:016x}", random());
        self.create(&at, Bytes::from_static(b"clock")).await?;
        let changed = self.get(&at, MAX_BYTES).await?.map(|content| content.changed);
        self.delete(&at).await?;
        changed.ok_or_else(|| self.later("read", &at, "it was just written"))
    }

    /// Clears a folder, unless it was sealed meanwhile.
    async fn clear(&self, folder: &str, now: DateTime<Utc>) -> Result<bool> {
        let record = format!("{folder}/{}", record_of(folder));
        if !self.create(&record, note(now)).await?
            && !self.get(&record, MAX_BYTES).await?.is_some_and(|content| is_clearing(&content.bytes))
        {
            return Ok(false);
        }
        // Listed again, because files may have arrived before the note.
        for object in self.list(folder).await? {
            if object.key != record && folder_of(&object.key).is_some() {
                self.delete(&object.key).await?;
            }
        }
        self.delete(&record).await?;
        Ok(true)
    }

    /// Deletes an object. It is not an error if there is none.
    pub(super) async fn delete(&self, at: &str) -> Result<()> {
        let key = self.key(at)?;
        match self.in_turn(self.objects.delete(&key)).await? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(fault) => Err(self.failure("remove", at, &fault)),
        }
    }
}

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

    use chrono::DateTime;

    use super::{Clearing, folder_of, is_clearing, is_key, is_staged};
    use crate::store::Object;

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
        let object = |bytes| Object { key: format!("{RUN}/run.json"), bytes, changed: DateTime::UNIX_EPOCH };
        assert!(object(256).may_be_record() && !object(255).may_be_record());
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
