//! Creates and opens files and folders below a folder that a user named, without following links there.
//!
//! The folders named with `--data` and `--archive` may be links, for example to another disk. Everything below them
//! is ours: a link there was planted or is a mistake, and writing through it would change somebody else's files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::disk::file::{self, FileError};
use crate::error::Result;

/// The flag for opening a file without following a link.
pub(crate) const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Refuses a path with a link in it below a root. A path outside the root was named by the user.
pub fn refuse_below(root: &Path, path: &Path) -> Result<()> {
    let Ok(below) = path.strip_prefix(root) else { return Ok(()) };
    let mut at = root.to_owned();
    for component in below.components() {
        at.push(component);
        refuse(&at)?;
    }
    Ok(())
}

/// Refuses a link.
pub fn refuse(path: &Path) -> Result<()> {
    if path.is_symlink() { Err(FileError::linked(path)) } else { Ok(()) }
}

/// Creates a folder if needed, directly inside an existing one, durably.
pub(crate) fn folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse(path),
        Err(error) => Err(FileError::write(path)(error)),
        Ok(()) => path.parent().map_or(Ok(()), file::sync_folder),
    }
}

/// Opens or creates a file of ours to append to it.
pub fn append(path: &Path) -> Result<File> {
    open_to_write(path, OpenOptions::new().append(true).create(true))
}

/// Opens or creates a file of ours to read and rewrite it.
pub(crate) fn rewrite(path: &Path) -> Result<File> {
    open_to_write(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

fn open_to_write(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let opened = open_with(path, options).and_then(|file| match file.metadata()?.nlink() {
        0 | 1 => Ok(file),
        // Writing to one name of a file changes it under its other names, which may be in somebody else's folder.
        _ => Err(io::Error::other("it has another hard link")),
    });
    opened.map_err(|source| if path.is_symlink() { FileError::linked(path) } else { FileError::write(path)(source) })
}

/// Opens a file of ours to read it.
pub fn open(path: &Path) -> Result<File> {
    let opened = open_with(path, OpenOptions::new().read(true));
    opened.map_err(|source| if path.is_symlink() { FileError::linked(path) } else { FileError::read(path)(source) })
}

fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Non-blocking, or a pipe would block until its other end is opened.
    let file = options.custom_flags(NOFOLLOW | OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The bytes of a file of ours.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(FileError::read(path))?;
    Ok(bytes)
}

/// Hard-links a file, or copies it if the file system has no links, or no more of them.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let (mut source, mut copy) = (open(from)?, file::create(to)?);
    io::copy(&mut source, &mut copy).map(drop).map_err(FileError::write(to))
}
