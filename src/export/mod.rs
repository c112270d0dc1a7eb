//! From rows to files that appear whole: one writer a format, and their publication.
//!
//! ```text
//! output/datasets/demo/
//!     20261120T213000Z-7f3a/
//!         demo.parquet  dataset.json
//!     latest -> 20261120T213000Z-7f3a
//! ```
//!
//! A dataset is written under a hidden name, made durable, given its name, and only then does `latest` move. Whoever
//! reads `latest` reads one version or the other, never a mixture; what was published before stays as it was.

mod arrow_ipc;
mod csv;
mod parquet;
mod publication;
mod published;

use std::path::Path;

use ::arrow::array::RecordBatch;
use ::arrow::datatypes::SchemaRef;

pub use publication::{Dataset, Provenance, Publication};
pub use published::{Version, versions};

use crate::error::Result;
use crate::plan::{DatasetPlan, Format};

/// A file of rows that is being written.
enum Writer {
    Parquet(parquet::Writer),
    Csv(csv::Writer),
    Arrow(arrow_ipc::Writer),
}

impl Writer {
    fn create(format: Format, path: &Path, plan: &DatasetPlan, provenance: &Provenance) -> Result<Self> {
        let schema: SchemaRef = plan.schema.clone();
        match format {
            Format::Parquet => parquet::Writer::create(path, schema, &plan.sort, provenance).map(Self::Parquet),
            Format::Csv => csv::Writer::create(path, schema).map(Self::Csv),
            Format::Arrow => arrow_ipc::Writer::create(path, schema).map(Self::Arrow),
        }
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match self {
            Self::Parquet(writer) => writer.write(rows),
            Self::Csv(writer) => writer.write(rows),
            Self::Arrow(writer) => writer.write(rows),
        }
    }

    /// Completes the file and makes it durable.
    fn finish(self) -> Result<()> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Csv(writer) => writer.finish(),
            Self::Arrow(writer) => writer.finish(),
        }
    }
}

/// The ending of a format's files.
fn extension(format: Format) -> &'static str {
    match format {
        Format::Parquet => "parquet",
        Format::Csv => "csv",
        Format::Arrow => "arrow",
    }
}
