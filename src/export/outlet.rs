//! Files that many may write at once.
//!
//! A system keeps what is written in memory for half a minute, and when a file must be durable all of it goes to the disk
//! while nobody has anything to do. So a long file is made durable piece by piece, beside the work on the next piece.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use crate::error::Result;
use crate::file;

/// The bytes of a piece that is worth a thread.
const PIECE_BYTES: u64 = 64 << 20;

/// A new file that is open only while something is written to it: a dataset may have more of them under way than a
/// process may have files open. Whoever writes to it gathers.
#[derive(Debug)]
pub(super) struct Outlet {
    path: PathBuf,
    /// What was written since the last piece went to the disk.
    unsettled: u64,
    /// What makes that piece durable.
    settling: Option<JoinHandle<io::Result<()>>>,
}

impl Outlet {
    pub(super) fn create(path: &Path) -> Result<Self> {
        file::create(path)?;
        Ok(Self { path: path.to_owned(), unsettled: 0, settling: None })
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(&self.path)
    }

    fn written(&mut self, file: File, bytes: usize) -> io::Result<()> {
        self.unsettled += bytes as u64;
        let is_busy = self.settling.as_ref().is_some_and(|settling| !settling.is_finished());
        if self.unsettled >= PIECE_BYTES && !is_busy {
            self.settled()?;
            self.unsettled = 0;
            self.settling = thread::Builder::new().spawn(move || file.sync_data()).ok();
        }
        Ok(())
    }

    /// Waits for the piece that is on its way to the disk. Its failure is told to nobody else.
    fn settled(&mut self) -> io::Result<()> {
        let settled = self.settling.take().map(JoinHandle::join);
        settled.map_or(Ok(()), |settled| settled.unwrap_or_else(|_| Err(io::Error::other("a thread broke off"))))
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.open()?;
        let count = file.write(bytes)?;
        self.written(file, count)?;
        Ok(count)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        file.write_all(bytes)?;
        self.written(file, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settled()
    }
}
