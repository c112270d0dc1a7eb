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

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::contents::Listing;
use super::latest::second;
use super::ours::{GRACE, ListedFolder, clear_staged, record_of};
use super::push::holds;
use super::{ARCHIVE, DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive};
use crate::archive::{Archive, Pruning, Seal, check_contained};
use crate::disk::file::{self, FileError};
use crate::disk::remove;
use crate::error::{Error, Result};
use crate::run::blocking;
use crate::run::observer::Stage;
use crate::run::prune::PruneMode;
use crate::text::human::count_of;
use crate::time::{Clock, unique_name};

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

impl RemoteStore {
    /// Removes what was replaced in the store, or lists it. `keep` says how many versions a dataset keeps; those of other
    /// datasets stay. Copies of packs and runs go to a hidden folder of the datasets' folder and are removed afterwards.
    ///
    /// # Errors
    ///
    /// If a pack lacks a row of a folder that it stands for, if a seal or file is damaged, and any failure of a request.
    pub async fn prune(&self, keep: &BTreeMap<String, usize>, mode: PruneMode) -> Result<StorePruned> {
        let dry_run = mode == PruneMode::List;
        let mut pruned = StorePruned { dry_run, ..StorePruned::default() };
        let mut now = Clock::System.now();
        if !dry_run {
            self.store.probe().await?;
            now = self.store.now().await?;
        }
        let listed = self.inventory().await?;
        let folders = listed.folders();
        let mut removed = Vec::new();
        for name in listed.datasets() {
            let versions = self.prunable_versions(name, keep.get(name), now, &listed, &mut pruned).await?;
            removed.extend(versions.into_iter().map(|at| (StorePrunedKind::Version, at)));
        }
        for service in self.archives(&listed)? {
            let packed = self.prunable_folders(&service, now, &listed, mode).await?;
            removed.extend(packed.into_iter().map(|at| (StorePrunedKind::PackedRun, at)));
        }
        let mut uploads = listed.abandoned(now);
        if !dry_run {
            for (_, at) in &removed {
                self.store.remove_folder(at, now).await?;
            }
            uploads = self.store.clear_abandoned(&listed).await?;
            clear_staged(self.url())?;
        }
        removed.extend(uploads.into_iter().map(|at| (StorePrunedKind::Upload, at)));
        for (kind, at) in removed {
            if let Some(&ListedFolder { objects, bytes, .. }) = folders.get(&*at) {
                pruned.removed.push(StorePrunedFolder { kind, place: self.store.address(&at), objects, bytes });
                pruned.freed += bytes;
            }
        }
        pruned.removed.sort();
        Ok(pruned)
    }

    /// The versions of a dataset that newer ones replaced. The others are noted before these are removed.
    async fn prunable_versions(
        &self,
        name: &str,
        keep: Option<&usize>,
        now: DateTime<Utc>,
        listed: &Listing,
        pruned: &mut StorePruned,
    ) -> Result<Vec<String>> {
        let dataset = format!("{DATASETS}/{name}");
        let at = |version: &str| format!("{dataset}/{version}");
        let dated = listed.complete(&dataset).map(|version| (listed.0[&record_of(&at(version))].changed, version));
        let dated: Vec<(DateTime<Utc>, &str)> = dated.collect();
        let count = count_of(dated.len() as u64, "version", "versions");
        let Some(keep) = keep else {
            pruned.kept.push(format!("`{name}` has no valid definition here: kept its {count}"));
            return Ok(Vec::new());
        };
        let Some(latest) = self.store.latest(name).await? else {
            if !dated.is_empty() {
                let hint = "`bellwether verify --store --repair` makes it again";
                pruned.kept.push(format!("`{name}` has no `latest.json`: kept its {count}; {hint}"));
            }
            return Ok(Vec::new());
        };
        let Some((surplus, oldest_kept)) = surplus(dated, &latest.version, *keep, now) else { return Ok(Vec::new()) };
        if !pruned.dry_run {
            self.store.note_pruned(name, oldest_kept).await?;
        }
        Ok(surplus.into_iter().map(at).collect())
    }

    /// The folders of an archive that a pack stands for. Unless they are only listed, every row of theirs is in it.
    async fn prunable_folders(
        &self,
        service: &ServiceArchive,
        now: DateTime<Utc>,
        listed: &Listing,
        mode: PruneMode,
    ) -> Result<Vec<String>> {
        let at = |name: &str| format!("{}/{name}", service.there);
        let names: Vec<&str> = listed.complete(&service.there).collect();
        let mut packs: BTreeMap<&str, Seal> = BTreeMap::new();
        for name in names.iter().filter(|name| name.starts_with("pack=")) {
            packs.extend(self.read_seal(service, name).await?.map(|seal| (*name, seal)));
        }
        let is_settled = |name: &str| now - listed.0[&record_of(&at(name))].changed > GRACE;
        let settled = packs.iter().filter(|(name, _)| is_settled(name)).map(|(_, pack)| pack);
        let settled: Vec<&Seal> = settled.collect();
        let parts: HashSet<&str> = settled.iter().flat_map(|pack| pack.parts()).map(|part| &*part.run).collect();
        let forgotten: HashSet<&str> =
            listed.notes(&service.there).filter_map(|name| name.strip_prefix("forgotten=")).collect();
        // What holds others stays until these are compared with it.
        let is_candidate = |name: &&str| match packs.get(name) {
            Some(pack) => settled.iter().any(|held| held.parts().len() > pack.parts().len() && holds(held, pack)),
            None => name.split_once('=').is_some_and(|(_, part)| parts.contains(part) && !forgotten.contains(part)),
        };
        let candidates: Vec<&str> = names.into_iter().filter(is_candidate).collect();
        if candidates.is_empty() || mode == PruneMode::List {
            return Ok(candidates.into_iter().map(at).collect());
        }
        let contained = self.find_contained(service, &candidates, &settled).await?;
        Ok(contained.iter().map(|name| at(name)).collect())
    }

    /// The candidates whose every row is in one of the packs, found by comparing copies.
    async fn find_contained(
        &self,
        service: &ServiceArchive,
        candidates: &[&str],
        packs: &[&Seal],
    ) -> Result<Vec<String>> {
        let scratch = file::scratch(&self.data, &unique_name(Clock::System.now()));
        let copy = ServiceArchive { here: scratch.join(ARCHIVE), there: service.there.clone() };
        let found = async {
            file::create_folders(&copy.here)?;
            let mut seals: BTreeMap<String, Seal> =
                packs.iter().map(|&pack| (pack.folder_name(), pack.clone())).collect();
            for name in candidates {
                if !seals.contains_key(*name) {
                    seals.extend(self.read_seal(service, name).await?.map(|seal| ((*name).to_owned(), seal)));
                }
            }
            let stage = Stage::of_files(&self.control, "fetch", seals.values().map(|seal| seal.files.len()).sum());
            let fetched = seals.values().map(|seal| async {
                self.download(&copy, seal, &stage).await?.add_to(&copy.here, seal)?;
                Ok::<(), Error>(())
            });
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
        if !file::is_gone(&scratch) {
            remove::folder(&scratch).map_err(FileError::remove(&scratch))?;
        }
        found
    }
}

/// The versions beyond the newest `keep` that are older than the latest, and whose next one is older than the grace period;
/// and the oldest of the others. The names begin with the second of the build; in one second, the first in the store is the
/// first.
fn surplus<'v>(
    mut dated: Vec<(DateTime<Utc>, &'v str)>,
    latest: &str,
    keep: usize,
    now: DateTime<Utc>,
) -> Option<(Vec<&'v str>, &'v str)> {
    dated.sort_by_key(|(sealed_at, version)| (second(version), *sealed_at));
    let latest = dated.iter().position(|(_, version)| *version == latest)?;
    let most = dated.len().saturating_sub(keep).min(latest);
    let count = dated.iter().skip(1).take(most).take_while(|(sealed_at, _)| now - *sealed_at > GRACE).count();
    let (_, oldest_kept) = *dated.get(count)?;
    let versions = dated.into_iter().take(count).map(|(_, version)| version).collect();
    (count > 0).then_some((versions, oldest_kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions of some days at noon that are removed on the 20th at noon, and the oldest that is kept.
    fn remove(days: &[u32], latest: u32, keep: usize) -> (Vec<String>, String) {
        let name = |day: &u32| format!("202611{day:02}T120000Z-7f3a");
        let at = |day: u32| format!("2026-11-{day:02}T12:00:00Z").parse::<DateTime<Utc>>().unwrap();
        let names: Vec<String> = days.iter().map(name).collect();
        let dated = days.iter().zip(&names).map(|(day, name)| (at(*day), &**name)).collect();
        let (versions, oldest_kept) = surplus(dated, &name(&latest), keep, at(20)).unwrap_or_default();
        (versions.into_iter().map(str::to_owned).collect(), oldest_kept.to_owned())
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
