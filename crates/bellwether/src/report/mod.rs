//! Reports: what a dataset holds, what to make of it, how its past was revised, and what its runs did.
//!
//! A [`Report`] has the numbers, which [`numbers`] computes from the rows and [`news`] from the articles.
//! [`Report::verdict`] says in a few sentences what they come to. [`Report::page`] renders one self-contained HTML file,
//! [`Report::text`] lines for a terminal, and [`Report::summary`] a document. All of them show the same numbers.
//!
//! Whatever the vendor wrote (tickers, titles, links, reasons, field names) stays text: everything in a page is escaped, an
//! address becomes a link only if it is `http` or `https`, and the page's policy forbids loading anything and running any
//! script but its own. In a terminal, control characters are escaped.
//!
//! A page stays below two megabytes. Longer data is grouped into longer periods or cut to the most important rows, and
//! a line says so.

mod calendar;
mod frame;
mod histogram;
pub mod news;
pub mod numbers;
mod page;
mod plots;
mod sentences;
mod skill;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;

use chrono::{DateTime, NaiveDate, Utc};

use crate::audit::answers::Answers;
use crate::audit::revisions::Revisions;
use crate::audit::skill::Skill;
use crate::disk::file::FileRecord;
use crate::export::{VersionRecord, VersionShape};
use crate::facts::Facts;
use crate::freshness::Age;
use crate::plan::DayCount;
use crate::tables::Watch;
pub use calendar::{Axis, Step};
pub use frame::{Frame, STYLE, Topic, figure, key, notes, section, table};
use news::News;
use numbers::{ColumnNumbers, Numbers, SectorNumbers};
pub use summary::DatasetSummary;

/// A report on a dataset.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the dataset is.
    pub identity: Identity,
    /// What is known of its rows without reading them.
    pub facts: Facts,
    /// What its rows say.
    pub numbers: Numbers,
    /// The news about its tickers; `None` if the dataset has none.
    pub news: Option<News>,
    /// Its columns as they are written.
    pub columns: Vec<ColumnNumbers>,
    /// Its split by sector; empty if no sector is known.
    pub sectors: Vec<SectorNumbers>,
    /// Whether its signals predicted, or why that was not measured; `None` if its definition has no prices.
    pub skill: Option<Result<Skill, String>>,
    /// Revisions of its signals and news; `None` with a single run, when nothing can have changed yet.
    pub revisions: Option<Revisions>,
    /// What its runs did.
    pub work: Answers,
    /// Tickers whose news was not asked for.
    pub unasked: u64,
    /// What changed since the version before, if there is one.
    pub since: Option<Since>,
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
    /// How old the newest date was at that instant.
    pub age: Option<Age>,
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

/// What changed since the version before.
#[derive(Clone, Debug)]
pub struct Since {
    /// That version.
    pub version: String,
    /// Its number of rows.
    pub rows: u64,
    /// Its newest date.
    pub newest: Option<NaiveDate>,
    /// The tickers that are new since.
    pub appeared: Vec<String>,
    /// The tickers that are gone since.
    pub disappeared: Vec<String>,
    /// The signals that were known then, and how many of them were revised or withdrawn since.
    pub signals: (u64, u64),
    /// The articles, likewise.
    pub articles: (u64, u64),
}

impl Version {
    /// The version with a record, and the one that was published before it.
    pub(crate) fn new(record: &VersionRecord, before: Option<String>) -> Self {
        let reference = record.reference();
        let below = |file: &FileRecord| format!("datasets/{reference}/{}", file.name);
        let files = record.files.iter().map(below).collect();
        let (name, content) = (record.version.clone(), record.content.clone());
        Self { name, built_at: record.built_at, content, reference, files, before, shape: record.shape }
    }
}

impl Report {
    /// Whether its rows are signals; those of a dataset of news are articles.
    fn has_signals(&self) -> bool {
        !self.numbers.pairs.is_empty()
    }
}
