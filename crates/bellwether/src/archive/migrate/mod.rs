//! Migration: turns an archive of layout 9 into one of the current layout, with every observation at its instant.
//!
//! Layout 9 had one history of all services, its runs did not say which others they knew, and the operation was part of a
//! cell's key. Each run, also one that is only in a pack, becomes a run of the same name in the folder of its service. It
//! keeps its definition, its instants, its requests and rejected records, and names the digest of its old seal. The runs
//! of a service know one another in the order in which they were sealed. What an answer covered was not stored, so no
//! answer of these runs withdraws a cell that another machine knew.
//!
//! The new folders are a function of the old runs: the same bytes on every machine, however these were packed. A migration
//! that was interrupted continues with the first run that is not there yet. Only once all are there are the old folders
//! moved to `.layout-9`, where they stay until they are removed on request.

mod error;
mod incoming;
mod legacy;
mod listings;
mod rows;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(crate) use error::MigrateError;
pub(crate) use incoming::IncomingLegacy;
pub(crate) use legacy::{KEPT, Legacy, LegacyRun, LegacySeal};

use self::rows::{LegacySource, Origins};
use self::write::{Writing, is_of, sealed_in};
use super::sealed::seal::Seal;
use super::sealing::SealingLock;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::remove;
use crate::error::Result;
use crate::plan::ServiceIdentity;
use crate::process::cancel::{self, CancellationToken};

/// The folder of what was migrated, while it is being removed.
const REMOVING: &str = ".removing-layout-9";

/// Which of the old runs are not in the archive of their service yet; `services` has the service of each.
pub(crate) fn pending(legacy: &Legacy, services: &[ServiceIdentity]) -> Result<BTreeSet<usize>> {
    let mut there: HashMap<&str, HashMap<String, Seal>> = HashMap::new();
    for service in services {
        if !there.contains_key(service.name.as_str()) {
            let seals = sealed_in(&legacy.archive.join(&service.name))?;
            there.insert(&service.name, seals.into_iter().map(|seal| (seal.run.clone(), seal)).collect());
        }
    }
    let runs = legacy.runs().iter().zip(services).enumerate();
    let is_pending = |run: &LegacyRun, service: &ServiceIdentity| {
        there[service.name.as_str()].get(run.name()).is_none_or(|seal| !is_of(seal, run))
    };
    Ok(runs.filter(|(_, (run, service))| is_pending(run, service)).map(|(index, _)| index).collect())
}

/// The old runs that were migrated before, each with its service.
pub(crate) fn services_of_migrated(legacy: &Legacy) -> Result<HashMap<usize, ServiceIdentity>> {
    let migrated = migrated_seals(&legacy.archive)?;
    let runs = legacy.runs().iter().enumerate();
    Ok(runs.filter_map(|(index, run)| Some((index, migrated.get(&run.seal().seal)?.clone()))).collect())
}

/// The old runs that an archive has, migrated or not, by the digests of their old seals.
pub(crate) fn known_seals(archive: &Path, stop: &CancellationToken) -> Result<HashSet<String>> {
    let legacy = Legacy::open(archive, &[], stop)?;
    let seals = legacy.runs().iter().map(|run| run.seal().seal.clone());
    Ok(migrated_seals(archive)?.into_keys().chain(seals).collect())
}

/// The digests of the old seals of all migrated runs, with their services.
fn migrated_seals(archive: &Path) -> Result<HashMap<String, ServiceIdentity>> {
    let mut seals = HashMap::new();
    for path in file::entries(archive)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if ServiceIdentity::is_name(name) && fs::symlink_metadata(&path).map_err(FileError::read(&path))?.is_dir() {
            let migrated = |seal: Seal| Some((seal.migrated?.seal, seal.service));
            seals.extend(sealed_in(&path)?.into_iter().filter_map(migrated));
        }
    }
    Ok(seals)
}

/// Migrates the runs that are not in the archive of their service yet, and then moves the old folders. `services` has
/// the service of each old run. Calls `done` for each run that was written, and returns which those were.
pub(crate) fn migrate(
    legacy: &Legacy,
    services: &[ServiceIdentity],
    mut done: impl FnMut(&Seal),
) -> Result<BTreeSet<usize>> {
    let _lock = SealingLock::take(&legacy.archive, &legacy.stop)?;
    // Another process may have migrated them meanwhile.
    let pending = pending(legacy, services)?;
    if !pending.is_empty() {
        write(legacy, services, &mut done).map_err(MigrateError::of)?;
    }
    keep(legacy)?;
    Ok(pending)
}

fn write(legacy: &Legacy, services: &[ServiceIdentity], mut done: impl FnMut(&Seal)) -> Result<()> {
    let index_of: HashMap<&str, usize> =
        legacy.runs().iter().enumerate().map(|(index, run)| (run.name(), index)).collect();
    let origins = legacy.folders.iter().map(|folder| Origins::of(folder, &index_of).map(Arc::new));
    let origins = origins.collect::<Result<Vec<_>>>()?;
    let requests = legacy.runs().iter().map(|run| run.run.requests()).collect::<Result<Vec<_>>>()?;
    let mut of_services: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, service) in services.iter().enumerate() {
        of_services.entry(&service.name).or_default().push(index);
    }
    let numbers: HashMap<&str, usize> = of_services.keys().enumerate().map(|(number, name)| (*name, number)).collect();
    let numbers: Vec<usize> = services.iter().map(|service| numbers[service.name.as_str()]).collect();
    let listings = listings::listings(legacy, &origins, &requests, &numbers)?;
    for (service, runs) in of_services {
        cancel::check(&legacy.stop)?;
        let writing = Writing {
            target: &legacy.archive.join(service),
            source: LegacySource { legacy, runs: &runs, origins: &origins },
            services,
            requests: &requests,
            listings: &listings,
        };
        writing.write(&mut done)?;
    }
    Ok(())
}

/// Moves the old folders to the folder of what was migrated.
fn keep(legacy: &Legacy) -> Result<()> {
    if legacy.unmoved.is_empty() {
        return Ok(());
    }
    let kept = legacy.archive.join(KEPT);
    links::folder(&kept)?;
    for path in legacy.unmoved.iter().filter(|path| !file::is_gone(path)) {
        cancel::check(&legacy.stop)?;
        let target = kept.join(path.file_name().unwrap_or_default());
        fs::rename(path, &target).map_err(FileError::write(&target))?;
    }
    file::sync_folder(&kept)?;
    file::sync_folder(&legacy.archive)
}

/// Whether there is something of layout 9 to remove.
pub(crate) fn has_kept(archive: &Path) -> bool {
    [KEPT, REMOVING].iter().any(|name| fs::symlink_metadata(archive.join(name)).is_ok())
}

/// Removes the old folders that were moved.
pub(crate) fn remove_kept(archive: &Path, stop: &CancellationToken) -> Result<()> {
    let _lock = SealingLock::take(archive, stop)?;
    let (kept, aside) = (archive.join(KEPT), archive.join(REMOVING));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FileError::Remove { path, source }
    };
    // What an interrupted removal left.
    remove::folder(&aside).map_err(failed(&aside))?;
    if fs::symlink_metadata(&kept).is_ok() {
        remove::check(&kept).map_err(failed(&kept))?;
        file::move_aside(&kept, &aside).map_err(failed(&kept))?;
        remove::folder(&aside).map_err(failed(&aside))?;
    }
    Ok(())
}
