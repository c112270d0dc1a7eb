//! A report of a published dataset, from the archive.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::blocking;
use super::build::{Work, add_counts, scratch, view};
use super::scope::{archived, asked};
use crate::archive::SealedRun;
use crate::audit::Subject;
use crate::audit::answers::answers;
use crate::audit::revisions::{Revisions, revisions};
use crate::definition::Found;
use crate::error::{Error, Result};
use crate::export::{Recorded, latest};
use crate::interface::Endpoint;
use crate::plan::{Column, DatasetPlan, Plan};
use crate::report::facts::{self, Facts, News, Tally};
use crate::report::{Identity, Report, Version};
use crate::tables::Table;
use crate::time::Clock;
use crate::trace::work;

/// The options of a report.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The name of the dataset; none for the one built last.
    pub name: Option<String>,
    /// The output folder.
    pub output: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// The instant to report as of; none for that of the latest version.
    pub as_of: Option<DateTime<Utc>>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the report.
    pub stop: CancellationToken,
}

/// The report of the latest version of a dataset, recomputed from the archive with the definition that the version was
/// built from.
///
/// # Errors
///
/// When there is no such dataset, when the archive cannot be read or has no data for it; [`Error::Interrupted`] when it
/// was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`ReportOptions::stop`].
pub async fn report(options: ReportOptions) -> Result<Report> {
    blocking(move || {
        let datasets = options.output.join("datasets");
        let Some(recorded) = latest(&datasets, options.name.as_deref())? else {
            return Err(Error::NoDataset { name: options.name, datasets });
        };
        let plan = Plan::of(Found::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone())?)?;
        let view = view(&options.archive, Some(options.as_of.unwrap_or(recorded.as_of)))?;
        let scope = archived(&plan, &view)?;
        let work = Work { plan: &plan, view: &view, scope: &scope, stop: &options.stop, archived_in: None };
        let (facts, beside) = work.count(options.clock)?;
        if facts.rows == 0 {
            return Err(Error::Empty { name: plan.name });
        }
        match options.as_of {
            Some(_) => Ok(work.report(facts, beside, None)),
            None => {
                let Recorded { version: name, built_at, content, .. } = recorded;
                Ok(work.report(facts, beside, Some(Version { name, built_at, content })))
            }
        }
    })
    .await
}

/// The parts of a report that do not come from the rows.
pub(super) struct Beside {
    revisions: Option<Revisions>,
    work: facts::Work,
}

impl Work<'_> {
    /// Counts the rows of the dataset without writing them.
    pub(super) fn count(&self, clock: Clock) -> Result<(Facts, Beside)> {
        // In the order of the key, so that nothing has to be sorted.
        let dataset = DatasetPlan { sort: Column::KEY.to_vec(), ..self.plan.dataset.clone() };
        let mut tally = Tally::new(&dataset);
        let subject = self.with_a_past()?;
        let (counts, revisions) = self.rows(&dataset, scratch(clock), subject.as_ref(), |rows| {
            tally.count(&rows);
            Ok(())
        })?;
        let mut facts = tally.finish();
        add_counts(&mut facts, counts);
        facts.news = self.news(&facts)?;
        Ok((facts, self.beside(revisions)?))
    }

    /// The articles of the tickers of some rows; none if the dataset has no news.
    pub(super) fn news(&self, facts: &Facts) -> Result<Option<News>> {
        let _work = work!("count news");
        let takes_news = self.plan.of_each_ticker.contains(&Endpoint::NewsArticles);
        takes_news.then(|| News::of(self.view, facts)).transpose()
    }

    /// The parts of the report that do not come from the rows.
    pub(super) fn beside(&self, revisions: Option<Revisions>) -> Result<Beside> {
        let _work = work!("look beside");
        let requests = asked(self.plan, self.view, self.scope)?;
        Ok(Beside { revisions, work: answers(self.view, |request| requests.contains(request))?.into() })
    }

    /// The revisions of the series of the dataset.
    pub(super) fn revisions(&self) -> Result<Option<Revisions>> {
        let _work = work!("count revisions");
        self.with_a_past()?.map(|subject| revisions(&subject, None, |_| Ok(()))).transpose()
    }

    /// The whole report.
    pub(super) fn report(&self, facts: Facts, beside: Beside, version: Option<Version>) -> Report {
        let Beside { revisions, work } = beside;
        let identity = Identity {
            name: self.plan.name.clone(),
            description: self.plan.description.clone(),
            version,
            as_of: self.view.as_of(),
            definition: self.plan.text.clone(),
        };
        Report { identity, revisions, work, stages: Vec::new(), notes: Vec::new(), facts }
    }

    /// The series of the dataset, if they may have been revised; none if only one run has observations.
    pub(super) fn with_a_past(&self) -> Result<Option<Subject>> {
        let has_rows =
            |run: &&SealedRun| [Table::Signals, Table::Articles].iter().any(|table| run.seal().rows(&table.file()) > 0);
        let begun = |run: &&SealedRun| run.seal().started_at <= self.view.as_of();
        if self.view.archive().runs().iter().filter(begun).filter(has_rows).nth(1).is_none() {
            return Ok(None);
        }
        Subject::part(self.view.clone(), self.scope.clone()).map(Some)
    }
}
