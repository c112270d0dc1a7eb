//! The few files that answers are appended to until their run is sealed.
//!
//! A file per answer would mean creating and removing thousands. An answer has a file to itself while it is written;
//! then the next answer appends to it. A dropped answer is truncated away.
//!
//! A checksum detects what a power failure lost. It need not be strong: only this program writes these files, and the
//! sealed run has digests.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names;
use crate::error::Result;

/// Bytes per write: series arrive as many small pieces.
const PORTION: usize = 128 << 10;

/// The files of a run.
#[derive(Debug)]
pub(in crate::archive) struct AnswerFiles {
    folder: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    /// Number of names tried.
    tried: usize,
    free: Vec<Open>,
}

/// An open file.
#[derive(Debug)]
struct Open {
    name: String,
    file: File,
    end: u64,
    /// Write buffer, reused by the next answer.
    waiting: Vec<u8>,
}

/// A file in use by one answer. Dropping it lets the next answer append to it.
#[derive(Debug)]
pub(in crate::archive) struct AnswerFile {
    files: Arc<AnswerFiles>,
    /// `Some` until it is dropped.
    open: Option<Open>,
    from: u64,
    checksum: Hasher,
    is_kept: bool,
}

/// A byte range of an answer file, with its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::archive) struct ByteRange {
    /// Name of the file.
    file: String,
    /// First byte.
    from: u64,
    /// Length.
    bytes: u64,
    /// CRC-32.
    crc32: u32,
}

impl AnswerFiles {
    /// Answer files in a folder, next to files that already exist.
    pub(in crate::archive) fn of(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    /// Takes a file for exclusive use.
    pub(in crate::archive) fn take(files: &Arc<Self>) -> Result<AnswerFile> {
        let mut state = files.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match state.free.pop() {
            Some(open) => open,
            None => files.create(&mut state.tried)?,
        };
        let (files, from, checksum) = (Arc::clone(files), open.end, Hasher::new());
        Ok(AnswerFile { files, from, open: Some(open), checksum, is_kept: false })
    }

    /// Creates a file under the next free name; a resumed run has some already.
    fn create(&self, tried: &mut usize) -> Result<Open> {
        loop {
            let name = format!("{tried}.answers");
            *tried += 1;
            let path = self.folder.join(&name);
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Open { name, file, end: 0, waiting: Vec::with_capacity(PORTION) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(FileError::write(&path)(source)),
            }
        }
    }
}

impl AnswerFile {
    /// Path of the file.
    pub(in crate::archive) fn path(&self) -> PathBuf {
        self.files.folder.join(self.open.as_ref().map_or("", |open| &open.name))
    }

    /// Appends what `write` adds to the buffer; returns its length.
    pub(in crate::archive) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<u64> {
        let open = self.open.as_mut().expect("it is `Some` until dropped");
        let before = open.waiting.len();
        write(&mut open.waiting);
        let bytes = &open.waiting[before..];
        self.checksum.update(bytes);
        let count = bytes.len() as u64;
        if open.waiting.len() >= PORTION {
            open.write_waiting()?;
        }
        Ok(count)
    }

    /// Keeps what was written.
    pub(in crate::archive) fn keep(mut self) -> io::Result<ByteRange> {
        let open = self.open.as_mut().expect("it is `Some` until dropped");
        open.write_waiting()?;
        self.is_kept = true;
        let (file, end) = (open.name.clone(), open.end);
        Ok(ByteRange { file, from: self.from, bytes: end - self.from, crc32: self.checksum.clone().finalize() })
    }
}

impl Open {
    fn write_waiting(&mut self) -> io::Result<()> {
        self.file.write_all(&self.waiting)?;
        self.end += self.waiting.len() as u64;
        // One long answer should not keep the memory.
        self.waiting.clear();
        self.waiting.shrink_to(2 * PORTION);
        Ok(())
    }
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        if !self.is_kept {
            // If truncating fails the file is not reused, since its offsets would be wrong.
            if open.file.set_len(self.from).is_err() {
                return;
            }
            open.waiting.clear();
            open.end = self.from;
        }
        self.files.state.lock().unwrap_or_else(PoisonError::into_inner).free.push(open);
    }
}

impl ByteRange {
    /// Path of its file in a folder.
    pub(in crate::archive) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.file)
    }

    /// Whether the name is that of an answer file.
    pub(super) fn is_of_answers(&self) -> bool {
        names::fits(&self.file, names::ANSWERS)
    }

    /// Opens it.
    pub(in crate::archive) fn open(&self, folder: &Path, files: &mut Files) -> Result<Section> {
        Ok(Section { file: files.open(&self.path(folder))?, from: self.from, bytes: self.bytes })
    }

    /// Checks that the bytes match their checksum.
    pub(in crate::archive) fn check(&self, folder: &Path) -> Result<()> {
        let path = self.path(folder);
        let failed = FileError::read(&path);
        let section = self.open(folder, &mut Files::default())?;
        let mut checksum = Hasher::new();
        for at in (0..self.bytes).step_by(PORTION) {
            checksum.update(&section.read(at, self.bytes.min(at + PORTION as u64) - at).map_err(failed)?);
        }
        if checksum.finalize() == self.crc32 {
            return Ok(());
        }
        Err(FileError::damage(&self.path(folder), "its checksum does not match"))
    }
}

/// Answer files, each opened once however many ranges of it are read.
#[derive(Debug, Default)]
pub(in crate::archive) struct Files(HashMap<PathBuf, Arc<File>>);

impl Files {
    fn open(&mut self, path: &Path) -> Result<Arc<File>> {
        if let Some(file) = self.0.get(path) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(links::open(path)?);
        self.0.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }
}

/// A byte range of a file, readable from several threads.
#[derive(Debug)]
pub(in crate::archive) struct Section {
    file: Arc<File>,
    from: u64,
    /// Its length.
    pub(in crate::archive) bytes: u64,
}

impl Section {
    /// Reads `length` bytes from `at`.
    pub(in crate::archive) fn read(&self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        let is_within = at.checked_add(length).is_some_and(|end| end <= self.bytes);
        let length = usize::try_from(length).ok().filter(|_| is_within).ok_or(io::ErrorKind::UnexpectedEof)?;
        file::read_at(&self.file, self.from + at, length)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tempfile::tempdir;

    use super::{AnswerFiles, Files, PORTION};

    #[test]
    fn answers_share_a_file_and_discarded_ones_are_truncated() {
        let folder = tempdir().unwrap();
        let files = Arc::new(AnswerFiles::of(folder.path().to_owned()));
        let write = |text: &str| {
            let mut file = AnswerFiles::take(&files).unwrap();
            file.append(|out| out.extend_from_slice(text.as_bytes())).unwrap();
            file
        };
        let first = write("first").keep().unwrap();
        drop(write("dropped"));
        let (second, third) = (write("second"), write("third"));
        let (second, third) = (second.keep().unwrap(), third.keep().unwrap());
        assert_eq!(std::fs::read(folder.path().join("0.answers")).unwrap(), b"firstsecond");
        assert_eq!(std::fs::read(folder.path().join("1.answers")).unwrap(), b"third");
        first.check(folder.path()).unwrap();
        second.check(folder.path()).unwrap();
        std::fs::write(folder.path().join("1.answers"), b"thirt").unwrap();
        assert!(third.check(folder.path()).unwrap_err().to_string().contains("1.answers"));
        let section = second.open(folder.path(), &mut Files::default()).unwrap();
        assert_eq!((section.read(3, 3).unwrap(), section.read(0, 2).unwrap()), (b"ond".to_vec(), b"se".to_vec()));
        assert_eq!(section.read(3, 4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);

        // Buffered bytes of a dropped answer are dropped with it.
        let long = "long".repeat(PORTION);
        drop(write(&long[..PORTION + 1]));
        let long = write(&long).keep().unwrap();
        long.check(folder.path()).unwrap();

        // Other processes write to their own files.
        let files = Arc::new(AnswerFiles::of(folder.path().to_owned()));
        let mut file = AnswerFiles::take(&files).unwrap();
        file.append(|out| out.extend_from_slice(b"later")).unwrap();
        file.keep().unwrap();
        assert!(folder.path().join("2.answers").exists());
    }
}
