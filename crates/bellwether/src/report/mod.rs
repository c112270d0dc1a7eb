//! Reports: what a dataset holds, how its past was revised, and what its runs did.
//!
//! [`facts`] computes the numbers and a [`Report`] puts them together. [`Report::page`] renders one self-contained HTML
//! file, [`Report::text`] lines for a terminal. Both show the same numbers.
//!
//! Whatever the vendor wrote (tickers, titles, links, reasons, field names) stays text: the HTML writer escapes
//! everything it is given, an address becomes a link only if it is `http` or `https`, and the page's policy forbids
//! loading anything and running any script but its own. In a terminal, control characters are escaped.
//!
//! A page stays below two megabytes. Longer data is grouped into longer periods or cut to the most important rows, and
//! a line says so.

pub mod facts;
mod html;
mod observed;
mod page;
mod parts;
mod policy;
mod summary;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::audit::revisions::Revisions;
use crate::audit::skill::Skill;
use crate::disk::file::FileRecord;
use crate::export::{VersionRecord, VersionShape};
use crate::plan::DayCount;
use crate::tables::Watch;
use facts::{Activity, ColumnFacts, Facts, SectorFacts};
pub use html::Html;
pub use observed::Observed;
pub use parts::{Frame, Heading, Topic};
pub use summary::DatasetSummary;

/// The style of every page.
pub const STYLE: &str = include_str!("style.css");

/// A report on a dataset.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the dataset is.
    pub identity: Identity,
    /// Its numbers, and the news about its tickers.
    pub facts: Facts,
    /// Its columns as they are written.
    pub columns: Vec<ColumnFacts>,
    /// Its split by sector; empty if no sector is known.
    pub sectors: Vec<SectorFacts>,
    /// Whether its signals predicted, or why that was not measured; `None` if its definition has no prices.
    pub skill: Option<Result<Skill, String>>,
    /// Revisions of its signals and news; `None` with a single run, when nothing can have changed yet.
    pub revisions: Option<Revisions>,
    /// What its runs did.
    pub work: Activity,
    /// Tickers whose news was not asked for.
    pub unasked: u64,
    /// Durations of the stages between fetching and this report, where known.
    pub stages: Vec<(&'static str, Duration)>,
    /// Further notes for the reader, a line each.
    pub notes: Vec<String>,
}

/// What a dataset is, and where it comes from.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its description, a single line.
    pub description: Option<String>,
    /// The published version that the report is about, if any.
    pub version: Option<Version>,
    /// Observations after this instant are ignored.
    pub as_of: DateTime<Utc>,
    /// When the vendor told of its series.
    pub watched: Option<Watch>,
    /// How long after its date a row is live.
    pub live_within: DayCount,
    /// The text of its definition.
    pub definition: String,
    /// Which signals it has, and which news each may use.
    pub in_words: String,
}

/// A published version.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// When it was built.
    pub built_at: DateTime<Utc>,
    /// The hash of its content.
    pub content: String,
    /// What it is called where a dataset is named: `NAME/VERSION`.
    pub reference: String,
    /// Its files, as paths below the data folder.
    pub files: Vec<String>,
    /// The version that was published before it, if that is still there.
    pub before: Option<String>,
    /// Its shape.
    pub shape: VersionShape,
}

impl Version {
    /// The version with a record, and the one that was published before it.
    pub(crate) fn of(record: &VersionRecord, before: Option<String>) -> Self {
        let reference = record.reference();
        let below = |file: &FileRecord| format!("datasets/{reference}/{}", file.name);
        let files = record.files.iter().map(below).collect();
        let (name, content) = (record.version.clone(), record.content.clone());
        Self { name, built_at: record.built_at, content, reference, files, before, shape: record.shape }
    }

    /// The version before it, if the two can be compared row by row.
    fn version_to_compare(&self) -> Option<&str> {
        self.before.as_deref().filter(|_| self.shape == VersionShape::Long)
    }
}
