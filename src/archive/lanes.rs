//! The files that answers are written to until their run is sealed: a few, one answer after another in each.
//!
//! A file for each answer would be thousands to make and to remove. An answer has a lane for itself while it is written
//! down, and then the next one has it. What was not kept is cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file::{self, Described};

/// The lanes of a run.
#[derive(Debug)]
pub(super) struct Lanes {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many names were tried.
    tried: usize,
    free: Vec<Open>,
}

/// A file that lanes are in.
#[derive(Debug)]
struct Open {
    name: String,
    file: File,
    end: u64,
}

/// A lane that is written to. It is free again when the value goes.
#[derive(Debug)]
pub(super) struct Lane {
    lanes: Arc<Lanes>,
    /// Always there, until the value goes.
    open: Option<Open>,
    from: u64,
    is_kept: bool,
}

/// Where something stands, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The file's name.
    file: String,
    /// Where it begins.
    from: u64,
    /// Its length.
    bytes: u64,
    /// Its SHA-256.
    sha256: String,
}

impl Lanes {
    /// Lanes in a folder, beside those that are there.
    pub(super) fn of(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    /// A lane that nobody else writes to.
    pub(super) fn take(lanes: &Arc<Self>) -> Result<Lane> {
        let mut state = lanes.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match state.free.pop() {
            Some(open) => open,
            None => lanes.create(&mut state.tried)?,
        };
        Ok(Lane { lanes: Arc::clone(lanes), from: open.end, open: Some(open), is_kept: false })
    }

    /// A file under the next name that is free: a run that is gone on with has some already.
    fn create(&self, tried: &mut usize) -> Result<Open> {
        loop {
            let name = format!("{tried}.answers");
            *tried += 1;
            let path = self.folder.join(&name);
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Open { name, file, end: 0 }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Write { path, source }),
            }
        }
    }
}

impl Lane {
    /// The path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.lanes.folder.join(self.open.as_ref().map_or("", |open| &open.name))
    }

    /// Keeps what was written, which has this digest.
    pub(super) fn keep(mut self, sha256: String) -> Stretch {
        self.is_kept = true;
        let open = self.open.as_ref().expect("it is there until the value goes");
        Stretch { file: open.name.clone(), from: self.from, bytes: open.end - self.from, sha256 }
    }
}

impl Write for Lane {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let open = self.open.as_mut().expect("it is there until the value goes");
        let count = open.file.write(bytes)?;
        open.end += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        if !self.is_kept {
            // Where it cannot be cut off nobody writes behind it: what follows would not stand where it is looked for.
            if open.file.set_len(self.from).is_err() {
                return;
            }
            open.end = self.from;
        }
        self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner).free.push(open);
    }
}

impl Stretch {
    /// Its file in a folder.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.file)
    }

    /// Reads it.
    pub(super) fn open(&self, folder: &Path) -> Result<Section> {
        Ok(Section { file: file::open(&self.path(folder))?, from: self.from, length: self.bytes, at: 0, place: None })
    }

    /// Makes sure that it is what was written.
    pub(super) fn check(&self, folder: &Path) -> Result<()> {
        let mut found = Described::new(io::sink());
        let read = io::copy(&mut self.open(folder)?, &mut found);
        let read = read.map_err(|source| Error::Read { path: self.path(folder), source })?;
        if read == self.bytes && found.into_parts().1 == self.sha256 {
            return Ok(());
        }
        Err(Error::Damaged { path: self.path(folder), source: "it is not what was written".into() })
    }
}

/// A stretch of a file, as a file of its own.
#[derive(Debug)]
pub(super) struct Section {
    file: File,
    from: u64,
    length: u64,
    /// Where it is read next, and where the file is.
    at: u64,
    place: Option<u64>,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX));
        if self.place != Some(self.at) {
            self.file.seek(SeekFrom::Start(self.from + self.at))?;
        }
        let count = self.file.read(&mut buffer[..wanted])?;
        self.at += count as u64;
        self.place = Some(self.at);
        Ok(count)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(distance) => self.length.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::sync::Arc;

    use tempfile::tempdir;

    use super::Lanes;
    use crate::file;

    #[test]
    fn answers_share_a_file_and_what_is_not_kept_is_cut_off() {
        let folder = tempdir().unwrap();
        let lanes = Arc::new(Lanes::of(folder.path().to_owned()));
        let write = |text: &str| {
            let mut lane = Lanes::take(&lanes).unwrap();
            lane.write_all(text.as_bytes()).unwrap();
            lane
        };
        let first = write("first").keep(file::digest(b"first"));
        drop(write("given up"));
        let (second, third) = (write("second"), write("third"));
        let (second, third) = (second.keep(file::digest(b"second")), third.keep(file::digest(b"other")));
        assert_eq!(std::fs::read(folder.path().join("0.answers")).unwrap(), b"firstsecond");
        assert_eq!(std::fs::read(folder.path().join("1.answers")).unwrap(), b"third");
        first.check(folder.path()).unwrap();
        second.check(folder.path()).unwrap();
        assert!(third.check(folder.path()).unwrap_err().to_string().contains("1.answers"));
        let mut section = second.open(folder.path()).unwrap();
        let mut text = String::new();
        section.seek(SeekFrom::End(-3)).unwrap();
        section.read_to_string(&mut text).unwrap();
        section.seek(SeekFrom::Start(1)).unwrap();
        section.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ondecond");

        // Another process goes on in files of its own.
        let lanes = Arc::new(Lanes::of(folder.path().to_owned()));
        Lanes::take(&lanes).unwrap().write_all(b"later").unwrap();
        assert!(folder.path().join("2.answers").exists());
    }
}
