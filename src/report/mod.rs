//! Pages drawn from answers: what a dataset holds, what the vendor did to its past, and what its runs did.
//!
//! [`facts`] has the numbers; a [`Report`] puts them together, and is drawn twice: [`Report::page`] makes one HTML file that
//! needs nothing from anywhere, [`Report::text`] some lines for a terminal. Neither computes a number that the other does
//! not have.
//!
//! What a vendor wrote (tickers, titles, addresses, reasons, names of fields) is text and stays text: the one writer of HTML
//! there is escapes whatever it is given, an address becomes a link only where it is `http` or `https`, and the page forbids
//! itself to fetch anything or to run any script but its own. In a terminal, control characters are replaced.
//!
//! A page stays below two megabytes. Where there is more than it has room for, it takes longer stretches of time or what
//! matters most, and a line says so.

pub mod facts;
mod html;
mod page;
mod policy;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::audit::revisions::Revisions;
use facts::{Facts, Work};

/// The name of a report's file in the folder of a dataset's version.
pub const FILE: &str = "report.html";

/// Everything that is told of a dataset.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it is.
    pub identity: Identity,
    /// What its rows say, and the news about its tickers.
    pub facts: Facts,
    /// What the vendor did to the past of its signals and news; none where one run is all that there is, before whose
    /// end nothing can have changed.
    pub revisions: Option<Revisions>,
    /// What the runs did.
    pub work: Work,
    /// How long the stages took that came before this report and followed the fetching, as far as anybody knows.
    pub stages: Vec<(&'static str, Duration)>,
    /// What else a person should know, a line each.
    pub notes: Vec<String>,
}

/// What a dataset is, and where it comes from.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub description: Option<String>,
    /// The version that was published, where the report is of one.
    pub version: Option<Version>,
    /// The instant after which nothing that was observed counts.
    pub as_of: DateTime<Utc>,
    /// The text of its definition.
    pub definition: String,
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
}
