//! Audits of the archive and of datasets built from it.
//!
//! `leak` tries to leak future data into a dataset's past and reports each trial. `revisions` counts changes to the
//! past, `sources` compares operations with one another, `answers` counts rejected records and unknown fields, and
//! `quality` looks for gaps, stale series, duplicates, unusual values and rejected records. `skill` measures whether
//! signals predicted, as they were published and as they stand today. `table` asks of a table of the user's own which of
//! its values had been published by the time of decision. Each reads the archive a few whole tickers at a time and delivers
//! its findings as rows, whose columns `audit_rows` describes. `diff` compares two versions of a dataset. What an audit
//! returns is also its document: `--json` and Python print it, and the text shows the same.

/// Adds the named fields of another to those of a sum.
macro_rules! add_fields {
    ($sum:ident, $other:ident, $($field:ident),+) => { $($sum.$field += $other.$field;)+ };
}

pub mod answers;
mod canaries;
mod cut;
pub mod diff;
mod leak;
pub mod quality;
pub mod revisions;
mod rows;
pub mod skill;
pub mod sources;
mod subject;
pub mod table;

pub use leak::{Leak, Trial, TrialOutcome};
pub use rows::AuditColumn;

pub(crate) use leak::leak;
use rows::columns_of;
pub(crate) use subject::Subject;

/// The rows that an audit writes with `--output`.
#[derive(Clone, Debug)]
pub struct AuditRows {
    /// The audit, as in its command.
    pub audit: &'static str,
    /// What has a row, as a sentence.
    pub each: &'static str,
    /// The columns.
    pub columns: Vec<AuditColumn>,
}

/// The rows of every audit that writes some. Those of `diff` have the columns of its versions.
pub fn audit_rows() -> [AuditRows; 5] {
    let changes = "A row for each value that was added late, revised or withdrawn.";
    let disagreements = "A row for each value about which two operations contradict each other.";
    let measures =
        "For each pair or feature and state, a row for each date, one for all dates, and one for each group of `by`.";
    let values = "A row for each value that was not the latest known by the time of decision.";
    [
        AuditRows { audit: "revisions", each: changes, columns: columns_of(revisions::entries()) },
        AuditRows { audit: "sources", each: disagreements, columns: columns_of(sources::entries()) },
        AuditRows { audit: "quality", each: "A row for each finding.", columns: columns_of(quality::entries()) },
        AuditRows { audit: "skill", each: measures, columns: columns_of(skill::entries()) },
        AuditRows { audit: "table", each: values, columns: columns_of(table::entries()) },
    ]
}
