//! Seals that this process has read and checked.
//!
//! A sealed folder never changes, and a run opens its archive several times, which may have hundreds of them. So a seal
//! is read once, for as long as its file is the same one.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::folder::Folder;
use super::seal::{SEAL, Seal};
use crate::disk::file::FileError;
use crate::error::Result;

/// A file that changed this recently may change again without looking different: clocks of file systems are coarse.
const JUST_NOW: Duration = Duration::from_secs(1);

/// What tells a file from another one at its path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The seals, by folder.
static READ: LazyLock<Mutex<HashMap<PathBuf, ReadSeal>>> = LazyLock::new(Mutex::default);

/// A seal, and the file that it was read from.
#[derive(Clone)]
struct ReadSeal {
    identity: Identity,
    seal: Arc<Seal>,
}

/// The seal of a folder.
pub(super) fn read(folder: &Path) -> Result<Arc<Seal>> {
    let path = folder.join(SEAL);
    let found = fs::symlink_metadata(&path).map_err(FileError::read(&path))?;
    let identity = Identity {
        file: (found.dev(), found.ino()),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    let known = READ.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
    if let Some(known) = known.filter(|known| known.identity == identity) {
        return Ok(known.seal);
    }
    let seal = Arc::new(Seal::read(folder)?);
    let changed = Duration::new(found.ctime().unsigned_abs(), found.ctime_nsec().unsigned_abs() as u32);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed);
    if since.is_ok_and(|since| since > JUST_NOW) {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(folder.to_owned(), ReadSeal { identity, seal: Arc::clone(&seal) });
    }
    Ok(seal)
}

/// Forgets the seals of folders that are no longer in an archive.
pub(super) fn forget_removed(archive: &Path, folders: &[Arc<Folder>]) {
    let present: HashSet<&Path> = folders.iter().map(|folder| folder.path()).collect();
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.retain(|path, _| path.parent() != Some(archive) || present.contains(path.as_path()));
}
