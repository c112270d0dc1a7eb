//! One run is sealed at a time, so that a run counts from one instant on for everybody.
//!
//! A run is sealed as of an instant that is taken before its rows are written, and appears a little later. Until then, a
//! reader that asks for that instant or a later one would miss it. So the writer holds a system lock from before the
//! instant until the run has appeared, and such a reader waits for it. Readers of the latest state do not: they read as
//! of the latest seal.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::disk::file::FileError;
use crate::disk::links;
use crate::disk::lock::{self, Locked};
use crate::error::Result;
use crate::process::cancel::{self, CancellationToken};

/// The file of the lock. No definition has such a name.
pub(crate) const SEALING_LOCK: &str = ".seal";

/// How often a held lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// The right to seal a run, while the value lives.
pub(super) struct SealingLock {
    _file: Locked,
}

impl SealingLock {
    /// Waits for the right to seal a run.
    pub(super) fn take(archive: &Path, stop: &CancellationToken) -> Result<Self> {
        let folder = archive.join(lock::FOLDER);
        links::folder(&folder)?;
        let path = folder.join(SEALING_LOCK);
        let file = links::rewrite(&path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Locked::new(file) }),
                // Some file systems have no locks: histories that meet are merged.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { _file: Locked::new(file) });
                }
                Err(TryLockError::Error(error)) => return Err(FileError::write(&path)(error)),
                Err(TryLockError::WouldBlock) => wait(stop)?,
            }
        }
    }
}

/// Waits until no run is being sealed. Nothing is written: an archive without the lock has no writer.
pub(crate) fn wait_for_seal(archive: &Path, stop: &CancellationToken) -> Result<()> {
    let path: PathBuf = archive.join(lock::FOLDER).join(SEALING_LOCK);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| links::open(&path).ok()).flatten() else { return Ok(()) };
    while matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        wait(stop)?;
    }
    Ok(())
}

fn wait(stop: &CancellationToken) -> Result<()> {
    cancel::check(stop)?;
    thread::sleep(TRY_EVERY);
    Ok(())
}
