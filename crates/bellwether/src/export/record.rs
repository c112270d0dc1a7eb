//! `dataset.json`: what a version of a dataset is, where it comes from, and its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::datatypes::Field;
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::type_in_words;
use super::formats::sort;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::names::{self, is_unique};
use crate::disk::{digest, links};
use crate::error::{ErrorKind, Reason, Result};
use crate::plan::{AdHoc, ColumnNames, Plan, ServiceIdentity, Shape, is_label};
use crate::tables::Watch;
use crate::time::as_record;

/// Name of the file.
pub const RECORD: &str = "dataset.json";

/// The folder of ad hoc builds in a dataset's folder.
pub(super) const BUILDS: &str = "builds";

/// The layout of the record.
const LAYOUT: u32 = 5;

/// The file with the facts about a dataset's rows.
pub(crate) const FACTS: &str = "facts.json";

/// Where a dataset comes from.
#[derive(Clone, Debug)]
pub(crate) struct Provenance {
    /// Name of the dataset.
    pub name: String,
    /// Text of its definition.
    pub definition: String,
    /// Options of the build that are not in the definition.
    pub ad_hoc: AdHoc,
    /// The digest of everything that determines its files: datasets with the same basis have the same files.
    pub basis: String,
    /// The service whose data it holds.
    pub service: ServiceIdentity,
    /// The runs whose observations it was built from.
    pub runs: Vec<String>,
    /// The one of them that knew all others and was of this definition, if there is one.
    pub rebuilt_as_of: Option<String>,
    /// Observations after this instant are ignored.
    pub as_of: DateTime<Utc>,
    /// When the vendor told of its series; none if it is not known.
    pub watched: Option<Watch>,
    /// When it was built.
    pub built_at: DateTime<Utc>,
}

/// `dataset.json`, as it is written and read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VersionRecord {
    pub(super) layout: u32,
    /// Name of the dataset.
    pub name: String,
    /// Name of the version.
    pub version: String,
    pub(super) bellwether: String,
    pub(super) description: Option<String>,
    /// The license that its definition states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) license: Option<String>,
    /// Observations after this instant are ignored.
    #[serde(with = "as_record")]
    pub as_of: DateTime<Utc>,
    /// When the vendor told of its series.
    pub(super) watched: Option<Watch>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub built_at: DateTime<Utc>,
    /// The service whose data it holds.
    pub service: ServiceIdentity,
    /// The runs that it was built from.
    pub runs: Vec<String>,
    /// The one of them that knew all others and was of this definition, if there is one: `build --as-of` takes its name
    /// wherever the archive is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rebuilt_as_of: Option<String>,
    /// Text of its definition.
    pub definition: String,
    /// The options of an ad hoc build, by name; null for the definition's own dataset.
    pub(super) ad_hoc: Option<BTreeMap<String, Vec<String>>>,
    /// The digest of everything that determines the files.
    pub(super) basis: String,
    /// The version whose files were reused, if any.
    pub(super) taken_over_from: Option<String>,
    /// Its shape.
    pub shape: VersionShape,
    pub(super) sort: Vec<String>,
    /// The columns that identify a row; null if rows may be equal.
    pub(super) key: Option<Vec<String>>,
    pub(super) columns: Vec<ColumnRecord>,
    pub(super) partition_by: Vec<String>,
    /// Number of rows, counted once for all formats.
    pub rows: u64,
    /// Digest of its content.
    pub content: String,
    /// Its data files; names are paths inside the folder, with `/`.
    pub files: Vec<FileRecord>,
    /// The BLAKE3 of the facts.
    pub(crate) facts: String,
}

/// The shape of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VersionShape {
    /// A row for each signal.
    Long,
    /// Matrices of dates and tickers.
    Wide,
}

impl VersionShape {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Long => "long",
            Self::Wide => "wide",
        }
    }
}

/// A column; in a wide dataset, `date` and then the values of the matrices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ColumnRecord {
    pub(super) name: String,
    /// Its own name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<String>,
    pub(super) r#type: String,
    pub(super) nullable: bool,
    /// Whether it looks ahead by design: what a model is trained for, never on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) label: bool,
}

impl ColumnRecord {
    /// The record of a column that may be renamed. The fields of a matrix are named after tickers.
    pub(super) fn new(own: &str, names: &ColumnNames, field: &Field) -> Self {
        let name = names.of(own).to_owned();
        let column = (name != own).then(|| own.to_owned());
        Self { name, column, r#type: type_in_words(field), nullable: field.is_nullable(), label: is_label(own) }
    }
}

impl VersionRecord {
    /// What it is called where a dataset is named: `NAME/VERSION`, or `NAME/builds/VERSION`.
    pub fn reference(&self) -> String {
        let folder = if self.ad_hoc.is_some() { format!("/{BUILDS}") } else { String::new() };
        format!("{}{folder}/{}", self.name, self.version)
    }

    /// What the options of an ad hoc build say about its rows; nothing of a definition's own version.
    pub(crate) fn ad_hoc(&self) -> Result<AdHoc, Reason> {
        AdHoc::of_rows(self.ad_hoc.iter().flatten())
    }

    /// The record of a version that has no rows and no files yet.
    pub(super) fn new(plan: &Plan, provenance: Provenance, version: String) -> Self {
        let written = &plan.dataset.written;
        let (shape, key) = match plan.dataset.shape {
            Shape::Long => (VersionShape::Long, written.key.clone()),
            Shape::Wide(_) => (VersionShape::Wide, None),
        };
        let Provenance { name, definition, ad_hoc, basis, service, runs, rebuilt_as_of, as_of, watched, built_at } =
            provenance;
        Self {
            layout: LAYOUT,
            name,
            version,
            bellwether: env!("CARGO_PKG_VERSION").to_owned(),
            description: plan.description.clone(),
            license: plan.license.clone(),
            as_of,
            watched,
            built_at,
            service,
            runs,
            rebuilt_as_of,
            definition,
            ad_hoc: options(&ad_hoc),
            basis,
            taken_over_from: None,
            shape,
            sort: sort(plan),
            key,
            columns: Vec::new(),
            partition_by: plan.files.partition_by.iter().map(|&column| written.name(column).to_owned()).collect(),
            rows: 0,
            content: String::new(),
            files: Vec::new(),
            facts: String::new(),
        }
    }

    /// Parses the record of a folder, which need not be on this machine.
    fn parse(text: &[u8], folder: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct RecordHead {
            layout: Option<u64>,
        }

        let damage = |reason: Reason| FileError::damage(&folder.join(RECORD), reason);
        // A record of another layout is refused before anything else of it is read.
        match serde_json::from_slice(text).map_err(|error| damage(error.into()))? {
            RecordHead { layout: None } => return Err(damage("it has no `layout`".into())),
            RecordHead { layout: Some(layout) } if layout != u64::from(LAYOUT) => {
                return Err(FileError::layout(&folder.join(RECORD), layout, LAYOUT, None));
            }
            RecordHead { .. } => {}
        }
        let record: Self = serde_json::from_slice(text).map_err(|error| damage(error.into()))?;
        match record.files.iter().find(|file| !names::is_file_of_version(&file.name, &record.name)) {
            Some(file) => Err(damage(format!("`{}` is not a file of a version", file.name.escape_debug()).into())),
            None => Ok(record),
        }
    }

    /// Parses the record of the definition's own version in a folder, which need not be on this machine.
    pub(crate) fn of_version(text: &[u8], folder: &Path) -> Result<Self> {
        Self::parse(text, folder)?.named_like(folder)
    }

    fn named_like(self, folder: &Path) -> Result<Self> {
        if !is_unique(&self.version) || folder.file_name().is_none_or(|name| *name != *self.version) {
            return Err(FileError::damage(&folder.join(RECORD), "it is the record of another version"));
        }
        Ok(self)
    }

    /// Reads the record of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        Self::parse(&links::read(&folder.join(RECORD))?, folder)
    }

    /// Reads the record of a folder; `None` if there is none, or it has another layout.
    pub(super) fn open_current(folder: &Path) -> Result<Option<Self>> {
        if file::is_gone(&folder.join(RECORD)) {
            return Ok(None);
        }
        match Self::open(folder) {
            Err(error) if error.kind() == ErrorKind::Layout => Ok(None),
            record => record.map(Some),
        }
    }

    /// The definition's own versions of a dataset in a folder of datasets, of the current layout.
    pub(crate) fn of_dataset(datasets: &Path, name: &str) -> Result<Vec<(PathBuf, Self)>> {
        let mut found = Vec::new();
        for path in version_folders(&datasets.join(name))? {
            if let Some(record) = Self::open_current(&path)? {
                let record = record.named_like(&path)?;
                found.push((path, record));
            }
        }
        Ok(found)
    }

    /// The facts about its rows, as stored in its folder.
    pub(super) fn facts_in(&self, folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(FACTS);
        let facts = links::read(&path)?;
        if digest::of(&facts) != self.facts {
            return Err(FileError::damage(&path, "it does not match its checksum"));
        }
        Ok(facts)
    }

    /// The size of its data files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The options of an ad hoc build, by name.
pub(super) fn options(ad_hoc: &AdHoc) -> Option<BTreeMap<String, Vec<String>>> {
    let mut options: BTreeMap<_, Vec<_>> = BTreeMap::new();
    ad_hoc.options().into_iter().for_each(|(name, value)| options.entry(name.to_owned()).or_default().push(value));
    (!options.is_empty()).then_some(options)
}

/// The folders of a dataset that are named like versions of its own definition.
pub(super) fn version_folders(dataset: &Path) -> Result<Vec<PathBuf>> {
    let is_version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_unique);
    Ok(file::folders(dataset)?.into_iter().filter(is_version).collect())
}

/// The first and last date in facts of any version of the program; none without rows, or if they cannot be read.
pub fn dates_of(facts: &[u8]) -> Option<(NaiveDate, NaiveDate)> {
    #[derive(Deserialize)]
    struct Dated {
        /// In naive microseconds.
        dates: Option<(i64, i64)>,
    }

    let (first, last) = serde_json::from_slice::<Dated>(facts).ok()?.dates?;
    let day = |micros| Some(DateTime::from_timestamp_micros(micros)?.date_naive());
    Some((day(first)?, day(last)?))
}
