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

use super::record::{AnyRecord, BUILDS, RECORD};
use crate::disk::file::{self, FileError};
use crate::disk::names::is_unique;
use crate::disk::{links, remove};
use crate::error::Result;
use crate::time::unique_name;

/// How long `bellwether prune` spares a version after it was replaced: a reader of `latest` may still be reading it.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// The length of the name of a version.
const UNIQUE_BYTES: usize = "20261120T213000Z-7f3a".len();

/// Prefixes of hidden names: being written, abandoned, or being removed.
const LEFT_OVERS: [&str; 3] = [".partial-", ".removed-", ".latest-"];

/// Removes versions beyond the newest `keep`, unless they are pinned or not older than the one just published, and
/// leftovers of killed publications. `None` keeps every version. Returns a note on what could not be removed.
pub(super) fn tidy(folder: &Path, published: &str, keep: Option<usize>) -> Option<String> {
    let tidied = || -> Result<Vec<String>> {
        let mut faults = Vec::new();
        if let Some(keep) = keep {
            for (version, _) in older(folder, published, keep)? {
                faults.extend(fault(&version, retire(&version, &name_for_removal(&version))));
            }
        }
        for path in left_overs(folder)? {
            faults.extend(fault(&path, clear(&path)));
        }
        Ok(faults)
    };
    let faults = match tidied() {
        Ok(faults) => faults,
        Err(error) => return Some(format!("old versions were not looked for: {error}")),
    };
    let first = faults.first()?;
    Some(match faults.len() {
        1 => format!("an old version is still there: {first}"),
        count => format!("{count} old versions are still there: {first}"),
    })
}

/// The versions of a dataset beyond the newest `keep`, unless they are pinned, not older than the latest, or were replaced
/// within [`GRACE`]; none without a latest version.
pub(crate) fn surplus(dataset: &Path, keep: usize) -> Result<Vec<PathBuf>> {
    let Some(latest) = latest(dataset) else { return Ok(Vec::new()) };
    let older = older(dataset, &latest, keep)?.into_iter();
    let replaced_before = |next: &Path| file::is_older(&next.join(RECORD), GRACE);
    Ok(older.filter(|(_, next)| replaced_before(next)).map(|(version, _)| version).collect())
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

fn latest(dataset: &Path) -> Option<String> {
    Some(latest_version(dataset)?.file_name()?.to_str()?.to_owned())
}

/// The versions beyond the newest `keep` that are older than the published one and not pinned, each with the one after it.
fn older(folder: &Path, published: &str, keep: usize) -> Result<Vec<(PathBuf, PathBuf)>> {
    // Versions before links: for any version seen here, its link already existed.
    let versions: Result<Vec<Option<DatedVersion>>> = file::entries(folder)?.iter().map(|path| version(path)).collect();
    let mut versions: Vec<DatedVersion> = versions?.into_iter().flatten().collect();
    versions.sort_unstable();
    let pinned = link_targets(folder)?;
    let published_last = versions.iter().position(|version| version.name == published).unwrap_or(versions.len());
    let with_next = versions.iter().zip(versions.iter().skip(1)).take(published_last);
    let surplus = with_next.take(versions.len().saturating_sub(keep));
    let path = |version: &DatedVersion| folder.join(&version.name);
    let unpinned = surplus.filter(|(version, _)| !pinned.contains(&version.name));
    Ok(unpinned.map(|(version, next)| (path(version), path(next))).collect())
}

fn left_overs(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(file::entries(folder)?.into_iter().filter(|path| is_left_over(path)).collect())
}

/// The name that a version gets before it is removed. The name of an ad hoc build is that of a version plus its
/// options.
fn name_for_removal(version: &Path) -> PathBuf {
    let name = version.file_name().unwrap_or_default().to_string_lossy();
    version.with_file_name(format!(".removed-{}", name.get(..UNIQUE_BYTES).unwrap_or(&name)))
}

/// Removes a surplus version, unless it was pinned or removed meanwhile.
pub(crate) fn remove_surplus(version: &Path) -> Result<()> {
    let is_pinned = || -> Result<bool> {
        let (Some(folder), Some(name)) = (version.parent(), version.file_name()) else { return Ok(false) };
        Ok(link_targets(folder)?.iter().any(|pinned| **pinned == *name))
    };
    if !version.exists() || is_pinned()? {
        return Ok(());
    }
    let is_gone = || !version.exists() && !name_for_removal(version).exists();
    remove(version).or_else(|error| if is_gone() { Ok(()) } else { Err(error) })
}

/// Removes a version atomically. One that contains anything else is left alone.
fn retire(version: &Path, removed: &Path) -> io::Result<()> {
    remove::check(version)?;
    file::move_aside(version, removed)?;
    remove::folder(removed)
}

/// Removes a version or an ad hoc build that no link points to.
///
/// # Errors
///
/// If it is not ours, contains anything else, or cannot be removed.
pub fn remove(version: &Path) -> Result<()> {
    retire(version, &name_for_removal(version)).map_err(FileError::remove(version))
}

/// A version with its build time from its record: names of the same second are in random order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DatedVersion {
    built_at: DateTime<Utc>,
    name: String,
}

/// A version, if a folder is one.
fn version(path: &Path) -> Result<Option<DatedVersion>> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_unique(name));
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let Some(name) = name.filter(|_| is_folder) else { return Ok(None) };
    let second = || NaiveDateTime::parse_from_str(name.split_once('-')?.0, "%Y%m%dT%H%M%SZ").ok();
    let built_at = match AnyRecord::open(path) {
        Ok(AnyRecord { built_at: Some(built_at), .. }) => Some(built_at),
        Err(error) if FileError::is_missing(&error) => None,
        // Which of two versions of one second is older must not be guessed.
        Err(error) if FileError::is_unreadable(&error) => return Err(error),
        _ => second().map(|second| second.and_utc()),
    };
    Ok(built_at.map(|built_at| DatedVersion { built_at, name: name.to_owned() }))
}

/// The entries of the folder that links in it point to. Hidden links come first and `latest` after them, so a link that
/// becomes `latest` meanwhile is still seen.
fn link_targets(folder: &Path) -> Result<BTreeSet<String>> {
    Ok(pins(folder)?.into_iter().map(|(version, _)| version).collect())
}

/// The versions of the folder that links in it point to, each with the name of a link; ad hoc builds below their folder.
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
        let targets = [Some(target.clone()), fs::canonicalize(link).ok()];
        for target in targets.into_iter().flatten() {
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

fn is_left_over(path: &Path) -> bool {
    let is_named_so = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
        let version = LEFT_OVERS.iter().find_map(|prefix| name.strip_prefix(prefix));
        version.is_some_and(is_unique)
    });
    is_named_so && file::is_older(path, file::DAY)
}

fn clear(path: &Path) -> io::Result<()> {
    if path.is_symlink() { remove::file(path) } else { remove::folder(path) }
}

/// What could not be removed, and why; another process may already have removed it.
fn fault(path: &Path, result: io::Result<()>) -> Option<String> {
    let error = result.err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
    Some(format!("`{}`: {error}", path.display()))
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
