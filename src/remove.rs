//! Removes files and folders. Nothing else in the program does.
//!
//! Before anything is removed, it is proven to be ours:
//!
//! - its path ends in one of the forms of [`FOLDERS`] or [`FILES`], where this program puts such a thing;
//! - no component of that form is a link, nor is the thing itself, unless the form is that of a link. What comes before
//!   the form is a folder that the user named, and may be reached through links;
//! - only files with known names are removed from a folder, then the empty folder. Anything else stays, and so does the
//!   folder.
//!
//! Folders are opened one inside the other, never by their whole path, so a link swapped in meanwhile is not followed
//! either.
#![expect(clippy::disallowed_methods, reason = "this is where they are allowed")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::names::{
    ANSWERS, MATRICES, MATRIX_FOLDERS, PACK_FOLDER, PACKING, PARTITION, REMOVING, ROWS_OF_DATASET, ROWS_OF_SPARK,
    RUN_FILES, RUN_FOLDER, fits, is_dataset, unique,
};

/// The permitted contents of a folder of ours.
struct Contents {
    files: &'static [&'static str],
    folders: &'static [(&'static [&'static str], &'static Contents)],
}

static RUN: Contents = Contents { files: &RUN_FILES, folders: &[] };

static UNFINISHED: Contents =
    Contents { files: &["unfinished.json", "answers.jsonl", ANSWERS], folders: &[(&["sealed"], &RUN)] };

static VERSION: Contents = Contents {
    files: &[
        "dataset.json",
        "facts.json",
        "report.html",
        ROWS_OF_DATASET[0],
        ROWS_OF_DATASET[1],
        ROWS_OF_DATASET[2],
        ROWS_OF_SPARK,
    ],
    folders: &[(&[PARTITION], &PARTITIONED), (MATRIX_FOLDERS, &MATRIX)],
};

static PARTITIONED: Contents = Contents { files: ROWS_OF_DATASET, folders: &[(&[PARTITION], &PARTITIONED)] };

static MATRIX: Contents = Contents { files: MATRICES, folders: &[] };

static SORTED: Contents = Contents { files: &["%.arrow"], folders: &[] };

static COPY_OF_ARCHIVE: Contents =
    Contents { files: &[], folders: &[(&[RUN_FOLDER, PACK_FOLDER], &RUN), (&[".partial"], &UNFINISHED_RUNS)] };

static UNFINISHED_RUNS: Contents = Contents { files: &[], folders: &[(&[unique!()], &UNFINISHED), (&[PACKING], &RUN)] };

static SCRATCH: Contents =
    Contents { files: &["%.arrow"], folders: &[(&["sort"], &SORTED), (&["archive", "control"], &COPY_OF_ARCHIVE)] };

static NOTHING: Contents = Contents { files: &[], folders: &[] };

/// Where a folder of ours is, relative to a folder that a user named, and its permitted contents.
struct Form {
    path: &'static [&'static str],
    contents: &'static Contents,
}

/// Every folder that is ever removed.
static FOLDERS: [Form; 15] = [
    // In an archive.
    Form { path: &[".partial", unique!()], contents: &UNFINISHED },
    Form { path: &[".partial", unique!(), "sealed"], contents: &RUN },
    Form { path: &[".partial", PACKING], contents: &RUN },
    Form { path: &[".partial", REMOVING[0]], contents: &RUN },
    Form { path: &[".partial", REMOVING[1]], contents: &RUN },
    // In a folder of datasets.
    Form { path: &["$", concat!(".partial-", unique!())], contents: &VERSION },
    Form { path: &["$", concat!(".removed-", unique!())], contents: &VERSION },
    Form { path: &["$", "builds", concat!(".partial-", unique!())], contents: &VERSION },
    Form { path: &["$", "builds", concat!(".removed-", unique!())], contents: &VERSION },
    // In an output folder.
    Form { path: &[concat!(".scratch-", unique!())], contents: &SCRATCH },
    Form { path: &[concat!(".scratch-", unique!()), "sort"], contents: &SORTED },
    Form { path: &[concat!(".scratch-", unique!()), "archive"], contents: &COPY_OF_ARCHIVE },
    Form { path: &[concat!(".scratch-", unique!()), "control"], contents: &COPY_OF_ARCHIVE },
    Form { path: &["evidence"], contents: &NOTHING },
    // In the system's folder for temporary files.
    Form { path: &[concat!(".bellwether-", unique!())], contents: &SORTED },
];

/// Every folder that is renamed to one of [`FOLDERS`] and then removed.
static RETIRED: [Form; 4] = [
    Form { path: &[RUN_FOLDER], contents: &RUN },
    Form { path: &[PACK_FOLDER], contents: &RUN },
    Form { path: &["$", unique!()], contents: &VERSION },
    Form { path: &["$", "builds", concat!(unique!(), "-*")], contents: &VERSION },
];

/// Every file or link that is ever removed by itself, and its type.
static FILES: [(&[&str], FileType); 5] = [
    (&["$", concat!(".partial-", unique!()), ROWS_OF_SPARK], FileType::RegularFile),
    (&["$", concat!(".latest-", unique!())], FileType::Symlink),
    // A replacement for another file, or an unfinished output file.
    (&[".*-@@@@@@@@@@@@@@@@"], FileType::RegularFile),
    (&[concat!(".*-", unique!())], FileType::RegularFile),
    (&["evidence", concat!(unique!(), ".body")], FileType::RegularFile),
];

/// Removes a folder of ours with everything of ours in it. It is not an error if it does not exist.
///
/// # Errors
///
/// If it is not proven to be ours, if it contains anything that is not, or if the system refuses.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    let names = components(path)?;
    let forms: Vec<&Form> = FOLDERS.iter().filter(|form| has_form(&names, form.path)).collect();
    // A dataset may have the name of the folder of ad hoc builds. Its folder then matches both forms, and no component
    // of the longer one may be a link.
    let depth = forms.iter().map(|form| form.path.len()).max().ok_or_else(|| not_ours(path))?;
    if Entry::open(&names, depth, path)?.is_none() {
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

/// Removes what is ours in a folder of a form, and then the folder.
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
) -> io::Result<Option<(Entry<'a>, Option<PathBuf>)>> {
    let depth = form.path.len();
    let Some(place) = Entry::open(names, depth, path)? else { return Ok(None) };
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
///
/// # Errors
///
/// If it is not proven to be ours, or if the system refuses.
pub(crate) fn file(path: &Path) -> io::Result<()> {
    let names = components(path)?;
    let (form, kind) = FILES.iter().find(|(form, _)| has_form(&names, form)).ok_or_else(|| not_ours(path))?;
    let Some(place) = Entry::open(&names, form.len(), path)? else { return Ok(()) };
    match kind_of(&place.parent, place.name)? {
        None => Ok(()),
        Some(found) if found == *kind => unlink(&place.parent, place.name, AtFlags::empty()),
        Some(_) => Err(not_ours(path)),
    }
}

/// Checks that a version, run or pack contains only its own files, before it is renamed and removed.
///
/// # Errors
///
/// If it contains anything else, is not one of these, or cannot be read.
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
struct Entry<'a> {
    parent: OwnedFd,
    name: &'a str,
}

impl<'a> Entry<'a> {
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

/// Whether a path ends in a form; `$` is any valid dataset name.
fn has_form(names: &[&str], form: &[&str]) -> bool {
    let Some(first) = names.len().checked_sub(form.len()) else { return false };
    names[first..].iter().zip(form).all(|(name, pattern)| match *pattern {
        "$" => is_dataset(name),
        pattern => fits(name, pattern),
    })
}

fn not_ours(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is not a file or folder of bellwether", path.display()))
}

fn holds(other: &Path) -> io::Error {
    let reason = format!("`{}` in it was not made by bellwether", other.display());
    io::Error::new(io::ErrorKind::DirectoryNotEmpty, reason)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use tempfile::tempdir;

    use super::{Contents, FOLDERS, Form, file, folder};

    /// A name that matches a pattern.
    fn named(pattern: &str) -> String {
        let one = |token: char| match token {
            '#' | '%' => "7".to_owned(),
            '@' => "a".to_owned(),
            '*' => "x".to_owned(),
            '$' => "demo".to_owned(),
            literal => literal.to_string(),
        };
        pattern.chars().map(one).collect()
    }

    fn path_of(root: &Path, form: &Form) -> PathBuf {
        form.path.iter().fold(root.to_owned(), |path, pattern| path.join(named(pattern)))
    }

    /// Creates everything that a folder may contain, some levels deep, and returns its folders.
    fn fill(folder: &Path, contents: &Contents, depth: usize) -> Vec<PathBuf> {
        fs::create_dir_all(folder).unwrap();
        contents.files.iter().for_each(|pattern| fs::write(folder.join(named(pattern)), "ours").unwrap());
        let mut folders = vec![folder.to_owned()];
        if depth > 0 {
            for (patterns, contents) in contents.folders {
                let inside = patterns.iter().map(|pattern| folder.join(named(pattern)));
                folders.extend(inside.flat_map(|inside| fill(&inside, contents, depth - 1)));
            }
        }
        folders
    }

    /// Something that is not ours and must not change.
    struct Decoy(tempfile::TempDir);

    impl Decoy {
        /// Contains every name that is ours somewhere.
        fn new() -> Self {
            let decoy = tempdir().unwrap();
            for form in &FOLDERS {
                fill(&path_of(decoy.path(), form), form.contents, 3);
                fill(decoy.path(), form.contents, 3);
            }
            Self(decoy)
        }

        fn files(&self) -> Vec<PathBuf> {
            let mut files = Vec::new();
            let mut folders = vec![self.0.path().to_owned()];
            while let Some(folder) = folders.pop() {
                for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                    if path.is_dir() {
                        folders.push(path.clone());
                    }
                    files.push(path);
                }
            }
            files.sort();
            files
        }
    }

    #[test]
    fn a_folder_of_ours_is_removed_with_its_files() {
        for form in &FOLDERS {
            let root = tempdir().unwrap();
            let path = path_of(root.path(), form);
            fill(&path, form.contents, 3);
            folder(&path).unwrap();
            assert!(!path.exists() && root.path().exists(), "{:?}", form.path);
            folder(&path).unwrap();
        }
    }

    #[test]
    fn foreign_files_are_never_removed_and_links_never_followed() {
        let decoy = Decoy::new();
        let before = decoy.files();
        for form in &FOLDERS {
            let root = tempdir().unwrap();
            let path = path_of(root.path(), form);
            let mut strangers = Vec::new();
            for (number, inside) in fill(&path, form.contents, 2).into_iter().enumerate() {
                let texts = ["notes.txt", ".hidden", "run.json.bak"].map(|name| inside.join(name));
                texts.iter().for_each(|path| fs::write(path, "mine").unwrap());
                strangers.extend(texts);
                let links = [inside.join("sealed"), inside.join("x=y"), inside.join(format!("{number}.arrow"))];
                for link in links.into_iter().filter(|link| !link.exists()) {
                    symlink(decoy.0.path(), &link).unwrap();
                    strangers.push(link);
                }
            }
            let refused = folder(&path).unwrap_err().to_string();
            assert!(refused.contains("was not made by bellwether"), "{refused}");
            let gone: Vec<_> = strangers.iter().filter(|path| path.symlink_metadata().is_err()).collect();
            assert!(gone.is_empty(), "{gone:?}");
        }
        assert_eq!(decoy.files(), before);
    }

    #[test]
    fn a_folder_behind_a_link_in_the_data_folder_is_left_alone() {
        let decoy = Decoy::new();
        let before = decoy.files();
        for form in &FOLDERS {
            for depth in 0..form.path.len() {
                let root = tempdir().unwrap();
                let names: Vec<String> = form.path.iter().map(|pattern| named(pattern)).collect();
                let above = names[..depth].iter().fold(root.path().to_owned(), |path, name| path.join(name));
                fs::create_dir_all(&above).unwrap();
                let target = names[..=depth].iter().fold(decoy.0.path().to_owned(), |path, name| path.join(name));
                symlink(&target, above.join(&names[depth])).unwrap();
                folder(&path_of(root.path(), form)).unwrap_err();
            }
        }
        assert_eq!(decoy.files(), before);
    }

    #[test]
    fn the_data_folder_itself_may_be_a_link() {
        let (disk, place) = (tempdir().unwrap(), tempdir().unwrap());
        symlink(disk.path(), place.path().join("output")).unwrap();
        let path = place.path().join("output/.scratch-20261120T213000Z-7f3a");
        fs::create_dir(&path).unwrap();
        folder(&path).unwrap();
        assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    }

    #[test]
    fn unknown_names_are_refused() {
        let place = tempdir().unwrap();
        for name in
            ["old", ".partial", ".partial/old", "demo/20261120T213000Z-7f3a", ".scratch-mine", "demo/.removed-old"]
        {
            let path = place.path().join(name);
            fs::create_dir_all(&path).unwrap();
            folder(&path).unwrap_err();
            assert!(path.exists(), "{name}");
        }
        for name in ["mine", ".mine", ".mine-20261120", "evidence/mine.body"] {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "mine").unwrap();
            file(&path).unwrap_err();
            assert!(path.exists(), "{name}");
        }
        let link = place.path().join("demo/.latest-20261120T213000Z-7f3a");
        fs::write(&link, "a file, where a link of ours would be").unwrap();
        file(&link).unwrap_err();
    }
}
