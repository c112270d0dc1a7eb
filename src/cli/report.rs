//! `bellwether report`: an HTML report of a dataset.

use super::help::OUTPUT;
use super::outcome::Result;
use std::path::{Path, PathBuf};

use bellwether::disk::file::{self, TargetFile};
use bellwether::disk::links;
use bellwether::project::Project;
use bellwether::report;
use bellwether::run::{self, Control, FetchItem, ReportOptions};
use bellwether::time::Clock;
use chrono::{DateTime, Utc};

use super::folders::Folders;
use super::rows::Force;
use super::store::{LocalFolders, StoreOption, definition_of};
use super::typed::instant;
use super::{interruptible, say};

/// Write an HTML report of a published dataset.
///
/// The report is a single file that loads nothing from elsewhere. `run` and `build` write one next to each version.
#[derive(Debug, clap::Args)]
pub(super) struct Report {
    #[command(flatten)]
    subject: ReportSubject,

    /// Write the page to this file, or with `-` to standard output. Default: `reports/NAME.html` in the data folder, which
    /// is replaced.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,
}

/// The dataset to report on.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ReportSubject {
    /// A dataset: NAME for its latest version, or NAME/VERSION. Default: the newest.
    #[arg(value_name = "DATASET")]
    name: Option<String>,

    /// Report what was known at this instant: `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`.
    /// Default: the instant of the version.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    #[command(flatten)]
    folders: Folders,

    #[command(flatten)]
    store: StoreOption,
}

impl ReportSubject {
    /// Builds the report, from the store if there is one.
    pub(super) fn build(&self, project: &Project) -> Result<report::Report> {
        let (name, as_of) = (self.name.clone(), self.as_of);
        let (data, archive) = (self.folders.data(project), self.folders.archive(project));
        let root = project.root().to_owned();
        if let Some(name) = &self.name {
            self.store.fetch_version(name, &data, project)?;
            let local = LocalFolders { archive: &archive, data: &data };
            let dataset = name.split('/').next().unwrap_or(name);
            self.store.fetch(definition_of(dataset, project).as_ref(), local, &[FetchItem::Runs(self.as_of)])?;
        }
        Ok(interruptible(async |stop| {
            let control = Control { stop, ..Control::default() };
            run::report(ReportOptions { name, data, archive, root, as_of, clock: Clock::System, control }).await
        })?)
    }
}

impl Report {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let is_stdout = self.output.as_deref() == Some(Path::new("-"));
        let target = self.output.filter(|_| !is_stdout).map(|file| self.force.file(file));
        target.as_ref().map(TargetFile::check).transpose()?;
        let report = self.subject.build(project)?;
        let page = report.page();
        if is_stdout {
            return say(&page);
        }
        let file = match target {
            Some(target) => target.check()?,
            None => {
                let reports = self.subject.folders.data(project).join("reports");
                links::refuse(&reports)?;
                reports.join(&report.identity.name).with_extension("html")
            }
        };
        file::create_folders(file::folder_of(&file))?;
        file::replace(&file, page.as_bytes())?;
        say(&format!("report    {}\n", file.display()))
    }
}
