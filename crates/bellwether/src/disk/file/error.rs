//! Errors of files and folders.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Diagnostic, Error, ErrorKind, Reason, system_error};

/// What to do about an older layout without the program that wrote it.
const START_ANEW: &str = "build a dataset again with `bellwether build NAME`; move an archive away, and begin a new one with \
                          `bellwether run NAME --new-archive`";

/// A damaged folder, and what is wrong with it.
pub(crate) type Damaged = (PathBuf, String);

/// A file or folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file or folder that cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },

    /// A file or folder that cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// A file or folder that cannot be removed.
    #[error("cannot remove `{}`", path.display())]
    Remove { path: PathBuf, source: io::Error },

    /// Rows that cannot be encoded.
    #[error("cannot write rows to `{}`", path.display())]
    Encode { path: PathBuf, source: Reason },

    /// A file with damaged content.
    #[error("`{}` is damaged", path.display())]
    Damaged { path: PathBuf, source: Reason },

    /// An archive or a dataset with another layout.
    #[error("`{}` has layout {layout}; this version reads layout {known}", path.display())]
    Layout { path: PathBuf, layout: u64, known: u32, bellwether: Option<String> },

    /// An output file that already exists.
    #[error("`{}` already exists", path.display())]
    Exists { path: PathBuf },

    /// Something that a user named as a file, and that is none.
    #[error("`{}` is {found}, which is not replaced", path.display())]
    Special { path: PathBuf, found: &'static str },

    /// Something else in place of a file or folder of ours.
    #[error("`{}` is {found}, expected {wanted}", path.display())]
    Occupied { path: PathBuf, found: &'static str, wanted: &'static str },

    /// A link in place of a file or folder of ours.
    #[error("`{}` is a symbolic link, which is not followed", path.display())]
    Linked { path: PathBuf },
}

impl FileError {
    /// A file or folder that cannot be read.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| Self::Read { path: path.to_owned(), source }.into()
    }

    /// Whether an error is that a file to be read does not exist.
    pub fn is_missing(error: &Error) -> bool {
        matches!(error.downcast_ref(), Some(Self::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether an error is that something which is there cannot be read for now: no damage.
    pub(crate) fn is_unreadable(error: &Error) -> bool {
        matches!(error.downcast_ref(), Some(Self::Read { .. })) && !Self::is_missing(error)
    }

    /// Whether an error is that what was read is not what was written.
    pub(crate) fn is_damage(error: &Error) -> bool {
        match error.downcast_ref() {
            Some(Self::Damaged { .. }) => true,
            // Text with bytes that are none.
            Some(Self::Read { source, .. }) => source.kind() == io::ErrorKind::InvalidData,
            _ => false,
        }
    }

    /// Whether an error is that something may not be written.
    pub(crate) fn is_denied(error: &Error) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        let denied = |error: &io::Error| matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem);
        matches!(error.downcast_ref(), Some(Self::Write { source, .. }) if denied(source))
    }

    /// A file or folder that cannot be written.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| Self::Write { path: path.to_owned(), source }.into()
    }

    /// A file with damaged content, or that could not be read for want of open files.
    pub fn damage(path: &Path, reason: impl Into<Reason>) -> Error {
        let (path, reason) = (path.to_owned(), reason.into());
        let error = match system_error(&reason).filter(is_out_of_files) {
            Some(source) => Self::Read { path, source },
            None => Self::Damaged { path, source: reason },
        };
        error.into()
    }

    /// Rows that cannot be encoded. A full disk is reported as such: the file that could not be written, and why.
    pub(crate) fn encode(path: &Path, reason: impl Into<Reason>) -> Error {
        let (path, reason) = (path.to_owned(), reason.into());
        let error = match system_error(&reason) {
            Some(source) => Self::Write { path, source },
            None => Self::Encode { path, source: reason },
        };
        error.into()
    }
}

impl Diagnostic for FileError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Storage
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Write { path, source } if source.kind() == io::ErrorKind::NotFound => {
                return missing_folder(path).map(|folder| format!("create the folder `{}`", folder.display()));
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "make it writable for you, or choose another folder: `--data` names that of all output"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space and run it again; published versions are unchanged"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the limit on the size of files (`ulimit -f`); published versions are unchanged"
            }
            Self::Write { source, .. } | Self::Read { source, .. } if is_out_of_files(source) => {
                "raise the limit on open files (`ulimit -n`)"
            }
            Self::Remove { source, .. } if source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                "move your own files to another folder"
            }
            Self::Remove { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run the command as the user it belongs to, or make it and its folder writable for you"
            }
            Self::Damaged { .. } => {
                "`bellwether verify --repair` gets it from a store, if there is one; if not, restore it from a backup. \
                 `bellwether verify` lists all damaged files"
            }
            Self::Layout { layout, known, bellwether, .. } => {
                let is_older = *layout < u64::from(*known);
                // Another build of this version may have another layout.
                let version = bellwether.as_deref().filter(|version| *version != env!("CARGO_PKG_VERSION"));
                return Some(match (is_older, version) {
                    (true, Some(version)) => format!("use bellwether {version}, which wrote it; or {START_ANEW}"),
                    (true, None) => format!("use the version of bellwether that wrote it; or {START_ANEW}"),
                    (false, Some(version)) => {
                        format!("it was written by bellwether {version}: use that version or a newer one")
                    }
                    (false, None) => "use a newer version of bellwether than this one".to_owned(),
                });
            }
            Self::Exists { .. } => "choose another file, or replace it with `--force`",
            Self::Special { .. } => "name a file; `--output -` writes to standard output",
            Self::Occupied { .. } => "move it, or choose another folder with `--data`",
            Self::Linked { .. } => {
                "remove the link; to keep data or the archive on another disk, use `--data` or `--archive`"
            }
            Self::Read { .. } | Self::Write { .. } | Self::Remove { .. } | Self::Encode { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// The folder of a file, if it does not exist and somebody named it: hidden files and folders are the program's own.
fn missing_folder(path: &Path) -> Option<&Path> {
    let is_hidden = |part: Component<'_>| match part {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !path.components().any(is_hidden));
    folder.filter(|folder| folder.symlink_metadata().is_err())
}

/// A message on a file that failed verification.
pub fn fault_of(path: &Path, error: &Error) -> String {
    match error.downcast_ref() {
        Some(FileError::Read { source, .. }) => format!("`{}` cannot be read: {source}", path.display()),
        _ => match std::error::Error::source(error) {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_string(),
        },
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
