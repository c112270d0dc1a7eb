//! Audits of the archive and of datasets built from it.
//!
//! `leak` tries to leak future data into a dataset's past and reports each trial. `revisions` counts changes to the
//! past, `sources` compares operations with one another, `answers` counts rejected records and unknown fields, and
//! `quality` looks for gaps, stale series, duplicates, unusual values and rejected records. `skill` measures whether
//! signals predicted, as they were published and as they stand today. `table` asks of a table of the user's own which of
//! its values had been published by the time of decision. Each reads the archive a few whole tickers at a time and delivers
//! its findings as rows, whose columns `dictionary` describes. `diff` compares two versions of a dataset. What an audit
//! returns is also its document: `--json` and Python print it, and the text shows the same.

pub mod answers;
mod canaries;
mod cut;
mod dictionary;
pub mod diff;
mod leak;
mod observed;
pub mod quality;
pub mod revisions;
mod row_builder;
pub mod skill;
pub mod sources;
mod subject;
pub mod table;

pub use dictionary::{AuditRows, audit_rows};
pub use leak::{Leak, Trial, TrialOutcome};

pub(crate) use leak::leak;
pub(crate) use subject::Subject;
