//! Published versions of datasets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::error::ExportError;
use super::find::find;
use super::link::{self, LATEST};
use super::record::{DescribingFiles, FACTS, LAYOUT, RECORD, read};
use super::retention;
use super::target_folder::BUILDS;
use crate::digest;
use crate::error::Result;
use crate::file::{self, FileError, FileRecord};
use crate::links;
use crate::names;
use crate::plan::ServiceIdentity;
use crate::time::as_record;

/// A published version of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Its folder.
    pub path: PathBuf,
    /// Its files as recorded; names are paths inside the folder, with `/`.
    pub files: Vec<FileRecord>,
    /// The digests of the files that describe its rows.
    describing: DescribingFiles,
    /// The runs that it was built from, all of one service; none in older records, which listed those of all services.
    pub runs: Vec<String>,
}

impl Version {
    /// How the facts and the report differ from the record, if they do.
    pub(crate) fn faults_of_describing(&self) -> impl Iterator<Item = String> {
        self.describing.iter().filter_map(|(name, expected)| {
            let path = self.path.join(name);
            let found = match links::read(&path) {
                Err(error) => return Some(file::fault_of(&path, &error)),
                Ok(bytes) => digest::of(&bytes),
            };
            let differs = || format!("`{}` does not match its checksum: its BLAKE3 is {found}", path.display());
            (found != expected).then(differs)
        })
    }

    /// Number of files with a digest.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len() + self.describing.iter().count()
    }
}

/// The fields common to all layouts of `dataset.json`.
#[derive(Deserialize)]
pub(super) struct CommonRecord {
    pub(super) layout: u64,
    #[serde(default)]
    name: String,
    pub(super) files: Vec<FileRecord>,
    #[serde(flatten)]
    pub(super) describing: DescribingFiles,
    #[serde(default)]
    service: Option<ServiceIdentity>,
    #[serde(default)]
    runs: Vec<String>,
}

impl CommonRecord {
    /// Refuses a record that lists files that no version has.
    pub(super) fn check_names(&self, folder: &Path) -> Result<()> {
        match self.files.iter().find(|file| !names::is_file_of_version(&file.name, &self.name)) {
            Some(FileRecord { name, .. }) => {
                let reason = format!("`{}` is not a file of a version", name.escape_debug());
                Err(FileError::damaged(&folder.join(RECORD), reason))
            }
            None => Ok(()),
        }
    }
}

/// The provenance in a version's record.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordedProvenance {
    /// Name of the dataset.
    pub name: String,
    /// Name of the version.
    pub version: String,
    /// Observations after this instant are ignored.
    #[serde(with = "as_record")]
    pub as_of: DateTime<Utc>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub built_at: DateTime<Utc>,
    /// The service whose data it holds; none if an older version of the program wrote it.
    #[serde(default)]
    pub service: Option<ServiceIdentity>,
    /// The runs that it was built from.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Text of its definition.
    pub definition: String,
    /// Digest of its content.
    pub content: String,
}

/// A version or an ad hoc build in a list.
#[derive(Clone, Debug)]
pub struct ListedVersion {
    /// Its folder.
    pub path: PathBuf,
    /// Its provenance.
    pub recorded: RecordedProvenance,
    /// Its kind.
    pub kind: VersionKind,
    /// `long` or `wide`.
    pub shape: String,
    /// Number of rows.
    pub rows: u64,
    /// Size of its data files.
    pub bytes: u64,
    /// Its first and last date, in naive microseconds; none if it has no rows or its facts cannot be read.
    pub dates: Option<(i64, i64)>,
    /// The links that pin it, besides `latest`.
    pub pins: Vec<String>,
}

/// The kind of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionKind {
    /// The version that `latest` points to.
    Latest,
    /// An earlier version.
    Earlier,
    /// An ad hoc build.
    AdHoc,
}

impl VersionKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Earlier => "earlier",
            Self::AdHoc => "ad hoc",
        }
    }
}

/// The fields of `dataset.json` that lists show.
#[derive(Deserialize)]
struct Listed {
    shape: String,
    rows: u64,
}

/// The dates in the facts of a version.
#[derive(Deserialize)]
struct Span {
    dates: Option<(i64, i64)>,
}

/// Every published version and ad hoc build of every dataset in a folder, by dataset, oldest first, except those of
/// other layouts.
///
/// # Errors
///
/// If a folder or a record cannot be read.
pub fn published(datasets: &Path) -> Result<Vec<ListedVersion>> {
    let mut published = Vec::new();
    for dataset in folders(datasets)? {
        published.append(&mut published_of(&dataset)?);
    }
    Ok(published)
}

/// Every published version and ad hoc build in the folder of a dataset, oldest first, except those of other layouts.
pub(crate) fn published_of(dataset: &Path) -> Result<Vec<ListedVersion>> {
    let latest = link::version(dataset);
    let links_of = retention::pins(dataset)?;
    let mut own = Vec::new();
    let builds = folders(&dataset.join(BUILDS))?.into_iter().map(|path| (path, VersionKind::AdHoc));
    let versions = folders(dataset)?.into_iter().filter(|path| path.file_name() != Some(BUILDS.as_ref()));
    let kind = |path: &Path| match latest.is_some() && path.canonicalize().ok() == latest {
        true => VersionKind::Latest,
        false => VersionKind::Earlier,
    };
    let versions = versions.map(|path| {
        let kind = kind(&path);
        (path, kind)
    });
    for (path, kind) in versions.chain(builds) {
        if !path.join(RECORD).exists() {
            continue;
        }
        let CommonRecord { layout, files, .. } = read(&path)?;
        if layout != u64::from(LAYOUT) {
            continue;
        }
        let (Listed { shape, rows }, recorded) = (read(&path)?, read::<RecordedProvenance>(&path)?);
        let bytes = files.iter().map(|file| file.bytes).sum();
        let facts = links::read(&path.join(FACTS)).unwrap_or_default();
        let dates = serde_json::from_slice(&facts).ok().and_then(|Span { dates }| dates);
        let is_of_it = |(version, link): &&(String, String)| {
            kind != VersionKind::AdHoc
                && link != LATEST
                && path.file_name().is_some_and(|name| name == version.as_str())
        };
        let pins = links_of.iter().filter(is_of_it).map(|(_, link)| link.clone()).collect();
        own.push(ListedVersion { path, recorded, kind, shape, rows, bytes, dates, pins });
    }
    own.sort_by_key(|version| version.recorded.built_at);
    Ok(own)
}

/// The first data file of a version that is missing or does not have its recorded size.
pub(crate) fn first_misfit(version: &Path) -> Result<Option<PathBuf>> {
    let record: CommonRecord = read(version)?;
    record.check_names(version)?;
    let fits = |path: &Path, size: u64| path.symlink_metadata().is_ok_and(|it| it.is_file() && it.len() == size);
    let mut files = record.files.iter().map(|file| (version.join(&file.name), file.bytes));
    Ok(files.find(|(path, size)| !fits(path, *size)).map(|(path, _)| path))
}

/// The facts about the rows of a version, as stored in its file.
pub(crate) fn facts(version: &Path) -> Result<Vec<u8>> {
    let path = version.join(FACTS);
    let facts = links::read(&path)?;
    let record: CommonRecord = read(version)?;
    match record.describing.iter().find(|(name, _)| *name == FACTS) {
        Some((_, expected)) if expected == digest::of(&facts) => Ok(facts),
        _ => Err(FileError::damaged(&path, "it does not match its checksum")),
    }
}

/// The latest version of a dataset, or without a name, of the dataset built last; `None` if there is none.
///
/// # Errors
///
/// If a record cannot be read or has another layout.
pub fn latest(datasets: &Path, name: Option<&str>) -> Result<Option<RecordedProvenance>> {
    let all = match name {
        Some(name) => vec![datasets.join(name)],
        None => folders(datasets)?,
    };
    let mut latest: Option<RecordedProvenance> = None;
    for folder in all.into_iter().map(|dataset| dataset.join(LATEST)).filter(|folder| folder.join(RECORD).exists()) {
        let recorded = recorded(&folder)?;
        if latest.as_ref().is_none_or(|latest| latest.built_at < recorded.built_at) {
            latest = Some(recorded);
        }
    }
    Ok(latest)
}

/// A published version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder; without a
/// name, the newest of all. With its folder.
///
/// # Errors
///
/// If there is none, or if a record cannot be read or has another layout.
pub fn version_of(datasets: &Path, given: Option<&str>) -> Result<(PathBuf, RecordedProvenance)> {
    let folder = match given {
        Some(given) => find(datasets, given)?,
        None => match latest(datasets, None)? {
            Some(newest) => datasets.join(newest.name).join(newest.version),
            None => return Err(ExportError::NoDataset { name: None, datasets: datasets.to_owned() }.into()),
        },
    };
    let recorded = recorded(&folder)?;
    Ok((folder, recorded))
}

/// The record of a version.
fn recorded(folder: &Path) -> Result<RecordedProvenance> {
    let CommonRecord { layout, .. } = read(folder)?;
    if layout != u64::from(LAYOUT) {
        return Err(FileError::Layout { path: folder.join(RECORD), layout, known: LAYOUT, bellwether: None }.into());
    }
    read(folder)
}

/// Every published version and ad hoc build of every dataset in a folder, by name.
pub(crate) fn versions(datasets: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for dataset in folders(datasets)? {
        let paths = folders(&dataset)?.into_iter().chain(folders(&dataset.join(BUILDS))?);
        for path in paths.filter(|path| path.join(RECORD).exists()) {
            let record: CommonRecord = read(&path)?;
            let layout = record.layout;
            if layout > u64::from(LAYOUT) {
                return Err(
                    FileError::Layout { path: path.join(RECORD), layout, known: LAYOUT, bellwether: None }.into()
                );
            }
            record.check_names(&path)?;
            let runs = if record.service.is_some() { record.runs } else { Vec::new() };
            versions.push(Version { path, files: record.files, describing: record.describing, runs });
        }
    }
    Ok(versions)
}

/// The folders of a dataset that are named like versions of its own definition.
pub(crate) fn version_folders(dataset: &Path) -> Result<Vec<PathBuf>> {
    let is_version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(names::is_unique);
    Ok(folders(dataset)?.into_iter().filter(is_version).collect())
}

/// The texts of the definitions that versions and ad hoc builds were built with, each with its name. A record without one,
/// or that cannot be read, is left out.
pub(crate) fn definitions(datasets: &Path) -> Result<BTreeSet<(String, String)>> {
    #[derive(Deserialize)]
    struct Built {
        name: String,
        definition: String,
    }

    let mut definitions = BTreeSet::new();
    for dataset in folders(datasets)? {
        for version in folders(&dataset)?.into_iter().chain(folders(&dataset.join(BUILDS))?) {
            if let Ok(Built { name, definition }) = read(&version) {
                definitions.insert((name, definition));
            }
        }
    }
    Ok(definitions)
}

/// The folders in a folder, without links and hidden ones.
pub(super) fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| path.is_dir() && !path.is_symlink() && !file::is_hidden(path);
    Ok(file::entries(folder)?.into_iter().filter(is_folder).collect())
}
