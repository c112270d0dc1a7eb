//! One run of a definition at a time.
//!
//! The lock is a system lock on the archive's file `.locks/NAME`. It is released when its process ends, however that
//! happens, so a lock is never stale. The file stays; its contents are for people who run into a held lock.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::error::Result;
use crate::time::{as_record, to_record};

/// The folder of locks in an archive.
pub(crate) const FOLDER: &str = ".locks";

/// The right to run a definition on an archive, while the value lives. The file is unlocked, not only closed: a child process
/// that another thread is starting has a copy of it until it runs its program.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it unlocks it as well, if not at once.
        let _ = self.0.unlock();
    }
}

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process ID.
    pub process: u32,
    /// Its machine.
    pub host: String,
    /// Since when.
    #[serde(with = "as_record")]
    pub since: DateTime<Utc>,
    /// The data folder that it works for, if what is locked may be shared by several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// The outcome of trying to take a lock.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Taken(Lock),
    /// Another process has it; `None` if that has not recorded its identity yet.
    Held(Option<Holder>),
}

impl Lock {
    /// The right that a locked file is.
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    /// Takes the lock of a definition on an archive if it is free. The archive's folder is created if needed.
    pub fn try_take(archive: &Path, definition: &str, holder: &Holder) -> Result<Attempt> {
        file::create_folders(archive)?;
        let folder = archive.join(FOLDER);
        links::folder(&folder)?;
        let path = folder.join(definition);
        let file = links::rewrite(&path)?;
        let failed = FileError::write(&path);
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                // It may be a reader that only looks who holds it.
                Err(TryLockError::WouldBlock) if attempt < 3 => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::WouldBlock) => return Ok(Attempt::Held(read_holder(&file))),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        let text = serde_json::to_vec(holder).expect("a holder is text and numbers");
        match write(&file, &text) {
            // The record is for people, and a full disk must not keep a command from freeing space.
            Err(error) if !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                Err(failed(error))
            }
            _ => Ok(Attempt::Taken(Self(file))),
        }
    }
}

/// The state of a lock; whoever holds it, or held it last, is none if it has not recorded its identity.
#[derive(Debug)]
pub enum LockState {
    /// It was never taken.
    New,
    /// Nobody has it.
    Free(Option<Holder>),
    /// A process has it.
    Held(Option<Holder>),
}

/// The state of a lock. A free one is taken for a moment: [`Lock::try_take`] allows for that.
pub fn state_of(folder: &Path, name: &str) -> Result<LockState> {
    let path = folder.join(FOLDER).join(name);
    let file = match links::open(&path) {
        Err(error) if FileError::is_missing(&error) => return Ok(LockState::New),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(LockState::Free(read_holder(&file))),
        Err(TryLockError::WouldBlock) => Ok(LockState::Held(read_holder(&file))),
        Err(TryLockError::Error(source)) => Err(FileError::read(&path)(source)),
    }
}

fn write(mut file: &File, text: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text)
}

fn read_holder(file: &File) -> Option<Holder> {
    let mut text = Vec::new();
    // It is one line with a path.
    file.take(64 << 10).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A folder by the one name that all its paths have.
fn resolved(folder: &Path) -> String {
    let resolved = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    resolved.unwrap_or_else(|_| folder.to_owned()).to_string_lossy().into_owned()
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl Holder {
    /// This process.
    pub fn this(since: DateTime<Utc>) -> Self {
        Self { process: std::process::id(), host: host(), since, data: None }
    }

    /// The same one, working for a data folder.
    #[must_use]
    pub fn working_for(self, data: &Path) -> Self {
        Self { data: Some(resolved(data)), ..self }
    }

    /// Whether it is a process of this machine that works for a data folder, as far as it says for which.
    pub fn works_for(&self, data: &Path) -> bool {
        self.host == host() && self.data.as_ref().is_none_or(|of| *of == resolved(data))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, host, since, data: _ } = self;
        write!(formatter, "process {process} on `{host}`, since {}", to_record(*since))
    }
}
