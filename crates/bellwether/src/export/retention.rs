//! `latest`, the link to the version that readers should use; and which versions are kept: the newest, and those that a link
//! points to.
//!
//! A link pins a version: `ln -s 20261120T213000Z-7f3a paper`. Any link directly in the dataset's folder counts,
//! whether it points to a version or into one. A folder that is not named like a version, or has no record, is not
//! ours.
//!
//! A publication applies this to its own dataset, `bellwether prune` to all of them. A version that cannot be removed
//! after a publication stays, with a note: the dataset is published, and the next publication tries again. A version that
//! contains a foreign file is never removed.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use chrono::{DateTime, NaiveDateTime, Utc};

use super::record::{BUILDS, RECORD, VersionRecord, version_folders};
use crate::disk::file::{self, FileError};
use crate::disk::names::is_unique;
use crate::disk::{links, remove};
use crate::error::Result;
use crate::time::unique_name;

/// How long `bellwether prune` spares a version after it was replaced: a reader of `latest` may still be reading it.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Removes versions beyond the newest `keep`, unless they are pinned or not older than the one just published, and
/// leftovers of killed publications. `None` keeps every version. Returns a note on what could not be removed.
pub(super) fn tidy(folder: &Path, published: &str, keep: Option<usize>) -> Option<String> {
    let older = keep.map_or_else(|| Ok(Vec::new()), |keep| older(folder, published, keep));
    let (older, abandoned) = match older.and_then(|older| Ok((older, left_overs(folder)?))) {
        Ok(found) => found,
        Err(error) => return Some(format!("old versions were not looked for: {error}")),
    };
    let retired = older.iter().map(|(version, _)| (version, retire(version)));
    let cleared = abandoned.iter().map(|path| {
        let cleared = if path.is_symlink() { remove::file(path) } else { remove::folder(path) };
        (path, cleared)
    });
    // Another process may already have removed it.
    let is_fault = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
    let faults = retired.chain(cleared).filter_map(|(path, result)| Some((path, result.err().filter(is_fault)?)));
    let faults: Vec<String> = faults.map(|(path, error)| format!("`{}`: {error}", path.display())).collect();
    let first = faults.first()?;
    Some(match faults.len() {
        1 => format!("an old version is still there: {first}"),
        count => format!("{count} old versions are still there: {first}"),
    })
}

/// The versions of a dataset beyond the newest `keep`, unless they are pinned, not older than the latest, or were replaced
/// within [`GRACE`]; none without a latest version.
pub(crate) fn surplus(dataset: &Path, keep: usize) -> Result<Vec<PathBuf>> {
    let latest = latest_version(dataset);
    let Some(latest) = latest.as_ref().and_then(|latest| latest.file_name()?.to_str()) else { return Ok(Vec::new()) };
    let older = older(dataset, latest, keep)?.into_iter();
    Ok(older.filter(|(_, next)| file::is_older(&next.join(RECORD), GRACE)).map(|(version, _)| version).collect())
}

/// Leftovers of killed publications of a dataset and of its ad hoc builds.
pub(crate) fn abandoned_folders(dataset: &Path) -> Result<Vec<PathBuf>> {
    let mut found = left_overs(dataset)?;
    let builds = dataset.join(BUILDS);
    if !builds.is_symlink() {
        found.extend(left_overs(&builds)?);
    }
    Ok(found)
}

/// The versions beyond the newest `keep` that are older than the published one and not pinned, each with the one after it.
fn older(folder: &Path, published: &str, keep: usize) -> Result<Vec<(PathBuf, PathBuf)>> {
    // Versions before links: for any version seen here, its link already existed.
    let mut versions = Vec::new();
    for path in version_folders(folder)? {
        versions.extend(built_at(&path)?.map(|built_at| (built_at, path)));
    }
    versions.sort_unstable();
    let pinned = pins(folder)?;
    let is_pinned = |path: &PathBuf| pinned.iter().any(|(version, _)| path.ends_with(version));
    let published_last = versions.iter().position(|(_, path)| path.ends_with(published)).unwrap_or(versions.len());
    let surplus = published_last.min(versions.len().saturating_sub(keep));
    let with_next = versions.iter().zip(versions.iter().skip(1)).take(surplus);
    let unpinned = with_next.filter(|((_, path), _)| !is_pinned(path));
    Ok(unpinned.map(|((_, path), (_, next))| (path.clone(), next.clone())).collect())
}

/// Hidden entries that were being written or removed, or would have become `latest`, a day ago.
fn left_overs(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_left_over = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let version = [".partial-", ".removed-", ".latest-"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
        version.is_some_and(is_unique) && file::is_older(path, file::DAY)
    };
    Ok(file::entries(folder)?.into_iter().filter(is_left_over).collect())
}

/// The name that a version gets before it is removed. The name of an ad hoc build is that of a version plus its
/// options.
fn name_for_removal(version: &Path) -> PathBuf {
    let name = version.file_name().unwrap_or_default().to_string_lossy();
    let unique = name.get(.."20261120T213000Z-7f3a".len()).unwrap_or(&name);
    version.with_file_name(format!(".removed-{unique}"))
}

/// Removes a surplus version, unless it was pinned or removed meanwhile.
pub(crate) fn remove_surplus(version: &Path) -> Result<()> {
    let pins = version.parent().map_or_else(|| Ok(BTreeSet::new()), pins);
    if !version.exists() || pins?.iter().any(|(pinned, _)| version.ends_with(pinned)) {
        return Ok(());
    }
    let is_gone = || !version.exists() && !name_for_removal(version).exists();
    remove(version).or_else(|error| if is_gone() { Ok(()) } else { Err(error) })
}

/// Removes a version atomically. One that contains anything else is left alone.
fn retire(version: &Path) -> io::Result<()> {
    let removed = name_for_removal(version);
    remove::check(version)?;
    file::move_aside(version, &removed)?;
    remove::folder(&removed)
}

/// Removes a version or an ad hoc build that no link points to.
///
/// # Errors
///
/// If it is not ours, contains anything else, or cannot be removed.
pub fn remove(version: &Path) -> Result<()> {
    retire(version).map_err(FileError::remove(version))
}

/// When a version was built: names of the same second are in random order. None for a folder without a record.
fn built_at(version: &Path) -> Result<Option<DateTime<Utc>>> {
    match VersionRecord::open(version) {
        Ok(record) => Ok(Some(record.built_at)),
        Err(error) if FileError::is_missing(&error) => Ok(None),
        // Which of two versions of one second is older must not be guessed.
        Err(error) if FileError::is_unreadable(&error) => Err(error),
        Err(_) => {
            let second = version.file_name().and_then(|name| name.to_str()?.split_once('-')).map(|(second, _)| second);
            let second = NaiveDateTime::parse_from_str(second.unwrap_or_default(), "%Y%m%dT%H%M%SZ");
            Ok(second.ok().map(|second| second.and_utc()))
        }
    }
}

/// The versions of a folder that links in it point to, each with the name of a link; ad hoc builds below their folder. Hidden
/// links come first and `latest` after them, so a link that becomes `latest` meanwhile is still seen.
pub(super) fn pins(folder: &Path) -> Result<BTreeSet<(String, String)>> {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut pinned = BTreeSet::new();
    for link in file::entries(folder)?.iter().filter(|path| path.is_symlink()) {
        let target = match fs::read_link(link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            target => target.map_err(FileError::read(link))?,
        };
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        // Both as written, for a version that has not appeared yet, and resolved, for an indirect link.
        for target in [Some(target.clone()), fs::canonicalize(link).ok()].into_iter().flatten() {
            let inside = target.strip_prefix(&real).or_else(|_| target.strip_prefix(folder)).unwrap_or(&target);
            let mut names = inside.components().filter_map(|component| match component {
                Component::Normal(name) => name.to_str(),
                _ => None,
            });
            let version = match names.next() {
                Some(BUILDS) => names.next().map(|build| format!("{BUILDS}/{build}")),
                version => version.map(str::to_owned),
            };
            pinned.extend(version.map(|version| (version, name.clone().into_owned())));
        }
    }
    Ok(pinned)
}

/// The link's name.
pub(super) const LATEST: &str = "latest";

/// A future `latest`, under a hidden name.
///
/// It is created before the version it points to appears. Another process that removes old versions spares those that a
/// link points to, so it cannot remove this one before `latest` moves.
#[derive(Debug)]
pub(super) struct Link {
    folder: PathBuf,
    hidden: PathBuf,
    is_latest: bool,
}

impl Link {
    /// A link to a version, under a name that nothing else has, not even an earlier attempt that was killed.
    pub(super) fn prepare(folder: &Path, version: &str, unique: &str) -> Result<Self> {
        let hidden = folder.join(format!(".{LATEST}-{unique}"));
        symlink(version, &hidden).map_err(FileError::write(&hidden))?;
        Ok(Self { folder: folder.to_owned(), hidden, is_latest: false })
    }

    /// Makes it `latest`, atomically and durably.
    pub(super) fn show(mut self) -> Result<PathBuf> {
        check_folder(&self.folder)?;
        let latest = self.folder.join(LATEST);
        fs::rename(&self.hidden, &latest).map_err(FileError::write(&latest))?;
        self.is_latest = true;
        file::sync_folder(&self.folder)?;
        Ok(latest)
    }
}

/// The version that `latest` points to in a folder; `None` if it points to anything else.
pub(super) fn latest_version(folder: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(folder.join(LATEST)).ok()?;
    let is_version = path.file_name()?.to_str().is_some_and(is_unique);
    (is_version && path.parent() == fs::canonicalize(folder).ok().as_deref()).then_some(path)
}

/// The version that `latest` names in the folder of a dataset, whether or not it is there.
pub(crate) fn latest_target(dataset: &Path) -> Option<String> {
    let target = fs::read_link(dataset.join(LATEST)).ok()?;
    target.file_name().and_then(|name| name.to_str()).filter(|name| is_unique(name)).map(str::to_owned)
}

/// Makes a version of a dataset the latest.
pub(crate) fn point_latest(dataset: &Path, version: &str, now: DateTime<Utc>) -> Result<()> {
    Link::prepare(dataset, version, &unique_name(now))?.show().map(drop)
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.is_latest {
            // Best effort: leftovers are hidden and removed later.
            let _ = remove::file(&self.hidden);
        }
    }
}

/// Refuses a folder for versions that is not a folder or is reached through a link, and a `latest` in it that is not a
/// link.
pub(super) fn check_folder(folder: &Path) -> Result<()> {
    [folder.parent(), Some(folder)].into_iter().flatten().try_for_each(links::refuse)?;
    let is_file = |path: &&Path| fs::metadata(path).is_ok_and(|found| !found.is_dir());
    if let Some(path) = folder.ancestors().find(is_file) {
        return Err(FileError::occupied(path, "a file", "a folder"));
    }
    let latest = folder.join(LATEST);
    match fs::symlink_metadata(&latest) {
        Ok(found) if !found.is_symlink() => {
            let found = if found.is_dir() { "a folder" } else { "a file" };
            Err(FileError::occupied(&latest, found, "a link to the newest version"))
        }
        _ => Ok(()),
    }
}
