//! Where versions of a dataset are written: the definition's own in its folder, ad hoc builds in `builds` inside it.
//!
//! An ad hoc build is named after its instant and options, `20261120T213000Z-7f3a-ticker-XOM`, and `latest` never
//! points to it. It is never removed automatically.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::link;
use super::record::VersionRecord;
use crate::disk::file::{FileError, Staging};
use crate::error::Result;
use crate::plan::AdHoc;
use crate::time::free_name;

/// The folder of ad hoc builds in a dataset's folder.
pub(super) const BUILDS: &str = "builds";

/// The longest description of options in a name; `dataset.json` has all of them.
const LABEL_BYTES: usize = 64;

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
        link::check(&folder)?;
        if ad_hoc.is_none() {
            return Ok(Self { latest_before: link::latest_target(&folder), folder, label: None });
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

    /// Whether it is for the definition's own versions.
    pub(super) fn is_own(&self) -> bool {
        self.label.is_none()
    }

    /// The latest version, if another process published it meanwhile and it knows more than one as of an instant.
    pub(super) fn newer_version(&self, as_of: DateTime<Utc>) -> Option<String> {
        let latest = link::latest_target(&self.folder).filter(|latest| Some(latest) != self.latest_before.as_ref())?;
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

/// Options as part of a name: `ticker-XOM-from-2026-01-01`.
fn label(ad_hoc: &AdHoc) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut label = String::new();
    let mut last = "";
    for (name, value) in ad_hoc.options() {
        let part = if name == last { value } else { format!("{name}-{value}") };
        let gap = if label.is_empty() { "" } else { "-" };
        if label.len() + gap.len() + part.len() > LABEL_BYTES {
            label.push_str(gap);
            label.push_str("etc");
            break;
        }
        label.push_str(gap);
        label.extend(part.chars().map(|c| if is_plain(c) { c } else { '-' }));
        last = name;
    }
    label
}
