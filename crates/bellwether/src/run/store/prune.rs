//! Prunes a store: versions that newer ones replaced, the folders that a pack stands for, and interrupted uploads.
//!
//! | what | is removed |
//! |---|---|
//! | versions | beyond the newest `keep` of their definition and older than the latest, a day after the next one |
//! | runs, packs, merges | a day after a pack that holds all of them, once every row of theirs was found in it |
//! | uploads | that were interrupted a day ago |
//!
//! Another machine may read or write all of it meanwhile. What it may be reading has been replaced for a day, by the store's
//! own clock; if a folder goes while its files are fetched, the machine lists the store again and takes the pack. What it
//! may be writing is younger. It is told not to send the rest again: `pruned.json` names the oldest version that was kept,
//! and a run that a pack in the store holds is not missing there.
//!
//! A pack is compared with what it stands for in a copy of both, fetched from the store: what this machine has may differ.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::push::Packed;
use super::{ARCHIVE, DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive, names_of_datasets, versions};
use crate::archive::{Archive, Pruning, SEAL, Seal, check_contained};
use crate::disk::file::{self, FileError};
use crate::disk::remove;
use crate::error::Result;
use crate::export::RECORD;
use crate::run::blocking;
use crate::run::observer::Stage;
use crate::run::prune::PruneMode;
use crate::store::{Object, abandoned_folders, by_folder, clear_staged};
use crate::text::human::count_of;
use crate::time::{Clock, unique_name};

/// How long something stays after it was replaced.
const GRACE: TimeDelta = TimeDelta::days(1);

/// What is removed from a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorePrunedKind {
    /// A version of a dataset.
    Version,
    /// The folder of a run, pack or merge that a pack holds.
    PackedRun,
    /// An interrupted upload.
    Upload,
}

/// A folder that is removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct StorePrunedFolder {
    /// What it is.
    pub kind: StorePrunedKind,
    /// Its address.
    pub place: String,
    /// Its objects.
    pub objects: usize,
    /// Their size.
    pub bytes: u64,
}

/// What was removed from a store, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StorePruned {
    /// Whether nothing was removed.
    pub dry_run: bool,
    /// What was removed, or would be: packed runs are compared with their pack before.
    pub removed: Vec<StorePrunedFolder>,
    /// What matches the rules but stays, with the reason, a line each.
    pub kept: Vec<String>,
    /// The bytes that this frees.
    pub freed: u64,
}

/// The objects of each folder in a listing.
type Folders = BTreeMap<String, Vec<Object>>;

/// The versions of a dataset to remove, and the oldest of the others.
struct Surplus {
    versions: Vec<String>,
    oldest_kept: String,
}

impl RemoteStore {
    /// Removes what was replaced in the store, or lists it. `keep` says how many versions a dataset keeps; those of other
    /// datasets stay. Copies of packs and runs go to a hidden folder of the datasets' folder and are removed afterwards.
    ///
    /// # Errors
    ///
    /// If a pack lacks a row of a folder that it stands for, if a seal or file is damaged, and any failure of a request.
    pub async fn prune(&self, keep: &BTreeMap<String, usize>, mode: PruneMode) -> Result<StorePruned> {
        let mut pruned = StorePruned { dry_run: mode == PruneMode::List, ..StorePruned::default() };
        let now = match mode {
            PruneMode::List => Clock::System.now(),
            PruneMode::Remove => {
                self.store.probe().await?;
                self.store.now().await?
            }
        };
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let (archive, datasets) = (archive?, datasets?);
        let folders: Folders = by_folder(archive.iter().chain(&datasets).cloned().collect());
        for name in names_of_datasets(&datasets) {
            self.prune_versions(name, (keep.get(name).copied(), now), (&datasets, &folders), &mut pruned).await?;
        }
        for service in self.archives().await? {
            self.prune_archive(&service, now, (&archive, &folders), &mut pruned).await?;
        }
        let uploads = match mode {
            PruneMode::List => abandoned_folders(&folders, now),
            PruneMode::Remove => {
                let mut cleared = self.store.clear_abandoned(&archive).await?;
                cleared.extend(self.store.clear_abandoned(&datasets).await?);
                clear_staged(self.store.url())?;
                cleared
            }
        };
        uploads.iter().for_each(|at| pruned.add(StorePrunedKind::Upload, self.store.address(at), &folders[at]));
        pruned.removed.sort();
        Ok(pruned)
    }

    /// Removes the versions of a dataset that newer ones replaced.
    async fn prune_versions(
        &self,
        name: &str,
        (keep, now): (Option<usize>, DateTime<Utc>),
        (listed, folders): (&[Object], &Folders),
        pruned: &mut StorePruned,
    ) -> Result<()> {
        let all: Vec<&str> = versions(listed).filter(|(of, _)| *of == name).map(|(_, version)| version).collect();
        let count = count_of(all.len() as u64, "version", "versions");
        let Some(keep) = keep else {
            pruned.kept.push(format!("`{name}` has no valid definition here: kept its {count}"));
            return Ok(());
        };
        let Some(latest) = self.store.latest(name).await? else {
            if !all.is_empty() {
                let hint = "`bellwether verify --store --repair` makes it again";
                pruned.kept.push(format!("`{name}` has no `latest.json`: kept its {count}; {hint}"));
            }
            return Ok(());
        };
        let sealed_at = |version: &&str| {
            let key = format!("{DATASETS}/{name}/{version}/{RECORD}");
            listed.iter().find(|object| object.key == key).map(|object| object.changed)
        };
        let dated = all.iter().filter_map(|version| Some((sealed_at(version)?, (*version).to_owned()))).collect();
        let Some(Surplus { versions, oldest_kept }) = surplus(dated, &latest.version, keep, now) else { return Ok(()) };
        if !pruned.dry_run {
            self.store.note_pruned(name, &oldest_kept).await?;
        }
        for version in versions {
            let at = format!("{DATASETS}/{name}/{version}");
            self.remove(StorePrunedKind::Version, &at, (folders, now), pruned).await?;
        }
        Ok(())
    }

    /// Removes the folders of an archive that a pack stands for.
    async fn prune_archive(
        &self,
        service: &ServiceArchive,
        now: DateTime<Utc>,
        (listed, folders): (&[Object], &Folders),
        pruned: &mut StorePruned,
    ) -> Result<()> {
        let is_settled = |name: &str| {
            let key = format!("{}/{name}/{SEAL}", service.there);
            listed.iter().any(|object| object.key == key && now - object.changed > GRACE)
        };
        let names: Vec<&str> = service.whole_names(listed).collect();
        let mut packs = Vec::new();
        for name in names.iter().filter(|name| name.starts_with("pack=")) {
            packs.extend(self.read_seal(service, name).await?);
        }
        let settled: Vec<&Seal> = packs.iter().filter(|pack| is_settled(&pack.folder_name())).collect();
        let held = Packed::of(settled.iter().copied());
        let forgotten: HashSet<&str> =
            service.note_names(listed).filter_map(|name| name.strip_prefix("forgotten=")).collect();
        // What holds others stays until these are compared with it.
        let is_candidate = |name: &&&str| match packs.iter().find(|pack| pack.folder_name() == ***name) {
            Some(pack) => held.hold_more_than(pack),
            None => {
                let (_, part) = name.split_once('=').unwrap_or_default();
                held.name(part) && !forgotten.contains(part)
            }
        };
        let candidates: Vec<&str> = names.iter().filter(is_candidate).copied().collect();
        let removed: Vec<String> = match (candidates.is_empty(), pruned.dry_run) {
            (true, _) => return Ok(()),
            (_, true) => candidates.into_iter().map(str::to_owned).collect(),
            (_, false) => self.find_contained(service, &candidates, &settled).await?,
        };
        for name in removed {
            let at = format!("{}/{name}", service.there);
            self.remove(StorePrunedKind::PackedRun, &at, (folders, now), pruned).await?;
        }
        Ok(())
    }

    /// The candidates whose every row is in one of the packs, found by comparing copies.
    async fn find_contained(
        &self,
        service: &ServiceArchive,
        candidates: &[&str],
        packs: &[&Seal],
    ) -> Result<Vec<String>> {
        let scratch = file::scratch(&self.data(), &unique_name(Clock::System.now()));
        let copy = ServiceArchive { here: scratch.join(ARCHIVE), there: service.there.clone() };
        let found = async {
            file::create_folders(&copy.here)?;
            let mut seals: BTreeMap<String, Seal> =
                packs.iter().map(|&pack| (pack.folder_name(), pack.clone())).collect();
            for name in candidates {
                if seals.contains_key(*name) {
                    continue;
                }
                if let Some(seal) = self.read_seal(service, name).await? {
                    seals.insert((*name).to_owned(), seal);
                }
            }
            let stage = Stage::of_files(&self.control, "fetch", seals.values().map(|seal| seal.files.len()).sum());
            let fetched = seals.values().map(|seal| self.fetch(&copy, seal, &stage));
            stream::iter(fetched).buffer_unordered(FOLDERS_AT_ONCE).try_collect::<()>().await?;
            stage.finish();
            let (folder, stop) = (copy.here.clone(), self.control.stop.clone());
            let stage = Stage::begin(&self.control, "compare");
            let contained = blocking(move || {
                let plan = Pruning::of(Archive::open(&folder)?.until(&stop));
                check_contained(&plan)?;
                Ok(plan.removals)
            });
            let contained = contained.await?;
            stage.finish();
            Ok(contained.into_iter().map(|removal| removal.folder).collect())
        };
        let found = found.await;
        remove_scratch(&scratch)?;
        found
    }

    /// Removes a folder, unless it is only listed.
    async fn remove(
        &self,
        kind: StorePrunedKind,
        at: &str,
        (folders, now): (&Folders, DateTime<Utc>),
        pruned: &mut StorePruned,
    ) -> Result<()> {
        if !pruned.dry_run {
            self.store.remove_folder(at, now).await?;
        }
        if let Some(objects) = folders.get(at) {
            pruned.add(kind, self.store.address(at), objects);
        }
        Ok(())
    }
}

impl StorePruned {
    fn add(&mut self, kind: StorePrunedKind, place: String, objects: &[Object]) {
        let bytes = objects.iter().map(|object| object.bytes).sum();
        self.removed.push(StorePrunedFolder { kind, place, objects: objects.len(), bytes });
        self.freed += bytes;
    }
}

/// The versions beyond the newest `keep` that are older than the latest, and whose next one is older than the grace period.
/// The names begin with the second of the build; in one second, the first in the store is the first.
fn surplus(mut dated: Vec<(DateTime<Utc>, String)>, latest: &str, keep: usize, now: DateTime<Utc>) -> Option<Surplus> {
    let second = |version: &str| version.split_once('-').map(|(second, _)| second.to_owned());
    dated.sort_by_cached_key(|(sealed_at, version)| (second(version), *sealed_at));
    let latest = dated.iter().position(|(_, version)| version == latest)?;
    let most = dated.len().saturating_sub(keep).min(latest);
    let is_replaced = |(sealed_at, _): &&(DateTime<Utc>, String)| now - *sealed_at > GRACE;
    let count = dated.iter().skip(1).take(most).take_while(is_replaced).count();
    let oldest_kept = dated.get(count)?.1.clone();
    let versions: Vec<String> = dated.into_iter().take(count).map(|(_, version)| version).collect();
    (!versions.is_empty()).then_some(Surplus { versions, oldest_kept })
}

/// Removes the copies.
fn remove_scratch(scratch: &Path) -> Result<()> {
    if file::is_gone(scratch) {
        return Ok(());
    }
    remove::folder(scratch).map_err(FileError::remove(scratch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions of some days at noon that are removed on the 20th at noon, and the oldest that is kept.
    fn remove(days: &[u32], latest: u32, keep: usize) -> (Vec<String>, String) {
        let name = |day: &u32| format!("202611{day:02}T120000Z-7f3a");
        let at = |day: u32| format!("2026-11-{day:02}T12:00:00Z").parse::<DateTime<Utc>>().unwrap();
        let dated = days.iter().map(|day| (at(*day), name(day))).collect();
        match surplus(dated, &name(&latest), keep, at(20)) {
            Some(Surplus { versions, oldest_kept }) => (versions, oldest_kept),
            None => (Vec::new(), String::new()),
        }
    }

    fn names(days: &[u32]) -> Vec<String> {
        days.iter().map(|day| format!("202611{day:02}T120000Z-7f3a")).collect()
    }

    #[test]
    fn the_newest_stay_and_so_does_the_latest_with_all_after_it() {
        assert_eq!(remove(&[10, 11, 12, 13], 13, 2), (names(&[10, 11]), names(&[12]).remove(0)));
        assert_eq!(remove(&[13, 12, 11, 10], 13, 2), (names(&[10, 11]), names(&[12]).remove(0)), "in any order");
        assert_eq!(remove(&[10, 11, 12, 13], 13, 4).0, names(&[]));
        assert_eq!(remove(&[10, 11, 12, 13], 11, 1).0, names(&[10]), "newer than the latest");
        assert_eq!(remove(&[10, 11, 12, 13], 9, 1).0, names(&[]), "the latest is not there");
    }

    #[test]
    fn what_was_replaced_within_a_day_stays() {
        assert_eq!(remove(&[10, 18, 19, 20], 20, 1).0, names(&[10]), "the 19th at noon is not more than a day ago");
        assert_eq!(remove(&[10, 11], 11, 1).0, names(&[10]));
        assert_eq!(remove(&[10, 20], 20, 1).0, names(&[]));
    }
}
