//! Errors of files and folders.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, ErrorKind, Reason, system_error};

/// What to do about an older layout without the program that wrote it.
const START_ANEW: &str = "build a dataset again with `bellwether build NAME`; move an archive away, and begin a new one with \
                          `bellwether run NAME --new-archive`";

/// What to do for want of open files.
const OPEN_FILES: &str = "raise the limit on open files (`ulimit -n`)";

/// A damaged folder, and what is wrong with it.
pub(crate) type Damaged = (PathBuf, String);

/// The errors of files and folders that cannot be used.
#[derive(Debug)]
pub enum FileError {}

impl FileError {
    /// A file or folder that cannot be read.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| {
            let hint = is_out_of_files(&source).then_some(OPEN_FILES);
            failure(ErrorKind::Read, "read", path, hint, source)
        }
    }

    /// A file or folder that cannot be written.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| {
            let hint = match source.kind() {
                io::ErrorKind::NotFound if let Some(folder) = missing_folder(path) => {
                    let hint = format!("create the folder `{}`", folder.display());
                    return failure(ErrorKind::Write, "write", path, Some(&hint), source);
                }
                io::ErrorKind::PermissionDenied => {
                    Some("make it writable for you, or choose another folder: `--data` names that of all output")
                }
                io::ErrorKind::StorageFull => {
                    Some("free some space and run it again; published versions are unchanged")
                }
                io::ErrorKind::FileTooLarge => {
                    Some("raise the limit on the size of files (`ulimit -f`); published versions are unchanged")
                }
                _ => is_out_of_files(&source).then_some(OPEN_FILES),
            };
            failure(ErrorKind::Write, "write", path, hint, source)
        }
    }

    /// A file or folder that cannot be removed.
    pub fn remove(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| {
            let hint = match source.kind() {
                io::ErrorKind::DirectoryNotEmpty => Some("move your own files to another folder"),
                io::ErrorKind::PermissionDenied => {
                    Some("run the command as the user it belongs to, or make it and its folder writable for you")
                }
                _ => None,
            };
            failure(ErrorKind::Storage, "remove", path, hint, source)
        }
    }

    /// A file with damaged content, or that could not be read for want of open files.
    pub fn damage(path: &Path, reason: impl Into<Reason>) -> Error {
        let reason = reason.into();
        match system_error(&reason).filter(is_out_of_files) {
            Some(source) => Self::read(path)(source),
            None => Error::new(ErrorKind::Damaged, format!("`{}` is damaged", path.display()))
                .with_hint(
                    "`bellwether verify --repair` gets it from a store, if there is one; if not, restore it from a backup. \
                     `bellwether verify` lists all damaged files",
                )
                .with_path(path)
                .with_source(reason),
        }
    }

    /// Rows that cannot be encoded. A full disk is reported as such: the file that could not be written, and why.
    pub(crate) fn encode(path: &Path, reason: impl Into<Reason>) -> Error {
        let reason = reason.into();
        match system_error(&reason) {
            Some(source) => Self::write(path)(source),
            None => {
                Error::new(ErrorKind::Storage, format!("cannot write rows to `{}`", path.display())).with_source(reason)
            }
        }
    }

    /// An archive or a dataset with another layout than the `known` one, written by a version of Bellwether, if it says which.
    pub(crate) fn layout(path: &Path, layout: u64, known: u32, bellwether: Option<&str>) -> Error {
        let is_older = layout < u64::from(known);
        // Another build of this version may have another layout.
        let hint = match (is_older, bellwether.filter(|version| *version != env!("CARGO_PKG_VERSION"))) {
            (true, Some(version)) => format!("use bellwether {version}, which wrote it; or {START_ANEW}"),
            (true, None) => format!("use the version of bellwether that wrote it; or {START_ANEW}"),
            (false, Some(version)) => {
                format!("it was written by bellwether {version}: use that version or a newer one")
            }
            (false, None) => "use a newer version of bellwether than this one".to_owned(),
        };
        let what = format!("`{}` has layout {layout}; this version reads layout {known}", path.display());
        Error::new(ErrorKind::Layout, what).with_hint(hint)
    }

    /// An output file that already exists.
    pub fn exists(path: &Path) -> Error {
        Error::new(ErrorKind::Storage, format!("`{}` already exists", path.display()))
            .with_hint("choose another file, or replace it with `--force`")
    }

    /// Something else in place of a file or folder of ours.
    pub(crate) fn occupied(path: &Path, found: &str, wanted: &str) -> Error {
        Error::new(ErrorKind::Storage, format!("`{}` is {found}, expected {wanted}", path.display()))
            .with_hint("move it, or choose another folder with `--data`")
    }

    /// A link in place of a file or folder of ours.
    pub(crate) fn linked(path: &Path) -> Error {
        Error::new(ErrorKind::Storage, format!("`{}` is a symbolic link, which is not followed", path.display()))
            .with_hint("remove the link; to keep data or the archive on another disk, use `--data` or `--archive`")
    }

    /// Whether an error is that a file to be read does not exist.
    pub fn is_missing(error: &Error) -> bool {
        error.kind() == ErrorKind::Read && has_source(error, &[io::ErrorKind::NotFound])
    }

    /// Whether an error is that something which is there cannot be read for now: no damage.
    pub(crate) fn is_unreadable(error: &Error) -> bool {
        error.kind() == ErrorKind::Read && !Self::is_missing(error)
    }

    /// Whether an error is that what was read is not what was written: also text with bytes that are none.
    pub(crate) fn is_damage(error: &Error) -> bool {
        error.kind() == ErrorKind::Damaged
            || error.kind() == ErrorKind::Read && has_source(error, &[io::ErrorKind::InvalidData])
    }

    /// Whether an error is that something may not be written.
    pub(crate) fn is_denied(error: &Error) -> bool {
        let denied = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        error.kind() == ErrorKind::Write && has_source(error, &denied)
    }
}

fn failure(kind: ErrorKind, verb: &str, path: &Path, hint: Option<&str>, source: io::Error) -> Error {
    let error = Error::new(kind, format!("cannot {verb} `{}`", path.display())).with_source(source);
    hint.into_iter().fold(error, Error::with_hint)
}

fn has_source(error: &Error, kinds: &[io::ErrorKind]) -> bool {
    error.io_source().is_some_and(|source| kinds.contains(&source.kind()))
}

/// The folder of a file, if it does not exist and somebody named it: hidden files and folders are the program's own.
fn missing_folder(path: &Path) -> Option<&Path> {
    let is_hidden = |part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !path.components().any(is_hidden));
    folder.filter(|folder| folder.symlink_metadata().is_err())
}

/// A message on a file that failed verification.
pub fn fault_of(path: &Path, error: &Error) -> String {
    match (error.kind(), std::error::Error::source(error)) {
        (ErrorKind::Read, Some(source)) => format!("`{}` cannot be read: {source}", path.display()),
        (_, Some(reason)) => format!("{error}: {reason}"),
        (_, None) => error.to_string(),
    }
}

/// Whether the process or the system is at its limit of open files.
fn is_out_of_files(error: &io::Error) -> bool {
    let error = rustix::io::Errno::from_io_error(error);
    matches!(error, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use arrow::error::ArrowError;

    use super::FileError;

    #[test]
    fn a_file_that_cannot_be_opened_for_want_of_descriptors_is_not_damaged() {
        let path = Path::new("rows.parquet");
        let number = rustix::io::Errno::MFILE.raw_os_error();
        let limit = io::Error::from_raw_os_error(number);
        let text = ArrowError::ParquetError(format!("External: {}", io::Error::from_raw_os_error(number)));
        for error in [FileError::damage(path, limit), FileError::damage(path, text)] {
            assert_eq!(error.to_string(), "cannot read `rows.parquet`");
            assert!(FileError::is_unreadable(&error));
        }
        let other = FileError::damage(path, ArrowError::ParquetError("External: a page (os error)".to_owned()));
        assert_eq!(other.to_string(), "`rows.parquet` is damaged");
    }
}
