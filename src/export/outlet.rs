//! Files that many may write at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::file;

/// A new file that is open only while something is written to it: a dataset may have more of them under way than a
/// process may have files open. Whoever writes to it gathers.
#[derive(Debug)]
pub(super) struct Outlet {
    path: PathBuf,
}

impl Outlet {
    pub(super) fn create(path: &Path) -> Result<Self> {
        file::create(path)?;
        Ok(Self { path: path.to_owned() })
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(&self.path)
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open()?.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
