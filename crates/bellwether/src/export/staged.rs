//! Where versions of a dataset are written, the definition's own in its folder and ad hoc builds in `builds` inside it; and how they
//! are published once they are complete: built here, or fetched from elsewhere.
//!
//! An ad hoc build is named after its instant and options, `20261120T213000Z-7f3a-ticker-XOM`, and `latest` never
//! points to it. It is never removed automatically.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::record::{BUILDS, RECORD, VersionRecord};
use super::retention::{self, Link};
use crate::disk::file::{self, FileError, FileRecord, Staging};
use crate::disk::names::is_dataset;
use crate::error::Result;
use crate::plan::AdHoc;
use crate::time::{free_name, unique_name};

/// A version of a dataset under its hidden name, with all its files. Its record is written last.
pub(crate) struct Staged {
    pub(super) home: TargetFolder,
    pub(super) staging: Staging,
    pub(super) record: Box<VersionRecord>,
    pub(super) keep: usize,
}

/// A published dataset.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    /// The folder of this version.
    pub path: PathBuf,
    /// The link that now points to it; `None` for an ad hoc build, and if it was overtaken.
    pub latest: Option<PathBuf>,
    /// The version that knows more and was published while it was made, which `latest` stays at.
    pub overtaken_by: Option<String>,
    /// Old versions that could not be removed, in words.
    pub left: Option<String>,
    /// Number of rows; for a wide dataset, summed over matrices.
    pub rows: u64,
    /// Its files.
    pub files: Vec<FileRecord>,
    /// The digest of its content, which does not depend on its files.
    pub content: String,
}

impl Staged {
    /// Writes the record, and gives the folder its name. For the definition's own dataset, also moves `latest` to it and removes old versions;
    /// an ad hoc build does neither. `latest` never goes back to what knows less.
    pub(crate) fn publish(self) -> Result<Dataset> {
        let Self { home, staging, record, keep } = self;
        file::write_json(&staging.file(RECORD), &record)?;
        let VersionRecord { version, rows, files, content, as_of, .. } = *record;
        let folder = &home.folder;
        let path = folder.join(&version);
        let overtaken_by = home.newer_version(as_of);
        let becomes_latest = home.label.is_none() && overtaken_by.is_none();
        let link = becomes_latest.then(|| Link::prepare(folder, &version, &version)).transpose()?;
        staging.publish(&path)?;
        let latest = link.map(Link::show).transpose()?;
        let left = retention::tidy(folder, &version, latest.is_some().then_some(keep));
        Ok(Dataset { path, latest, overtaken_by, left, rows, files, content })
    }
}

/// Where a version is written.
#[derive(Clone, Debug)]
pub(super) struct TargetFolder {
    /// The folder it appears in.
    pub(super) folder: PathBuf,
    /// The options in its name; `None` for the definition's own.
    label: Option<String>,
    /// The version that was the latest when the work began.
    latest_before: Option<String>,
}

impl TargetFolder {
    /// Where a build with these options is written.
    pub(super) fn of(datasets: &Path, name: &str, ad_hoc: &AdHoc) -> Result<Self> {
        let folder = datasets.join(name);
        retention::check_folder(&folder)?;
        if ad_hoc.is_none() {
            return Ok(Self { latest_before: retention::latest_target(&folder), folder, label: None });
        }
        let builds = folder.join(BUILDS);
        match fs::symlink_metadata(&builds) {
            Ok(found) if !found.is_dir() => {
                let found = if found.is_symlink() { "a symbolic link" } else { "a file" };
                Err(FileError::occupied(&builds, found, "a folder"))
            }
            _ => Ok(Self { folder: builds, label: Some(label(ad_hoc)), latest_before: None }),
        }
    }

    /// The latest version, if another process published it meanwhile and it knows more than one as of an instant.
    fn newer_version(&self, as_of: DateTime<Utc>) -> Option<String> {
        let latest =
            retention::latest_target(&self.folder).filter(|latest| Some(latest) != self.latest_before.as_ref())?;
        let record = VersionRecord::open(&self.folder.join(&latest)).ok()?;
        (record.as_of > as_of).then_some(latest)
    }

    /// Starts a version: its name, and the hidden folder it is written in.
    pub(super) fn stage(&self, built_at: DateTime<Utc>) -> Result<(String, Staging)> {
        let name = |version: &str| match &self.label {
            Some(label) => format!("{version}-{label}"),
            None => version.to_owned(),
        };
        let version = free_name(built_at, |version| !self.folder.join(name(version)).exists());
        let staging = Staging::create(&self.folder, &version)?;
        Ok((name(&version), staging))
    }
}

/// Options as part of a name: `ticker-XOM-from-2026-01-01`. `dataset.json` has all of them.
fn label(ad_hoc: &AdHoc) -> String {
    let (mut label, mut last) = (String::new(), "");
    for (name, value) in ad_hoc.options() {
        let part = if name == last { value } else { format!("{name}-{value}") };
        let gap = if label.is_empty() { "" } else { "-" };
        label.push_str(gap);
        if label.len() + part.len() > 64 {
            return label + "etc";
        }
        label += &part.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_'), "-");
        last = name;
    }
    label
}

/// The names of the datasets in a folder of datasets.
pub(crate) fn names(datasets: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| path.file_name()?.to_str().filter(|name| is_dataset(name)).map(str::to_owned);
    Ok(file::folders(datasets)?.into_iter().filter_map(name).collect())
}

/// What becomes of `latest` once a version has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// It points to that version.
    Latest,
    /// It points to the same version as before.
    Unchanged,
}

/// A version being received, under a hidden name and without its record.
#[derive(Debug)]
pub(crate) struct IncomingVersion {
    folder: PathBuf,
    version: String,
    /// The name of this attempt.
    unique: String,
    staging: Staging,
}

impl IncomingVersion {
    /// Starts receiving a version.
    pub(crate) fn begin(datasets: &Path, name: &str, version: &str, now: DateTime<Utc>) -> Result<Self> {
        let folder = datasets.join(name);
        retention::check_folder(&folder)?;
        let unique = unique_name(now);
        let staging = Staging::create(&folder, &unique)?;
        Ok(Self { folder, version: version.to_owned(), unique, staging })
    }

    /// The folder for the files.
    pub(crate) fn path(&self) -> PathBuf {
        self.staging.file("")
    }

    /// Publishes it. Its files must match its record. Clears what killed attempts left.
    pub(crate) fn publish(self, record: &[u8], files: &[FileRecord], linking: Linking) -> Result<()> {
        let Self { folder, version, unique, staging } = self;
        file::sync_below(&staging.file(""), files.iter().map(|file| file.name.as_str()))?;
        file::write_bytes(&staging.file(RECORD), record)?;
        let link = (linking == Linking::Latest).then(|| Link::prepare(&folder, &version, &unique)).transpose()?;
        let target = folder.join(&version);
        if !target.join(RECORD).exists() {
            staging.publish(&target)?;
        }
        link.map(Link::show).transpose()?;
        if let Some(left) = retention::tidy(&folder, &version, None) {
            tracing::warn!(folder = %folder.display(), left, "an interrupted download cannot be removed");
        }
        Ok(())
    }
}
