//! `dataset.json`: what a version of a dataset is, where it comes from, and its files.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use arrow::datatypes::Field;
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Provenance;
use super::content::type_in_words;
use crate::disk::digest;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::disk::names;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{AdHoc, Column, ColumnNames, Plan, ServiceIdentity, Shape, is_label};
use crate::tables::Watch;
use crate::time::as_record;

/// Name of the file.
pub const RECORD: &str = "dataset.json";

/// The folder of ad hoc builds in a dataset's folder.
pub(super) const BUILDS: &str = "builds";

/// The layout of the record.
pub(super) const LAYOUT: u32 = 5;

/// The file with the facts about a dataset's rows.
pub(crate) const FACTS: &str = "facts.json";

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) license: Option<String>,
    /// Observations after this instant are ignored.
    #[serde(with = "as_record")]
    pub as_of: DateTime<Utc>,
    /// When the vendor told of its series.
    pub(super) watched: Option<Watch>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub built_at: DateTime<Utc>,
    /// The service whose data it holds; none if an older version of the program wrote it.
    pub service: Option<ServiceIdentity>,
    /// The runs that it was built from.
    pub runs: Vec<String>,
    /// The one of them that knew all others and was of this definition, if there is one: `build --as-of` takes its name
    /// wherever the archive is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rebuilt_as_of: Option<String>,
    /// Text of its definition.
    pub definition: String,
    /// The options of an ad hoc build, by name; null for the definition's own dataset.
    pub(super) ad_hoc: Option<Options>,
    /// The digest of everything that determines the files.
    pub(super) basis: String,
    /// The version whose files were reused, if any.
    pub(super) taken_over_from: Option<String>,
    /// Its shape.
    pub shape: VersionShape,
    pub(super) sort: Vec<String>,
    /// The columns that identify a row; null if rows may be equal.
    #[serde(default = "key_of_signals")]
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

/// What can be read of a record of any layout.
#[derive(Debug, Deserialize)]
pub(super) struct AnyRecord {
    #[serde(default)]
    pub(super) name: String,
    pub(super) built_at: Option<DateTime<Utc>>,
    pub(super) service: Option<ServiceIdentity>,
    #[serde(default)]
    pub(super) runs: Vec<String>,
    pub(super) files: Vec<FileRecord>,
    /// The digest of its facts; none in records of programs that did not keep them.
    pub(super) facts: Option<String>,
}

/// The key of versions whose record has none.
fn key_of_signals() -> Option<Vec<String>> {
    Some(Column::KEY.map(|column| column.name().to_owned()).to_vec())
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
            service: Some(service),
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
    pub(crate) fn parse(text: &[u8], folder: &Path) -> Result<Self> {
        check_layout(text, folder, u64::from(LAYOUT)..=u64::from(LAYOUT))?;
        let record: Self = serde_json::from_slice(text).map_err(|error| damage(folder, error))?;
        check_names(&record.files, &record.name, folder)?;
        Ok(record)
    }

    /// Reads the record of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        Self::parse(&links::read(&folder.join(RECORD))?, folder)
    }

    /// Reads the record of a folder; `None` if it has another layout.
    pub(super) fn open_current(folder: &Path) -> Result<Option<Self>> {
        match Self::open(folder) {
            Err(error) if error.kind() == ErrorKind::Layout => Ok(None),
            record => record.map(Some),
        }
    }

    /// The size of its data files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The values of each option of an ad hoc build.
pub(super) type Options = BTreeMap<String, Vec<String>>;

/// The options of an ad hoc build, by name.
pub(super) fn options(ad_hoc: &AdHoc) -> Option<Options> {
    let mut options = Options::new();
    ad_hoc.options().into_iter().for_each(|(name, value)| options.entry(name.to_owned()).or_default().push(value));
    (!options.is_empty()).then_some(options)
}

/// The columns that sort the rows of a file.
pub(super) fn sort(plan: &Plan) -> Vec<String> {
    match plan.dataset.shape {
        Shape::Long => plan.dataset.written.sort.clone(),
        Shape::Wide(_) => vec![plan.dataset.written.name(Column::Date).to_owned()],
    }
}

impl AnyRecord {
    /// Reads the record of a folder, of the current layout or an older one.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let text = links::read(&folder.join(RECORD))?;
        check_layout(&text, folder, 0..=u64::from(LAYOUT))?;
        let record: Self = serde_json::from_slice(&text).map_err(|error| damage(folder, error))?;
        check_names(&record.files, &record.name, folder)?;
        Ok(record)
    }
}

fn damage(folder: &Path, reason: impl Into<Reason>) -> Error {
    FileError::damage(&folder.join(RECORD), reason)
}

/// Refuses a record of another layout before anything else of it is read.
fn check_layout(text: &[u8], folder: &Path, known: RangeInclusive<u64>) -> Result<()> {
    #[derive(Deserialize)]
    struct RecordHead {
        layout: Option<u64>,
    }

    match serde_json::from_slice(text).map_err(|error| damage(folder, error))? {
        RecordHead { layout: None } => Err(damage(folder, "it has no `layout`")),
        RecordHead { layout: Some(layout) } if known.contains(&layout) => Ok(()),
        RecordHead { layout: Some(layout) } => {
            let path = folder.join(RECORD);
            Err(FileError::layout(&path, layout, LAYOUT, None))
        }
    }
}

/// Refuses a record that lists files that no version has.
fn check_names(files: &[FileRecord], name: &str, folder: &Path) -> Result<()> {
    match files.iter().find(|file| !names::is_file_of_version(&file.name, name)) {
        Some(file) => Err(damage(folder, format!("`{}` is not a file of a version", file.name.escape_debug()))),
        None => Ok(()),
    }
}

/// The facts of a version whose digest is known, as stored.
pub(super) fn facts_of(folder: &Path, expected: Option<&str>) -> Result<Vec<u8>> {
    let path = folder.join(FACTS);
    let facts = links::read(&path)?;
    match expected == Some(&digest::of(&facts)) {
        true => Ok(facts),
        false => Err(FileError::damage(&path, "it does not match its checksum")),
    }
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
