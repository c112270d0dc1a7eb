//! Packs: one folder that replaces several runs.
//!
//! A daily run changes little, and a year has hundreds of them. Without packs, the cost of a run would grow with the
//! number of runs before it. Once enough small runs have accumulated they are packed, and packs of similar size are
//! packed again. A pack has every row and the seals of its members, so readers use it instead; the members' own folders
//! stay until they are pruned.
//!
//! Packing is optional: if it fails, the runs are still there.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use crate::archive::fold::cells::Cells;
use crate::archive::fold::merged::{Merged, Portion};
use crate::archive::sealed::answers::{self, ANSWERS, LISTINGS};
use crate::archive::sealed::by_ticker::Cuts;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::layout::{REJECTS, REQUESTS};
use crate::archive::sealed::rows::Rowfile;
use crate::archive::sealed::seal::{Counts, SEAL, Seal};
use crate::archive::sealed::sealed_run::{RowsByRun, SealedRun};
use crate::archive::{FOLDER_OF_UNFINISHED, merge_failed};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::names::{PACKING, REMOVING, fits};
use crate::disk::{digest, links, remove};
use crate::error::Result;
use crate::interface::Endpoint;
use crate::plan::ServiceIdentity;
use crate::process::cancel::{self, CancellationToken};
use crate::process::trace::work;
use crate::tables::{Reject, RequestRecord, Table};
use crate::time::{name_of, random};

/// The fewest folders worth packing.
const ENOUGH_FOLDERS: usize = 16;

/// An older folder is packed with newer ones if it has at most this many times their rows. So each row is copied a few
/// times at most, and the number of folders grows with the logarithm of the number of runs.
const GROWTH: u64 = 4;

/// Folders with fewer rows than this are always packed.
const FEW_ROWS: u64 = 1 << 15;

/// Packs the newest runs of an archive once enough small ones have accumulated.
pub(in crate::archive) fn pack_small(archive: &Path, stop: &CancellationToken) -> Result<Option<Seal>> {
    let archive = Archive::open_whole(archive)?.until(stop);
    let due = due(archive.read_runs());
    if due.is_empty() { Ok(None) } else { pack(&archive, &due) }
}

/// Packs the runs of an archive except the newest `keep`; `None` if there are fewer than two folders to pack.
#[cfg(feature = "harness")]
pub(crate) fn pack_most(folder: &Path, keep: usize, stop: &CancellationToken) -> Result<Option<Seal>> {
    let archive = Archive::open_whole(folder)?.until(stop);
    let kept: Vec<&str> = archive.runs().iter().rev().take(keep).map(SealedRun::name).collect();
    let is_old = |folder: &&Arc<Folder>| folder.seal().parts().iter().all(|part| !kept.contains(&part.run.as_str()));
    let old: Vec<Arc<Folder>> = archive.read_runs().filter(is_old).cloned().collect();
    if old.len() < 2 { Ok(None) } else { pack(&archive, &old) }
}

/// The newest folders of an archive that are worth packing, in order; empty if there are too few.
fn due<'a>(read: impl Iterator<Item = &'a Arc<Folder>>) -> Vec<Arc<Folder>> {
    let mut newest: Vec<&Arc<Folder>> = read.collect();
    newest.sort_by_key(|folder| Reverse((folder.seal().sealed_at, &folder.seal().run)));
    // The newest always qualifies. An older one depends on the rows of those after it.
    let mut newer = None;
    let is_due = |folder: &&&Arc<Folder>| {
        let own = folder.seal().observations();
        let is_due = newer.is_none_or(|newer| own <= FEW_ROWS.max(GROWTH * newer));
        newer = Some(newer.unwrap_or(0) + own);
        is_due
    };
    let mut due: Vec<Arc<Folder>> = newest.iter().take_while(is_due).map(|folder| Arc::clone(folder)).collect();
    due.reverse();
    if due.len() < ENOUGH_FOLDERS { Vec::new() } else { due }
}

/// Seals a pack of some folders. If another process has just written the same pack, that one is used.
fn pack(archive: &Archive, folders: &[Arc<Folder>]) -> Result<Option<Seal>> {
    let _work = work!("pack runs");
    let mut members: Vec<Seal> = folders.iter().flat_map(|folder| folder.seal().parts().to_vec()).collect();
    members.sort_by(|one, other| (one.sealed_at, &one.run).cmp(&(other.sealed_at, &other.run)));
    if members.windows(2).any(|pair| pair[0].run == pair[1].run) {
        // Overlapping packs: copies of rows would have to be removed.
        return Ok(None);
    }
    let name = name_of_runs(&members);
    let path = archive.path().join(format!("pack={name}"));
    if path.exists() {
        return Ok(None);
    }
    let work = HiddenFolder::begin(archive.path(), &name)?;
    let files = write(folders, &members, archive, &work.path)?;
    let service = members.last().map(|last| last.service.clone()).expect("a pack has members");
    let mut seal = seal(service, members, name, files);
    seal.write(&work.path)?;
    cancel::check(archive.stop())?;
    Ok(work.publish(&path)?.then_some(seal))
}

/// The name of a pack or a merge of some runs: when the last one was sealed, and a digest of their names.
pub(super) fn name_of_runs(runs: &[Seal]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.run.as_str()).collect();
    let digest = digest::of(names.join("\n").as_bytes());
    let salt = u16::from_str_radix(&digest[..4], 16).expect("a digest is written in hexadecimal digits");
    name_of(runs.last().map(|last| last.sealed_at).unwrap_or_default(), salt)
}

/// Writes the files of a pack.
fn write(folders: &[Arc<Folder>], members: &[Seal], archive: &Archive, folder: &Path) -> Result<Vec<FileRecord>> {
    let mut files = Vec::new();
    let sources: Vec<&Arc<Folder>> = folders.iter().collect();
    for table in Table::ALL {
        let mut out = Rowfile::create(&folder.join(table.file()), table.file_schema(), table.key_columns())?;
        for rows in observations(&sources, table)? {
            out.write(Ok(rows?))?;
        }
        files.push(out.finish()?);
    }
    let mut out = Rowfile::create(&folder.join(LISTINGS), answers::listing_schema(), 3)?;
    out.write(answers::listing_batch(&answers::read_listings(folders)?))?;
    files.push(out.finish()?);
    let is_member = |run: &&SealedRun| members.iter().any(|member| member.run == run.name());
    let runs: Vec<&SealedRun> = archive.runs().iter().filter(is_member).collect();
    let by_run = [(ANSWERS, answers::schema()), (REJECTS, Reject::schema()), (REQUESTS, RequestRecord::schema())];
    for (name, schema) in by_run {
        let mut out = Rowfile::create(&folder.join(name), Arc::clone(&schema), 0)?;
        let mut rows = RowsByRun::new(archive.read_runs(), name, schema, &[]);
        for run in &runs {
            rows.of_run(run)?.into_iter().try_for_each(|rows| out.write(Ok(rows)))?;
        }
        files.push(out.finish()?);
    }
    Ok(files)
}

/// Every observation of a table in some folders, in order, piece by piece.
pub(super) fn observations(
    folders: &[&Arc<Folder>],
    table: Table,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let mut merged = Merged::whole(table, folders)?;
    Ok(std::iter::from_fn(move || {
        let piece = merged.next(Cuts::of_cells(table)).transpose()?;
        let in_order = |piece: Portion| match Cells::as_stored(table, &piece.batches) {
            Ok(cells) => Ok(cells.rows),
            Err(error) => Err(merge_failed(error)),
        };
        Some(piece.and_then(in_order))
    }))
}

fn seal(service: ServiceIdentity, members: Vec<Seal>, run: String, files: Vec<FileRecord>) -> Seal {
    let mut changes = Counts::default();
    let mut drift = Vec::new();
    for member in &members {
        changes += member.changes;
        member.drift.iter().cloned().for_each(|field| field.add_to(&mut drift));
    }
    let operations: BTreeSet<Endpoint> = members.iter().flat_map(|member| member.operations.clone()).collect();
    Seal {
        started_at: members.iter().map(|member| member.started_at).min().unwrap_or_default(),
        sealed_at: members.last().map(|member| member.sealed_at).unwrap_or_default(),
        operations: operations.into_iter().collect(),
        changes,
        drift,
        files,
        members,
        ..Seal::new(run, service)
    }
}

/// The hidden folder in which a pack, a merge, a note or a folder from elsewhere is written, locked so that other processes do
/// not remove it as a leftover.
#[derive(Debug)]
pub(crate) struct HiddenFolder {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl HiddenFolder {
    pub(crate) fn begin(archive: &Path, name: &str) -> Result<Self> {
        let hidden = archive.join(FOLDER_OF_UNFINISHED);
        links::folder(&hidden)?;
        clear_leftovers(archive)?;
        let path = hidden.join(format!(".packing-{name}-{:08x}", random() as u32));
        let failed = FileError::write(&path);
        fs::create_dir(&path).map_err(failed)?;
        let lock = File::open(&path).map_err(failed)?;
        // Some file systems have no locks; there, age identifies a leftover.
        let _ = lock.lock();
        Ok(Self { path, _lock: lock })
    }

    /// Gives it the name of a sealed folder, unless another process was faster.
    pub(super) fn publish(&self, target: &Path) -> Result<bool> {
        match file::rename_durably(&self.path, target) {
            Err(_) if Seal::read(target).is_ok() => Ok(false),
            renamed => renamed.map(|()| true),
        }
    }

    /// Adds a folder from elsewhere to an archive, whose files are here and match its seal, unless another process was faster.
    pub(crate) fn add_to(&self, archive: &Path, seal: &Seal) -> Result<()> {
        file::sync_all(&seal.files.iter().map(|file| self.path.join(&file.name)).collect::<Vec<_>>())?;
        file::write_bytes(&self.path.join(SEAL), seal.text().as_bytes())?;
        self.publish(&archive.join(seal.folder_name())).map(drop)
    }
}

impl Drop for HiddenFolder {
    fn drop(&mut self) {
        // Leftovers are hidden, and removed by the next packing. After a rename there is nothing to remove.
        let _ = remove::folder(&self.path);
    }
}

/// Removes the leftovers in an archive. One that cannot be removed stays, with a warning in the log.
pub(super) fn clear_leftovers(archive: &Path) -> Result<()> {
    let hidden = archive.join(FOLDER_OF_UNFINISHED);
    links::refuse(&hidden)?;
    for path in file::entries(&hidden)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let removed = match name {
            _ if fits(name, REMOVING) => remove::folder(&path),
            // The lock is held until the folder is removed.
            _ if fits(name, PACKING) => lock_abandoned(&path).map_or(Ok(()), |_lock| remove::folder(&path)),
            _ => Ok(()),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "cannot remove a leftover");
        }
    }
    Ok(())
}

/// A new pack may not be locked yet: its folder is created just before.
const MINUTE: Duration = Duration::from_secs(60);

/// The lock of an abandoned pack; `None` while a process writes it. On file systems without locks, a pack counts as
/// abandoned after a day.
fn lock_abandoned(path: &Path) -> Option<File> {
    if !file::is_older(path, MINUTE) {
        return None;
    }
    let folder = File::open(path).ok()?;
    let is_abandoned = match folder.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => file::is_older(path, file::DAY),
    };
    is_abandoned.then_some(folder)
}

/// The sealed folders elsewhere that hold the runs an archive does not have, up to an instant: packs of runs that are
/// all missing, the largest first, then runs, then other folders with the rest.
pub(crate) fn missing_folders<'s>(archive: &Archive, there: &'s [Seal], until: Option<DateTime<Utc>>) -> Vec<&'s Seal> {
    let here = archive.names_in_folders();
    let is_due = |run: &Seal| until.is_none_or(|until| run.sealed_at <= until);
    let mut missing: HashSet<&str> = there
        .iter()
        .flat_map(Seal::runs)
        .filter(|run| is_due(run) && !here.contains(run.run.as_str()))
        .map(|run| run.run.as_str())
        .collect();
    let mut largest: Vec<&Seal> = there.iter().collect();
    largest.sort_by_key(|seal| (Reverse(seal.runs().count()), &seal.run));
    let mut wanted = Vec::new();
    let mut take = |fits: &dyn Fn(&Seal, &HashSet<&str>) -> bool| {
        for &seal in &largest {
            if fits(seal, &missing) {
                seal.runs().for_each(|run| _ = missing.remove(run.run.as_str()));
                wanted.push(seal);
            }
        }
    };
    let is_missing = |run: &Seal, missing: &HashSet<&str>| missing.contains(run.run.as_str());
    // A merge is made here, of what is here.
    take(&|seal, missing| !seal.is_merge() && seal.runs().all(|run| is_missing(run, missing)));
    take(&|seal, missing| seal.runs().any(|run| is_missing(run, missing)));
    wanted
}

#[cfg(test)]
mod tests {
    use super::super::verify::replaced_by;
    use super::*;
    use chrono::TimeDelta;

    fn service() -> ServiceIdentity {
        ServiceIdentity { name: "it".to_owned(), base_url: None, sentiment_base_url: None }
    }

    /// A folder of a run sealed on a day.
    fn folder(day: u32, rows: u64) -> Arc<Folder> {
        let sealed_at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(day.into());
        let file = FileRecord { name: Table::Signals.file(), rows, bytes: 0, blake3: String::new() };
        let mut seal = seal(service(), Vec::new(), name_of(sealed_at, 0), vec![file]);
        (seal.sealed_at, seal.seal) = (sealed_at, seal.run.clone());
        Arc::new(Folder::new(seal.folder_name().into(), seal))
    }

    /// The folder of a pack of some folders.
    fn pack(folders: &[Arc<Folder>]) -> Arc<Folder> {
        let members: Vec<Seal> = folders.iter().flat_map(|folder| folder.seal().parts().to_vec()).collect();
        let rows = folders.iter().map(|folder| folder.seal().observations()).sum();
        let file = FileRecord { name: Table::Signals.file(), rows, bytes: 0, blake3: String::new() };
        let name = name_of_runs(&members);
        let seal = seal(service(), members, name, vec![file]);
        Arc::new(Folder::new(seal.folder_name().into(), seal))
    }

    /// Otherwise the work would grow with the square of the nights, while nothing is pruned.
    #[test]
    fn each_run_and_pack_is_compared_with_one_pack_and_each_member_of_a_pack_once() {
        for each in [0, 100, 3_000, 70_000] {
            let (mut read, mut all) = (Vec::new(), Vec::new());
            for day in 0..300 {
                let run = folder(day, each);
                read.push(Arc::clone(&run));
                all.push(run);
                let due = due(read.iter());
                if !due.is_empty() {
                    let pack = pack(&due);
                    read.truncate(read.len() - due.len());
                    read.push(Arc::clone(&pack));
                    all.push(pack);
                }
            }
            let packs: Vec<&Arc<Folder>> = all.iter().filter(|folder| folder.seal().is_pack()).collect();
            assert!(packs.len() > 15, "{} packs", packs.len());
            let mut compared = Vec::new();
            for pack in packs {
                let replaced = replaced_by(&all, pack);
                let members: usize = replaced.iter().map(|folder| folder.seal().parts().len()).sum();
                assert_eq!(members, pack.seal().members.len());
                compared.extend(replaced.into_iter().map(|folder| folder.path().to_owned()));
            }
            assert_eq!(compared.len(), all.len() - read.len());
            compared.sort();
            compared.dedup();
            assert_eq!(compared.len(), all.len() - read.len(), "with one pack each");
        }
    }

    #[test]
    fn many_runs_leave_few_folders_and_copy_each_row_a_few_times() {
        for (first, each) in [(0, 0), (5_000_000, 0), (5_000_000, 9_000), (100, 70_000), (20_000_000, 1_000_000)] {
            let (mut folders, mut copied, mut most) = (vec![folder(0, first)], 0, 0);
            for day in 1..2_000 {
                folders.push(folder(day, each));
                let due = due(folders.iter());
                if !due.is_empty() {
                    copied += due.iter().map(|folder| folder.seal().observations()).sum::<u64>();
                    folders.truncate(folders.len() - due.len());
                    folders.push(pack(&due));
                }
                most = most.max(folders.len());
            }
            let all: u64 = folders.iter().map(|folder| folder.seal().observations()).sum();
            assert_eq!(all, first + 1_999 * each, "no row is lost");
            assert!(most <= ENOUGH_FOLDERS + 4, "{most} folders, of {each} rows a day");
            assert!(copied <= 16 * all.max(1), "{copied} rows copied of {all}, of {each} rows a day");
        }
    }
}
