//! The files of one folder: the same rows in every format, in files that several threads may write, durably.
//!
//! The system keeps written data in memory for half a minute, so making a file durable at the end would wait for all of
//! it. A long file is therefore synced piece by piece while the next piece is written.
//!
//! The system also allocates disk space block by block as a file grows, which takes as long as copying the bytes. So
//! space for a long file is preallocated, and unused space is released.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use arrow::datatypes::SchemaRef;
use rayon::prelude::*;

use super::formats::{FormatWriter, RowEncoding};
use crate::columns::{RowBuffer, Rows};
use crate::disk::file::{self, DigestWriter, FileError, FileRecord};
use crate::disk::links::NOFOLLOW;
use crate::error::Result;
use crate::plan::Format;
use crate::process::cancel::{self, CancellationToken};

/// Approximate limit of buffered bytes; a larger row group is cut.
pub(super) const MOST_BYTES: usize = 256 << 20;

/// Where and how the files of a dataset are written.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    /// The folder they are written in.
    pub(super) root: PathBuf,
    /// The formats to write.
    pub(super) formats: Vec<Format>,
    /// How rows are encoded.
    pub(super) encoding: RowEncoding,
    /// Cancels writing.
    pub(super) stop: CancellationToken,
}

/// Files being written, and their buffered rows.
pub(super) struct TableWriter {
    root: PathBuf,
    /// The files, by their paths inside the root.
    writers: Vec<(String, FormatWriter<DigestWriter<DurableFile>>)>,
    buffer: RowBuffer,
    rows: u64,
    stop: CancellationToken,
}

impl TableWriter {
    /// Starts the files of a path inside the root, given without extension.
    pub(super) fn create(options: &WriteOptions, stem: &str, schema: &SchemaRef) -> Result<Self> {
        let WriteOptions { root, formats, encoding, stop } = options;
        let folder = root.join(stem);
        let folder = file::folder_of(&folder);
        fs::create_dir_all(folder).map_err(FileError::write(folder))?;
        let mut writers = Vec::new();
        for format in formats {
            let name = format!("{stem}.{format}");
            let path = root.join(&name);
            let out = DigestWriter::new(DurableFile::create(&path)?);
            let writer = FormatWriter::create((*format).into(), out, SchemaRef::clone(schema), encoding);
            writers.push((name, writer.map_err(|error| FileError::encode(&path, error))?));
        }
        let buffer = RowBuffer::new(encoding.row_group_rows);
        Ok(Self { root: root.clone(), writers, buffer, rows: 0, stop: stop.clone() })
    }

    pub(super) fn push(&mut self, rows: &Rows) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        self.buffer.push(rows).iter().try_for_each(|group| self.write(group))
    }

    /// Approximate memory of the buffered rows.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.bytes_with_overhead()
    }

    /// Flushes the buffered rows when they exceed the limit.
    pub(super) fn relieve(&mut self) -> Result<()> {
        // Decided by the rows alone: row group boundaries must not depend on how the rows arrived.
        if self.buffer.bytes() > MOST_BYTES { self.flush() } else { Ok(()) }
    }

    /// Flushes the buffered rows as a shorter row group.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.buffer.take().map_or(Ok(()), |group| self.write(&group))
    }

    fn write(&mut self, group: &[Rows]) -> Result<()> {
        cancel::check(&self.stop)?;
        self.writers.par_iter_mut().try_for_each(|(name, writer)| {
            writer.write(group).map_err(|error| FileError::encode(&self.root.join(&*name), error))
        })
    }

    /// Completes the files, named by their paths inside the root. They are not durable yet.
    pub(super) fn finish(mut self) -> Result<Vec<FileRecord>> {
        self.flush()?;
        let mut files = Vec::new();
        for (name, mut writer) in self.writers {
            writer.finish().map_err(|error| FileError::encode(&self.root.join(&name), error))?;
            files.push(writer.out().record(&name, self.rows));
        }
        Ok(files)
    }
}

/// The size of a piece that is synced.
const PIECE_BYTES: u64 = 16 << 20;

/// Files smaller than this are not preallocated.
const LONG_BYTES: u64 = 8 << 20;

/// How much is preallocated: a share of the file's length, up to a maximum. Many files may be open on a nearly full
/// disk.
const SHARE_AHEAD: u64 = 8;
const MOST_AHEAD: u64 = 16 << 20;

/// A new file that is open only while something is written to it: a dataset may have more unfinished files than a
/// process may have open. Callers should buffer.
#[derive(Debug)]
struct DurableFile {
    path: PathBuf,
    /// Bytes written.
    length: u64,
    /// End of the preallocated space; the maximum if preallocation failed.
    reserved: u64,
    /// Bytes written since the last sync.
    unsynced: u64,
    /// The sync in progress.
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl DurableFile {
    fn create(path: &Path) -> Result<Self> {
        file::create(path)?;
        Ok(Self { path: path.to_owned(), length: 0, reserved: 0, unsynced: 0, syncing: None })
    }

    /// Preallocates space for bytes about to be written, and for some that may follow.
    fn reserve(&mut self, file: &File, bytes: usize) {
        let end = self.length + bytes as u64;
        if self.length < LONG_BYTES || end <= self.reserved {
            return;
        }
        let (from, to) = (self.reserved.max(self.length), end + (self.length / SHARE_AHEAD).min(MOST_AHEAD));
        self.reserved = if file::reserve(file, from, to - from) { to } else { u64::MAX };
    }

    /// Waits for the sync in progress. Its failure is reported only here.
    fn wait_for_sync(&mut self) -> io::Result<()> {
        let result = self.syncing.take().map(JoinHandle::join);
        result.map_or(Ok(()), |result| result.unwrap_or_else(|_| Err(io::Error::other("a worker thread panicked"))))
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = OpenOptions::new().append(true).custom_flags(NOFOLLOW).open(&self.path)?;
        self.reserve(&file, bytes.len());
        let count = file.write(bytes)?;
        self.length += count as u64;
        self.unsynced += count as u64;
        let is_busy = self.syncing.as_ref().is_some_and(|sync| !sync.is_finished());
        if self.unsynced >= PIECE_BYTES && !is_busy {
            self.wait_for_sync()?;
            self.unsynced = 0;
            self.syncing = thread::Builder::new().spawn(move || file.sync_data()).ok();
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wait_for_sync()?;
        // Unused space is released. Some systems cannot truncate files opened for appending.
        if self.reserved > self.length {
            OpenOptions::new().write(true).custom_flags(NOFOLLOW).open(&self.path)?.set_len(self.length)?;
        }
        self.reserved = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::{DurableFile, LONG_BYTES, MOST_AHEAD};

    #[test]
    fn a_long_file_releases_its_preallocated_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let mut file = DurableFile::create(&path).unwrap();
        let piece: Vec<u8> = (0..999_983_u32).map(|at| (at % 251) as u8).collect();
        let mut written = 0;
        while written < LONG_BYTES * 5 {
            file.write_all(&piece).unwrap();
            written += piece.len() as u64;
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(metadata.len(), written, "preallocated space must not count");
            assert!(metadata.blocks() * 512 < written + MOST_AHEAD + (1 << 20));
        }
        file.flush().unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert!(metadata.blocks() * 512 < written + (1 << 16), "{} for {written}", metadata.blocks() * 512);
        assert!(fs::read(&path).unwrap().chunks(piece.len()).all(|part| part == piece));
    }
}
