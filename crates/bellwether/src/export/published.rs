//! Published versions of datasets, found by what people type: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the
//! path of a folder.

use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::record::{BUILDS, FACTS, RECORD, VersionRecord, VersionShape, dates_of, version_folders};
use super::retention::{self, LATEST};
use crate::disk::file::{self, Damaged, FileError, FileRecord, as_text, fault_of};
use crate::disk::links;
use crate::disk::names::{self, is_unique};
use crate::error::{Error, ErrorKind, Result};
use crate::text::problem::nearest;
use crate::time::as_record;

/// A published version of a dataset.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its folder.
    pub path: PathBuf,
    /// Its files as recorded; names are paths inside the folder, with `/`.
    pub files: Vec<FileRecord>,
    /// The digest of its facts.
    pub(crate) facts: String,
    /// The runs that it was built from.
    pub runs: Vec<String>,
}

/// A version or an ad hoc build in a list: `bellwether list datasets --json` prints these, and Python's rows have the same
/// columns.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedVersion {
    /// The name that commands take.
    pub name: String,
    /// The dataset.
    pub dataset: String,
    /// The version.
    pub version: String,
    /// Its kind.
    pub kind: VersionKind,
    /// The links that pin it, besides `latest`.
    pub pins: Vec<String>,
    /// Its shape.
    pub shape: VersionShape,
    /// Its rows, counted once for all formats.
    pub rows: u64,
    /// Its first date; none if it has no rows or its facts cannot be read.
    #[schemars(with = "Option<String>")]
    pub first_date: Option<NaiveDate>,
    /// Its last date.
    #[schemars(with = "Option<String>")]
    pub last_date: Option<NaiveDate>,
    /// The size of its data files.
    pub bytes: u64,
    /// The instant as of which it was built.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub as_of: DateTime<Utc>,
    /// When it was built.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub built_at: DateTime<Utc>,
    /// Its folder.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The text of its definition.
    #[serde(skip)]
    pub definition: String,
    /// The runs that it was built from.
    #[serde(skip)]
    pub runs: Vec<String>,
    /// The paths of its data files.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
}

/// The kind of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VersionKind {
    /// The version that `latest` points to.
    Latest,
    /// An earlier version.
    Earlier,
    /// An ad hoc build.
    #[serde(rename = "ad hoc")]
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

/// Every published version and ad hoc build of every dataset in a folder, by dataset, oldest first, except those of
/// other layouts.
///
/// # Errors
///
/// If a folder or a record cannot be read.
pub fn published_versions(datasets: &Path) -> Result<Vec<ListedVersion>> {
    let mut published = Vec::new();
    for dataset in file::folders(datasets)? {
        published.append(&mut published_of(&dataset)?);
    }
    Ok(published)
}

/// Every published version and ad hoc build in the folder of a dataset, oldest first, except those of other layouts.
pub fn published_of(dataset: &Path) -> Result<Vec<ListedVersion>> {
    let (latest, builds) = (retention::latest_version(dataset), dataset.join(BUILDS));
    let of_builds = retention::pins(&builds)?.into_iter();
    let mut links_of = retention::pins(dataset)?;
    links_of.extend(of_builds.map(|(build, link)| (format!("{BUILDS}/{build}"), format!("{BUILDS}/{link}"))));
    let mut own = Vec::new();
    for path in file::folders(dataset)?.into_iter().filter(|path| *path != builds).chain(file::folders(&builds)?) {
        let Some(record) = VersionRecord::open_current(&path)? else { continue };
        let kind = if path.starts_with(&builds) {
            VersionKind::AdHoc
        } else if latest.is_some() && path.canonicalize().ok() == latest {
            VersionKind::Latest
        } else {
            VersionKind::Earlier
        };
        let pins = links_of.iter().filter(|(version, link)| link != LATEST && path == dataset.join(version));
        let (first_date, last_date) = dates_of(&links::read(&path.join(FACTS)).unwrap_or_default()).unzip();
        own.push(ListedVersion {
            name: path.strip_prefix(dataset.parent().unwrap_or(dataset)).unwrap_or(&path).display().to_string(),
            bytes: record.bytes(),
            files: record.files.iter().map(|file| path.join(&file.name)).collect(),
            dataset: record.name,
            version: record.version,
            kind,
            pins: pins.map(|(_, link)| link.clone()).collect(),
            shape: record.shape,
            rows: record.rows,
            first_date,
            last_date,
            as_of: record.as_of,
            built_at: record.built_at,
            path,
            definition: record.definition,
            runs: record.runs,
        });
    }
    own.sort_by_key(|version| version.built_at);
    Ok(own)
}

/// The version of a dataset that was published before the one of a record, if it is still there; none for an ad hoc build.
/// The record's own need not be published yet. What cannot be read is nothing to compare with, but the folder of the dataset has
/// to be readable.
pub(crate) fn version_before(datasets: &Path, record: &VersionRecord) -> Result<Option<String>> {
    if record.ad_hoc.is_some() {
        return Ok(None);
    }
    let folders = version_folders(&datasets.join(&record.name))?.into_iter();
    let readable = folders.filter_map(|path| VersionRecord::open_current(&path).ok().flatten());
    let earlier = readable.filter(|other| other.built_at < record.built_at);
    Ok(earlier.max_by_key(|other| other.built_at).map(|other| other.version))
}

/// The first data file of a version that is missing or does not have its recorded size.
pub fn first_misfit(version: &Path) -> Result<Option<PathBuf>> {
    let fits = |path: &Path, size: u64| path.symlink_metadata().is_ok_and(|it| it.is_file() && it.len() == size);
    let files = VersionRecord::open(version)?.files.into_iter().map(|file| (version.join(file.name), file.bytes));
    Ok(files.into_iter().find(|(path, size)| !fits(path, *size)).map(|(path, _)| path))
}

/// The facts about the rows of a version, as stored in its file.
pub fn facts(version: &Path) -> Result<Vec<u8>> {
    VersionRecord::open(version)?.facts_in(version)
}

/// The latest version of a dataset, or without a name, of the dataset built last; `None` if there is none.
///
/// # Errors
///
/// If a record cannot be read or has another layout.
pub fn latest(datasets: &Path, name: Option<&str>) -> Result<Option<VersionRecord>> {
    let all = name.map_or_else(|| file::folders(datasets), |name| Ok(vec![datasets.join(name)]))?;
    let folders = all.into_iter().map(|dataset| dataset.join(LATEST));
    let published = folders.filter(|folder| !file::is_gone(&folder.join(RECORD)));
    let records = published.map(|folder| VersionRecord::open(&folder)).collect::<Result<Vec<_>>>()?;
    Ok(records.into_iter().max_by_key(|record| record.built_at))
}

/// A published version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder; without a
/// name, the newest of all. With its folder.
///
/// # Errors
///
/// If there is none, or if a record cannot be read or has another layout.
pub fn version_of(datasets: &Path, given: Option<&str>) -> Result<(PathBuf, VersionRecord)> {
    if let Some(given) = given {
        let folder = find(datasets, given)?;
        let recorded = VersionRecord::open(&folder)?;
        return Ok((folder, recorded));
    }
    let newest = latest(datasets, None)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("no dataset in `{}`", datasets.display()))
            .with_hint("publish it first: `bellwether run NAME`; or choose another folder with `--data`")
    })?;
    Ok((datasets.join(&newest.name).join(&newest.version), newest))
}

/// Every published version and ad hoc build of every dataset in a folder, by name; and those whose record is damaged or
/// missing, each with what is wrong.
pub(crate) fn versions(datasets: &Path) -> Result<(Vec<Version>, Vec<Damaged>)> {
    let (mut versions, mut damaged) = (Vec::new(), Vec::new());
    for dataset in file::folders(datasets)? {
        for path in file::folders(&dataset)?.into_iter().chain(file::folders(&dataset.join(BUILDS))?) {
            match VersionRecord::open(&path) {
                Ok(VersionRecord { files, facts, runs, .. }) => versions.push(Version { path, files, facts, runs }),
                Err(_) if file::is_gone(&path) => {}
                // A version gets its name with the record in it.
                Err(error) if FileError::is_missing(&error) => {
                    if path.file_name().and_then(|name| name.to_str()).is_some_and(is_unique) {
                        let fault = format!("`{}` has no record, so it does not count", path.display());
                        damaged.push((path, fault));
                    }
                }
                Err(error) if FileError::is_damage(&error) => damaged.push((path.clone(), fault_of(&path, &error))),
                Err(error) => return Err(error),
            }
        }
    }
    Ok((versions, damaged))
}

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
    let error = Error::new(ErrorKind::NotFound, format!("no version `{given}` in `{}`", datasets.display()));
    let known = known_names(datasets, given);
    if known.is_empty() {
        return error.with_hint("publish one first: `bellwether run NAME`");
    }
    // A name may be that of a definition's file. Versions are named by times: none is like another.
    let stem = Path::new(given).file_stem().and_then(|stem| stem.to_str()).unwrap_or(given);
    let names = || known.iter().map(String::as_str).filter(|name| !name.contains('/'));
    let mut hint = match [given, stem].into_iter().find_map(|given| nearest(given, names())) {
        Some(meant) => format!("did you mean `{meant}`? known names: "),
        None => "known names: ".to_owned(),
    };
    hint += &known[..known.len().min(8)].join(", ");
    if known.len() > 8 {
        hint += &format!(" and {} more", known.len() - 8);
    }
    hint += "; the folder of a version works too";
    if let Some((name, version)) = given.split_once('/')
        && is_unique(version)
        && retention::latest_target(&datasets.join(name)).is_some_and(|latest| *version < *latest)
    {
        hint += &format!("; {}", what_was_known(version));
    }
    error.with_hint(hint)
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
    let again = built_at.map_or("build it again".to_owned(), |at| {
        format!("what was known then is there as of {}", (at + TimeDelta::seconds(1)).format("%Y-%m-%dT%H:%M:%SZ"))
    });
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
