//! A report of a published dataset, from the archive.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::as_of::view_of;
use super::blocking::blocking;
use super::builder::{Builder, Counted, ReportContext, add_counts, scratch};
use super::observer::Control;
use super::scope::archived_scope;
use super::stage::Stage;
use crate::archive::ForgottenRun;
use crate::dataset::no_rows;
use crate::definition::DefinitionFile;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::export::{self, RECORD, latest, version_before, version_of};
use crate::plan::{DatasetPlan, Plan};
use crate::process::cancel;
use crate::report::facts::{Facts, Tally};
use crate::report::{Report, Version};
use crate::time::Clock;

/// The options of a report.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// A version: `NAME` for the latest of a dataset, or `NAME/VERSION`; none for the newest of all.
    pub name: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// The folder that relative paths in the definition are below.
    pub root: PathBuf,
    /// The instant to report as of; none for that of the version.
    pub as_of: Option<DateTime<Utc>>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the report.
    pub control: Control,
}

/// The report of a version of a dataset, from its stored facts and from the archive; as of another
/// instant, recomputed from the archive with the definition that the version was built from.
///
/// # Errors
///
/// When there is no such dataset, when the archive cannot be read or has no data for it; when it
/// was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`ReportOptions::control`].
pub async fn report(options: ReportOptions) -> Result<Report> {
    blocking(move || {
        let datasets = options.data.join("datasets");
        let (folder, recorded) = version_of(&datasets, options.name.as_deref())?;
        let definition = DefinitionFile::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone())?;
        let mut plan = Plan::of(definition.below(&options.root))?;
        recorded.ad_hoc().map_err(|reason| FileError::damage(&folder.join(RECORD), reason))?.apply(&mut plan);
        let as_of = options.as_of.unwrap_or(recorded.as_of);
        let view = view_of(&plan, &options.archive, Some(as_of), &options.control.stop)?;
        let scope = archived_scope(&plan, &view)?;
        let work = Builder {
            plan: &plan,
            view: &view,
            scope: &scope,
            control: &options.control,
            before: None,
            archived_in: None,
        };
        let stage = Stage::begin(&options.control, "report");
        // A version has its facts, unless another version of the program wrote them.
        let kept = options.as_of.is_none().then(|| Facts::from_json(&export::facts(&folder).ok()?).ok()).flatten();
        let (facts, context) = match kept {
            Some(facts) => (facts, work.report_context()?),
            None => work.count(options.clock)?,
        };
        cancel::check(&options.control.stop)?;
        stage.finish();
        if facts.rows == 0 {
            return Err(no_rows(&plan.name));
        }
        match options.as_of {
            Some(_) => Ok(work.report(facts, context, None)),
            None => {
                let runs = &recorded.runs;
                let built_from = |run: &&ForgottenRun| runs.contains(&run.run);
                let notes = view.archive().forgotten_runs().filter(built_from).map(|ForgottenRun { run, .. }| {
                    format!("this version was built from run `{run}`, which was forgotten since; build it again")
                });
                let notes: Vec<String> = notes.collect();
                let report =
                    work.report(facts, context, Some(Version::of(&recorded, version_before(&datasets, &recorded)?)));
                Ok(if notes.is_empty() { report } else { Report { notes, ..report } })
            }
        }
    })
    .await
}

/// The numbers of the latest version of a dataset; none if there is none, or if another version of the program wrote it.
pub fn latest_facts(data: &Path, name: &str) -> Option<Facts> {
    let datasets = data.join("datasets");
    let recorded = latest(&datasets, Some(name)).ok()??;
    Facts::from_json(&export::facts(&datasets.join(name).join(recorded.version)).ok()?).ok()
}

impl Builder<'_> {
    /// Counts the rows of the dataset without writing them.
    pub(super) fn count(&self, clock: Clock) -> Result<(Facts, ReportContext)> {
        // In the order of the key, so that nothing has to be sorted.
        let dataset = DatasetPlan { sort: self.plan.dataset.rows.key().to_vec(), ..self.plan.dataset.clone() };
        let mut tally = Tally::new(&dataset);
        let Counted { counts, .. } = self.rows(&dataset, scratch(clock), None, |rows| {
            tally.count(&rows);
            Ok(())
        })?;
        let mut facts = tally.finish();
        add_counts(&mut facts, counts);
        facts.contradictions = self.contradictions()?;
        facts.news = self.news(&facts, None)?.0;
        Ok((facts, self.report_context()?))
    }
}
