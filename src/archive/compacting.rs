//! Makes one run out of many: every observation of theirs, and what they leave to the next run. And removes those whose
//! place was taken.
//!
//! The runs stay where they are until they are pruned; from the moment that the new one is sealed nobody reads them. A
//! compaction that is killed leaves a hidden folder, which the next one clears away.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use chrono::{DateTime, Utc};

use super::bundle;
use super::index::{Archive, SealedRun};
use super::listings::{self, LISTINGS, Listing};
use super::remembered::{self, Extent, Name, Remembered, Runs, SERIES};
use super::rowfile::Rowfile;
use super::seal::{Counts, LAYOUT, Seal, sealed_path};
use super::{FOLDER_OF_UNFINISHED, REJECTS, REQUESTS};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{Reject, RequestRecord, Table};
use crate::time::free_name;

/// How many tickers' fingerprints are held at a time.
const TICKERS_AT_ONCE: usize = 64;

/// What the folder of a compaction begins with.
const COMPACTING: &str = ".compacting-";

/// What the folder of a run that is being removed begins with.
const REMOVING: &str = ".removing-";

/// The file of that folder which is locked while somebody works on it.
const LOCK: &str = "lock";

/// Merges the runs of an archive, but for the newest ones, into one that names what it replaces; none when there are
/// fewer than two to be merged.
///
/// # Errors
///
/// When a run cannot be read or is not what was written, and when the folder cannot be written.
pub fn compact(folder: &Path, keep: usize, now: DateTime<Utc>) -> Result<Option<SealedRun>> {
    clear_away(folder)?;
    let archive = Archive::open(folder)?;
    let old = old(&archive, keep);
    if old.len() < 2 {
        return Ok(None);
    }
    let name = free_name(now, |name| !sealed_path(folder, name).exists());
    let work = Work::begin(folder, &name)?;
    let sealed = work.folder.join("sealed");
    fs::create_dir(&sealed).map_err(|source| Error::Write { path: sealed.clone(), source })?;
    let mut files = Vec::new();
    for table in Table::ALL {
        files.push(bundle::write_all(&old, table, &sealed.join(table.file()))?);
    }
    let listings = listings(&old)?;
    let mut out = Rowfile::create(&sealed.join(LISTINGS), listings::schema(), 4)?;
    out.write(listings::batch(&listings))?;
    files.push(out.finish()?);
    files.push(fingerprints(&archive, &old, &listings, &name, &sealed)?);
    files.push(copied(&old, Rowfile::create(&sealed.join(REJECTS), Reject::schema(), 0)?, REJECTS)?);
    files.push(copied(&old, Rowfile::create(&sealed.join(REQUESTS), RequestRecord::schema(), 0)?, REQUESTS)?);
    let mut seal = seal(&old, name, files);
    seal.write(&sealed)?;
    let path = sealed_path(folder, &seal.run);
    file::rename_durably(&sealed, &path)?;
    Ok(Some(SealedRun::new(path, seal)))
}

/// The runs that are to be merged: all but the newest, and none that came after one that stays.
fn old(archive: &Archive, keep: usize) -> Vec<&SealedRun> {
    let count = archive.runs().len().saturating_sub(keep);
    let mut old: Vec<&SealedRun> = archive.runs()[..count].iter().collect();
    loop {
        let names: BTreeSet<&str> = old.iter().map(|run| run.name()).collect();
        let is_inside =
            |name: &String| archive.place(name).is_ok_and(|place| names.contains(archive.runs()[place].name()));
        let is_closed = |run: &&SealedRun| run.seal().after.iter().chain(&run.seal().since).all(is_inside);
        let closed: Vec<&SealedRun> = old.iter().copied().filter(is_closed).collect();
        if closed.len() == old.len() {
            return closed;
        }
        old = closed;
    }
}

/// Every listing, in order.
fn listings(old: &[&SealedRun]) -> Result<Vec<Listing>> {
    let mut listings = Vec::new();
    for run in old {
        listings.extend(listings::read(run)?);
    }
    listings.sort_by(|one, other| {
        let by = |listing: &Listing| (listing.key.clone(), Name::clone(&listing.request), listing.observed_at);
        by(one).cmp(&by(other))
    });
    listings.dedup();
    Ok(listings)
}

/// What the newest of the runs remember. All rows are in the new run.
fn fingerprints(
    archive: &Archive,
    old: &[&SealedRun],
    listings: &[Listing],
    name: &str,
    folder: &Path,
) -> Result<FileRecord> {
    let mut remembered = Remembered::open(archive, &archive.heads_of(old))?;
    let mut out = Rowfile::create(&folder.join(SERIES), remembered::schema(), 5)?;
    let run = Runs::new(BTreeSet::from([Name::from(name)]));
    let mut tickers: Vec<&Ticker> = listings.iter().map(|listing| &listing.key.ticker).collect();
    tickers.dedup();
    let ends = tickers.chunks(TICKERS_AT_ONCE).map(|some| some.last().copied()).chain([None]);
    for end in ends {
        let mut memories = remembered.until(end)?;
        for bucket in memories.values_mut().flat_map(|memory| memory.buckets.values_mut()) {
            if !bucket.runs.is_empty() {
                bucket.runs = Runs::clone(&run);
            }
        }
        out.write(remembered::batch(memories.iter(), Extent::Whole))?;
    }
    out.finish()
}

/// The rows of a file of every run, one run after the other.
fn copied(old: &[&SealedRun], mut out: Rowfile, name: &str) -> Result<FileRecord> {
    for run in old {
        for rows in run.rows(name)? {
            out.write(Ok(rows?))?;
        }
    }
    out.finish()
}

fn seal(old: &[&SealedRun], run: String, files: Vec<FileRecord>) -> Seal {
    let mut changes = Counts::default();
    let (mut drift, mut replaces) = (Vec::new(), BTreeSet::new());
    for seal in old.iter().map(|run| run.seal()) {
        changes += seal.changes;
        seal.drift.iter().cloned().for_each(|field| field.add_to(&mut drift));
        replaces.extend(seal.replaces.iter().cloned());
        replaces.insert(seal.run.clone());
    }
    let instants = || old.iter().map(|run| run.seal());
    Seal {
        layout: LAYOUT,
        run,
        bellwether: env!("CARGO_PKG_VERSION").to_owned(),
        definition: None,
        started_at: instants().map(|seal| seal.started_at).min().unwrap_or_default(),
        sealed_at: instants().map(|seal| seal.sealed_at).max().unwrap_or_default(),
        after: Vec::new(),
        since: None,
        replaces: replaces.into_iter().collect(),
        bundles: Vec::new(),
        changes,
        drift,
        files,
        seal: Seal::undigested(),
    }
}

/// The hidden folder that a compaction works in.
struct Work {
    folder: std::path::PathBuf,
    /// Locked; the lock goes with it, also when the process is killed.
    _lock: File,
}

impl Work {
    fn begin(archive: &Path, name: &str) -> Result<Self> {
        let hidden = archive.join(FOLDER_OF_UNFINISHED);
        let write = |path: &Path, source| Error::Write { path: path.to_owned(), source };
        fs::create_dir_all(&hidden).map_err(|source| write(&hidden, source))?;
        let folder = hidden.join(format!("{COMPACTING}{name}"));
        fs::create_dir(&folder).map_err(|source| write(&folder, source))?;
        let path = folder.join(LOCK);
        let lock = file::create(&path)?;
        lock.lock().map_err(|source| write(&path, source))?;
        Ok(Self { folder, _lock: lock })
    }
}

/// Removes what compactions that were killed left behind.
fn clear_away(archive: &Path) -> Result<()> {
    for path in file::entries(&archive.join(FOLDER_OF_UNFINISHED))? {
        let is_compaction = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(COMPACTING));
        let is_free = match File::open(path.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Killed before it was locked, or about to be.
            Err(_) => file::is_older(&path, file::DAY),
        };
        if is_compaction && is_free {
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

impl Drop for Work {
    fn drop(&mut self) {
        // What stays behind is hidden, and the next compaction clears it away.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the runs whose place another one has taken; their names. Those that took it are read over first.
///
/// # Errors
///
/// When a run that took the place of others is not what was written, and when a folder cannot be removed.
pub fn prune(folder: &Path) -> Result<Vec<String>> {
    let archive = Archive::open(folder)?;
    for run in archive.runs().iter().filter(|run| !run.seal().replaces.is_empty()) {
        for file in &run.seal().files {
            run.checked(&file.name)?;
        }
    }
    let hidden = folder.join(FOLDER_OF_UNFINISHED);
    let mut removed = Vec::new();
    for run in archive.replaced() {
        fs::create_dir_all(&hidden).map_err(|source| Error::Write { path: hidden.clone(), source })?;
        // In one step: a run is there or it is not.
        let aside = hidden.join(format!("{REMOVING}{}", run.name()));
        fs::rename(run.path(), &aside).map_err(|source| Error::Write { path: run.path().to_owned(), source })?;
        removed.push(run.name().to_owned());
    }
    let is_aside =
        |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(REMOVING));
    for aside in file::entries(&hidden)?.into_iter().filter(is_aside) {
        fs::remove_dir_all(&aside).map_err(|source| Error::Write { path: aside.clone(), source })?;
    }
    Ok(removed)
}
