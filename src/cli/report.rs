//! `bellwether report`: what a dataset holds, on one page.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::folders::Folders;
use super::typed::instant;
use super::{interruptible, say};
use crate::error::{Error, Result};
use crate::file;
use crate::links;
use crate::report::Report as Told;
use crate::run::{ReportOptions, report};
use crate::time::Clock;

/// Draw what a published dataset holds, and what its vendor did to its past, as one HTML page.
///
/// The page is one file, which fetches nothing. `run` and `build` lay one beside each version of a dataset.
#[derive(Debug, clap::Args)]
pub(super) struct Report {
    #[command(flatten)]
    subject: Subject,

    /// The file for the page, or `-` for standard output; `reports/NAME.html` in the folder for datasets if it is not
    /// given.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Which dataset is told of.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Subject {
    /// A dataset's name; the one that was built last if it is not given.
    name: Option<String>,

    /// As it was known at this instant, and not as its latest version was: `2026-03-31`, the end of that day in UTC, or
    /// `2026-03-31T18:00:00Z`.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    #[command(flatten)]
    folders: Folders,
}

impl Subject {
    /// What there is to tell.
    pub(super) fn told(&self) -> Result<Told> {
        let (name, as_of) = (self.name.clone(), self.as_of);
        let (output, archive) = (self.folders.output.clone(), self.folders.archive());
        interruptible(async |stop| {
            report(ReportOptions { name, output, archive, as_of, clock: Clock::System, stop }).await
        })
    }
}

impl Report {
    pub(super) fn execute(self) -> Result<()> {
        let told = self.subject.told()?;
        let page = told.page();
        if self.file.as_deref() == Some(Path::new("-")) {
            return say(&page);
        }
        let output = &self.subject.folders.output;
        let file = match self.file {
            Some(file) => file,
            None => {
                let reports = output.join("reports");
                links::refuse(&reports)?;
                reports.join(&told.identity.name).with_extension("html")
            }
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        }
        file::replace(&file, page.as_bytes())?;
        say(&format!("report    {}\n", file.display()))
    }
}
