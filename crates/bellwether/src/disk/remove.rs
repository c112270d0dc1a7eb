//! Removes files and folders. Nothing else in the program does.
//!
//! Before anything is removed, it is proven to be ours:
//!
//! - its path ends in one of the forms below, where this program puts such a thing;
//! - no component of that form is a link, nor is the thing itself, unless the form is that of a link. What comes before
//!   the form is a folder that the user named, and may be reached through links;
//! - only files with known names are removed from a folder, then the empty folder. Anything else stays, and so does the
//!   folder.
//!
//! Folders are opened one inside the other, never by their whole path, so a link swapped in meanwhile is not followed
//! either.
#![expect(clippy::disallowed_methods, reason = "this is where they are allowed")]

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::disk::names::{
    ANSWERS, FORGOTTEN_FOLDER, MATRICES, MATRIX_FOLDERS, MERGE_FOLDER, PACK_FOLDER, PACKING, PARTITION,
    ROWS_OF_DATASET, ROWS_OF_SPARK, RUN_FILES, RUN_FOLDER, fits, is_dataset, unique,
};

/// Names of files and folders that a folder of ours, and the folders in it, may contain; `$` is the name of the dataset.
struct Known {
    files: &'static [&'static [&'static str]],
    folders: &'static [&'static [&'static str]],
}

/// Runs, packs, what is left of them, copies of archives, and sorted rows.
static ARCHIVED: Known = Known {
    files: &[&RUN_FILES, &["unfinished.json", "answers.jsonl", ANSWERS, ".seal", "%.arrow"]],
    folders: &[
        &[RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER, FORGOTTEN_FOLDER, unique!(), PACKING],
        &[".partial", "sealed", ".locks", "sort", "archive", "control"],
    ],
};

static VERSION: Known = Known {
    files: &[&["dataset.json", "facts.json", ROWS_OF_SPARK], &ROWS_OF_DATASET],
    folders: &[&[PARTITION], MATRIX_FOLDERS],
};

static MATRIX: Known = Known { files: &[MATRICES], folders: &[] };

static NOTHING: Known = Known { files: &[], folders: &[] };

/// How the path of something of ours ends, below a folder that the user named. `$` at the start of a name is any dataset.
type Form<T> = (&'static str, T);

/// Every folder that is ever removed.
static FOLDERS: [Form<&Known>; 14] = [
    (concat!(".partial/", unique!()), &ARCHIVED),
    (concat!(".partial/", unique!(), "/sealed"), &ARCHIVED),
    (concat!(".partial/.packing-", unique!(), "-@@@@@@@@"), &ARCHIVED),
    (concat!(".partial/.removing-*=", unique!()), &ARCHIVED),
    (concat!("$/.partial-", unique!()), &VERSION),
    (concat!("$/.removed-", unique!()), &VERSION),
    (concat!("$/builds/.partial-", unique!()), &VERSION),
    (concat!("$/builds/.removed-", unique!()), &VERSION),
    (concat!(".scratch-", unique!()), &ARCHIVED),
    (concat!(".scratch-", unique!(), "/sort"), &ARCHIVED),
    (concat!(".scratch-", unique!(), "/archive"), &ARCHIVED),
    (concat!(".scratch-", unique!(), "/control"), &ARCHIVED),
    (concat!(".bellwether-", unique!()), &ARCHIVED),
    ("evidence", &NOTHING),
];

/// Every folder that is renamed to one of [`FOLDERS`] and then removed.
static RETIRED: [Form<&Known>; 5] = [
    (RUN_FOLDER, &ARCHIVED),
    (PACK_FOLDER, &ARCHIVED),
    (MERGE_FOLDER, &ARCHIVED),
    (concat!("$/", unique!()), &VERSION),
    (concat!("$/builds/", unique!(), "-*"), &VERSION),
];

/// Something that is removed by itself.
enum Single {
    Link,
    File,
    /// A file whose name could be anyone's, with what must stand near its beginning; `$` is the name of the dataset.
    Marked(&'static str),
}

/// Every file or link that is ever removed by itself. `NAME#7` is an object that is not complete, in a store that is a
/// folder.
static FILES: [Form<Single>; 12] = [
    (concat!("$/.latest-", unique!()), Single::Link),
    (concat!("$/.partial-", unique!(), "/part-#####-*.parquet"), Single::File),
    (".*-@@@@@@@@@@@@@@@@", Single::File),
    (concat!("evidence/", unique!(), ".body"), Single::File),
    ("*=*/*.*~%", Single::File),
    (concat!("$/", unique!(), "/*.*~%"), Single::File),
    (concat!(unique!(), "/%*-*/*.*~%"), Single::File),
    ("$/latest.json~%", Single::File),
    ("$/pruned.json~%", Single::File),
    ("datasets/.probe-@@@@@@@@@@@@@@@@~%", Single::File),
    ("journal/*.########.jsonl", Single::Marked("\"definition\":\"$\"")),
    ("reports/$.html", Single::Marked("<title>$ · Bellwether</title>")),
];

/// Removes a folder of ours with everything of ours in it. It is not an error if it does not exist.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    let Some(entry) = Entry::open(path, &FOLDERS)? else { return Ok(()) };
    entry.walk(OnFile::Remove)?;
    unlink(&entry.parent, entry.name, AtFlags::REMOVEDIR)
}

/// Checks that a version, run or pack contains only its own files, before it is renamed and removed.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    Entry::open(path, &RETIRED)?.map_or(Ok(()), |entry| entry.walk(OnFile::Keep))
}

/// Removes a single file or link of ours. It is not an error if it does not exist.
pub fn file(path: &Path) -> io::Result<()> {
    find_file(path)?.map_or(Ok(()), |entry| unlink(&entry.parent, entry.name, AtFlags::empty()))
}

/// Whether a path is a single file or link of ours, which [`file`] would remove; an error if that cannot be seen.
pub(crate) fn is_file_of_ours(path: &Path) -> io::Result<bool> {
    match find_file(path) {
        // Only what the system refused has a code.
        Err(error) if error.raw_os_error().is_none() => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// A single file or link of ours; `None` if it does not exist.
fn find_file(path: &Path) -> io::Result<Option<Entry<'_, Single>>> {
    let Some(entry) = Entry::open(path, &FILES)? else { return Ok(None) };
    let is_ours = match (entry.form, kind_of(&entry.parent, entry.name)?) {
        (_, None) => return Ok(None),
        (Single::Link, Some(kind)) => kind == FileType::Symlink,
        (_, Some(kind)) if kind != FileType::RegularFile => false,
        (Single::Marked(mark), _) => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(&entry.parent, entry.name, flags, Mode::empty())?);
            let mut start = Vec::new();
            file.take(4096).read_to_end(&mut start)?;
            let dataset = entry.name.split('.').next().unwrap_or_default();
            String::from_utf8_lossy(&start).contains(&mark.replace('$', dataset))
        }
        _ => true,
    };
    if is_ours { Ok(Some(entry)) } else { Err(not_ours(path)) }
}

/// What to do with files of ours while walking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnFile {
    Keep,
    Remove,
}

/// An entry of a folder that was reached without a link, and the form that its path has.
struct Entry<'a, T: 'static> {
    parent: OwnedFd,
    name: &'a str,
    form: &'static T,
    /// The names that may be that of its dataset.
    datasets: Vec<&'a str>,
}

impl<'a, T: 'static> Entry<'a, T> {
    /// The entry at a path that has one of some forms; `None` if a folder of the form does not exist.
    fn open(path: &'a Path, forms: &'static [Form<T>]) -> io::Result<Option<Self>> {
        let plain = path.components().rev().map_while(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        let names: Vec<&str> = plain.collect();
        let mut fitting: Vec<&Form<T>> = forms.iter().filter(|(form, _)| has_form(&names, form)).collect();
        // A dataset may have the name of the folder of ad hoc builds, and then two forms fit. No component of the longer one
        // may be a link.
        fitting.sort_by_key(|(form, _)| form.matches('/').count());
        let Some((form, what)) = fitting.last() else { return Err(not_ours(path)) };
        let depth = form.matches('/').count() + 1;
        let root = path.ancestors().nth(depth).filter(|root| *root != Path::new("")).unwrap_or(Path::new("."));
        let root = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let Some(mut parent) = if_there(root)? else { return Ok(None) };
        for name in names[1..depth].iter().rev() {
            let Some(folder) = open_inside(&parent, name)? else { return Ok(None) };
            parent = folder;
        }
        let datasets = fitting.iter().filter(|(form, _)| form.starts_with('$'));
        let datasets = datasets.map(|(form, _)| names[form.matches('/').count()]).collect();
        Ok(Some(Self { parent, name: names[0], form: what, datasets }))
    }
}

impl Entry<'_, &Known> {
    /// Walks through the folder; an error if it contains something that is not ours.
    fn walk(&self, on_file: OnFile) -> io::Result<()> {
        let Some(folder) = open_inside(&self.parent, self.name)? else { return Ok(()) };
        match walk(&folder, self.form, &self.datasets, on_file)? {
            None => Ok(()),
            Some(other) => {
                let reason = format!("`{}` in it was not made by bellwether", other.display());
                Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, reason))
            }
        }
    }
}

/// Walks through a folder and returns the first entry that is not ours.
fn walk(folder: &OwnedFd, known: &Known, datasets: &[&str], on_file: OnFile) -> io::Result<Option<PathBuf>> {
    let has = |lists: &[&[&str]], name: &str| {
        let mut patterns = lists.iter().copied().flatten();
        patterns.any(|it| fits(name, it) || datasets.iter().any(|dataset| fits(name, &it.replace('$', dataset))))
    };
    let mut other = None;
    // All names are read before anything is removed.
    let entries: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for name in entries.iter().map(|entry| entry.file_name()).filter(|name| ![c".", c".."].contains(name)) {
        let (text, is_text) = (name.to_string_lossy(), name.to_str().is_ok());
        let found = match kind_of(folder, name)? {
            None => None,
            Some(FileType::RegularFile) if is_text && has(known.files, &text) => {
                if on_file == OnFile::Remove {
                    unlink(folder, &text, AtFlags::empty())?;
                }
                None
            }
            Some(FileType::Directory) if is_text && has(known.folders, &text) => {
                let known = if has(&[MATRIX_FOLDERS], &text) { &MATRIX } else { known };
                let inner = open_inside(folder, &text)?;
                let found = inner.map_or(Ok(None), |inner| walk(&inner, known, datasets, on_file))?;
                if found.is_none() && on_file == OnFile::Remove {
                    unlink(folder, &text, AtFlags::REMOVEDIR)?;
                }
                found.map(|found| Path::new(&*text).join(found))
            }
            Some(_) => Some(PathBuf::from(&*text)),
        };
        other = other.or(found);
    }
    Ok(other)
}

/// Removes an entry of a folder, unless another process was faster.
fn unlink(folder: &OwnedFd, name: &str, flags: AtFlags) -> io::Result<()> {
    if_there(unlinkat(folder, name, flags)).map(drop)
}

/// What the system found; `None` if it does not exist.
fn if_there<T>(found: rustix::io::Result<T>) -> io::Result<Option<T>> {
    if matches!(found, Err(Errno::NOENT)) { Ok(None) } else { Ok(Some(found?)) }
}

/// Opens a folder inside another one, refusing links; `None` if it does not exist.
fn open_inside(folder: &OwnedFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => Err(not_ours(Path::new(name))),
        opened => if_there(opened),
    }
}

/// The type of a folder's entry; `None` if it does not exist.
fn kind_of(folder: &OwnedFd, name: impl rustix::path::Arg) -> io::Result<Option<FileType>> {
    let found = if_there(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))?;
    Ok(found.map(|found| FileType::from_raw_mode(found.st_mode)))
}

/// Whether names, from the last one of a path, have a form.
fn has_form(names: &[&str], form: &str) -> bool {
    let patterns: Vec<&str> = form.rsplit('/').collect();
    patterns.len() <= names.len()
        && names.iter().zip(patterns).all(|(name, pattern)| match pattern.strip_prefix('$') {
            Some(rest) => name.strip_suffix(rest).is_some_and(is_dataset),
            None => fits(name, pattern),
        })
}

fn not_ours(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is not a file or folder of bellwether", path.display()))
}
