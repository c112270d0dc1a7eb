//! Makes and opens what stands below a folder that a user named, and follows no link there.
//!
//! The folders named with `--output` and `--archive` may be links, to another disk for instance. What stands below them is
//! ours: a link there was planted or is a mistake, and what was written through it would end up in somebody else's files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{Error, Result};

/// The flag with which the system opens a file and not what it links to.
pub(crate) const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Refuses a path that has a link in it below a root. A path that is not below the root was named by itself.
///
/// # Errors
///
/// When it has one.
pub(crate) fn refuse_below(root: &Path, path: &Path) -> Result<()> {
    let Ok(below) = path.strip_prefix(root) else { return Ok(()) };
    let mut at = root.to_owned();
    for component in below.components() {
        at.push(component);
        refuse(&at)?;
    }
    Ok(())
}

/// Refuses a link.
///
/// # Errors
///
/// When the path is one.
pub(crate) fn refuse(path: &Path) -> Result<()> {
    if path.is_symlink() { Err(Error::Linked { path: path.to_owned() }) } else { Ok(()) }
}

/// Makes a folder where it is missing, directly below one that is there.
///
/// # Errors
///
/// When it cannot be made, or is a link.
pub(crate) fn folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse(path),
        result => result.map_err(|source| Error::Write { path: path.to_owned(), source }),
    }
}

/// Opens a file of ours to append to it, and makes it where it is missing.
///
/// # Errors
///
/// When it cannot be opened, or is a link or anything else but a file that has this name alone.
pub(crate) fn append(path: &Path) -> Result<File> {
    own(path, OpenOptions::new().append(true).create(true), Use::Write)
}

/// Opens a file of ours to read what it says and to write it anew, and makes it where it is missing.
///
/// # Errors
///
/// As [`append`].
pub(crate) fn rewrite(path: &Path) -> Result<File> {
    own(path, OpenOptions::new().read(true).write(true).create(true).truncate(false), Use::Write)
}

/// Opens a file of ours to read it.
///
/// # Errors
///
/// When it is not there, cannot be opened, or is a link or anything else but a file.
pub(crate) fn open(path: &Path) -> Result<File> {
    own(path, OpenOptions::new().read(true), Use::Read)
}

/// The bytes of a file of ours.
///
/// # Errors
///
/// As [`open`], and when it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

fn own(path: &Path, options: &mut OpenOptions, purpose: Use) -> Result<File> {
    let path_of = || path.to_owned();
    opened(path, options, purpose).map_err(|source| match purpose {
        _ if path.is_symlink() => Error::Linked { path: path_of() },
        Use::Read => Error::Read { path: path_of(), source },
        Use::Write => Error::Write { path: path_of(), source },
    })
}

fn opened(path: &Path, options: &mut OpenOptions, purpose: Use) -> io::Result<File> {
    // Without waiting, or a pipe would hold up the program until somebody opens its other end.
    let file = options.custom_flags(NOFOLLOW | OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // What is written under one name of a file is written under the other, which may stand in somebody else's folder.
    if purpose == Use::Write && found.nlink() > 1 {
        return Err(io::Error::other("it has a second name elsewhere (a hard link)"));
    }
    Ok(file)
}
