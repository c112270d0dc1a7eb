//! Audits of the archive, or of the part that a definition uses; which prices its signals are measured against.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::as_of::{check_past, first, view, view_of};
use super::builder::{Builder, scratch};
use super::observer::{Control, Stage};
use super::scope::{archived_scope, requests_in_words};
use super::start::DEMO_SEED;
use crate::archive::{View, no_runs, of_service, services, too_early};
use crate::audit::answers::answers;
use crate::audit::quality::{Quality, quality};
use crate::audit::revisions::{Revisions, revisions};
use crate::audit::skill::{Skill, SkillInput, WhenMissing, skill};
use crate::audit::sources::{Sources, sources};
use crate::audit::table::{self, TableAudit, TableInput};
use crate::audit::{Leak, Subject, leak};
use crate::columns::Rows;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Claims, Filter, Plan, RowKind, Source};
use crate::prices::{PriceRows, PriceSource, Prices, find};
use crate::serve::Universe;
use crate::time::Clock;

/// The scope of an audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// The service to audit; none for that of the definition, or the only one.
    pub service: Option<&'a str>,
    /// The definition whose part of it is audited; none for the whole.
    pub plan: Option<&'a Plan>,
    /// The instant to audit as of; none for the latest state.
    pub as_of: Option<DateTime<Utc>>,
    /// Follows and cancels the audit.
    pub control: &'a Control,
}

impl AuditOptions<'_> {
    /// The archive, or the part of it, to audit.
    fn subject(&self) -> Result<Subject> {
        let view = self.view(self.as_of)?;
        self.control.warn(&view.notes_on_runs());
        match self.plan {
            Some(plan) => {
                let scope = archived_scope(plan, &view)?;
                Subject::part(view, scope, &plan.dataset)
            }
            None => Subject::whole(view),
        }
    }

    /// Checks that something was known at an instant, if there is one.
    fn check_known_at(&self, as_of: Option<DateTime<Utc>>) -> Result<()> {
        let Some(as_of) = as_of else { return Ok(()) };
        check_past(as_of)?;
        match first(self.view(None)?.archive()) {
            Some(first) if as_of < first => Err(too_early(as_of, first)),
            _ => Ok(()),
        }
    }

    /// The archive of the service as of an instant.
    fn view(&self, as_of: Option<DateTime<Utc>>) -> Result<View> {
        if let Some(plan) = self.plan {
            return view_of(plan, self.archive, as_of, &self.control.stop);
        }
        let service = match self.service {
            Some(service) => service.to_owned(),
            None => {
                let mut services = services(self.archive)?;
                if services.len() > 1 {
                    let (archive, names) = (self.archive.display(), services.join(", "));
                    let what = format!("`{archive}` has data of several services: {names}");
                    return Err(Error::usage(what, "name one with `--service`, or a definition"));
                }
                services.pop().ok_or_else(|| no_runs(self.archive))?
            }
        };
        view(&of_service(self.archive, &service)?, Claims::LeftOut, as_of, &self.control.stop)
    }

    /// Runs an audit as a stage.
    fn stage<T>(&self, name: &'static str, audit: impl FnOnce() -> Result<T>) -> Result<T> {
        let stage = Stage::begin(self.control, name);
        let done = audit()?;
        stage.finish();
        Ok(done)
    }
}

/// Counts the revisions after an instant, or all of them, and delivers a row for each change.
///
/// # Errors
///
/// When the archive cannot be read, when the instant is before the first run or not before `as_of`, and any error of
/// `deliver`.
pub fn audit_revisions(
    options: AuditOptions<'_>,
    from: Option<DateTime<Utc>>,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    options.check_known_at(from)?;
    options.stage("revisions", || revisions(&options.subject()?, from, deliver))
}

/// Compares the operations of the service, and delivers a row for each disagreement.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_sources(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    options.stage("sources", || sources(&options.subject()?, deliver))
}

/// Compares the values of a table of the user's own with what the archive had seen by the time of decision, and delivers a
/// row for each that was not the latest one.
///
/// # Errors
///
/// When the table lacks a column or has a row that cannot be read, when the archive cannot be read, and what `deliver`
/// fails with.
pub fn audit_table(
    options: AuditOptions<'_>,
    input: &TableInput,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<TableAudit> {
    if input.with_features && options.plan.is_none_or(|plan| plan.dataset.features.is_empty()) {
        let what = "features of the news need a definition that has them";
        return Err(Error::usage(what, "name the definition that the table was made with, or leave out `--features`"));
    }
    options.stage("table", || {
        let subject = options.subject()?;
        let Some(plan) = options.plan else { return table::audit_table(&subject, input, None, deliver) };
        let archive = options.view(options.as_of)?.archive().clone();
        let of_plan = Arc::new(plan.clone());
        let rebuild = |as_of: DateTime<Utc>, filter: Filter, take: &mut dyn FnMut(&RecordBatch) -> Result<()>| {
            let view = View::of(archive.clone(), as_of).until(&options.control.stop);
            let mut work = match Builder::of_archive(Arc::clone(&of_plan), view, options.control) {
                // The first runs may be those of other definitions.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                work => work?,
            };
            let mut dataset = plan.dataset.of_features(plan.dataset.vintage);
            dataset.filter = Filter { universe: None, ..dataset.filter }.and(filter);
            work.scope.filter = dataset.filter.clone();
            let rows = |rows: Rows| take(&rows.flat().map_err(Error::frame)?);
            work.rows(&dataset, scratch(Clock::System), None, rows).map(drop)
        };
        table::audit_table(&subject, input, Some((&plan.dataset, &rebuild)), deliver)
    })
}

/// Checks the quality of the data, and delivers a row for each finding.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_quality(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Quality> {
    options.stage("quality", || {
        let view = options.view(options.as_of)?;
        let answers = match options.plan {
            Some(plan) => {
                let requests = requests_in_words(plan, &view, &archived_scope(plan, &view)?)?;
                answers(&view, |request| requests.contains(request))?
            }
            None => answers(&view, |_| true)?,
        };
        let plan = options.plan.map(|plan| &plan.dataset);
        quality(&options.subject()?, answers, plan, scratch(Clock::System), deliver)
    })
}

/// Tests the dataset of a plan for look-ahead.
///
/// # Errors
///
/// When the archive cannot be read, or a copy of it cannot be written in the folder `scratch`.
pub fn audit_leak(plan: &Plan, archive: &Path, scratch: &Path, control: &Control) -> Result<Leak> {
    let refusal = match plan.dataset.rows {
        RowKind::Signal => None,
        RowKind::Article => Some(("has no join to audit", "audit the definition that joins the news")),
        RowKind::Observation => Some((
            "has each value as it was known, and nothing is joined to it",
            "audit a definition with `latest` or `first` values",
        )),
    };
    if let Some((what, hint)) = refusal {
        return Err(Error::usage(format!("`{}` {what}", plan.name), hint));
    }
    let view = view_of(plan, archive, None, &control.stop)?;
    control.warn(&view.notes_on_runs());
    if !plan.dataset.labels.horizons.is_empty() {
        control.warn(&[
            "the returns of `[labels]` look ahead by design: they are no features, and not part of the trials"
                .to_owned(),
        ]);
    }
    let dataset = plan.dataset.clone().without_labels();
    let scope = archived_scope(plan, &view)?;
    let stage = Stage::begin(control, "leak");
    let found = leak(view.archive(), &scope, &dataset, scratch)?;
    stage.finish();
    Ok(Leak { dataset: plan.name.clone(), ..found })
}

/// The prices that signals are measured against.
#[derive(Clone, Debug)]
pub enum PriceInput {
    /// Those that the definition names; the demo has its own.
    OfDefinition,
    /// Files, which may have a `*` in their names.
    Files(Vec<PathBuf>),
    /// Rows in memory.
    Rows(PriceRows),
}

/// How signals are measured.
#[derive(Clone, Debug)]
pub struct SkillOptions {
    /// The prices.
    pub prices: PriceInput,
    /// The sessions from the date of a backfilled signal to its entry; 0 is the close of the date itself.
    pub lag: u32,
    /// What to do if more than a fifth of the signals have no price.
    pub when_missing: WhenMissing,
    /// The instant whose history the latest one is compared with; none for what was first published.
    pub from: Option<DateTime<Utc>>,
}

impl Default for SkillOptions {
    fn default() -> Self {
        Self { prices: PriceInput::OfDefinition, lag: 1, when_missing: WhenMissing::Refuse, from: None }
    }
}

impl SkillOptions {
    pub(super) fn input<'a>(&self, plan: &'a Plan, subject: &'a Subject, prices: &'a Prices) -> SkillInput<'a> {
        let (dataset, plan) = (&plan.name, &plan.dataset);
        SkillInput { dataset, subject, plan, prices, lag: self.lag, when_missing: self.when_missing, from: self.from }
    }
}

/// Measures the signals of a definition against prices, and delivers a row for each date, pair and state.
///
/// # Errors
///
/// When the archive or the prices cannot be read or have nothing to measure, and what `deliver` fails with.
pub fn audit_skill(
    options: AuditOptions<'_>,
    how: &SkillOptions,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Skill> {
    let plan = options.plan.ok_or_else(|| Error::usage("no definition given", "give the name of a definition"))?;
    if plan.dataset.rows == RowKind::Article {
        let what = format!("`{}` has no signals to measure", plan.name);
        return Err(Error::usage(what, "audit a definition that has signals"));
    }
    options.check_known_at(how.from)?;
    let source = prices_of(plan, &how.prices)?;
    options.stage("skill", || {
        let subject = options.subject()?;
        let prices = Prices::read(&source, &options.control.stop)?.by_id(&plan.dataset.identity)?;
        skill(how.input(plan, &subject, &prices), deliver)
    })
}

/// Where the prices come from.
pub(super) fn prices_of(plan: &Plan, input: &PriceInput) -> Result<PriceSource> {
    let files = match input {
        PriceInput::Rows(rows) => return Ok(PriceSource::Rows(rows.clone(), plan.prices.clone())),
        PriceInput::Files(files) => files,
        PriceInput::OfDefinition => &plan.prices.files,
    };
    match &plan.source {
        Source::Demo { .. } if files.is_empty() => {
            Ok(PriceSource::Demo(Box::new(Universe::new(DEMO_SEED, Clock::System.now().date_naive()))))
        }
        Source::Remote(_) if files.is_empty() => {
            let what = format!("no prices to measure `{}` against", plan.name);
            Err(Error::usage(what, "name them with `--prices FILE`, or with `file` in `[prices]`"))
        }
        _ => Ok(PriceSource::Files(find(files)?, plan.prices.clone())),
    }
}
