//! Audits of the archive, or of the part that a definition uses; which prices its signals are measured against.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::as_of::{check_past, first, view, view_of};
use super::builder::{Builder, scratch};
use super::observer::Control;
use super::observer::Stage;
use super::scope::{archived_scope, requests_in_words};
use super::start::DEMO_SEED;
use crate::archive::{Scope, View, no_runs, of_service, services, too_early};
use crate::audit::answers::answers;
use crate::audit::quality::{Quality, quality};
use crate::audit::revisions::{Revisions, revisions};
use crate::audit::skill::{Skill, SkillInput, WhenMissing, skill};
use crate::audit::sources::{Sources, sources};
use crate::audit::table::{self, TableAudit, TableInput};
use crate::audit::{Leak, Subject, leak};
use crate::columns::Rows;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{DatasetPlan, Filter, Plan, PricesPlan, RowKind, Source};
use crate::prices::{PriceRows, PriceSource, Prices, find};
use crate::process::cancel::CancellationToken;
use crate::serve::Universe;
use crate::time::Clock;

/// Runs work as a stage.
fn run_as_stage<T>(control: &Control, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let stage = Stage::begin(control, name);
    let done = work()?;
    stage.finish();
    Ok(done)
}

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
    pub(crate) fn subject(&self) -> Result<Subject> {
        let view = self.view()?;
        self.control.warn(&view.notes_on_runs());
        match self.plan {
            Some(plan) => {
                let scope = archived_scope(plan, &view)?;
                Subject::part(view, scope, &plan.dataset)
            }
            None => Subject::whole(view),
        }
    }

    /// Checks that something was known at an instant.
    fn check_known_at(&self, as_of: DateTime<Utc>) -> Result<()> {
        check_past(as_of)?;
        let view = Self { as_of: None, ..*self }.view()?;
        let first = first(view.archive()).filter(|first| as_of < *first);
        first.map_or(Ok(()), |first| Err(too_early(as_of, first)))
    }

    /// The archive of the service as of the instant.
    fn view(&self) -> Result<View> {
        match self.plan {
            Some(plan) => view_of(plan, self.archive, self.as_of, &self.control.stop),
            None => view(&self.of_service()?, self.as_of, &self.control.stop),
        }
    }

    /// The folder of the service.
    fn of_service(&self) -> Result<PathBuf> {
        let service = self.plan.map(|plan| plan.service.name.as_str()).or(self.service);
        match service {
            Some(service) => of_service(self.archive, service),
            None => only_service(self.archive),
        }
    }
}

/// The folder of the only service in an archive.
fn only_service(archive: &Path) -> Result<PathBuf> {
    let services = services(archive)?;
    match &services[..] {
        [] => Err(no_runs(archive)),
        [only] => of_service(archive, only),
        _ => Err(Error::usage(
            format!("`{}` has data of several services: {}", archive.display(), services.join(", ")),
            "name one with `--service`, or a definition",
        )),
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
    from.map_or(Ok(()), |from| options.check_known_at(from))?;
    run_as_stage(options.control, "revisions", || revisions(&options.subject()?, from, deliver))
}

/// Compares the operations of the service, and delivers a row for each disagreement.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_sources(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    run_as_stage(options.control, "sources", || sources(&options.subject()?, deliver))
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
    run_as_stage(options.control, "table", || {
        let subject = options.subject()?;
        let Some(plan) = options.plan else { return table::audit_table(&subject, input, None, deliver) };
        let archive = options.view()?.archive().clone();
        let rebuild = |as_of: DateTime<Utc>, filter: Filter, take: &mut dyn FnMut(&RecordBatch) -> Result<()>| {
            let view = View::of(archive.clone(), as_of).until(&options.control.stop);
            let dataset = plan.dataset.of_features(plan.dataset.vintage);
            let filter = Filter { universe: None, ..dataset.filter.clone() }.and(filter);
            let scope = match archived_scope(plan, &view) {
                // The first runs may be those of other definitions.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                scope => Scope { filter: filter.clone(), ..scope? },
            };
            let work = Builder::new(plan, &view, &scope, options.control);
            let dataset = DatasetPlan { filter, ..dataset };
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
    run_as_stage(options.control, "quality", || find_quality(options, deliver))
}

fn find_quality(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Quality> {
    let view = options.view()?;
    let answers = match options.plan {
        Some(plan) => {
            let requests = requests_in_words(plan, &view, &archived_scope(plan, &view)?)?;
            answers(&view, |request| requests.contains(request))?
        }
        None => answers(&view, |_| true)?,
    };
    let plan = options.plan.map(|plan| &plan.dataset);
    quality(&options.subject()?, answers, plan, scratch(Clock::System), deliver)
}

/// Tests the dataset of a plan for look-ahead.
///
/// # Errors
///
/// When the archive cannot be read, or a copy of it cannot be written in the folder `scratch`.
pub fn audit_leak(plan: &Plan, archive: &Path, scratch: &Path, control: &Control) -> Result<Leak> {
    if plan.dataset.rows == RowKind::Article {
        let what = format!("`{}` has no join to audit", plan.name);
        return Err(Error::usage(what, "audit the definition that joins the news"));
    }
    if plan.dataset.rows == RowKind::Observation {
        let what = format!("`{}` has each value as it was known, and nothing is joined to it", plan.name);
        return Err(Error::usage(what, "audit a definition with `latest` or `first` values"));
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
    let found = run_as_stage(control, "leak", || leak(view.archive(), &scope, &dataset, scratch))?;
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
    fn input<'a>(&self, plan: &'a Plan, subject: &'a Subject, prices: &'a Prices) -> SkillInput<'a> {
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
    how.from.map_or(Ok(()), |from| options.check_known_at(from))?;
    let source = prices_of(plan, &how.prices)?;
    run_as_stage(options.control, "skill", || {
        let subject = options.subject()?;
        let prices = Prices::read(&source, &options.control.stop)?.by_id(&plan.dataset.identity)?;
        skill(how.input(plan, &subject, &prices), deliver)
    })
}

/// Whether a definition has prices to measure its signals against.
pub(super) fn has_prices(plan: &Plan) -> bool {
    plan.prices != PricesPlan::default() && plan.dataset.rows != RowKind::Article
}

/// Measures the signals of a dataset against the prices of its definition.
pub(super) fn skill_of(plan: &Plan, view: &View, scope: &Scope, stop: &CancellationToken) -> Result<Skill> {
    let prices = Prices::read(&prices_of(plan, &PriceInput::OfDefinition)?, stop)?.by_id(&plan.dataset.identity)?;
    let subject = Subject::part(view.clone(), scope.clone(), &plan.dataset)?;
    skill(SkillOptions::default().input(plan, &subject, &prices), |_| Ok(()))
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
