//! Removes leftovers of killed packing and pruning. They are hidden and ignored by readers.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::archive::FOLDER_OF_UNFINISHED;
use crate::disk::file;
use crate::disk::links;
use crate::disk::names::{PACKING, REMOVING, fits};
use crate::disk::remove;
use crate::error::Result;

/// Removes the leftovers in an archive. One that cannot be removed stays, with a warning in the log.
pub(super) fn clear(archive: &Path) -> Result<()> {
    let hidden = archive.join(FOLDER_OF_UNFINISHED);
    links::refuse(&hidden)?;
    for path in file::entries(&hidden)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let removed = match name {
            _ if REMOVING.iter().any(|form| fits(name, form)) => remove::folder(&path),
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
