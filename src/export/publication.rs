//! A dataset on its way from a hidden folder to a published version.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Writer, extension};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord, Staging};
use crate::plan::{Format, Plan, describe};
use crate::time::{to_record, unique_name};

pub(super) const RECORD: &str = "dataset.json";

/// Where a dataset comes from.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The dataset's name.
    pub name: String,
    /// The text of its definition.
    pub definition: String,
    /// The run whose observations it was built from.
    pub run: String,
    /// When it was built.
    pub built_at: DateTime<Utc>,
}

/// A published dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The folder of this version.
    pub path: PathBuf,
    /// The link that now points at it.
    pub latest: PathBuf,
    /// Its files.
    pub files: Vec<FileRecord>,
}

/// What `dataset.json` says.
#[derive(Debug, Serialize)]
struct Record<'a> {
    layout: u32,
    name: &'a str,
    version: &'a str,
    bellwether: &'a str,
    description: Option<&'a str>,
    run: &'a str,
    built_at: String,
    definition: &'a str,
    sort: Vec<&'a str>,
    columns: Vec<ColumnRecord<'a>>,
    files: &'a [FileRecord],
}

#[derive(Debug, Serialize)]
struct ColumnRecord<'a> {
    name: &'a str,
    r#type: String,
    nullable: bool,
}

/// A dataset that is being written.
pub struct Publication {
    folder: PathBuf,
    version: String,
    provenance: Provenance,
    staging: Staging,
    writers: Vec<(String, Writer)>,
    rows: u64,
}

impl Publication {
    /// Begins a version of a dataset below a folder of datasets.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn begin(datasets: &Path, plan: &Plan, provenance: Provenance) -> Result<Self> {
        let folder = datasets.join(&plan.name);
        let version = unique_name(provenance.built_at);
        let staging = Staging::create(&folder, &version)?;
        let create = |&format: &Format| {
            let name = format!("{}.{}", plan.name, extension(format));
            let writer = Writer::create(format, &staging.file(&name), &plan.dataset, &provenance)?;
            Ok((name, writer))
        };
        let writers = plan.formats.iter().map(create).collect::<Result<Vec<_>>>()?;
        Ok(Self { folder, version, provenance, staging, writers, rows: 0 })
    }

    /// Adds rows to every file.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        self.writers.iter_mut().try_for_each(|(_, writer)| writer.write(rows))
    }

    /// The rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the files, gives the folder its name, and moves `latest` to it.
    ///
    /// # Errors
    ///
    /// When the disk does not take it. The version before is then still the latest.
    pub fn publish(self, plan: &Plan) -> Result<Dataset> {
        let Self { folder, version, provenance, staging, writers, rows } = self;
        let mut files = Vec::with_capacity(writers.len());
        for (name, writer) in writers {
            writer.finish()?;
            files.push(FileRecord::of(&staging.file(&name), &name, rows)?);
        }
        file::write_json(&staging.file(RECORD), &record(&version, &provenance, plan, &files))?;
        let path = folder.join(&version);
        staging.publish(&path)?;
        let latest = folder.join("latest");
        if fs::symlink_metadata(&latest).is_ok_and(|found| !found.is_symlink()) {
            let source = std::io::Error::other("it is no link of bellwether's; move it away");
            return Err(Error::Write { path: latest, source });
        }
        file::point_latest(&folder, &version)?;
        Ok(Dataset { path, latest, files })
    }
}

fn record<'a>(version: &'a str, provenance: &'a Provenance, plan: &'a Plan, files: &'a [FileRecord]) -> Record<'a> {
    let column = |field: &'a std::sync::Arc<arrow::datatypes::Field>| ColumnRecord {
        name: field.name(),
        r#type: describe(field),
        nullable: field.is_nullable(),
    };
    Record {
        layout: 1,
        name: &provenance.name,
        version,
        bellwether: env!("CARGO_PKG_VERSION"),
        description: plan.description.as_deref(),
        run: &provenance.run,
        built_at: to_record(provenance.built_at),
        definition: &provenance.definition,
        sort: plan.dataset.sort.iter().map(|column| column.name()).collect(),
        columns: plan.dataset.schema.fields().iter().map(column).collect(),
        files,
    }
}
