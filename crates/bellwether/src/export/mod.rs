//! Writes rows to files that appear whole: a writer per format, and their publication.
//!
//! ```text
//! output/datasets/demo/
//!     20261120T213000Z-7f3a/
//!         demo.parquet  dataset.json  facts.json      a long dataset
//!         period=15d/regime=bear/demo.parquet            the same by folders
//!         15d-neutral/confidence.parquet                 a wide one
//!     latest -> 20261120T213000Z-7f3a
//!     builds/
//!         20261121T090000Z-01c5-ticker-XOM/              an ad hoc build, which `latest` never points to
//! ```
//!
//! If a version would have the same content as the latest one, it reuses its files; see `reuse`.
//!
//! A dataset is written under a hidden name, made durable and renamed, and only then does `latest` move. A reader of
//! `latest` sees one version or the other, never a mixture; earlier versions stay unchanged.
//!
//! Rows are cut into blocks of fixed length. A `table` collects a row group for the files of a folder, and a writer
//! encodes it, with columns or ranges of lines spread over threads. Row group boundaries depend only on row numbers, so
//! files are byte-identical however the rows arrived and whatever the number of threads. When a dataset was built, and
//! from which runs, is only in `dataset.json`.

mod arrow_ipc;
mod citation;
mod content;
mod durable_file;
#[cfg(feature = "spark")]
mod external;
mod find;
mod folder_names;
mod incoming;
mod json;
mod link;
mod matrices;
mod pandas;
mod parquet;
mod partitions;
mod publication;
mod published;
mod reader;
mod record;
mod retention;
mod reuse;
pub(crate) mod row_output;
mod selection;
mod staged;
mod stream;
mod table;
mod target_folder;
#[cfg(test)]
mod tests;

use std::io::Write;

use ::arrow::datatypes::SchemaRef;

use arrow_ipc::ArrowFileWriter;

pub use crate::columns::csv::Coding;
pub use citation::Citation;
pub(crate) use content::Content;
pub use published::{ListedVersion, VersionKind, latest, published_versions, version_of};
pub use reader::PublishedReader;
pub use retention::remove;
pub use selection::Selection;

#[cfg(feature = "spark")]
pub(crate) use external::{ExternalFiles, ExternalVersion};
pub(crate) use incoming::{IncomingVersion, Linking, names};
pub(crate) use link::{latest_target, point_latest};
pub(crate) use publication::{Provenance, Publication};
pub use published::{Version, facts, first_misfit, published_of, version_folders};
pub(crate) use published::{version_before, versions};
pub(crate) use reader::AnyReader;
#[cfg(feature = "spark")]
pub(crate) use record::FACTS;
pub use record::{RECORD, dates_of};
pub use record::{VersionRecord, VersionShape};
pub(crate) use retention::{abandoned_folders, remove_surplus, surplus};
pub(crate) use reuse::{LatestVersion, ReuseOutcome, ReusedVersion, built_before};
pub use row_output::{Destination, RowOutput};
pub(crate) use selection::is_of_news;
pub(crate) use staged::{Dataset, Staged};
pub use stream::{RowEncoding, RowFormat};

use crate::columns::csv::CsvWriter;
use crate::columns::{self, ParquetWriter, Rows};
use crate::error::Reason;
use crate::plan::{Codec, Format, FormulaGuard};

/// How rows are encoded.
#[derive(Clone, Debug)]
struct Encoding {
    codec: Codec,
    guard: FormulaGuard,
    /// The sort columns that a file has.
    sort: Vec<String>,
    /// Metadata of a Parquet file.
    metadata: Vec<(&'static str, String)>,
}

/// Writes a data file in one of the formats; each write is a row group, in the pieces it came in.
enum FormatWriter<W: Write + Send> {
    Parquet(Box<ParquetWriter<W>>),
    Csv(CsvWriter<W>),
    Arrow(Box<ArrowFileWriter<W>>),
}

impl<W: Write + Send> FormatWriter<W> {
    fn create(format: Format, out: W, schema: SchemaRef, encoding: &Encoding) -> Result<Self, Reason> {
        match format {
            Format::Parquet => Ok(Self::Parquet(Box::new(parquet::create(out, schema, encoding)?))),
            Format::Csv | Format::CsvGz | Format::CsvZst => {
                Ok(Self::Csv(CsvWriter::create(out, coding(format), &schema, encoding.guard)?))
            }
            Format::Arrow => Ok(Self::Arrow(Box::new(ArrowFileWriter::create(out, &schema)?))),
        }
    }

    fn write(&mut self, group: &[Rows]) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.write(group)?,
            Self::Csv(writer) => writer.write(group)?,
            Self::Arrow(writer) => writer.write(&columns::concat(group[0].schema(), group)?)?,
        }
        Ok(())
    }

    /// Completes the file.
    fn finish(&mut self) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer) => writer.finish()?,
            Self::Csv(writer) => writer.finish()?,
            Self::Arrow(writer) => writer.finish()?,
        }
        Ok(())
    }

    /// The underlying output.
    fn out(&self) -> &W {
        match self {
            Self::Parquet(writer) => writer.out(),
            Self::Csv(writer) => writer.out(),
            Self::Arrow(writer) => writer.out(),
        }
    }
}

/// How the bytes of files with rows as text are coded in a format.
pub(crate) fn coding(format: Format) -> Coding {
    match format {
        Format::Parquet | Format::Arrow | Format::Csv => Coding::Plain,
        Format::CsvGz => Coding::Gzip,
        Format::CsvZst => Coding::Zstd,
    }
}
