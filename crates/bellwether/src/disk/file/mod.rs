//! Files and folders that appear whole or not at all, and errors that name their path.

mod error;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use rustix::fs::{Access, OFlags, access};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::disk::digest::{self, Digest, hex};
use crate::disk::names::{RANDOM, fits};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Result};
use crate::process::cancel::CancellationToken;
use crate::time::random;

pub(crate) use error::Damaged;
pub use error::{FileError, fault_of};

/// A folder being written under a hidden name, removed with its contents on drop unless it is published.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    is_published: bool,
}

impl Staging {
    /// A new, empty folder inside `parent`, which is created if needed.
    pub(crate) fn create(parent: &Path, name: &str) -> Result<Self> {
        create_folders(parent)?;
        let path = parent.join(format!(".partial-{name}"));
        fs::create_dir(&path).map_err(FileError::write(&path))?;
        Ok(Self { path, is_published: false })
    }

    /// The path for a file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the folder and its contents durable, and renames it to `target`.
    pub(crate) fn publish(mut self, target: &Path) -> Result<()> {
        rename_durably(&self.path, target)?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_published {
            // Best effort: leftovers are hidden and ignored by readers.
            let _ = remove::folder(&self.path);
        }
    }
}

/// Makes a folder and its contents durable, and renames it to `target`.
pub(crate) fn rename_durably(folder: &Path, target: &Path) -> Result<()> {
    sync_folder(folder)?;
    fs::rename(folder, target).map_err(FileError::write(target))?;
    sync_folder(folder_of(target))
}

/// Whether nothing is there; false if that cannot be seen, so that who goes on to read it fails.
pub(crate) fn is_gone(path: &Path) -> bool {
    let is_nothing = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    path.symlink_metadata().is_err_and(|error| is_nothing(error.kind()))
}

/// Whether we may write something that is there.
pub(crate) fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// The folders in a folder, without links and hidden ones.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for path in entries(folder)? {
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() && !is_hidden(&path) => folders.push(path),
            // It was removed meanwhile.
            Err(_) if is_gone(&path) => {}
            Err(error) => return Err(FileError::read(&path)(error)),
            Ok(_) => {}
        }
    }
    Ok(folders)
}

/// Renames a folder before it is removed, durably: after a power cut it is either whole or not there.
pub(crate) fn move_aside(folder: &Path, aside: &Path) -> io::Result<()> {
    fs::rename(folder, aside)?;
    File::open(folder_of(folder))?.sync_all()
}

/// Creates a folder and the folders above it, if needed. The entry of each new one is made durable: without it, a power
/// cut loses all that the folder holds.
pub fn create_folders(path: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    missing.into_iter().rev().try_for_each(|folder| match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(FileError::write(folder)(error)),
        Err(_) if !folder.is_dir() => Err(FileError::write(folder)(io::ErrorKind::NotADirectory.into())),
        // Another process may have been faster.
        _ => sync_folder(folder_of(folder)),
    })
}

/// The folder that an entry is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file for rows.
pub(crate) fn create(path: &Path) -> Result<File> {
    File::create_new(path).map_err(FileError::write(path))
}

/// The entries of a folder, by name; empty if the folder does not exist.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = FileError::read(folder);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// How old something hidden must be to count as a leftover: anything younger may belong to a running process.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether something was last changed longer ago than this; false if its metadata cannot be read.
pub(crate) fn is_older(path: &Path, age: Duration) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|elapsed| elapsed > age))
}

/// The prefix of hidden temporary folders inside an output folder.
const SCRATCH: &str = ".scratch-";

/// The path for a hidden temporary folder inside an output folder. Leftovers of killed processes there are removed
/// first.
pub fn scratch(outputs: &Path, name: &str) -> PathBuf {
    for path in stale_scratch(outputs) {
        // Best effort: it is hidden and ignored.
        let _ = remove::folder(&path);
    }
    outputs.join(format!("{SCRATCH}{name}"))
}

/// The temporary folders that killed processes left in an output folder.
pub(crate) fn stale_scratch(outputs: &Path) -> Vec<PathBuf> {
    stale(outputs, |name| name.starts_with(SCRATCH))
}

/// What stands in a folder under some names, and is too old to belong to a running process.
fn stale(folder: &Path, is_named_so: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = entries(folder).unwrap_or_default();
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(&is_named_so) && is_older(path, DAY)
    });
    found
}

/// Whether readers skip this name because it is being written or was abandoned.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Opens what should be a file, and may be something else: nothing waits for the other end of a pipe.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match what_is(file.metadata()?.file_type()) {
        None => Ok(file),
        Some(found) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {found}"))),
    }
}

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> Result<File> {
    open_regular(path).map_err(FileError::read(path))
}

/// Reads `length` bytes of a file from an offset, without moving any cursor.
pub fn read_at(file: &File, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Preallocates disk space without changing a file's length; returns whether the system did.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, from: u64, bytes: u64) -> bool {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, from, bytes).is_ok()
}

/// Preallocates disk space without changing a file's length; returns whether the system did.
#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(_file: &File, _from: u64, _bytes: u64) -> bool {
    false
}

/// Makes a file durable.
pub fn sync(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(FileError::write(path))
}

/// Makes files and folders durable in parallel, which takes hardly longer than one.
pub(crate) fn sync_all(paths: &[PathBuf]) -> Result<()> {
    paths.par_iter().try_for_each(|path| sync(&File::open(path).map_err(FileError::read(path))?, path))
}

/// Makes files below a folder durable, with the folders that they are in.
pub(crate) fn sync_below<'a>(root: &Path, files: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    let paths = files.map(Path::new);
    let folders: BTreeSet<&Path> = paths.clone().flat_map(|path| path.ancestors().skip(1)).collect();
    sync_all(&paths.chain(folders).map(|path| root.join(path)).collect::<Vec<_>>())
}

/// Writes a record as pretty-printed JSON.
pub(crate) fn write_json(path: &Path, record: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(record).map_err(|error| FileError::encode(path, error))?;
    text.push(b'\n');
    write_bytes(path, &text)
}

/// Writes a new file and makes it durable.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = create(path)?;
    file.write_all(bytes).map_err(FileError::write(path))?;
    sync(&file, path)
}

/// Writes or replaces a file atomically and durably.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let hidden = hidden_beside(path);
    let write = || -> io::Result<()> {
        let mut file = File::create_new(&hidden)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        keep_permissions(path, &hidden)?;
        fs::rename(&hidden, path)
    };
    // An error names the file that was asked for, not the hidden one.
    write().map_err(FileError::write(path)).inspect_err(|_| {
        // Best effort: it is hidden and ignored by readers.
        let _ = remove::file(&hidden);
    })?;
    sync_folder(folder_of(path))
}

/// Writes or replaces a file that a user named: what links lead to, if it is a file.
pub fn replace_named(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(&target_of(path)?, bytes)
}

/// The file that a user named: what links lead to, or nothing yet. Devices, pipes and folders are not to be replaced.
pub fn target_of(path: &Path) -> Result<PathBuf> {
    let failed = FileError::write(path);
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.is_symlink() => fs::canonicalize(path).map_err(failed)?,
        Ok(_) => path.to_owned(),
    };
    match what_is(fs::metadata(&file).map_err(failed)?.file_type()) {
        None => Ok(file),
        Some(found) => {
            let what = format!("`{}` is {found}, which is not replaced", path.display());
            Err(Error::new(ErrorKind::Storage, what).with_hint("name a file; `--output -` writes to standard output"))
        }
    }
}

/// What something is that is no file.
fn what_is(kind: fs::FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a folder"),
        _ if kind.is_fifo() => Some("a pipe"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// Gives a file that will replace another one its permissions.
pub(crate) fn keep_permissions(replaced: &Path, by: &Path) -> io::Result<()> {
    match fs::symlink_metadata(replaced) {
        Ok(known) if known.is_file() => fs::set_permissions(by, known.permissions()),
        _ => Ok(()),
    }
}

/// The files in a folder that killed processes did not complete.
pub(crate) fn stale_hidden(folder: &Path) -> Vec<PathBuf> {
    stale(folder, |name| {
        let parts = name.strip_prefix('.').and_then(|name| name.rsplit_once('-'));
        parts.is_some_and(|(_, random)| fits(random, RANDOM))
    })
}

/// A hidden name for a file until it is complete. What killed processes left under such names is removed first.
pub(crate) fn hidden_beside(path: &Path) -> PathBuf {
    let prefix = format!(".{}-", path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default());
    let is_beside = |name: &str| name.strip_prefix(&prefix).is_some_and(|random| fits(random, RANDOM));
    for stale in stale(folder_of(path), is_beside) {
        // Best effort: it is hidden and ignored by readers.
        let _ = remove::file(&stale);
    }
    path.with_file_name(format!("{prefix}{:016x}", random()))
}

/// A file that a user named to be written.
#[derive(Clone, Debug)]
pub struct TargetFile {
    /// Its path.
    pub path: PathBuf,
    /// What happens if it exists.
    pub when_exists: WhenExists,
}

/// What happens to a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenExists {
    /// It stays, and writing fails.
    Refuse,
    /// It is replaced, once the new one is complete.
    Replace,
}

impl TargetFile {
    /// The file to write: what links lead to. Refuses a name that is taken, unless by a file that may be replaced.
    pub fn check(&self) -> Result<PathBuf> {
        let file = target_of(&self.path)?;
        match (self.when_exists, fs::symlink_metadata(&file)) {
            (WhenExists::Refuse, Ok(_)) => Err(FileError::exists(&self.path)),
            _ => Ok(file),
        }
    }
}

/// A path as text, for serde: one that is not UTF-8 is told as it is shown.
pub(crate) fn as_text<S: Serializer>(path: &Path, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// As [`as_text`], if there is a path.
pub(crate) fn as_text_if_any<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}

/// A description of a file, for verifying it later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// Its name.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 of its bytes, as `b3sum` prints it.
    pub blake3: String,
}

/// A writer that digests and counts the bytes passing through.
#[derive(Debug)]
pub(crate) struct DigestWriter<W> {
    inner: W,
    digest: Digest,
}

impl<W: Write> DigestWriter<W> {
    /// Wraps a writer that is at the start of its file.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, digest: Digest::default() }
    }

    /// The record of the written file.
    pub(crate) fn record(&self, name: &str, rows: u64) -> FileRecord {
        FileRecord { name: name.to_owned(), rows, bytes: self.digest.count(), blake3: hex(&self.digest.hash()) }
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl FileRecord {
    /// Describes an existing file.
    ///
    /// # Errors
    ///
    /// If it cannot be read; once the token is cancelled.
    pub fn of(path: &Path, name: &str, rows: u64, stop: &CancellationToken) -> Result<Self> {
        let failed = FileError::read(path);
        let read = digest::of_reader(open(path)?, || stop.is_cancelled()).map_err(failed)?;
        let (hash, bytes) = read.ok_or_else(Error::interruption)?;
        Ok(Self { name: name.to_owned(), rows, bytes, blake3: hex(&hash) })
    }
}

/// Makes the entries of a folder durable.
///
/// # Errors
///
/// If the system cannot.
pub fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(FileError::write(path))
}
