//! `dataset.json`: what a version of a dataset is, where it comes from, and its files.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::datatypes::Field;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Provenance;
use super::content::type_in_words;
use crate::digest;
use crate::error::Result;
use crate::file::{FileError, FileRecord};
use crate::links;
use crate::plan::{AdHoc, Column, ColumnNames, Plan, ServiceIdentity, Shape};
use crate::tables::Watch;
use crate::time::to_record;

/// Name of the file.
pub(crate) const RECORD: &str = "dataset.json";

/// The layout of the record. Layout 1 had one `run`, neither `as_of` nor `content`, and no folders; in layout 2
/// `content` was a digest of single values; layout 3 had neither `basis` nor `facts`.
pub(super) const LAYOUT: u32 = 5;

/// The file with the facts about a dataset's rows.
pub(crate) const FACTS: &str = "facts.json";

/// The file with the report of a version.
pub(crate) const REPORT: &str = "report.html";

/// `dataset.json` as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct DatasetRecord {
    layout: u32,
    name: String,
    version: String,
    bellwether: &'static str,
    description: Option<String>,
    as_of: String,
    /// When the vendor told of its series.
    watched: Option<Watch>,
    built_at: String,
    service: ServiceIdentity,
    runs: Vec<String>,
    definition: String,
    /// The options of an ad hoc build, by name; null for the definition's own dataset.
    ad_hoc: Option<Options>,
    /// The digest of everything that determines the files.
    basis: String,
    /// The version whose files were reused, if any.
    taken_over_from: Option<String>,
    shape: &'static str,
    sort: Vec<String>,
    /// The columns that identify a row; null if rows may be equal.
    key: Option<Vec<String>>,
    columns: Vec<ColumnRecord>,
    partition_by: Vec<String>,
    rows: u64,
    content: String,
    files: Vec<FileRecord>,
    /// The BLAKE3 of the facts.
    facts: String,
    /// The BLAKE3 of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
}

/// The digests in a record of the files that describe its rows; none in records of programs that did not keep them.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct DescribingFiles {
    #[serde(default)]
    facts: Option<String>,
    #[serde(default)]
    report: Option<String>,
}

impl DescribingFiles {
    /// Each file with a digest, and the digest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let files = [(FACTS, &self.facts), (REPORT, &self.report)];
        files.into_iter().filter_map(|(name, digest)| Some((name, digest.as_deref()?)))
    }
}

/// A column; in a wide dataset, `date` and then the values of the matrices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ColumnRecord {
    name: String,
    /// Its own name, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    r#type: String,
    nullable: bool,
}

impl ColumnRecord {
    /// The record of a column that may be renamed. The fields of a matrix are named after tickers.
    pub(super) fn new(own: &str, names: &ColumnNames, field: &Field) -> Self {
        let name = names.of(own).to_owned();
        let column = (name != own).then(|| own.to_owned());
        Self { name, column, r#type: type_in_words(field), nullable: field.is_nullable() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The contents of the record.
pub(super) struct RecordContents<'a> {
    pub(super) version: &'a str,
    pub(super) provenance: &'a Provenance,
    pub(super) taken_over_from: Option<&'a str>,
    pub(super) columns: &'a [ColumnRecord],
    pub(super) rows: u64,
    pub(super) content: &'a str,
    pub(super) files: &'a [FileRecord],
    pub(super) facts: &'a str,
}

impl DatasetRecord {
    /// The record of a version that has no report yet.
    pub(super) fn of(plan: &Plan, written: RecordContents<'_>) -> Self {
        let RecordContents { version, provenance, taken_over_from, columns, rows, content, files, facts } = written;
        Self {
            layout: LAYOUT,
            name: provenance.name.clone(),
            version: version.to_owned(),
            bellwether: env!("CARGO_PKG_VERSION"),
            description: plan.description.clone(),
            as_of: to_record(provenance.as_of),
            watched: provenance.watched,
            built_at: to_record(provenance.built_at),
            service: provenance.service.clone(),
            runs: provenance.runs.clone(),
            definition: provenance.definition.clone(),
            ad_hoc: options(&provenance.ad_hoc),
            basis: provenance.basis.clone(),
            taken_over_from: taken_over_from.map(str::to_owned),
            shape: match plan.dataset.shape {
                Shape::Long => "long",
                Shape::Wide(_) => "wide",
            },
            sort: sort(plan),
            key: match plan.dataset.shape {
                Shape::Long => plan.dataset.written.key.clone(),
                Shape::Wide(_) => None,
            },
            columns: columns.to_vec(),
            partition_by: plan
                .files
                .partition_by
                .iter()
                .map(|&column| plan.dataset.written.name(column).to_owned())
                .collect(),
            rows,
            content: content.to_owned(),
            files: files.to_vec(),
            facts: facts.to_owned(),
            report: None,
        }
    }

    /// Records the report, which is drawn once everything else is known.
    pub(super) fn seal_report(&mut self, page: &[u8]) {
        self.report = Some(digest::of(page));
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

/// The provenance in a Parquet file's metadata. It does not include when the file was built, as of when, or from which
/// runs, so that the same rows have the same bytes, even after runs were compacted. Those are in `dataset.json`.
pub(super) fn metadata(provenance: &Provenance) -> Vec<(&'static str, String)> {
    vec![
        ("bellwether.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("bellwether.dataset", provenance.name.clone()),
        ("bellwether.definition", provenance.definition.clone()),
    ]
}

/// Reads the requested fields of the record in a folder.
pub(super) fn read<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let file = folder.join(RECORD);
    let text = links::read(&file)?;
    serde_json::from_slice(&text).map_err(|error| FileError::damaged(&file, error))
}
