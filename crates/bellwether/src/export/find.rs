//! Finds a version by what people type: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its
//! folder.

use std::path::{Path, PathBuf};

use chrono::{NaiveDateTime, TimeDelta};

use super::link::{self, LATEST};
use super::record::RECORD;
use super::target_folder::BUILDS;
use crate::disk::file;
use crate::disk::names::{self, is_unique};
use crate::error::{Error, ErrorKind, Result};
use crate::text::problem::nearest;

/// The folder of a version.
pub(super) fn find(datasets: &Path, given: &str) -> Result<PathBuf> {
    let named = datasets.join(given);
    let candidates = [named.join(LATEST), named, PathBuf::from(given).join(LATEST), PathBuf::from(given)];
    let found = candidates.into_iter().find(|folder| !file::is_gone(&folder.join(RECORD)));
    let folder = found.ok_or_else(|| no_version(datasets, given))?;
    // `latest` may move: reading stays with the version that it points to now.
    Ok(folder.canonicalize().unwrap_or(folder))
}

/// A version that does not exist.
fn no_version(datasets: &Path, given: &str) -> Error {
    /// How many known names are listed.
    const LISTED: usize = 8;
    let error = Error::new(ErrorKind::NotFound, format!("no version `{given}` in `{}`", datasets.display()));
    let known = known_names(datasets, given);
    if known.is_empty() {
        return error.with_hint("publish one first: `bellwether run NAME`");
    }
    // A name may be that of a definition's file.
    let stem = Path::new(given).file_stem().and_then(|stem| stem.to_str()).unwrap_or(given);
    // Versions are named by times: none is like another.
    let names = || known.iter().map(String::as_str).filter(|name| !name.contains('/'));
    let meant = [given, stem].into_iter().find_map(|given| nearest(given, names()));
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    let more = known.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let some: Vec<&str> = known.iter().take(LISTED).map(String::as_str).collect();
    let removed = given.split_once('/').filter(|(name, version)| {
        link::latest_target(&datasets.join(name)).is_some_and(|latest| is_unique(version) && *version < &*latest)
    });
    let removed = removed.map_or_else(String::new, |(_, version)| format!("; {}", what_was_known(version)));
    let names = some.join(", ");
    error.with_hint(format!("{meant}known names: {names}{more}; the folder of a version works too{removed}"))
}

/// A version that was there, and whose folder is gone.
pub(super) fn removed(folder: &Path) -> Error {
    let version = folder.file_name().unwrap_or_default().to_string_lossy();
    let what = format!("version `{version}` is gone: `{}` was removed since it was opened", folder.display());
    Error::new(ErrorKind::NotFound, what).with_hint(what_was_known(&version))
}

/// What removes versions, and how to have one again: what was known when it was built, a second later at most.
fn what_was_known(version: &str) -> String {
    let built_at = NaiveDateTime::parse_from_str(version.split('-').next().unwrap_or_default(), "%Y%m%dT%H%M%SZ");
    let again = built_at.map_or_else(
        |_| "build it again".to_owned(),
        |at| {
            format!("what was known then is there as of {}", (at + TimeDelta::seconds(1)).format("%Y-%m-%dT%H:%M:%SZ"))
        },
    );
    format!("`keep` in `[output]` says how many versions stay, and a link to one pins it; {again}")
}

/// Names to suggest: the versions of the dataset, or the datasets.
fn known_names(datasets: &Path, given: &str) -> Vec<String> {
    let name = given.split('/').next().filter(|name| names::is_dataset(name)).unwrap_or_default();
    let entries = |folder: &Path| {
        let visible = file::entries(folder).unwrap_or_default().into_iter().filter(|path| !file::is_hidden(path));
        visible.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect::<Vec<String>>()
    };
    let folder = datasets.join(name);
    let mut versions = entries(&folder);
    if name.is_empty() || versions.is_empty() {
        // A build that failed leaves an empty folder.
        let is_published = |name: &String| !entries(&datasets.join(name)).is_empty();
        return entries(datasets).into_iter().filter(is_published).collect();
    }
    versions.retain(|version| version != LATEST && version != BUILDS);
    versions.extend(entries(&folder.join(BUILDS)).into_iter().map(|build| format!("{BUILDS}/{build}")));
    // A link may point to a version that is gone.
    versions.retain(|version| folder.join(version).join(RECORD).is_file());
    versions.into_iter().map(|version| format!("{name}/{version}")).collect()
}
