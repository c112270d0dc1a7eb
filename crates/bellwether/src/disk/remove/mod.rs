//! Removes files and folders. Nothing else in the program does.
//!
//! Before anything is removed, it is proven to be ours:
//!
//! - its path ends in one of the forms of `forms`, where this program puts such a thing;
//! - no component of that form is a link, nor is the thing itself, unless the form is that of a link. What comes before
//!   the form is a folder that the user named, and may be reached through links;
//! - only files with known names are removed from a folder, then the empty folder. Anything else stays, and so does the
//!   folder.
//!
//! Folders are opened one inside the other, never by their whole path, so a link swapped in meanwhile is not followed
//! either.
#![expect(clippy::disallowed_methods, reason = "this is where they are allowed")]

mod forms;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::disk::names::fits;
use forms::{Contents, FILES, FOLDERS, FileForm, Form, RETIRED, has_form};

/// The bytes of a file in which its mark is looked for.
const MARKED_BYTES: u64 = 4096;

/// Removes a folder of ours with everything of ours in it. It is not an error if it does not exist.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    let names = components(path)?;
    let forms: Vec<&Form> = FOLDERS.iter().filter(|form| has_form(&names, form.path)).collect();
    // A dataset may have the name of the folder of ad hoc builds. Its folder then matches both forms, and no component
    // of the longer one may be a link.
    let depth = forms.iter().map(|form| form.path.len()).max().ok_or_else(|| not_ours(path))?;
    if FolderEntry::open(&names, depth, path)?.is_none() {
        return Ok(());
    }
    let mut refused = not_ours(path);
    for form in forms {
        match clear(path, &names, form) {
            Ok(()) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Removes our files in a folder of a form, and then the folder.
fn clear(path: &Path, names: &[&str], form: &Form) -> io::Result<()> {
    match inspect(path, names, form, Mode::Remove)? {
        Some((_, Some(other))) => Err(holds(&other)),
        Some((place, None)) => unlink(&place.parent, place.name, AtFlags::REMOVEDIR),
        None => Ok(()),
    }
}

/// Walks through a folder of a form: its location, and the first entry that is not ours. `None` if it does not exist.
fn inspect<'a>(
    path: &Path,
    names: &[&'a str],
    form: &Form,
    mode: Mode,
) -> io::Result<Option<(FolderEntry<'a>, Option<PathBuf>)>> {
    let depth = form.path.len();
    let Some(place) = FolderEntry::open(names, depth, path)? else { return Ok(None) };
    let Some(folder) = open_inside(&place.parent, place.name)? else { return Ok(None) };
    let dataset = if form.path[0] == "$" { names[names.len() - depth] } else { "" };
    let other = walk(&folder, form.contents, dataset, mode)?;
    Ok(Some((place, other)))
}

/// Removes an entry of a folder, unless another process was faster.
fn unlink(folder: &OwnedFd, name: &str, flags: AtFlags) -> io::Result<()> {
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a single file or link of ours. It is not an error if it does not exist.
pub fn file(path: &Path) -> io::Result<()> {
    match find(path)? {
        Some(place) => unlink(&place.parent, place.name, AtFlags::empty()),
        None => Ok(()),
    }
}

/// Whether a path is a single file or link of ours, which [`file`] would remove; an error if that cannot be seen.
pub(crate) fn is_file_of_ours(path: &Path) -> io::Result<bool> {
    match find(path) {
        // Only what the system refused has a code.
        Err(error) if error.raw_os_error().is_none() => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// A single file or link of ours; `None` if it does not exist.
fn find(path: &Path) -> io::Result<Option<FolderEntry<'_>>> {
    let names = components(path)?;
    let form = FILES.iter().find(|form| has_form(&names, form.path)).ok_or_else(|| not_ours(path))?;
    let Some(place) = FolderEntry::open(&names, form.path.len(), path)? else { return Ok(None) };
    match kind_of(&place.parent, place.name)? {
        None => Ok(None),
        Some(found) if found == form.kind && has_mark(&place, form)? => Ok(Some(place)),
        Some(_) => Err(not_ours(path)),
    }
}

/// Whether a file begins as its form says.
fn has_mark(place: &FolderEntry<'_>, form: &FileForm) -> io::Result<bool> {
    let Some(mark) = form.mark else { return Ok(true) };
    let stem = place.name.split('.').next().unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&place.parent, place.name, flags, rustix::fs::Mode::empty())?;
    let mut start = Vec::new();
    File::from(file).take(MARKED_BYTES).read_to_end(&mut start)?;
    Ok(String::from_utf8_lossy(&start).contains(&mark.replace('$', stem)))
}

/// Checks that a version, run or pack contains only its own files, before it is renamed and removed.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let names = components(path)?;
    let form = RETIRED.iter().find(|form| has_form(&names, form.path)).ok_or_else(|| not_ours(path))?;
    match inspect(path, &names, form, Mode::Check)? {
        Some((_, Some(other))) => Err(holds(&other)),
        _ => Ok(()),
    }
}

/// Whether files of ours are removed while walking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Check,
    Remove,
}

/// Walks through a folder and returns the first entry that is not ours.
fn walk(folder: &OwnedFd, contents: &Contents, dataset: &str, mode: Mode) -> io::Result<Option<PathBuf>> {
    let mut other = None;
    for name in entries(folder)? {
        let Ok(text) = name.to_str() else {
            other = other.or(Some(PathBuf::from(name.to_string_lossy().into_owned())));
            continue;
        };
        let is_like = |pattern: &&str| fits(text, &pattern.replace('$', dataset));
        let inside = contents.folders.iter().find(|(patterns, _)| patterns.iter().any(is_like));
        let found = match (kind_of(folder, text)?, inside) {
            (None, _) => None,
            (Some(FileType::RegularFile), _) if contents.files.iter().any(is_like) => {
                if mode == Mode::Remove {
                    unlink(folder, text, AtFlags::empty())?;
                }
                None
            }
            (Some(FileType::Directory), Some((_, contents))) => {
                let found = match open_inside(folder, text)? {
                    Some(inner) => walk(&inner, contents, dataset, mode)?,
                    None => None,
                };
                if found.is_none() && mode == Mode::Remove {
                    unlink(folder, text, AtFlags::REMOVEDIR)?;
                }
                found.map(|found| Path::new(text).join(found))
            }
            _ => Some(PathBuf::from(text)),
        };
        other = other.or(found);
    }
    Ok(other)
}

/// An entry of a folder that was reached without a link.
struct FolderEntry<'a> {
    parent: OwnedFd,
    name: &'a str,
}

impl<'a> FolderEntry<'a> {
    /// Opens the folder of an entry whose path has `depth` components of ours at its end; `None` if it does not exist.
    fn open(names: &[&'a str], depth: usize, path: &Path) -> io::Result<Option<Self>> {
        let root = path.ancestors().nth(depth).filter(|root| *root != Path::new("")).unwrap_or(Path::new("."));
        let (ours, name) = (&names[names.len() - depth..names.len() - 1], names[names.len() - 1]);
        let root = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, rustix::fs::Mode::empty());
        let mut parent = match root {
            Err(Errno::NOENT) => return Ok(None),
            root => root?,
        };
        for name in ours {
            match open_inside(&parent, name)? {
                Some(folder) => parent = folder,
                None => return Ok(None),
            }
        }
        Ok(Some(Self { parent, name }))
    }
}

/// Opens a folder inside another one, refusing links; `None` if it does not exist.
fn open_inside(folder: &OwnedFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder, name, flags, rustix::fs::Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(not_ours(Path::new(name))),
        Err(error) => Err(error.into()),
    }
}

/// The type of a folder's entry; `None` if it does not exist.
fn kind_of(folder: &OwnedFd, name: &str) -> io::Result<Option<FileType>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The names in a folder, all read before anything is removed.
fn entries(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let is_entry = |name: &CStr| name != c"." && name != c"..";
    let names: io::Result<Vec<CString>> =
        Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_owned())).collect();
    Ok(names?.into_iter().filter(|name| is_entry(name)).collect())
}

/// The trailing components of a path that are plain names.
fn components(path: &Path) -> io::Result<Vec<&str>> {
    let plain = path.components().rev().map_while(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let mut names: Vec<&str> = plain.collect();
    names.reverse();
    if names.is_empty() { Err(not_ours(path)) } else { Ok(names) }
}

fn not_ours(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is not a file or folder of bellwether", path.display()))
}

fn holds(other: &Path) -> io::Error {
    let reason = format!("`{}` in it was not made by bellwether", other.display());
    io::Error::new(io::ErrorKind::DirectoryNotEmpty, reason)
}
