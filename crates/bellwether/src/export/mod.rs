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

mod citation;
mod content;
#[cfg(feature = "spark")]
mod external;
mod formats;
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
mod table;
#[cfg(test)]
mod tests;

pub use crate::columns::csv::Coding;
pub use citation::Citation;
pub(crate) use content::Content;
pub(crate) use formats::coding;
pub use formats::{RowEncoding, RowFormat};
pub use published::{ListedVersion, VersionKind, latest, published_versions, version_of};
pub use reader::PublishedReader;
pub use retention::remove;
pub use selection::Selection;

#[cfg(feature = "spark")]
pub(crate) use external::ExternalFiles;
pub(crate) use publication::Publication;
pub use published::{Version, facts, first_misfit, published_of};
pub(crate) use published::{version_before, versions};
pub(crate) use record::{FACTS, Provenance};
pub use record::{RECORD, dates_of};
pub use record::{VersionRecord, VersionShape};
pub(crate) use retention::{abandoned_folders, latest_target, point_latest, remove_surplus, surplus};
pub(crate) use reuse::{ReuseOutcome, built_before, reuse_latest};
pub use row_output::{Destination, RowOutput};
pub(crate) use selection::is_of_news;
pub(crate) use staged::{Dataset, IncomingVersion, Linking, Staged, names};
