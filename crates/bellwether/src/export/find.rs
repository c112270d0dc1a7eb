//! Finds a version by what people type: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its
//! folder.

use std::path::{Path, PathBuf};

use super::error::ExportError;
use super::link::LATEST;
use super::record::RECORD;
use super::target_folder::BUILDS;
use crate::disk::file;
use crate::disk::names;
use crate::error::Result;

/// The folder of a version.
pub(super) fn find(datasets: &Path, given: &str) -> Result<PathBuf> {
    let named = datasets.join(given);
    let candidates = [named.join(LATEST), named, PathBuf::from(given).join(LATEST), PathBuf::from(given)];
    let found = candidates.into_iter().find(|folder| !file::is_gone(&folder.join(RECORD)));
    let folder = found.ok_or_else(|| ExportError::NoVersion {
        given: given.to_owned(),
        datasets: datasets.to_owned(),
        known: known_names(datasets, given),
    })?;
    // `latest` may move: reading stays with the version that it points to now.
    Ok(folder.canonicalize().unwrap_or(folder))
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
